"""Delivered tokens: what was written, in the model's own tokens, and how many had arrived with each piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
import numpy.typing as npt

from paribus.conditions.thinking import apart
from paribus.speed.metrics.registry import metric
from paribus.speed.rows import Row
from paribus.speed.summary import Count
from paribus.wire import Answer
from paribus.wire.tokens import standard_tokens, utf8_bytes

Tokenizer = Callable[[str], Sequence[int] | int | None]
"""The model's own tokenizer: for each token of a text, the character offset after it; or only how many tokens there are
(a server's own count); None where it couldn't say."""
Method = Literal["usage", "tokenizer", "standard"]

FEW = 8
SHARE = 0.02
"""Usage and text may differ by max(8 tokens, 2%) on sums."""
MARKUP = 2
"""Tags that a server strips from reasoning, counted and never shown."""
IMPLAUSIBLE = 3
"""Without the model's tokenizer: none cuts ASCII text into three times (or a third of) the standard tokens."""


@dataclass(frozen=True)
class TokenCount:
    """Tokens of one answer. `after[i]`: delivered with piece i. `text`: by the model's tokenizer, where at hand.

    `comparable`: whether usage and text count the same thing (tool calls bring tokens of markup that no piece shows).
    `hidden`: reasoning that usage counts and no piece shows; it is no part of `total`. `most`: tokens that the text can
    hold (`_most`).
    """

    total: float
    reasoning: float
    method: Method
    after: tuple[float, ...]
    after_method: Literal["usage", "tokenizer", "characters"]
    usage: int | None
    text: int | None
    comparable: bool
    hidden: float = 0.0
    most: float = 0.0


def count_tokens(answer: Answer, tokenizer: Tokenizer | None, standard: int | None = None) -> TokenCount:
    """Count one answer. `standard`: its standard tokens, where they are known already.

    `total`: `usage.completion_tokens` without reasoning that nobody was shown; the model's tokenizer over the text
    where there is no usage or where usage counts more than was delivered; else standard tokens (said so), also where
    usage is more than the text can hold: without the model's tokenizer nothing finer can be told from it.
    `after` (`tokens_at`): cumulative usage where each piece carries it, positive and ending at `total` (give or take
    one); else the tokenizer over the text so far, scaled to end at `total`; else characters in proportion.
    """
    delivered = answer.delivered
    lengths = answer.lengths
    standard = standard_tokens(delivered) if standard is None else standard
    told = tokenizer(delivered) if tokenizer is not None else None
    ends = None if isinstance(told, int) else told
    usage = answer.usage.completion_tokens if answer.usage else None
    text = told if isinstance(told, int) else None if told is None else len(told)
    hidden = _hidden(answer, standard)
    shown = None if usage is None else usage - hidden
    most = _most(delivered, standard, shown or 0)
    total, method = _total(shown, text, standard, most, comparable=not answer.tool_calls)
    after, after_method = _after(answer, lengths, ends, total)
    return TokenCount(
        total=total,
        reasoning=_reasoning(answer, total, hidden),
        method=method,
        after=after,
        after_method=after_method,
        usage=usage,
        text=text,
        comparable=not answer.tool_calls,
        hidden=float(hidden),
        most=most,
    )


def _most(text: str, standard: int, told: int) -> float:
    """The most tokens that a text of so many standard tokens can hold; `told`: by its usage.

    Three times the standard tokens of what is ASCII, and the bytes of the rest: tokenizers that know little of a script
    fall back on its bytes (Hindi in SmolLM2's: four times the standard tokens). A model that reads bytes only needs its
    tokenizer here.
    """
    simple = float(IMPLAUSIBLE * standard)
    if told <= simple or text.isascii():
        return simple
    plain = text.encode("ascii", "ignore").decode("ascii")
    return max(simple, float(IMPLAUSIBLE * standard_tokens(plain) + utf8_bytes(text) - len(plain)))


def _hidden(answer: Answer, standard: int) -> int:
    """Tokens of reasoning that usage tells of and nobody was shown; `standard`: standard tokens of what was shown.

    A summary may be shown in their place: it passes for the reasoning up to a third of its tokens. Reasoning that
    came as text, unmarked (a thought that the cap cut), was shown: then usage is nearer to the text with it.
    """
    usage = answer.usage
    if usage is None or usage.completion_tokens is None or not usage.reasoning_tokens:
        return 0
    shown = "".join(_thoughts(answer))
    thought = standard_tokens(shown)
    if usage.reasoning_tokens <= _most(shown, thought, usage.reasoning_tokens) + FEW:
        return 0
    hidden = usage.reasoning_tokens - thought
    rest = usage.completion_tokens - hidden
    nearer = rest >= standard or standard**2 <= rest * usage.completion_tokens
    return hidden if rest >= 0 and nearer else 0


def _thoughts(answer: Answer) -> list[str]:
    """The reasoning that was shown: apart, and inline (`thinking.apart`). Blanks are no thought."""
    return [each for each in (answer.reasoning, apart(answer.text)[0]) if each.strip()]


def _total(
    usage: int | None, text: int | None, standard: int, most: float, *, comparable: bool
) -> tuple[float, Method]:
    # Tokens after the end of sequence were computed, not delivered.
    if usage is not None and text is not None and comparable and usage > text + 1 + max(FEW, SHARE * text):
        return float(text), "tokenizer"
    if usage is not None and text is None and comparable and usage > most + 1 + MARKUP + FEW:
        return float(standard), "standard"
    # A count of nothing beside a text that is there is no count.
    if usage is not None and (usage > 0 or not standard):
        return float(usage), "usage"
    if text is not None:
        return float(text), "tokenizer"
    return float(standard), "standard"


def _low(standard: float) -> float:
    """The fewest tokens that usage may tell for so many standard tokens."""
    return standard / IMPLAUSIBLE - FEW


def _after(
    answer: Answer, lengths: Sequence[int], ends: Sequence[int] | None, total: float
) -> tuple[tuple[float, ...], Literal["usage", "tokenizer", "characters"]]:
    pieces = answer.pieces
    # Only a count that begins with the first piece and ends at the whole tells how many came with each.
    counted = bool(pieces) and all(piece.tokens for piece in pieces)
    said = list(accumulate((float(piece.tokens or 0) for piece in pieces), max)) if counted else []
    if said and abs(said[-1] - total) <= 1:
        # The last piece holds all: what usage adds behind it (an end of sequence) was delivered with it.
        return (*(min(each, total) for each in said[:-1]), total), "usage"
    if ends:
        return _in_proportion(total, _reached(ends, lengths), len(ends)), "tokenizer"
    return _in_proportion(total, np.array(lengths), max(lengths[-1], 1) if lengths else 1), "characters"


def _in_proportion(total: float, parts: npt.NDArray[np.int64], whole: int) -> tuple[float, ...]:
    return tuple((total * parts / whole).tolist())


def _reached(ends: Sequence[int], lengths: Sequence[int]) -> npt.NDArray[np.int64]:
    """How many tokens had ended at each length, in order of the text; the last piece brings all that are left."""
    reached = np.searchsorted(np.maximum.accumulate(np.array(ends)), np.array(lengths), side="right")
    reached[-1:] = len(ends)
    return reached


def _reasoning(answer: Answer, total: float, hidden: int) -> float:
    """Tokens of reasoning among the total: the server's own count, else characters in proportion.

    A server that knows no reasoning sends it as text.
    """
    if answer.usage is not None and answer.usage.reasoning_tokens:
        return float(min(answer.usage.reasoning_tokens - hidden, total))
    delivered = len(answer.delivered)
    return total * sum(map(len, _thoughts(answer))) / delivered if delivered else 0.0


@dataclass(frozen=True)
class UsageCheck:
    """Usage against text, on sums over answers: tokens by usage, by the text, and whether they differ too much."""

    usage: float
    text: float
    by: Literal["tokenizer", "standard tokens", "its own count of reasoning"]
    mismatch: bool
    more_usage: bool


Counted = tuple[TokenCount, int, int]
"""What usage is checked by: count, standard tokens and unseen tokens of an answer. Unseen: those that usage may count
and no piece shows, such as an end of sequence or tags around reasoning."""


def check_usage(counts: Sequence[Counted]) -> UsageCheck | None:
    """Compare sums of usage and text, with a tolerance of max(8, 2%). None where nothing can be compared.

    Takes each whole answer. With the model's own tokenizer the comparison is exact; without it only the implausible is
    caught: more than a text can hold (`_most`), or a third of its standard tokens, of all answers together or of so
    many that what they are off by passes the tolerance. Reasoning that usage counts and nobody was shown needs no
    tokenizer.
    """
    told = [each for each in counts if each[0].usage is not None]
    shown, hidden = sum(c.total for c, _, _ in told), sum(c.hidden for c, _, _ in told)
    if hidden > _slack(shown):
        return UsageCheck(shown + hidden, shown, "its own count of reasoning", mismatch=True, more_usage=True)
    usable = [each for each in told if each[0].comparable]
    if not usable:
        return None
    usage = float(sum(c.usage or 0 for c, _, _ in usable))
    ends = sum(unseen for _, _, unseen in usable)
    if all(c.text is not None for c, _, _ in usable):
        text = float(sum(c.text or 0 for c, _, _ in usable))
        slack = _slack(text)
        return UsageCheck(usage, text, "tokenizer", not text - slack <= usage <= text + ends + slack, usage > text)
    text = float(sum(standard for _, standard, _ in usable))
    off = sum(_off(each) for each in usable)
    most = sum(c.most for c, _, _ in usable) + ends + FEW
    mismatch = off > _slack(text) or not _low(text) <= usage <= most
    return UsageCheck(usage, text, "standard tokens", mismatch, usage > text)


def _slack(text: float) -> float:
    return max(FEW, SHARE * text)


def _off(counted: Counted) -> float:
    """By how many tokens the usage of one answer is off, where it is implausible beside its standard tokens."""
    count, standard, unseen = counted
    usage = count.usage or 0
    plausible = _low(standard) <= usage <= count.most + unseen + FEW
    return 0.0 if plausible or count.text is not None else abs(usage - standard)


@metric("tokens", title="Tokens delivered", unit="tokens", better="", across="no")
def tokens(rows: Sequence[Row]) -> Count:
    """What the model delivered (text, reasoning, tool arguments), in its own tokens.

    `usage.completion_tokens`, never the number of pieces, without reasoning that it counts and nobody was shown. It is
    checked against the text with a tolerance of max(8, 2%) on sums; without usage the text is tokenized again. Total
    and mean over the answered requests.
    """
    return count(row.tokens for row in rows if row.ok)


@metric("standard_tokens", title="Standard tokens delivered", unit="standard tokens", better="", across="yes")
def standard(rows: Sequence[Row]) -> Count:
    """What the model delivered, counted by one tokenizer for every model: `o200k_base`. Total and mean over the
    answered requests."""
    return count(row.standard_tokens for row in rows if row.ok)


@metric("bytes", title="Bytes delivered", unit="bytes", better="", across="yes")
def size(rows: Sequence[Row]) -> Count:
    """What the model delivered, in UTF-8 bytes. Total and mean over the answered requests."""
    return count(row.bytes for row in rows if row.ok)


def reasoning(rows: Sequence[Row]) -> Count:
    """Tokens of reasoning among the delivered ones."""
    return count(row.reasoning_tokens for row in rows if row.ok)


def count(values: Iterable[float]) -> Count:
    """Total and mean of an iterable of numbers."""
    numbers = [float(v) for v in values]
    return Count(total=sum(numbers), mean=sum(numbers) / len(numbers) if numbers else None)
