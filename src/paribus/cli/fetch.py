"""`paribus fetch`: environments, weights, items and prompts, before anything is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from paribus.catalog import Catalog
from paribus.conditions import UsageError
from paribus.machine import watch_parent


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


_ROOT = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    show_default="this folder",
    help="The repository's folder.",
)
_CATALOG = click.option(
    "--catalog",
    "extra",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A private catalog beside ours.",
)


@click.group()
def command() -> None:
    """Fetch weights, items or public prompts, or build an engine's environment. Done once; what is there is left alone.

    Every file is checked against the hash that the repository names. With PARIBUS_OFFLINE=1 nothing is downloaded.

    \b
    Examples:
      paribus fetch env llamacpp
      paribus fetch weights smollm2-135m--q4-1
      paribus fetch items mmlu-pro
      paribus fetch prompts spec-bench
    """


@command.command("env")
@click.argument("engine")
@_ROOT
def env(engine: str, root: Path) -> None:
    """Build the locked environment of ENGINE (envs/ENGINE/requirements.txt) below build/envs/."""
    from paribus.engines.envs import build_environment

    with watch_parent():
        print(build_environment(root.resolve(), engine, _tell).relative_to(root.resolve()))


@command.command("image")
@click.argument("engine")
@click.argument("build")
@_ROOT
@_CATALOG
def image(engine: str, build: str, root: Path, extra: Path | None) -> None:
    """Pull the container image of ENGINE whose digest begins with BUILD (12 digits), with docker or apptainer."""
    from paribus.engines.images import fetch_image

    with watch_parent():
        catalog = Catalog(root.resolve(), extra)
        print(fetch_image(root.resolve(), catalog, engine, build, _tell).relative_to(root.resolve()))


@command.command("weights")
@click.argument("weights", metavar="MODEL--PRECISION")
@_ROOT
@_CATALOG
def weights(weights: str, root: Path, extra: Path | None) -> None:
    """Fetch the weights of one precision of a model into build/weights/."""
    from paribus.engines.weights import fetch_weights

    with watch_parent():
        print(fetch_weights(root.resolve(), Catalog(root.resolve(), extra), weights, _tell).relative_to(root.resolve()))


@command.command("items")
@click.argument("task", metavar="TASK")
@_ROOT
@_CATALOG
def items(task: str, root: Path, extra: Path | None) -> None:
    """Fetch the items of a quality task from the hub into build/items/; measuring and scoring then read them there.

    Only for tasks whose items the hub has: those below PARIBUS_DATA are read where they lie. The commit and the hash
    of what was fetched stand in the marker that is printed.
    """
    from paribus.quality.fetch import fetch_items

    found = Catalog(root.resolve(), extra).task(task)
    with watch_parent():
        print(fetch_items(root.resolve(), found, _tell).relative_to(root.resolve()))


@command.command("prompts")
@click.argument("name", metavar="SET")
@_ROOT
@_CATALOG
def prompts(name: str, root: Path, extra: Path | None) -> None:
    """Fetch a public prompt set that is not ours (spec-bench, speed-bench-...) into build/prompts/.

    It is read from below PARIBUS_DATA where it lies there, else from its publisher at the pinned revision. Its own
    licence holds; nothing of it becomes part of the repository.
    """
    from paribus.speed.sources import fetch_prompts

    sources = Catalog(root.resolve(), extra).prompt_sources
    if name not in sources:
        raise UsageError(f"there is no public prompt set {name!r}; known: {', '.join(sorted(sources))}")
    with watch_parent():
        print(fetch_prompts(root.resolve(), sources[name], _tell).relative_to(root.resolve()))
