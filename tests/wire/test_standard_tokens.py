"""Standard tokens: the same ruler for every text there is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paribus.wire import Answer, Piece, standard_token_ends, standard_tokens, standard_tokens_after, utf8_bytes
from scripted.script import WORDS


def test_known_counts() -> None:
    assert standard_tokens("") == 0
    assert standard_tokens("hello world") == 2
    assert standard_token_ends("hello world") == [5, 11]


def test_words_of_the_scripted_endpoint_are_one_token_each() -> None:
    assert all(standard_tokens(f" {word}") == 1 for word in WORDS)
    assert standard_tokens("".join(f" {word}" for word in WORDS)) == len(WORDS)


@pytest.mark.parametrize("text", ["<|endoftext|>", "<|endofprompt|>", "a<|endoftext|>b"])
def test_what_looks_special_is_ordinary_text(text: str) -> None:
    assert standard_tokens(text) > 1
    assert standard_token_ends(text)[-1] == len(text)


def test_lone_surrogates_count_as_a_replacement_character() -> None:
    assert standard_tokens("a\ud83d b") == standard_tokens("a\ufffd b")
    assert utf8_bytes("a\ud83d") == utf8_bytes("a\ufffd") == 4


def test_a_token_that_ends_inside_a_character_ends_with_it() -> None:
    ends = standard_token_ends("👩‍👩‍👧")
    assert ends[-1] == len("👩‍👩‍👧")
    assert len(ends) > len(set(ends)), "several tokens share one character"


def test_a_text_longer_than_the_tokenizer_takes_at_once() -> None:
    text = "the words go on " * 80_000
    ends = standard_token_ends(text)
    assert len(text) > 1_000_000
    assert ends[-1] == len(text)
    assert len(ends) == standard_tokens(text)
    assert abs(len(ends) - 80_000 * standard_tokens(" the words go on")) <= 3
    assert standard_token_ends("x" * 1_200_000)[-1] == 1_200_000


@given(st.text(st.characters(), max_size=60))
@example("\ud800\udc00\udfff")
@example("e\u0301\u200d\ufeff\x00\u2028")
def test_ends_cover_the_whole_text_in_order(text: str) -> None:
    ends = standard_token_ends(text)
    assert len(ends) == standard_tokens(text)
    assert ends == sorted(ends)
    assert (ends[-1] if ends else 0) == len(text)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9), max_size=9))
def test_tokens_after_the_last_piece_are_all_tokens(parts: list[str]) -> None:
    pieces = tuple(Piece(i, part, "", "", None) for i, part in enumerate(parts))
    answer = Answer(pieces, "".join(parts), "", (), "stop", None, None, True, False)
    after = standard_tokens_after(answer)
    assert after == sorted(after)
    assert (after[-1] if after else 0) == standard_tokens("".join(parts))
    # However the text is cut into pieces, a token arrives with the piece that completes it.
    ends = standard_token_ends("".join(parts))
    for i, count in enumerate(after):
        assert count == sum(end <= len("".join(parts[: i + 1])) for end in ends)
