"""Fetching public prompt sets that are not ours: from `PARIBUS_DATA`, else from where their file says they are.

What is written, below `build/prompts/`, has the form of our own sets. Nothing of theirs is stored in the repository.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paribus.catalog import PromptSource, SetPrompt, prompts_hash
from paribus.catalog.offline import offline
from paribus.conditions import EnvironmentFault, UsageError, hash12, inside
from paribus.machine import write_atomic
from paribus.wire.tokens import plain_words

DATA_VARIABLE = "PARIBUS_DATA"
Row = Mapping[str, Any]
Tell = Callable[[str], None]
_UNFIT = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Converted:
    """Prompts made of rows; how many rows were left out because they hold none, and how many have further turns."""

    prompts: tuple[SetPrompt, ...]
    left_out: int
    more_turns: int


def fetch_prompts(root: Path, source: PromptSource, tell: Tell) -> Path:
    """Fetch a public set into `build/prompts/`, unless it is there; returns the file of prompts.

    Beside it, `<set>.json` says where they came from, their hash, and how many rows held none. Raises `UsageError` for
    rows of another form and `EnvironmentFault` where no source can be reached.
    """
    path = source.fetched(root)
    marker = path.with_suffix(".json")
    local = _local_file(source)
    wanted = hash12({"source": source.model_dump(mode="json"), "local": str(local) if local else None})
    if path.is_file() and _asked_before(marker) == wanted:
        tell(f"{source.set}: already there")
        return path
    rows = random_rows(source) if source.host == "random" else list(_read(local) if local else _remote_rows(source))
    found = convert(source, rows)
    origin = f"{DATA_VARIABLE}/{local.name}" if local else source.origin
    lines = [json.dumps(p.model_dump(exclude_none=True, mode="json"), ensure_ascii=False) for p in found.prompts]
    write_atomic(path, ("\n".join(lines) + "\n").encode())
    about = {
        "asked": wanted,
        "set": source.set,
        "origin": origin,
        "pinned": source.pinned and local is None,
        "rows": len(rows),
        "prompts": len(found.prompts),
        "left_out": found.left_out,
        "prompts_hash": prompts_hash(found.prompts),
        "licence": source.licence,
    }
    write_atomic(marker, (json.dumps(about, indent=1) + "\n").encode())
    for sentence in _account(source, found, len(rows), origin, local is not None):
        tell(sentence)
    return path


def convert(source: PromptSource, rows: Iterable[Row]) -> Converted:
    """Prompts of rows with `question_id`, `category`, `turns`: the first turn of each, all measured, long answers."""
    prompts: dict[str, SetPrompt] = {}
    left_out = more = 0
    for number, row in enumerate(rows, 1):
        turns = _turns(source, number, row)
        if source.placeholder and any(source.placeholder in turn for turn in turns):
            left_out += 1
            continue
        id = f"{source.set}-{_slug(row['question_id'])}"
        if id in prompts:
            raise UsageError(f"{source.set}, row {number}: the id {row['question_id']!r} comes twice")
        more += len(turns) > 1
        prompts[id] = SetPrompt(
            id=id,
            kind=_slug(row["category"]),
            length="long",
            split="measured",
            messages=[{"role": "user", "content": turns[0]}],
        )
    if not prompts:
        raise UsageError(f"{source.set}: none of its {left_out} rows holds a prompt, only references to other sources")
    return Converted(tuple(prompts.values()), left_out, more)


def _turns(source: PromptSource, number: int, row: Row) -> list[str]:
    where = f"{source.set}, row {number}"
    for name in ("question_id", "category"):
        if not isinstance(row.get(name), str | int) or not _slug(row[name]):
            raise UsageError(f"{where}: there is no {name}; rows need question_id, category and turns")
    turns = row.get("turns")
    whole = isinstance(turns, list | tuple) and turns and all(isinstance(t, str) and t.strip() for t in turns)
    if not whole:
        raise UsageError(f"{where}: turns must be a list of texts; rows need question_id, category and turns")
    return list(turns or ())


def _slug(value: Any) -> str:
    return _UNFIT.sub("-", str(value).casefold())[:64].strip("-")


def _account(source: PromptSource, found: Converted, rows: int, origin: str, local: bool) -> list[str]:
    """What was fetched, and everything about it that a reader of figures should know."""
    told = [f"{source.set}: {len(found.prompts)} prompts from {origin}; licence: {source.licence}"]
    if not source.pinned and not local:
        told.append(f"{source.set}: its revision is not pinned: another day may bring other prompts")
    if rows != source.rows:
        told.append(f"{source.set}: {rows} rows, and the whole set has {source.rows}")
    if found.left_out:
        told.append(f"{source.set}: {found.left_out} rows were left out: they hold a reference and no prompt")
    if found.more_turns:
        told.append(f"{source.set}: of {found.more_turns} questions with several turns only the first is asked")
    return told


def _asked_before(marker: Path) -> str | None:
    try:
        return str(json.loads(marker.read_text(encoding="utf-8"))["asked"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _local_file(source: PromptSource) -> Path | None:
    """The first of the source's files that lies below `PARIBUS_DATA`; None without one."""
    folder = os.environ.get(DATA_VARIABLE, "").strip()
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise UsageError(f"{DATA_VARIABLE} is set to {folder}, which is not a folder")
    found = (inside(Path(folder), name) for name in source.local)
    return next((path for path in found if path.is_file()), None)


def _read(path: Path) -> list[Row]:
    """Rows of a Parquet, JSON lines or gzipped JSON lines file."""
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            return list(parquet.read_table(path).to_pylist())
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, EOFError, ValueError) as error:
        raise UsageError(f"can't read the prompts {path}: {' '.join(str(error).split())[:200]}") from error
    if not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"can't read the prompts {path}: every line must be an object")
    return rows


def random_rows(source: PromptSource) -> list[Row]:
    """Rows of a random set: each of exactly `tokens` standard tokens, drawn evenly from its plain words.

    Words with a blank before them, in ASCII letters: what they are joined to is read back as the very same tokens.
    """
    vocabulary = plain_words()
    rows: list[Row] = []
    for number in range(source.rows):
        chance = random.Random(f"{source.set} {source.seed} {number}")  # noqa: S311 (a load, not a secret)
        text = "".join(chance.choices(vocabulary, k=source.tokens or 0))
        rows.append({"question_id": number, "category": "random", "turns": [text]})
    return rows


def _remote_rows(source: PromptSource) -> list[Row]:
    """Rows from the hub or from GitHub, at the source's revision, with `datasets` (which keeps a cache)."""
    hint = f"set {DATA_VARIABLE} to a folder that holds one of {', '.join(source.local)}"
    if offline():
        raise EnvironmentFault(f"{source.set} would come from {source.repository}, and PARIBUS_OFFLINE is set: {hint}")
    try:
        # Imported here: it takes a second, and most commands never need it.
        from datasets import load_dataset
    except ImportError as error:
        raise EnvironmentFault(
            f"{source.set}: fetching it needs the `quality` extra: uv sync --extra quality"
        ) from error
    try:
        if source.host == "github":
            rows = load_dataset("json", data_files=[raw_address(source)], split="train")
        else:
            revision = source.revision if source.pinned else None
            rows = load_dataset(str(source.repository), source.config, revision=revision, split=source.split)
        return [dict(row) for row in rows]
    except Exception as error:  # the library raises many kinds for one cause: no network, no such split, no space
        reason = " ".join(str(error).split())[:200]
        raise EnvironmentFault(f"{source.set}: can't read {source.origin}: {reason}. You can also {hint}") from error


def raw_address(source: PromptSource) -> str:
    """The address of a file on GitHub at the source's revision (its default branch where none is pinned)."""
    at = source.revision if source.pinned else "HEAD"
    return f"https://raw.githubusercontent.com/{source.repository}/{at}/{source.file}"
