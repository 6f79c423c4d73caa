"""Container images of engines: pulled once by digest, before anything is measured."""

from __future__ import annotations

import json
import time
from pathlib import Path

from paribus.catalog import Catalog, Image, System
from paribus.catalog.envs import image_marker
from paribus.catalog.offline import offline
from paribus.conditions import EnvironmentFault, UsageError
from paribus.engines.containers import Runner, find_runner, image_name
from paribus.engines.install import Tell, run_installer
from paribus.machine import disk_faults, write_json
from paribus.machine.locks import file_lock


def build_of(image: Image) -> str:
    """An image's build: the first 12 hex digits of its digest."""
    return image.digest.removeprefix("sha256:")[:12]


def fetch_image(root: Path, catalog: Catalog, engine: str, build: str, tell: Tell) -> Path:
    """Pull the image of an engine whose digest begins with `build`, unless it is there; returns its marker."""
    image = _find(catalog, engine, build)
    marker = root / image_marker(engine, build)
    with disk_faults(marker):
        marker.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(marker.with_name(f".{marker.name}.lock"), f"the image of {engine}", timeout_s=3600):
        if marker.is_file():
            return marker
        runner, name = find_runner(), image_name(image.reference, image.digest)
        if offline():
            raise EnvironmentFault(f"the image {name} would come from its registry, and PARIBUS_OFFLINE is set")
        began = time.monotonic()
        tell(f"pulling {name} with {runner.kind}")
        target = _file(root, engine, build)
        command = ["pull", name] if runner.kind == "docker" else ["pull", "--force", str(target), f"docker://{name}"]
        run_installer([runner.program, *command], f"the image of {engine}", marker.with_suffix(".log"), tell)
        write_json(marker, {"schema": 1, "engine": engine, "image": name, "runner": runner.kind})
        tell(f"the image of {engine} is there ({time.monotonic() - began:.0f} s)")
    return marker


def _find(catalog: Catalog, engine: str, build: str) -> Image:
    """The image of that build in the catalog's files."""
    for model in catalog.models.values():
        use = model.engines.get(engine)
        if use is None:
            continue
        for image in (use.image, *(override.image for override in use.overrides)):
            if image is not None and image.pinned and build_of(image) == build:
                return image
    raise UsageError(f"no file of the catalog names an image of {engine} whose digest begins with {build}")


def _file(root: Path, engine: str, build: str) -> Path:
    return root / "build" / "images" / f"{engine}-{build}.sif"


def image_of(root: Path, system: System, card: str | None, runner: Runner) -> str:
    """The image for a card (a hardware profile) as the runner takes it.

    An `EnvironmentFault` says how to get one that isn't there.
    """
    image, engine = system.image_on(card), system.name.engine
    if image is None or not image.pinned:
        raise UsageError(f"{system.name}: its file names no container image with a digest")
    build = build_of(image)
    again = f"run `paribus fetch image {engine} {build}` (Snakemake does it by itself)"
    try:
        known = json.loads((root / image_marker(engine, build)).read_text(encoding="utf-8"))
        pulled = str(known["runner"])
    except (OSError, ValueError, KeyError, TypeError):
        raise EnvironmentFault(f"the container image of {engine} isn't there: {again}") from None
    if pulled != runner.kind:
        raise EnvironmentFault(
            f"the container image of {engine} was pulled with {pulled}, and this is {runner.kind}: "
            f"delete {image_marker(engine, build)}, then {again}"
        )
    return image_name(image.reference, image.digest) if runner.kind == "docker" else str(_file(root, engine, build))


def image_versions(system: System, card: str | None) -> dict[str, str]:
    """The image for a card (a hardware profile), for a start's versions."""
    image = system.image_on(card)
    return {"image": image_name(image.reference, image.digest)} if image else {}
