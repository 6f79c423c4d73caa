"""Small, blocking HTTP calls to a server on this machine (readiness, facts, counters); never through a proxy.

Measured requests don't go this way: they go through `paribus.wire`.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_MOST = 16 << 20


class NoAnswer(Exception):
    """The server gave no answer, or not the one that was needed."""


def ask(url: str, body: dict[str, Any] | None = None, *, timeout_s: float = 10, key: str | None = None) -> bytes:
    """GET, or POST of JSON. Raises `NoAnswer` with a few words for anything but a 200."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, headers)  # noqa: S310 (only http and https addresses are built here)
    try:
        with _OPENER.open(request, timeout=timeout_s) as answer:
            return bytes(answer.read(_MOST))
    except urllib.error.HTTPError as error:
        said = error.read(500).decode(errors="replace").strip()
        raise NoAnswer(f"HTTP {error.code}{': ' + said if said else ''}") from error
    except (OSError, ValueError) as error:
        raise NoAnswer(str(getattr(error, "reason", error)) or type(error).__name__) from error


def ask_header(url: str, name: str, *, timeout_s: float = 10) -> str | None:
    """One header of the answer to a GET; None where it has none. Raises `NoAnswer` as `ask` does."""
    try:
        with _OPENER.open(urllib.request.Request(url), timeout=timeout_s) as answer:  # noqa: S310 (as above)
            return str(answer.headers[name]) if answer.headers[name] else None
    except (OSError, ValueError) as error:
        raise NoAnswer(str(getattr(error, "reason", error)) or type(error).__name__) from error


def ask_json(url: str, body: dict[str, Any] | None = None, *, timeout_s: float = 10, key: str | None = None) -> Any:
    """The same, as JSON."""
    try:
        return json.loads(ask(url, body, timeout_s=timeout_s, key=key))
    except ValueError as error:
        raise NoAnswer(f"{url} answered something that isn't JSON") from error
