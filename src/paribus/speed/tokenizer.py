"""The model's own tokenizer, where it is at hand: a `tokenizer.json` of the `tokenizers` library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.conditions import UsageError

if TYPE_CHECKING:
    from paribus.speed.metrics.tokens import Tokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a file, or in a folder's `tokenizer.json`. A `UsageError` says why it can't be read.

    It gives, for each token of a text, the character offset after it; no special tokens are added.
    """
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"there is no tokenizer {file}: give a tokenizer.json or the folder that holds it")
    from tokenizers import Tokenizer as Model  # only who has a tokenizer's file needs the library

    try:
        model = Model.from_file(str(file))
    except Exception as error:  # the library raises plain Exception for files it can't read
        raise UsageError(f"{file} is not a tokenizer of the `tokenizers` library: {error}") from error

    def ends(text: str) -> Sequence[int]:
        return [end for _, end in model.encode(text, add_special_tokens=False).offsets]

    return ends
