"""Everything that must be there before an engine starts: its environment, image or program, weights, files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from paribus.catalog import Scalar, System, split_launch
from paribus.catalog.models import CONTEXT_SETTINGS
from paribus.conditions import EnvironmentFault, ParibusError, UsageError, canonical
from paribus.engines.base import Engine, How, Launch
from paribus.engines.bounds import check_bounds
from paribus.engines.containers import Container, find_runner
from paribus.engines.deciding import check_allowed
from paribus.engines.envs import environment_python, environment_versions
from paribus.engines.images import image_of, image_versions
from paribus.engines.weights import digest_of, drafter_path, revision_of, weights_path
from paribus.machine import disk_faults
from paribus.machine.nvml import open_nvml

WEIGHTS, DRAFTER, FILES = (PurePosixPath(f"/paribus/{name}") for name in ("weights", "drafter", "files"))
"""Where a container finds them."""
PLACEHOLDER = Path("WEIGHTS")


@dataclass(frozen=True)
class Prepared:
    """A launch whose paths are there, the container it runs in (if it does), and what is known before it starts."""

    launch: Launch
    container: Container | None = None
    versions: dict[str, str] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)

    @property
    def own_processes(self) -> bool:
        """Whether the engine's processes will be children of ours."""
        return self.container is None or self.container.runner.kind != "docker"


def prepare(engine: Engine, launch: Launch, folder: Path) -> Prepared:
    """Find what the launch needs and write the engine's files into `folder`.

    `EnvironmentFault` names what is missing and the command that gets it; `UsageError` what a file may not set.
    """
    check_program(engine, launch)
    check_allowed(engine, launch)
    make = {"env": _in_environment, "binary": _as_program, "image": _in_container}[launch.how]
    prepared = make(replace(launch, folder=folder))
    _write(engine.files(prepared.launch), folder)
    fetched = {
        "weights_revision": revision_of(launch.root, launch.system),
        "weights_sha256": digest_of(launch.root, launch.system),
    }
    return replace(prepared, observed={name: value for name, value in fetched.items() if value})


def _with_weights(launch: Launch) -> Launch:
    root, system = launch.root, launch.system
    weights = weights_path(root, system)
    return replace(launch, weights=weights, drafter=drafter_path(root, system.drafter) if system.drafter else None)


def _in_environment(launch: Launch) -> Prepared:
    engine = launch.system.name.engine
    python = environment_python(launch.root, engine)
    return Prepared(_with_weights(replace(launch, python=python)), versions=environment_versions(launch.root, engine))


def _as_program(launch: Launch) -> Prepared:
    name = launch.system.use.program or ""  # `check_program` asks for one
    program = shutil.which(name)
    if program is None:
        raise EnvironmentFault(f"the program {name} is not on the path: install it, or add its folder to PATH")
    return Prepared(_with_weights(replace(launch, program=Path(program))))


def _in_container(launch: Launch) -> Prepared:
    runner = find_runner()
    image = image_of(launch.root, launch.system, launch.card, runner)
    launch = _with_weights(launch)
    inside = {launch.weights: WEIGHTS / launch.weights.name, launch.folder: FILES}
    if launch.drafter:
        inside[launch.drafter] = DRAFTER / launch.drafter.name
    container = Container(
        runner=runner,
        name=f"paribus-{os.getpid()}-{launch.folder.name}",
        image=image,
        mounts=tuple((here, Path(there)) for here, there in inside.items()),
        cards=os.environ.get("CUDA_VISIBLE_DEVICES", "").strip() or "all" if open_nvml() is not None else None,
    )
    there = replace(
        launch,
        python=Path("python3"),
        program=Path(launch.system.use.program) if launch.system.use.program else None,
        weights=Path(inside[launch.weights]),
        drafter=Path(inside[launch.drafter]) if launch.drafter else None,
        folder=Path(FILES),
        host=runner.host,
        mounted={Path(there): here for here, there in inside.items()},
    )
    return Prepared(there, container, versions=image_versions(launch.system, launch.card))


def _write(files: Mapping[str, str], folder: Path) -> None:
    with disk_faults(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            if Path(name).name != name:
                raise ValueError(f"an engine's file can't be called {name!r}")
            (folder / name).write_text(text, encoding="utf-8")


def planned_launch(root: Path, system: System, how: How, settings: Mapping[str, Scalar], slots: int = 16) -> Launch:
    """A launch with placeholders for paths and port: for checking settings and showing a command before anything runs.

    The paths are words in capitals (`WEIGHTS`, `DRAFTER`, `FILES`, `PYTHON`).
    """
    own, variables = split_launch(settings)
    given = own.get("slots", slots)
    return Launch(
        root=root,
        python=Path("PYTHON"),
        system=system,
        weights=PLACEHOLDER,
        settings=own,
        slots=given if isinstance(given, int) else slots,
        port=8000,
        drafter=Path("DRAFTER") if system.drafter else None,
        how=how,
        program=Path(system.use.program) if system.use.program else None,
        folder=Path("FILES"),
        variables=variables,
    )


def check_launch(engine: Engine, launch: Launch) -> None:
    """Refuse what can't stand, before anything starts (`UsageError`).

    That is: a program that isn't the engine's, settings or decoder parameters that the engine doesn't know, launch
    settings that would change the answers, numbers out of their bounds, variables that its adapter doesn't list, and a
    `streaming_interval` that nobody would be told.
    """
    interval = launch.system.use.streaming_interval
    if interval != 1 and not engine.streaming_intervals:
        raise UsageError(
            f"{launch.system.name}: {engine.name} can't be told to stream {interval} tokens at a time: leave "
            "streaming_interval out"
        )
    if launch.how == "endpoint":
        unknown = sorted(launch.settings.keys() - {"slots", "prefix_caching", *CONTEXT_SETTINGS})
        if unknown or launch.variables:
            named = [*unknown, *launch.variables][0]
            raise UsageError(f"{launch.system.name}: a hosted server takes no launch setting {named}")
        return
    check_program(engine, launch)
    check_allowed(engine, launch)
    check_bounds(engine, launch)
    try:
        _render(engine, launch)
    except ParibusError:
        raise
    except KeyError as error:
        missing = f"{engine.name} needs the launch setting {error}, which the file doesn't give"
        raise UsageError(f"{launch.system.name}: {missing}") from error
    except Exception as error:  # an adapter is somebody's code, and settings are anything that a file can hold
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise UsageError(
            f"{launch.system.name}: the adapter of {engine.name} can't use {_culprit(engine, launch, error)} ({said})"
        ) from error


def check_program(engine: Engine, launch: Launch) -> None:
    """Refuse a program on the path that is none of the engine's (`UsageError`): `bash` serves no model."""
    name = launch.system.use.program
    if launch.how == "binary" and name is None:
        raise UsageError(f"{launch.system.name}: how: binary needs a program, the one on the path that is the server")
    if launch.how == "binary" and name not in engine.programs:
        known = ", ".join(sorted(engine.programs)) or "none at all"
        raise UsageError(f"{launch.system.name}: {engine.name} is not the program {name} on the path; known: {known}")


def _render(engine: Engine, launch: Launch) -> None:
    """Everything that an adapter makes of a launch before anything starts."""
    words = engine.command(launch)
    variables = engine.environment(launch)
    request = engine.request_fields(launch), engine.request_model(launch), engine.sampling_fields(launch.system)
    odd = [word for word in (*words, *variables, *variables.values(), request[1]) if not isinstance(word, str)]
    if odd or any("\0" in word for word in words):
        raise TypeError(f"command line, variables and model's name are text, not {odd[0] if odd else 'with a zero'!r}")
    canonical(request[0])  # it goes out as JSON
    engine.files(launch)


def _culprit(engine: Engine, launch: Launch, error: Exception) -> str:
    """The one setting or parameter without which the adapter doesn't fail so; else all that there are."""
    decoder = launch.system.decoder
    groups: dict[str, Mapping[str, Scalar]] = {
        "the launch setting": launch.settings,
        "the parameter": decoder.parameters,
        "the lossy setting": decoder.lossy,
    }
    suspects: list[str] = []
    for what, name, value in ((w, n, v) for w, given in groups.items() for n, v in given.items()):
        try:
            _render(engine, _without(launch, what, name))
        except Exception as other:  # as above
            if type(other) is not type(error) or str(other) != str(error):
                suspects.append(f"{what} {name}: {value!r}")  # unless it is merely needed
        else:
            return f"{what} {name}: {value!r}"
    if suspects:
        return suspects[0]
    names = [name for given in groups.values() for name in given]
    return f"its settings {', '.join(names)}" if names else "the system as its file has it"


def _without(launch: Launch, what: str, name: str) -> Launch:
    if what == "the launch setting":
        return replace(launch, settings={n: value for n, value in launch.settings.items() if n != name})
    system, key = launch.system, "parameters" if what == "the parameter" else "lossy"
    left = {n: value for n, value in getattr(system.decoder, key).items() if n != name}
    decoder = system.decoder.model_copy(update={key: left})
    use = system.use.model_copy(update={"decoders": {**system.use.decoders, system.name.decoder: decoder}})
    model = system.model.model_copy(update={"engines": {**system.model.engines, system.name.engine: use}})
    return replace(launch, system=replace(system, model=model))
