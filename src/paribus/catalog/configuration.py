"""One configuration: a hardware profile's defaults with what `--config` puts in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from paribus.catalog.faults import one_sentence
from paribus.catalog.hardware import HardwareFile
from paribus.catalog.load import Catalog
from paribus.catalog.models import Spec
from paribus.catalog.plan import Plan
from paribus.catalog.tasks import Budget, Scale
from paribus.conditions import UsageError

COMMITTED, NOT_COMMITTED = "results", "build/demo-results"


CATALOG = ("systems/*.yaml", "hardware/*/hardware.yaml", "tasks/**/*.yaml", "engines/*.py")
"""What a private catalog may hold; one that holds none of it would change nothing."""


class Overrides(Spec):
    """What `--config` may set. `catalog`: a private catalog's folder; `results`: another results folder.

    Typed on a command line, where `1` and `"true"` are as good as true.
    """

    model_config = ConfigDict(strict=False)

    scale: str | None = None
    starts: int | None = Field(default=None, ge=1, le=100)
    systems: str | None = Field(default=None, min_length=1)
    measures: str | None = Field(default=None, min_length=1)
    sampling: Literal["served", "greedy"] | None = None
    repeat: int | None = Field(default=None, ge=1, le=100)
    quality: bool | None = None
    quality_budget: Budget | None = None
    catalog: str | None = None
    results: str | None = None


class Configuration(Spec):
    """Everything that decides what is planned, beside the catalog."""

    hardware: str
    scale: str
    starts: int
    systems: str
    measures: str
    sampling: Literal["served", "greedy"]
    repeat: int
    quality: bool
    quality_budget: Budget = "standard"
    results: str
    """Results folder relative to the repository's root."""


def read_overrides(config: Mapping[str, Any]) -> Overrides:
    """The overrides among Snakemake's configuration: keys of `hardware.yaml` and ours; others are refused.

    Snakemake mixes the profile's file with `--config`, so that the file's own values come back as overrides; that
    changes nothing.
    """
    known = set(Overrides.model_fields)
    unknown = sorted(set(config) - known - set(HardwareFile.model_fields))
    if unknown:
        raise UsageError(f"--config has no key {unknown[0]!r}; it has: {', '.join(sorted(known))}")
    # A profile's own `starts` may be null, and it comes back here; what was typed is looked at by `refuse_empty`.
    refuse_empty({key: value for key, value in config.items() if key in known - {"starts"}})
    try:
        return Overrides.model_validate({key: value for key, value in config.items() if key in known})
    except ValidationError as error:
        raise UsageError(f"--config {one_sentence(error)}") from error


def refuse_empty(typed: Mapping[str, Any]) -> None:
    """Refuse a setting that was given without a value: it would read like the default."""
    empty = sorted(key for key, value in typed.items() if value is None or not str(value).strip())
    if empty:
        raise UsageError(f"--config {empty[0]}= is empty: give a value, or leave it out for the default")


def open_catalog(root: Path, overrides: Overrides) -> Catalog:
    """Our catalog, with the private one beside it where `--config catalog=DIR` names it."""
    if overrides.catalog is None:
        return Catalog(root)
    extra = (root / Path(overrides.catalog).expanduser()).resolve()
    if not extra.is_dir():
        raise UsageError(f"--config catalog={overrides.catalog}: there is no such folder")
    if not any(any(extra.glob(pattern)) for pattern in CATALOG):
        listed = ", ".join(CATALOG)
        raise UsageError(f"--config catalog={overrides.catalog}: the folder holds nothing of a catalog: {listed}")
    return Catalog(root, extra)


def catalog_of(root: Path, plan: Plan) -> Catalog:
    """The catalog that a plan was made of."""
    return Catalog(root, Path(plan.catalog) if plan.catalog else None)


def configure(catalog: Catalog, profile: HardwareFile, overrides: Overrides) -> Configuration:
    """The profile's defaults with the overrides in their place."""
    scale: Scale = catalog.scale(_first(overrides.scale, profile.scale))
    return Configuration(
        hardware=profile.hardware,
        scale=scale.scale,
        starts=_first(overrides.starts, profile.starts) or scale.starts,
        systems=_first(overrides.systems, profile.systems),
        measures=_first(overrides.measures, profile.measures),
        sampling=_first(overrides.sampling, profile.sampling),
        repeat=_first(overrides.repeat, profile.repeat),
        quality=_first(overrides.quality, profile.quality),
        quality_budget=_first(overrides.quality_budget, "standard"),
        results=_results(catalog.root, overrides, scale),
    )


def _first(given: Any, default: Any) -> Any:
    return default if given is None else given


def _results(root: Path, overrides: Overrides, scale: Scale) -> str:
    if overrides.results is None:
        return COMMITTED if scale.committed else NOT_COMMITTED
    path = (root / overrides.results).resolve()
    if not path.is_relative_to(root.resolve()) or path == root.resolve():
        raise UsageError(f"--config results={overrides.results}: the results folder must lie below the repository")
    return str(path.relative_to(root.resolve()))
