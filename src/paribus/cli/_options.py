"""Options that several commands share: a profile, and `--config key=value` as Snakemake reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from paribus.catalog import Catalog, Plan, Surroundings, resolve
from paribus.catalog.configuration import open_catalog, read_overrides, refuse_empty
from paribus.cli._items import LocalItems
from paribus.cli._launches import check_launches
from paribus.conditions import UsageError
from paribus.machine import machine_label, memory_gb, observe_machine
from paribus.machine.proof import found_card

F = TypeVar("F", bound=Callable[..., Any])


def profile_option(function: F) -> F:
    """`--profile NAME`."""
    return click.option("--profile", default="cpu", show_default=True, help="Hardware profile: a folder of hardware/.")(
        function
    )


def catalog_option(function: F) -> F:
    """`--catalog DIR`."""
    return click.option(
        "--catalog",
        "private",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A private catalog beside ours.",
    )(function)


def config_option(function: F) -> F:
    """`--config KEY=VALUE ...`, several at once as Snakemake takes them, or the option several times."""
    option = click.option(
        "--config",
        "settings",
        multiple=True,
        is_eager=True,  # known before the words that follow the first
        metavar="KEY=VALUE ...",
        help="As for Snakemake: scale, starts, systems, measures, sampling, repeat, quality_budget, catalog, results.",
    )
    more = click.argument("more", nargs=-1, metavar="", expose_value=False, callback=_more_settings)
    return option(more(function))


def _more_settings(context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> None:
    """Words after `--config KEY=VALUE` are settings too; without one they are an argument that nobody asked for."""
    given = context.params.get("settings") or ()
    if words and not (given and all("=" in word for word in words)):
        raise click.UsageError(f"Got unexpected extra argument ({' '.join(words)})", context)
    context.params["settings"] = (*given, *words)


def read_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """`key=value` pairs, values read as YAML (so `2` is a number and `true` a truth)."""
    read: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--config {text!r} is not KEY=VALUE")
        try:
            read[key] = yaml.safe_load(value)
        except (yaml.YAMLError, ValueError, RecursionError):
            read[key] = value  # `*` alone is no YAML; it is a glob
    refuse_empty(read)
    return read


def resolve_here(root: Path, profile: str, settings: dict[str, Any], *, check: bool = False) -> Plan:
    """The plan of a profile on this machine. `check`: also look at what would be found wrong only while it runs."""
    catalog = open_catalog(root, read_overrides(settings))
    items = LocalItems(catalog)
    plan = resolve(root, profile, settings, look_around(root, catalog, profile, items), catalog)
    if check:
        check_plan(catalog, plan, items)
    return plan


def check_plan(catalog: Catalog, plan: Plan, items: LocalItems) -> None:
    """Raise `UsageError` for what could not be measured: items that are not the task's, settings no engine knows."""
    items.check(plan)
    check_launches(catalog, plan)


def look_around(root: Path, catalog: Catalog, profile: str, items: LocalItems) -> Surroundings:
    """What a plan of a profile needs to know from here; of its card, when it is in this machine, the memory."""
    around = Surroundings.observe(catalog, machine_label(root), items.part_of, memory_gb())
    card = catalog.hardware(profile).card
    if card.kind in ("cpu", "hosted"):
        return around
    return replace(around, card=found_card(card, observe_machine()))
