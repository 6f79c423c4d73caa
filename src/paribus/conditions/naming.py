"""Names and paths: slugs, system names, measure names, the place of a run below `results/`.

`results/<hardware>/<machine>/<system>/<measure>/<conditions>.<n>/start-<k>/`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from paribus.conditions.errors import UsageError

SLUG = r"[a-z0-9][a-z0-9.]*(?:-[a-z0-9.]+)*"
"""One name in a path: lower-case letters, digits and dots, in words joined by single hyphens."""

SYSTEM = rf"{SLUG}--{SLUG}--{SLUG}--{SLUG}(?:--think)?"
CONDITIONS = r"[0-9a-f]{12}\.[1-9][0-9]*"
START = r"start-[1-9][0-9]*"

_slug = re.compile(SLUG)
_system = re.compile(SYSTEM)
_conditions = re.compile(CONDITIONS)
_start = re.compile(START)


def is_slug(text: str) -> bool:
    """Whether the text is one slug."""
    return _slug.fullmatch(text) is not None and ".." not in text


def slug(text: str, what: str) -> str:
    """The text, if it is a slug; otherwise a `UsageError` that names `what` it was meant to be."""
    if not is_slug(text):
        raise UsageError(
            f"{what} {text!r} is not a name Paribus accepts: use lower-case letters, digits and dots, "
            "in words joined by single hyphens"
        )
    return text


_DIFFUSION = ("block", "diffusion", "levels")


def decoder_method(decoder: str) -> str:
    """A decoder's method, read from its name: `mtp-n4` is `mtp`, `dflash2-n3` is `dflash`, `block-32` a diffusion.

    Published results are told apart by it, whatever has become of the system's file since.
    """
    first = decoder.split("-", maxsplit=1)[0]
    if first in _DIFFUSION:
        return "block-diffusion"
    return "dflash" if first == "dflash2" else first


@dataclass(frozen=True, order=True)
class SystemName:
    """`<model>--<precision>--<engine>--<decoder>[--think]`, the decoder with its parameters (`mtp-n4`)."""

    model: str
    precision: str
    engine: str
    decoder: str
    think: bool = False

    def __str__(self) -> str:
        return "--".join([*self.stack, self.decoder]) + ("--think" if self.think else "")

    @property
    def stack(self) -> tuple[str, str, str]:
        """Model, precision and engine: what systems that differ only in their decoder share."""
        return self.model, self.precision, self.engine

    def with_decoder(self, decoder: str) -> SystemName:
        """The same stack and thinking with another decoder. `race` names the race between the decoders."""
        return SystemName(self.model, self.precision, self.engine, slug(decoder, "decoder"), self.think)

    @classmethod
    def parse(cls, text: str) -> SystemName:
        """Read a system's name; a `UsageError` says the form when it isn't one."""
        if _system.fullmatch(text) is None or ".." in text:
            raise UsageError(f"{text!r} is not a system's name: <model>--<precision>--<engine>--<decoder>[--think]")
        parts = text.split("--")
        return cls(parts[0], parts[1], parts[2], parts[3], think=len(parts) == 5)


@dataclass(frozen=True, order=True)
class RunPath:
    """The place of one run below the results folder."""

    hardware: str
    machine: str
    system: str
    measure: str
    conditions: str
    n: int

    def __str__(self) -> str:
        return f"{self.hardware}/{self.machine}/{self.system}/{self.measure}/{self.conditions}.{self.n}"

    def start(self, k: int) -> str:
        """Path of start `k` (from 1) below the results folder."""
        return f"{self}/start-{k}"

    @classmethod
    def parse(cls, text: str) -> RunPath:
        """Read a run's path (relative to the results folder). Refuses anything that isn't exactly one."""
        parts = PurePosixPath(text).parts
        if len(parts) != 5 or not cls.begins(parts) or ".." in text:
            raise UsageError(
                f"{text!r} is not a run's folder: <hardware>/<machine>/<system>/<measure>/<conditions>.<n>"
            )
        conditions, n = parts[4].split(".")
        return cls(parts[0], parts[1], parts[2], parts[3], conditions, int(n))

    @staticmethod
    def begins(parts: Sequence[str]) -> bool:
        """Whether folders, at most five and outermost first, may be the beginning of a run's path."""
        fits: list[Callable[[str], object]] = [is_slug, is_slug, _system.fullmatch, is_slug, _conditions.fullmatch]
        fitting = all(fit(part) and ".." not in part for fit, part in zip(fits, parts, strict=False))
        return len(parts) <= len(fits) and fitting


def start_number(folder: str) -> int:
    """The k of a folder named `start-<k>`."""
    if _start.fullmatch(folder) is None:
        raise UsageError(f"{folder!r} is not a start's folder: start-1, start-2, ...")
    return int(folder.removeprefix("start-"))


def inside(root: Path, relative: str) -> Path:
    """`root / relative`, resolved, refused when it leaves `root` (absolute paths, `..`, links out)."""
    path = (root / relative).resolve()
    if not path.is_relative_to(root.resolve()):
        raise UsageError(f"the path {relative!r} leaves {root.name}/: paths in files stay below it")
    return path
