"""Wire: talks to OpenAI-compatible servers and keeps every byte with its time; reads the answers afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.lazily import lazily

if TYPE_CHECKING:
    from paribus.wire.answer import Answer, Piece, Usage
    from paribus.wire.bodies import payload
    from paribus.wire.client import Client
    from paribus.wire.exchange import Address, Api, Endpoint, Outcome
    from paribus.wire.loop import Lag, LagMeter, run
    from paribus.wire.openai import read_answer
    from paribus.wire.records import iter_outcomes, read_outcomes, write_outcomes
    from paribus.wire.said import said_of, shown_words
    from paribus.wire.spool import Spool
    from paribus.wire.tokens import standard_token_ends, standard_tokens, standard_tokens_after, utf8_bytes

__all__ = [
    "Address",
    "Answer",
    "Api",
    "Client",
    "Endpoint",
    "Lag",
    "LagMeter",
    "Outcome",
    "Piece",
    "Spool",
    "Usage",
    "iter_outcomes",
    "payload",
    "read_answer",
    "read_outcomes",
    "run",
    "said_of",
    "shown_words",
    "standard_token_ends",
    "standard_tokens",
    "standard_tokens_after",
    "utf8_bytes",
    "write_outcomes",
]

if not TYPE_CHECKING:  # which must see a wrong name
    __getattr__ = lazily(__name__)  # see there for the rule
