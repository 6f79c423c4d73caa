"""What a server's refusal is about: this very question, or whoever asks.

An expired key, a quota used up, a model taken away: such a server refuses every question alike, and none of its words
is an answer to one. Only what a question can bring about by itself is a result of it.
"""

from __future__ import annotations

from paribus.conditions import EnvironmentFault
from paribus.wire import Endpoint, Outcome, said_of

PASSING = {"connect", "reset", "http_408", "http_425", "http_429"}
"""Words for a server that is away or busy for now, beside every `http_5..`."""

_OF_THE_QUESTION = {400, 413, 414, 422}
"""A request that can't be understood, or is too long."""

_OF_WHO_ASKS = {401, 402, 404, 405, 407, 410, *range(300, 400)}
"""No such key, nothing paid, no such address or model, elsewhere. 403 is not among them: some servers say so of a
question that they won't hear. Then it must be seen whether they take others."""

_HINTS = {
    401: "see to its API key",
    402: "see to what was paid for there",
    403: "see to its API key and what it is allowed",
    404: "see to its address, which mostly ends in /v1, and to the model's name",
    407: "see to the proxy",
}
_ADDRESS = "see to its address"


def is_passing(word: str) -> bool:
    """Whether a word says that the server is away, broken or busy for now."""
    return word in PASSING or word.startswith("http_5")


def is_of_the_question(word: str) -> bool:
    """Whether a word is the refusal of this very question."""
    return word in {f"http_{status}" for status in _OF_THE_QUESTION}


def refuse_turned_away(outcome: Outcome, endpoint: Endpoint, name: str, *, harmless: bool = False) -> None:
    """Raise `EnvironmentFault` where a server refuses whoever asks. It names the status and the server's words.

    `harmless`: the request was one that no server has a reason to refuse, so that any refusal is of whoever asks.
    """
    status = outcome.status
    word = f"http_{status}"
    doubtful = 400 <= status < 500 and not is_passing(word) and not is_of_the_question(word)
    if outcome.error == word and (status in _OF_WHO_ASKS or (harmless and doubtful)):
        raise turned_away(status, said_of(outcome, endpoint.api_key), name)


def turned_away(status: int, said: str, name: str) -> EnvironmentFault:
    """The fault of a server that refuses everybody; `said` are its words, quoted."""
    words = f", saying{said}" if said else ""
    hint = _HINTS.get(status, _ADDRESS)
    return EnvironmentFault(
        f"{name} refuses whatever is asked (HTTP {status}{words}): {hint}, then start again, what it answered is kept"
    )
