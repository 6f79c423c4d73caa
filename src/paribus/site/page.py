"""Pages: where each lies, what it is made of, and when it must be rendered again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from paribus.catalog import Catalog, HardwareFile, QualityTask, Scenario
from paribus.conditions import ParibusError, UsageError
from paribus.conditions.hashing import short_id
from paribus.results.lossless import Key, by_decoder
from paribus.site.charts import Chart
from paribus.site.content import Content, Race, Row

_PATH = re.compile(r"[a-z0-9][a-z0-9.-]*(/[a-z0-9][a-z0-9.-]*)*\.html")


@dataclass(frozen=True)
class Site:
    """What every page may draw on: the database's content and the catalog at the repository's root."""

    content: Content
    catalog: Catalog

    @cached_property
    def hardware(self) -> Mapping[str, HardwareFile]:
        """Every hardware profile of the catalog, by name."""
        names = sorted(path.parent.name for path in self.catalog.root.glob("hardware/*/hardware.yaml"))
        return {name: self.catalog.hardware(name) for name in names}

    @cached_property
    def scenarios(self) -> Mapping[str, Scenario]:
        """Speed scenarios that are measured (no races), by id, headline ones first."""
        found = [s for s in self.catalog.scenarios.values() if not s.race]
        return {s.scenario: s for s in sorted(found, key=lambda s: (not s.headline, s.requests, s.scenario))}

    @cached_property
    def tasks(self) -> Mapping[str, QualityTask]:
        """Quality tasks by id, stand-ins last."""
        return dict(sorted(self.catalog.tasks.items(), key=lambda item: (item[1].stand_in, item[0])))

    @cached_property
    def verdicts(self) -> Mapping[Key, list[Row]]:
        """Verdicts of the lossless gates by what they are about."""
        return by_decoder(self.content.lossless)

    @cached_property
    def edition(self) -> str:
        """Edition and protocol version in words."""
        try:
            pairs = self.catalog.pairs
        except ParibusError:
            return "no edition"
        return f"Edition {pairs.edition}, protocol version {pairs.protocol}"

    def model_title(self, model: str) -> str:
        """A model's name in words; its short name when nobody titled it."""
        row = self.content.models.get(model)
        return str(row["title"]) if row is not None and row["title"] else model

    def model_family(self, model: str) -> str:
        """A model's family; its own name when unknown."""
        row = self.content.models.get(model)
        return str(row["family"]) if row is not None and row["family"] else model


@dataclass(frozen=True)
class View:
    """What a page's template gets, and the charts that are also written as files."""

    values: Mapping[str, Any]
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class Page:
    """One page. `path` is below the site's folder; `inputs` (JSON) is all that decides its bytes (None: render always).

    Raises `UsageError` for a path that isn't made of plain names.
    """

    path: str
    template: str
    view: Callable[[], View] = field(repr=False)
    inputs: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse paths that could leave the site's folder: ids in the database may come from strangers."""
        if _PATH.fullmatch(self.path) is None or ".." in self.path:
            raise UsageError(f"{self.path!r} can't be a page of the site: an id in the database is not a plain name")

    @property
    def base(self) -> str:
        """From this page up to the site's folder: empty, or `../` for each folder."""
        return "../" * self.path.count("/")


def run_path(run_id: str) -> str:
    """Where a run's page lies."""
    return f"run/{run_id}.html"


def figure_path(figure_id: str) -> str:
    """Where a figure's permanent page lies."""
    return f"f/{figure_id}.html"


def board_path(hardware: str, scenario: str) -> str:
    """Where a card's leaderboard for one scenario lies."""
    return f"board/{hardware}/{scenario}.html"


def race_id(race: Race) -> str:
    """Permanent id of a race: v and ten characters made from its verdict's path."""
    return short_id("v", race.verdict)


def race_path(race: Race) -> str:
    """Where a race's page lies."""
    return f"race/{race_id(race)}.html"


def pair_path(hardware: str, pair: str) -> str:
    """Where a duel's page lies."""
    return f"pair/{hardware}/{pair}.html"


def site_root(root: Path) -> Path:
    """The folder of templates and assets; `UsageError` when the root is no clone of the project."""
    folder = root / "site"
    if not (folder / "templates" / "base.html").is_file():
        raise UsageError(f"there are no templates in {folder.name}/: go to the folder of your clone of Paribus")
    return folder
