"""How an endpoint is asked, from the options of `paribus speed` and `paribus quality`: key, sampling, extra fields."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import orjson

from paribus.conditions import UsageError

MEASURED = ("messages", "prompt", "model", "stream")
_CAPS = ("max_completion_tokens", "max_output_tokens", "max_new_tokens", "n_predict", "num_predict")
"""What servers call the token cap, beside `max_tokens`."""
"""Fields that make up what is measured and written down: no extra field may take their place."""


def key_of(variable: str | None) -> str | None:
    """The API key in an environment variable; None where none was named. An empty one is a mistake."""
    if variable is None:
        return None
    key = os.environ.get(variable, "")
    if not key:
        raise UsageError(f"--api-key-env {variable}: there is no such environment variable, or it holds no API key")
    return key


def sampling_of(temperature: float | None, top_p: float | None) -> dict[str, float]:
    """The sampling fields that were given. click lets `nan` and `inf` through its ranges."""
    given = {"temperature": temperature, "top_p": top_p}
    for name, value in given.items():
        if value is not None and not math.isfinite(value):
            raise UsageError(f"{_option(name)} {value} is not a number that can be sent")
    return {name: value for name, value in given.items() if value is not None}


def extra_of(text: str | None, sampling: Mapping[str, float], cap: int) -> dict[str, Any]:
    """The fields of `--extra-body`: none that is measured, and none that an option of its own has set.

    The cap may go by another name, where `max_tokens` is null and the number is that of `--max-tokens`.
    """
    if text is None:
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"--extra-body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("--extra-body must be a JSON object, such as '{\"chat_template_kwargs\": {...}}'")
    taken = [name for name in MEASURED if name in value]
    if taken:
        raise UsageError(f"--extra-body can't set {taken[0]!r}: it would change what is measured")
    # A null takes the cap out, for servers that know it by another name.
    twice = [name for name in sampling if name in value] + ["max_tokens"] * (value.get("max_tokens") is not None)
    if twice:
        raise UsageError(f"--extra-body can't set {twice[0]!r}: use {_option(twice[0])}")
    for name in _CAPS:
        if name in value and not ("max_tokens" in value and value[name] == cap):
            raise UsageError(
                f"--extra-body can't set {name!r} to another cap than is reported: give the number of --max-tokens "
                f'({cap}), and "max_tokens": null in its place'
            )
    return value


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
