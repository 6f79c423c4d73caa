"""vLLM scores given tokens: `prompt_logprobs` of its completions endpoint, which takes a prompt as token ids.

Read in vllm 0.32.0: `entrypoints/openai/completion/protocol.py` (a completion's choice carries `prompt_logprobs`, a
mapping from token id to log-probability for each place and null for the first, and with `return_token_ids` its
`token_ids`, end of text included), `entrypoints/serve/tokenize/protocol.py`, `sampling_params.py` (such a request reads
no prefix cache). Minus infinity comes as -9999.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paribus.catalog import PromptLine
from paribus.engines.scoring import Call, chat_messages, gap, token_ids
from paribus.wire import Endpoint

_TEMPLATE = ("chat_template_kwargs", "chat_template")
COMPLETIONS = "/v1/completions"


class VllmScoring:
    """Scoring by vLLM."""

    def tokens(self, endpoint: Endpoint, prompt: PromptLine) -> Call[list[int]]:
        """`/tokenize` of the chat."""
        switches = {name: value for name, value in endpoint.extra_body.items() if name in _TEMPLATE}
        body = {"model": endpoint.model, **chat_messages(prompt), "add_generation_prompt": True, **switches}
        return Call("/tokenize", body, lambda reply: token_ids(reply["tokens"]))

    def answer(self, endpoint: Endpoint, tokens: Sequence[int], max_tokens: int) -> Call[list[int]]:
        """A completion of tokens, in tokens."""
        body = {**_of(endpoint, tokens), "max_tokens": max_tokens, "return_token_ids": True}
        return Call(COMPLETIONS, body, lambda reply: token_ids(_choice(reply)["token_ids"]))

    def gaps(self, endpoint: Endpoint, tokens: Sequence[int], first: int) -> Call[list[float]]:
        """One more token is written, as it can't be none; it is not looked at."""
        body = {**_of(endpoint, tokens), "max_tokens": 1, "prompt_logprobs": 1}
        return Call(COMPLETIONS, body, lambda reply: _gaps(_choice(reply)["prompt_logprobs"], tokens, first))


def _of(endpoint: Endpoint, tokens: Sequence[int]) -> dict[str, Any]:
    return {"model": endpoint.model, "prompt": list(tokens), "temperature": 0.0}


def _choice(reply: Any) -> Any:
    (choice,) = reply["choices"]
    return choice


def _gaps(places: Any, tokens: Sequence[int], first: int) -> list[float]:
    if not isinstance(places, list) or len(places) != len(tokens):
        raise ValueError("not one set of log-probabilities for each token")
    found = []
    for token, place in zip(tokens[first:], places[first:], strict=True):
        known = {str(name): one["logprob"] for name, one in place.items()}
        found.append(gap(known[str(token)], list(known.values())))
    return found
