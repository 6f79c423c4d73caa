"""The journal of a quality start: one line a request, appended and synced. Scoring needs nothing else.

The first line is a header that says what the journal belongs to; every other line is one `Entry`, keyed by
(task, item, repeat, turn); a key stands there once. A last line without its newline (a crash, a full disk) is dropped.

Whoever submits a journal may have written anything into it: numbers are bounded here, and what the header says is held
against the task, its items and what was declared before it is believed (`quality/believed.py`, `paribus check`).
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from paribus.catalog.faults import one_sentence
from paribus.conditions import CheckFailed, UsageError
from paribus.machine.files import disk_faults, sync_folder
from paribus.machine.locks import lock_alone
from paribus.wire import Endpoint


class Key(NamedTuple):
    """What one request answers: an item, one of its repeats (from 0), one turn of its dialogue (from 0)."""

    task: str
    item: str
    repeat: int
    turn: int = 0


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Number = Annotated[int, Field(ge=0, le=10**9)]
"""A number of tokens, turns or tries: far more than there ever are, and few enough to be added up."""

Nanoseconds = Annotated[int, Field(ge=0, le=10**15)]
"""Up to eleven days."""

MOST = 1_000_000
"""Answers that one journal may promise."""

GREEDY = "greedy"
"""The sampling profile that asks for the likeliest token each time."""

FORM: Final = 2
"""Version of the journal's form. 2: the header says what went into each request, so that it can be made again."""


class Header(_Line):
    """First line: what was asked, of whom, how. A journal continues only under an equal header."""

    kind: Literal["header"] = "header"
    schema_version: Literal[2] = FORM
    task: str
    family: str
    version: str
    items_hash: str
    partial: str | None
    items: list[str]
    """Ids of the items, in the order of the task."""
    repeats: int = Field(ge=1, le=10_000)
    cap: int = Field(ge=1, le=10**9)
    scale: str | None
    limit: int | None = Field(ge=1, le=10**9)
    profile: str | None = None
    """Sampling profile: `greedy`, `served`; null where sampling was given by hand."""
    sampling: dict[str, float | int]
    left_out: list[str]
    """Sampling fields that the engine doesn't accept (`seed` among them)."""
    model: str
    released: str | None
    thinking: bool
    concurrency: int = Field(ge=1, le=10**6)
    served_as: str = ""
    """The model's name in requests."""
    api: Literal["chat", "completions"] = "chat"
    extra_body: dict[str, Any] = {}
    """What else each request carried, the switch for thinking among it."""
    endpoint: str | None = None
    """12 hex digits of the address asked; null for a server that Paribus started itself, whose port is any."""
    harness: dict[str, Any] | None = None
    """What else decides the answers where another program plays dialogues (Tau2): its build, the user simulator, the
    form of tool use, what was left out and why."""

    @model_validator(mode="after")
    def _few_enough(self) -> Header:
        if len(self.items) * self.repeats > MOST:
            raise ValueError(f"{len(self.items)} items times {self.repeats} repeats are more than {MOST} answers")
        return self


def address_hash(endpoint: Endpoint) -> str:
    """12 hex digits of an endpoint's address: tells two servers apart and names none of them."""
    return hashlib.sha256(endpoint.base_url.rstrip("/").encode()).hexdigest()[:12]


class Entry(_Line):
    """One request and its answer. Times in nanoseconds from the first byte sent; null where nothing came.

    `error` is null or one permanent word of the wire, or `tools` etc. for what the engine said inside the stream.
    """

    kind: Literal["answer"] = "answer"
    task: str
    item: str
    repeat: int = Field(ge=-1, le=10_000)
    """-1: a dialogue that only shows what doing nothing gets."""
    turn: Number = 0
    seed: int | None = Field(ge=0, lt=2**31)
    body_sha256: str
    attempts: Number
    status: Number
    error: str | None
    text: str
    reasoning: str
    tool_calls: list[dict[str, str]] = []
    finish_reason: str | None
    prompt_tokens: Number | None
    completion_tokens: Number | None
    reasoning_tokens: Number | None
    ttft_ns: Nanoseconds | None
    e2e_ns: Nanoseconds | None
    asked: str | None = None
    """12 hex digits over the question, where it depends on earlier answers (Tau2)."""

    @field_validator("text", "reasoning", mode="before")
    @classmethod
    def _utf8(cls, value: Any) -> Any:
        """A lone surrogate is no text that can be written down: it becomes U+FFFD."""
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value

    @property
    def key(self) -> Key:
        """The request's key."""
        return Key(self.task, self.item, self.repeat, self.turn)

    @property
    def capped(self) -> bool:
        """Whether the token cap cut the answer."""
        return self.finish_reason == "length"


def read_journal(path: Path) -> tuple[Header, dict[Key, Entry]]:
    """Header and entries of a journal; a torn last line is ignored. Raises `CheckFailed` for a broken one.

    Broken: a line of another form, an older form of journal, a key that stands there twice.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read the journal {path}: {error.strerror}") from error
    lines = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]
    if not lines:
        raise CheckFailed(f"{path} is empty: nothing was generated")
    header = _header(path, lines[0])
    entries: dict[Key, Entry] = {}
    for number, line in enumerate(lines[1:], 2):
        entry = _parse(path, number, line, Entry)
        if entry.key in entries:
            raise CheckFailed(f"{path}, line {number}: a second answer to {', '.join(map(str, entry.key))}")
        entries[entry.key] = entry
    return header, entries


L = TypeVar("L", bound=_Line)


def _header(path: Path, line: bytes) -> Header:
    try:
        form = json.loads(line).get("schema_version")
    except (ValueError, AttributeError, RecursionError):
        form = FORM
    if form != FORM:
        raise CheckFailed(
            f"{path} is a journal of form {str(form)[:20]!r}, and this Paribus reads form {FORM}: its answers can't be "
            "scored here, ask again into another folder"
        )
    return _parse(path, 1, line, Header)


def _parse(path: Path, number: int, line: bytes, kind: type[L]) -> L:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        raise CheckFailed(f"{path}, line {number}: not a line of a journal ({one_sentence(error)[:200]})") from error
    except ValueError as error:
        raise CheckFailed(f"{path}, line {number}: not a line of a journal ({str(error).splitlines()[0]})") from error


class Journal:
    """A journal open for appending, locked for as long; a context manager. What it held before is in `entries`."""

    def __init__(self, path: Path, header: Header) -> None:
        """Open or make the journal.

        Raises `UsageError` when it was made under another header, and while another process, or another journal of
        this one, has it open: two writers would give answers to the same questions, and none could be read again.
        """
        self.path = path
        self.entries: dict[Key, Entry] = {}
        with disk_faults(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = _open_alone(path)
            try:
                self._begin(header)
            except BaseException:
                self._file.close()
                raise

    def _begin(self, header: Header) -> None:
        """Read what is there, or write the header."""
        if not _drop_torn_line(self.path):
            self._write(header.model_dump())
            sync_folder(self.path.parent)
            return
        found, self.entries = read_journal(self.path)
        if found != header:
            raise UsageError(
                f"{self.path} belongs to other conditions ({_difference(found, header)}): move it away or use another "
                "folder"
            )

    def append(self, entry: Entry, *, sync: bool = True) -> None:
        """Add one answer and make it durable. Raises `ValueError` for a key that is there already.

        Without `sync` it is with the system only, and survives this process but not the machine, until `sync()`.
        """
        if entry.key in self.entries:
            raise ValueError(f"the journal already has {entry.key}")
        self._write(entry.model_dump(), sync=sync)
        self.entries[entry.key] = entry

    def sync(self) -> None:
        """Make durable whatever was added so far. May run in another thread."""
        with disk_faults(self.path):
            os.fsync(self._file.fileno())

    def _write(self, value: dict[str, Any], *, sync: bool = True) -> None:
        line = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"
        with disk_faults(self.path):
            self._file.write(line.encode())
            self._file.flush()
        if sync:
            self.sync()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with disk_faults(self.path):
            self._file.close()


def _open_alone(path: Path) -> BinaryIO:
    """Open a file for appending and lock it. Raises `UsageError` where somebody else has."""
    while True:
        file = path.open("ab")
        try:
            if not lock_alone(file.fileno()):
                raise UsageError(f"another process is writing {path}: wait until it has ended, or name another folder")
            # Whoever held it may have moved it away just before: then the lock is on what is no journal any more.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _drop_torn_line(path: Path) -> bool:
    """Cut what follows the last newline; whether whole lines are left."""
    with path.open("r+b") as file:
        data = file.read()
        end = data.rfind(b"\n") + 1
        if end != len(data):
            file.truncate(end)
            os.fsync(file.fileno())
    return end > 0


def _difference(found: Header, wanted: Header) -> str:
    left, right = found.model_dump(), wanted.model_dump()
    name = next(name for name in left if left[name] != right[name])
    if name == "items":
        return "other items"
    return f"{name} is {left[name]!r} there and {right[name]!r} here"
