"""What a request asks for: its JSON body, checked. What can't be done is refused, never passed over in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from serving.settings import Unfit

_PASSED_OVER = frozenset({"user", "metadata", "store"})
"""Fields that say nothing about the answer."""

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "logprobs": (False, 0),
    "top_logprobs": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "ignore_eos": (False,),
    "suffix": ("",),
    "tool_choice": ("auto",),
}
"""Fields of the API that this server lacks, with the values that ask for nothing."""

_RANGES = {"temperature": (0, 100), "top_p": (0, 1), "top_k": (0, 1 << 20), "min_p": (0, 1), "seed": (0, (1 << 63) - 1)}
_WHOLE = frozenset({"top_k", "seed"})


@dataclass(frozen=True)
class Asked:
    """One request. `messages` for a chat, `prompt` for a completion; `most` None: as much as the context holds."""

    messages: list[dict[str, Any]] | None
    prompt: str | None
    tools: list[Any] | None
    template: dict[str, Any]
    most: int | None
    sampling: dict[str, float | int]
    stops: tuple[str, ...]
    stream: bool
    usage: bool

    @property
    def chat(self) -> bool:
        """Whether it is a chat."""
        return self.messages is not None


@dataclass
class Prompt:
    """A rendered prompt: its tokens, and how many may follow."""

    tokens: list[int]
    room: int


def read(body: Any, *, chat: bool, fields: frozenset[str]) -> Asked:
    """Check a body. `fields`: sampling fields that the model's family takes. Raises `Unfit` with one sentence."""
    if not isinstance(body, dict):
        raise Unfit("the body must be a JSON object")
    rest = {name: value for name, value in body.items() if value is not None and name not in _PASSED_OVER}
    rest.pop("model", None)
    most = _length(rest.pop("max_tokens", None), rest.pop("max_completion_tokens", None))
    stream, options = rest.pop("stream", False), rest.pop("stream_options", {})
    if not isinstance(stream, bool) or not isinstance(options, dict):
        raise Unfit("stream must be true or false, stream_options an object")
    asked = Asked(
        messages=_messages(rest.pop("messages", None)) if chat else None,
        prompt=None if chat else _prompt(rest.pop("prompt", None)),
        tools=_tools(rest.pop("tools", None)) if chat else None,
        template=_template(rest.pop("chat_template_kwargs", {})) if chat else {},
        most=most,
        sampling={name: _number(name, rest.pop(name)) for name in sorted(fields & set(rest))},
        stops=_stops(rest.pop("stop", [])),
        stream=stream,
        usage=bool(options.get("include_usage")),
    )
    for name, values in _NEUTRAL.items():
        if name in rest and rest[name] in values:
            del rest[name]
    if rest:
        raise Unfit(f"this server doesn't know, for this model: {', '.join(sorted(map(str, rest)))}")
    return asked


def _length(*given: Any) -> int | None:
    for value in given:
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise Unfit(f"max_tokens must be a whole number of at least 1, not {value!r}")
            return value
    return None


def _number(name: str, value: Any) -> float | int:
    low, high = _RANGES[name]
    kinds = int if name in _WHOLE else int | float
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        raise Unfit(f"{name} must be a {'whole ' if name in _WHOLE else ''}number from {low} to {high}, not {value!r}")
    return value


def _messages(given: Any) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        raise Unfit("messages must be a list of objects")
    return [{**each, "content": _content(each.get("content"))} for each in given]


def _content(given: Any) -> str:
    if given is None:
        return ""
    if isinstance(given, list):
        parts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in given]
        if all(isinstance(part, str) for part in parts):
            return "".join(map(str, parts))
    if not isinstance(given, str):
        raise Unfit("a message's content must be text: this server takes no images or sound")
    return given


def _prompt(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise Unfit("prompt must be a text")
    return given


def _tools(given: Any) -> list[Any] | None:
    if given is not None and not isinstance(given, list):
        raise Unfit("tools must be a list")
    return given or None


def _template(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Unfit("chat_template_kwargs must be an object")
    return given


def _stops(given: Any) -> tuple[str, ...]:
    stops = [given] if isinstance(given, str) else given
    if not isinstance(stops, list) or len(stops) > 16 or not all(isinstance(each, str) and each for each in stops):
        raise Unfit("stop must be a text or a list of up to 16 texts")
    return tuple(stops)
