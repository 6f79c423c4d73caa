"""One HTTP exchange with a server under test: where it goes (`Endpoint`) and what was seen (`Outcome`), raw."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import urlsplit

from paribus.conditions import UsageError

Api = Literal["chat", "completions"]


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server: `base_url` up to and with `/v1`, the model's name, and how to talk to it.

    `extra_body` goes into every request; a null value there takes a field out of the request.
    The key never shows in a repr.
    """

    base_url: str
    model: str
    api: Api = "chat"
    api_key: str | None = field(default=None, repr=False)
    extra_body: dict[str, Any] = field(default_factory=dict)

    def address(self) -> Address:
        """Scheme, host, port and path prefix; `UsageError` when the URL is none that can be called."""
        return parse_address(self.base_url)


@dataclass(frozen=True)
class Address:
    """Where to connect."""

    secure: bool
    host: str
    port: int
    prefix: str

    @property
    def host_header(self) -> str:
        """The `Host` header: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def parse_address(base_url: str) -> Address:
    """The address in a base URL such as `http://127.0.0.1:8000/v1`."""
    if any(ord(letter) <= 32 or ord(letter) >= 127 for letter in base_url):
        raise UsageError(f"the base URL {base_url!r} holds blanks or letters outside ASCII")
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"the base URL {base_url!r} can't be read: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"the base URL {base_url!r} must look like http://host:port/v1")
    if parts.username or parts.password:
        raise UsageError("the base URL must not hold a user name or password; give the API key by environment variable")
    if parts.query or parts.fragment:
        raise UsageError(f"the base URL {base_url!r} must end with its path, such as /v1")
    secure = parts.scheme == "https"
    return Address(secure, host, port or (443 if secure else 80), parts.path.rstrip("/"))


class Reads(Sequence[tuple[int, int]]):
    """Reads as (ns since sent, end offset in the body), kept in two arrays: a hundred thousand pairs would be heavy."""

    __slots__ = ("ends", "times")

    def __init__(self, times: array[int], ends: array[int]) -> None:
        if len(times) != len(ends):
            raise ValueError("as many times as ends are needed")
        self.times, self.ends = times, ends

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Reads:
        """From pairs; reads that are some already are given back."""
        if isinstance(pairs, Reads):
            return pairs
        times, ends = array("q"), array("q")
        for t_ns, end in pairs:
            times.append(t_ns)
            ends.append(end)
        return cls(times, ends)

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.times, self.ends, strict=True)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> Reads: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | Reads:
        if isinstance(index, slice):
            return Reads(self.times[index], self.ends[index])
        return self.times[index], self.ends[index]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclass(frozen=True)
class Outcome:
    """One HTTP exchange, raw. Times are monotonic nanoseconds; see each field for what they count from.

    `error` is None or one permanent word: `connect` (no connection), `reset` (closed before any answer, or reset),
    `cut` (closed in the middle of an answer), `timeout_idle`, `timeout_total`, `http_<status>`, `protocol` (not
    HTTP, or an encoding that was not asked for), `cancelled` (by `Client.abort`).
    """

    index: int
    prompt_id: str
    due_ns: int
    """When it should have left, since the client's epoch."""
    sent_ns: int
    """When its first byte was written, since the client's epoch (the time of the failure, when none was)."""
    connect_ns: int
    """Time spent connecting for this request; 0 on a connection that was there."""
    ended_ns: int
    """When the exchange ended, since the client's epoch."""
    status: int
    """HTTP status; 0: no response."""
    error: str | None
    body: bytes = field(repr=False)
    """Response body: de-chunked and, if compressed, decompressed."""
    reads: Sequence[tuple[int, int]] = field(repr=False)
    """(ns since sent, end offset in the body) of each read that brought body bytes; both increasing."""
    content_type: str
    phase: str
    """`warm-up`, `soak` or `measured`."""
    api: Api
    worker: int
    retry_after_s: float | None = None
    """`Retry-After`, where the server gave one in seconds."""

    @classmethod
    def late(cls, contents: Callable[[], tuple[bytes, Reads]], **known: Any) -> Outcome:
        """An outcome whose `body` and `reads` are put together when they are first asked for.

        While a load runs, the time between an answer's end and the next request is the server's idle time.
        """
        made = cls.__new__(cls)
        made.__dict__.update(known, _contents=contents)
        return made

    if not TYPE_CHECKING:  # to a type checker, all fields are there

        def __getattr__(self, name: str) -> Any:
            if name not in ("body", "reads") or "_contents" not in self.__dict__:
                raise AttributeError(name)
            self.__dict__["body"], self.__dict__["reads"] = self.__dict__.pop("_contents")()
            return self.__dict__[name]
