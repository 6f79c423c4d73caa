"""Systems: every model of the catalog, what runs where, and what nobody has verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from paribus.catalog import EngineUse, HardwareFile, ModelFile, Precision, System
from paribus.catalog.fit import VERDICTS, Verdict, fit
from paribus.catalog.select import stack_name
from paribus.catalog.weights import Drafter, Weights
from paribus.conditions import ParibusError
from paribus.site.page import Page, Site, View

MARKS: dict[Verdict, str] = {"runs": "yes", "unverified": "yes?", "doesn't fit": "too big", "not supported": "no"}
_KINDS = {"autoregressive": "token by token", "diffusion": "diffusion", "concept": "concept"}


@dataclass(frozen=True)
class Cell:
    """A stack on a card: the mark of its decoder that gets furthest, and the reasons in words."""

    mark: str
    why: str


@dataclass(frozen=True)
class Stack:
    """A row of the matrix: precision and engine, its decoders, a cell a card."""

    name: str
    decoders: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Weighed:
    """Weights of a precision or a drafter in words: where from, at which revision, what memory; who says so."""

    precision: str
    where: str
    revision: str
    revision_source: str
    memory: str
    memory_source: str


Used = tuple[str, str, str, tuple[tuple[str, str], ...]]
"""An engine, its decoders, where its launch settings are from, and who shows it running on which cards."""


@dataclass(frozen=True)
class Entry:
    """One model: facts, its precisions and engines in words, what is bounded or in doubt, and its row in the matrix."""

    name: str
    title: str
    facts: tuple[tuple[str, str], ...]
    weights: tuple[Weighed, ...]
    engines: tuple[Used, ...]
    doubts: tuple[str, ...]
    limits: tuple[str, ...]
    stacks: tuple[Stack, ...]


def pages(site: Site) -> Iterator[Page]:
    """The page of systems; none where the catalog can't be read."""
    try:
        models = list(site.catalog.models.values())
    except ParibusError:
        return

    def view() -> View:
        entries = [_entry(model, list(site.hardware.values())) for model in models]
        tracks = [
            ("instruction", "Models that follow instructions"),
            ("research", "Research models, a track of their own"),
        ]
        by_track = {m.model: m.track for m in models}
        groups = [(title, [e for e in entries if by_track[e.name] == track]) for track, title in tracks]
        return View({"groups": groups, "cards": list(site.hardware), "marks": list(MARKS.items())})

    yield Page("systems.html", "systems.html", view)


def _entry(model: ModelFile, cards: list[HardwareFile]) -> Entry:
    stacks: dict[str, list[System]] = {}
    for system in model.systems():
        stacks.setdefault(stack_name(system).removesuffix("--think"), []).append(system)
    return Entry(
        name=model.model,
        title=model.title,
        facts=tuple(_facts(model)),
        weights=(*(_weights(name, one) for name, one in model.precisions.items()), *_drafters(model)),
        engines=tuple(_engine(name, use) for name, use in model.engines.items()),
        doubts=tuple(dict.fromkeys(_doubts(model))),
        limits=(*model.limits, *(limit for use in model.engines.values() for limit in use.limits)),
        stacks=tuple(_stack(name, systems, cards) for name, systems in stacks.items()),
    )


def _facts(model: ModelFile) -> Iterator[tuple[str, str]]:
    yield "writes", _KINDS[model.kind]
    if model.parameters and model.parameters.total_b:
        active = model.parameters.active_b
        part = f", {active:g} of them at a time" if active and active != model.parameters.total_b else ""
        yield "parameters", f"{model.parameters.total_b:g} billion{part}"
    most = f", answers of at most {model.max_output:,}" if model.max_output else ""
    yield "context", (f"{model.context:,} tokens" if model.context else "not known") + most
    yield "thinking", "no switch" if model.thinking.switch == "none" else "on and off are two systems"
    yield "licence", model.licence
    yield "released", model.released
    if model.sibling:
        yield "compared with", model.sibling
    if model.retired:
        yield "retired", f"{model.retired.date or 'date not known'}: {model.retired.reason}"
    if model.unsupported:
        yield "can't run", model.unsupported
    yield "source", model.source


def _weights(name: str, precision: Precision) -> Weighed:
    memory = f"{precision.memory_gb:g} GB" if precision.memory_gb else "not known"
    return _weighed(name, precision.weights, memory, precision.memory_source or "")


def _drafters(model: ModelFile) -> Iterator[Weighed]:
    """Every drafter once, with the decoders that use it."""
    users: dict[Drafter, list[str]] = {}
    for use in model.engines.values():
        for name, decoder in use.decoders.items():
            if decoder.drafter is not None:
                users.setdefault(decoder.drafter, []).append(name)
    for drafter, names in users.items():
        memory = f"{drafter.needs_gb:.2g} GB more" if drafter.sized else "not known"
        yield _weighed(f"drafter of {', '.join(dict.fromkeys(names))}", drafter, memory, "")


def _weighed(name: str, weights: Weights, memory: str, memory_source: str) -> Weighed:
    where = "served by its maker" if weights.source == "hosted" else weights.repository
    pinned = "" if weights.source == "hosted" else weights.revision[:12]
    where += f", {weights.file}" if weights.file else ""
    return Weighed(name, where, pinned, weights.revision_source or "", memory, memory_source)


def _engine(name: str, use: EngineUse) -> Used:
    shown = tuple((", ".join(one.cards), one.source) for one in use.shown)
    return name, ", ".join(use.decoders), use.launch_source, shown


def _doubts(model: ModelFile) -> Iterator[str]:
    """What no source confirms, and what can't run, each with where it belongs."""
    if model.unverified:
        yield f"not verified: {model.unverified}"
    for name, precision in model.precisions.items():
        yield from _said(name, precision.unverified, precision.unsupported)
    for engine, use in model.engines.items():
        yield from _said(engine, use.unverified, use.unsupported)
        if use.silent and not model.unsupported:
            yield f"{engine}: not verified: no source is named that shows it running"
        for override in use.overrides:
            yield from _said(f"{engine} on {', '.join(override.cards)}", override.unverified, override.unsupported)
        for decoder, how in use.decoders.items():
            yield from _said(f"{engine}, {decoder}", how.unverified, how.unsupported)


def _said(where: str, unverified: str | None, unsupported: str | None) -> Iterator[str]:
    if unsupported:
        yield f"{where}: can't run: {unsupported}"
    if unverified:
        yield f"{where}: not verified: {unverified}"


def _stack(name: str, systems: list[System], cards: list[HardwareFile]) -> Stack:
    decoders = list(dict.fromkeys(system.name.decoder for system in systems))
    _, precision, engine = name.split("--")
    return Stack(f"{precision}, {engine}", ", ".join(decoders), tuple(_cell(systems, card) for card in cards))


def _cell(systems: list[System], card: HardwareFile) -> Cell:
    found = [fit(system, card) for system in systems]
    best = min(found, key=lambda one: VERDICTS.index(one.verdict))
    return Cell(MARKS[best.verdict], best.reason)
