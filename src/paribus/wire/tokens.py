"""Standard tokens: one ruler for every model. `o200k_base` (one vendor's tokenizer, said so), offline.

Text is counted as plain text: strings that look like special tokens are ordinary letters. Lone surrogates count as
U+FFFD. bpe-openai refuses a million characters at once, so longer texts are counted in stretches.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from paribus.wire.answer import Answer

if TYPE_CHECKING:
    import bpe_openai

_STRETCH = 500_000
_SURROGATES = re.compile("[\ud800-\udfff]")


@functools.cache
def _encoding() -> bpe_openai.Encoding:
    import bpe_openai  # 60 MB of tables that only the reading afterwards needs

    return bpe_openai.get_encoding("o200k_base")


def forget_tables() -> None:
    """Let go of the tokenizer's tables; they come back when they are needed."""
    _encoding.cache_clear()


@functools.lru_cache(maxsize=300_000)
def _characters_begun(token: int) -> int:
    """How many characters begin in a token: its bytes that are no UTF-8 continuation."""
    return sum(byte & 0xC0 != 0x80 for byte in _encoding().decode_single_token_bytes(token))


def standard_tokens(text: str) -> int:
    """The number of standard tokens in a text."""
    return sum(len(_encoding().encode_ordinary(part)) for part in _stretches(text))


@functools.cache
def plain_words() -> tuple[str, ...]:
    """The standard tokens that are a blank and ASCII letters, in the tokenizer's order.

    However they are joined, each is read back as itself: the tokenizer splits before a blank.
    """
    found = []
    for token in range(_encoding().n_vocab):
        try:
            text = _encoding().decode_single_token_bytes(token).decode("ascii")
        except (KeyError, ValueError):
            continue
        if re.fullmatch(" [A-Za-z]+", text):
            found.append(text)
    return tuple(found)


def standard_token_ends(text: str) -> list[int]:
    """For each standard token, the character offset after it.

    A token that ends inside a character ends after that character, since no piece can deliver half of one. The last
    offset is the text's length; offsets never fall.
    """
    tokens = (token for part in _stretches(text) for token in _encoding().encode_ordinary(part))
    return list(accumulate(_characters_begun(token) for token in tokens))


def standard_tokens_after(answer: Answer) -> list[int]:
    """For each piece, how many standard tokens of the delivered text have arrived with it (the last: all)."""
    ends = standard_token_ends(answer.delivered)
    lengths = accumulate(len(piece.delivered) for piece in answer.pieces)
    return [bisect_right(ends, length) for length in lengths]


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
