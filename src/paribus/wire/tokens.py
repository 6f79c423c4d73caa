"""Standard tokens: one ruler for every model. `o200k_base` (one vendor's tokenizer, said so), offline.

Text is counted as plain text: strings that look like special tokens are ordinary letters. Lone surrogates count as
U+FFFD. Long texts are counted in stretches.
"""

from __future__ import annotations

import binascii
import functools
import gzip
import importlib.util
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.conditions import EnvironmentFault
from paribus.machine.heap import let_go_of
from paribus.wire.answer import Answer

if TYPE_CHECKING:
    from bpe_openai._bindings import PyTokenizer

_NAME = "o200k_base"
_STRETCH = 500_000
_SURROGATES = re.compile("[\ud800-\udfff]")


def _folder() -> Path:
    """Where bpe-openai lies, found without importing it."""
    found = importlib.util.find_spec("bpe_openai")
    places = found.submodule_search_locations if found is not None else None
    if not places:
        raise EnvironmentFault("the package bpe-openai is missing: run `uv sync`")
    return Path(places[0])


@functools.cache
def _tokenizer() -> PyTokenizer:
    """The package's tokenizer in Rust, which holds its tables itself.

    Importing the package builds three more in Python, ours among them: half a second and 80 MB that nobody here needs.
    """
    name = "bpe_openai._bindings"
    if name not in sys.modules:
        files = [path for path in _folder().glob("_bindings.*") if path.suffix != ".pyi"]
        if not files:
            raise EnvironmentFault("the package bpe-openai has no tokenizer for this platform: run `uv sync`")
        spec = importlib.util.spec_from_file_location(name, files[0])
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    made: PyTokenizer = sys.modules[name].tokenizer_for_encoding(_NAME)
    let_go_of(Path(str(sys.modules[name].__file__)).resolve())  # 30 MB, read once to make the tables
    return made


@functools.cache
def _vocabulary() -> tuple[bytes, ...]:
    """The bytes of each token, by its number. Read only for text in which a token ends inside a character."""
    with gzip.open(_folder() / "data" / f"{_NAME}.tiktoken.gz", "rb") as file:
        rows = sorted((int(number), binascii.a2b_base64(text)) for text, number in (line.split() for line in file))
    # Numbers begin at 0; what follows the last, or a gap, are special tokens, which plain text doesn't have.
    known = dict(rows)
    return tuple(known.get(number, b"") for number in range(rows[-1][0] + 1))


class _CharactersBegun(dict[int, int]):
    """How many characters begin in a token: its bytes that are no UTF-8 continuation. Worked out when first asked."""

    def __missing__(self, token: int) -> int:
        try:
            count = len(_tokenizer().decode([token]))
        except ValueError:  # part of a character
            count = sum(byte & 0xC0 != 0x80 for byte in _vocabulary()[token])
        self[token] = count
        return count


_CHARACTERS_BEGUN = _CharactersBegun()


def standard_tokens(text: str) -> int:
    """The number of standard tokens in a text."""
    return sum(len(_tokenizer().encode(part)) for part in _stretches(text))


@functools.cache
def plain_words() -> tuple[str, ...]:
    """The standard tokens that are a blank and ASCII letters, in the tokenizer's order.

    However they are joined, each is read back as itself: the tokenizer splits before a blank.
    """
    return tuple(token.decode() for token in _vocabulary() if re.fullmatch(b" [A-Za-z]+", token))


def standard_token_ends(text: str) -> list[int]:
    """For each standard token, the character offset after it.

    A token that ends inside a character ends after that character, since no piece can deliver half of one. The last
    offset is the text's length; offsets never fall.
    """
    tokens = (token for part in _stretches(text) for token in _tokenizer().encode(part))
    return list(accumulate(map(_CHARACTERS_BEGUN.__getitem__, tokens)))


def standard_tokens_after(answer: Answer) -> list[int]:
    """For each piece, how many standard tokens of the delivered text have arrived with it (the last: all)."""
    ends = standard_token_ends(answer.delivered)
    return [bisect_right(ends, length) for length in answer.lengths]


def utf8_bytes(text: str) -> int:
    """The text's length in UTF-8 bytes (a lone surrogate counts as U+FFFD)."""
    return len(text.encode("utf-8", "replace")) if text.isascii() else len(_clean(text).encode())


def _clean(text: str) -> str:
    return _SURROGATES.sub("\ufffd", text)


def _stretches(text: str) -> Iterator[str]:
    """The text in stretches short enough for the tokenizer, split before a blank where there is one."""
    text = text if text.isascii() else _clean(text)
    start = 0
    while len(text) - start > _STRETCH:
        blank = max(text.rfind(" ", start + 1, start + _STRETCH), text.rfind("\n", start + 1, start + _STRETCH))
        end = blank if blank > start else start + _STRETCH
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]
