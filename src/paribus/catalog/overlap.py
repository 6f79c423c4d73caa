"""Whether prompts share text with other data: runs of equal words, whatever stands between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

RUN = 13
"""Words in a row that two texts don't share by chance; what contamination studies use."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u3040-\u30ff\u3400-\u9fff])\w)+")


def words_of(text: str) -> list[str]:
    """The words of a text, without case and punctuation; each character where a script puts no blanks between words."""
    return _WORD.findall(text.casefold())


def runs_of(text: str, size: int = RUN) -> set[tuple[str, ...]]:
    """All runs of `size` words in a text."""
    return set(_runs(text, size))


def shared_runs(own: Mapping[str, str], others: Iterable[str], size: int = RUN) -> dict[str, str]:
    """The ids of our texts that share a run of `size` words with one of the others, each with one such run."""
    known = {run: id for id, text in own.items() for run in runs_of(text, size)}
    found: dict[str, str] = {}
    for text in others:
        for run in _runs(text, size):
            if run in known:
                found.setdefault(known[run], " ".join(run))
    return found


def _runs(text: str, size: int) -> Iterator[tuple[str, ...]]:
    words = words_of(text)
    return zip(*(words[start:] for start in range(size)), strict=False)
