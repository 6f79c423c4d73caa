"""Tau2's floor as it was played once: which tasks an agent that does nothing gets right.

It depends on nothing but the public tasks, the benchmark's build, its limits and the words of the two who play it, so
that it is kept in a file beside the task's (`settings.floor_file`): figures, ids and hashes, no text. What was
played under other rules or with another build doesn't count, and is played again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from paribus.catalog import QualityTask
from paribus.catalog.envs import lock_hash
from paribus.conditions import UsageError, hash12, inside
from paribus.quality.canonical import Item, item_id
from paribus.quality.tau2_package import environment_of
from paribus.quality.tau2_users import IDLE_WORDS

Floors = dict[str, list[float]]
"""By domain, the rewards of its items, in their order."""


class RecordedFloor(BaseModel):
    """The file. `build`: the lock of the harness's environment; `rules`: 12 hex digits over all else that decides."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    version: str
    harness: str
    build: str
    rules: str
    items_hash: str
    made_by: str
    floors: dict[str, float]
    items: dict[str, int]
    rewarded: list[str]
    """Ids of the items with reward 1; all others get 0."""


def recorded_floor(task: QualityTask, root: Path, items: Sequence[Item]) -> Floors | None:
    """The floor of these items out of the task's file; None where there is none for this build and these rules.

    The items are taken as the task's own: whoever loaded them has held them against the list of known items.
    """
    found = read_floor(task, root)
    if found is None or found != record(task, root, found.rewarded, found.items):
        return None
    rewards: Floors = {}
    for item in items:
        rewards.setdefault(str(item["domain"]), []).append(float(item_id(task, item) in found.rewarded))
    return dict(sorted(rewards.items()))


def read_floor(task: QualityTask, root: Path) -> RecordedFloor | None:
    """The task's file; None where it names none. Raises `UsageError` for a broken one."""
    name = task.settings.get("floor_file")
    if name is None:
        return None
    path = inside(root / "tasks" / "quality", str(name))
    try:
        return RecordedFloor.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise UsageError(f"can't read {path}: {str(error).splitlines()[0]}") from error


def record(task: QualityTask, root: Path, rewarded: Sequence[str], items: Mapping[str, int]) -> RecordedFloor:
    """The file's content: which items get 1, of how many in each domain, and what that was found with."""
    settings = task.settings
    limits = [settings["max_steps"], settings["max_errors"]]
    counts = dict.fromkeys(items, 0)
    for name in rewarded:
        counts[name.split("-")[0]] += 1
    return RecordedFloor(
        task=task.task,
        version=task.version,
        harness=str(settings["harness"]),
        build=lock_hash(root, environment_of(task)) or "",
        rules=hash12([task.scorer, limits, list(IDLE_WORDS)]),
        items_hash=task.data.items_hash or "",
        made_by="scripts/tau2-floor",
        floors={domain: round(counts[domain] / count, 6) for domain, count in items.items()},
        items=dict(items),
        rewarded=sorted(rewarded),
    )
