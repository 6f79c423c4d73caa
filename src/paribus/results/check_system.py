"""`paribus check systems/X.yaml`: what is wrong with a model's file, by line; what is not pinned or not verified."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from paribus.catalog import Catalog, Decoder, EngineUse, Image, ModelFile, Precision, Scalar, System, Weights
from paribus.catalog.engine_use import Override
from paribus.catalog.places import Loc, Places, faults
from paribus.catalog.shown import Shown
from paribus.conditions import ParibusError, SystemName, UsageError
from paribus.engines.launching import check_launch, planned_launch
from paribus.engines.opening import way_of
from paribus.engines.registry import engine
from paribus.results.findings import Report

Finding = tuple[Loc, str]


def check_system(path: Path, catalog: Catalog, report: Report) -> None:
    """One model's file: form, names, engines' settings; then a warning for each thing that is not known for sure."""
    places = Places(path)
    home = path.resolve().parents[1]
    if home != catalog.root.resolve():
        catalog = Catalog(catalog.root, home)
    wrong = [f"{path}, line {line}: {key} stands twice here; YAML keeps only the last" for line, key in places.twice()]
    try:
        model = ModelFile.model_validate(places.data)
    except ValidationError as error:
        wrong += [f"{path}, line {line}: {text}" for line, text in faults(places, error, ModelFile)]
        _say(report, path, wrong)
        return
    if path.stem != model.model:
        wrong.append(f"{path.name} must be named after what it describes: {model.model}.yaml")
    found = [*_form(model, catalog), *_launches(model, catalog)]
    wrong += [f"{path}, line {places.line(loc)}: {text}" for loc, text in found]
    _say(report, path, wrong)
    first = {text: loc for loc, text in reversed(list(_doubts(model)))}
    for text, loc in reversed(first.items()):
        report.say("catalog", f"{path}, line {places.line(loc)}", "warning", text)


def _say(report: Report, path: Path, wrong: list[str]) -> None:
    for text in wrong:
        report.say("catalog", str(path), "fails", text.removeprefix(f"{path}, "))
    if not wrong:
        report.say("catalog", str(path), "holds")


def _form(model: ModelFile, catalog: Catalog) -> Iterator[Finding]:
    """What the types can't see: names elsewhere in the catalog, globs that name nothing, what decoders leave out."""
    if model.sibling and model.sibling != model.model and not _is_model(model.sibling, catalog):
        yield ["sibling"], f"{model.sibling} is no model of the catalog: its file is systems/{model.sibling}.yaml"
    methods = {decoder.method for use in model.engines.values() for decoder in use.decoders.values()}
    if model.kind == "diffusion" and not methods & {"block-diffusion", "undisclosed"}:
        yield ["kind"], "a diffusion model needs a decoder of method block-diffusion (or undisclosed, of a hosted one)"
    profiles = {p.parent.name for r in (catalog.root, catalog.extra) if r for p in r.glob("hardware/*/hardware.yaml")}
    for name, use in model.engines.items():
        here: list[int | str] = ["engines", name]
        names = {"cards": profiles, "precisions": set(use.precisions), "decoders": set(use.decoders)}
        chosen: dict[str, Sequence[Override | Shown]] = {"overrides": use.overrides, "shown": use.shown}
        for key, entries in chosen.items():
            for number, entry in enumerate(entries):
                yield from (([*here, key, number, selector], text) for selector, text in _selectors(entry, names))
        for number, one in enumerate(use.shown):
            if one.source.startswith("results/") and not (catalog.root / one.source.split(" ")[0]).is_dir():
                yield [*here, "shown", number, "source"], f"{one.source} is no folder of runs in this repository"
        for slug, decoder in use.decoders.items():
            yield from (([*here, "decoders", slug], text) for text in _decoder(decoder))
    for system in model.systems():
        SystemName.parse(str(system.name))


def _selectors(entry: Override | Shown, names: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Globs of an entry that name nothing, each with its selector."""
    for selector, known in names.items():
        for glob in getattr(entry, selector):
            if not fnmatch.filter(known, glob):
                yield selector, f"{glob} names none of: {', '.join(sorted(known))}"


def _is_model(name: str, catalog: Catalog) -> bool:
    """Whether the catalog has a file of that name: what is wrong in it isn't this file's fault."""
    return any((root / f"systems/{name}.yaml").is_file() for root in (catalog.root, catalog.extra) if root)


def _decoder(decoder: Decoder) -> Iterator[str]:
    if decoder.speculates and decoder.acceptance == "none":
        yield "how drafts are accepted is missing: `acceptance` is rejection, block or strict for a lossless method"
    if decoder.acceptance == "synthetic":
        yield "synthetic acceptance is no way to write text: it belongs into claim scenarios only"
    if decoder.acceptance == "approximate" and not decoder.lossy:
        yield "approximate acceptance changes the answers: say with which settings under `lossy`"
    if decoder.method == "plain" and (decoder.parameters or decoder.drafter):
        yield "plain decoding takes no parameters and no drafter"


def _launches(model: ModelFile, catalog: Catalog) -> Iterator[Finding]:
    """Settings that the engine doesn't know, each told once; what can't run isn't asked about."""
    told: set[str] = set()
    for system in model.systems():
        if system.unsupported_on():
            continue
        for text, cards in _refusals(system, catalog).items():
            place = "" if None in cards else f" (on {', '.join(map(str, cards))})"
            if text + place not in told:
                told.add(text + place)
                yield ["engines", system.name.engine, "decoders", system.name.decoder], text + place


def _refusals(system: System, catalog: Catalog) -> dict[str, list[str | None]]:
    """What the engine refuses, each with the cards on which it does; None: whatever the card."""
    found: dict[str, list[str | None]] = {}
    for card in [None, *_named_cards(system.use)]:
        text = _refusal(system, card, catalog)
        if text is None and system.use.prefix_caching and _refusal(system, card, catalog, prefix_caching=True):
            text = f"`prefix_caching: false` is missing: {system.name.engine} keeps nothing between requests"
        if text:
            found.setdefault(text, []).append(card)
    return found


def _named_cards(use: EngineUse) -> list[str]:
    return sorted({card for override in use.overrides for card in override.cards if "*" not in card})


def _refusal(system: System, card: str | None, catalog: Catalog, **also: Scalar) -> str | None:
    try:
        adapter = engine(system.name.engine, catalog.extra)
        launch = planned_launch(
            catalog.root, system, way_of(system, adapter), {"slots": 16, **system.launch_on(card), **also}
        )
        check_launch(adapter, launch)
    except UsageError as error:
        return str(error).removeprefix(f"{system.name}: ")
    except ParibusError:  # something isn't fetched or built here, which says nothing about the file
        return None
    return None


def _doubts(model: ModelFile) -> Iterator[Finding]:
    """What is not known for sure, in the file's order."""
    if model.unverified:
        yield ["unverified"], f"not verified: {model.unverified}"
    for name, precision in model.precisions.items():
        yield from ((["precisions", name, *loc], text) for loc, text in _doubts_of_precision(precision))
    for name, use in model.engines.items():
        if use.silent and not model.unsupported:
            yield (
                ["engines", name],
                "not verified: a source that shows it running on a card is missing under `shown`",
            )
        yield from ((["engines", name, *loc], text) for loc, text in _doubts_of_use(use))


def _doubts_of_precision(precision: Precision) -> Iterator[Finding]:
    yield from _unverified(precision)
    yield from ((["weights"], text) for text in _unpinned(precision.weights))
    if precision.memory_gb is None and precision.weights.source != "hosted":
        yield [], "memory_gb is not known, so that nothing tells whether a card can hold it"


def _doubts_of_use(use: EngineUse) -> Iterator[Finding]:
    yield from _unverified(use)
    for loc, image in _images(use) if use.how == "image" else ():
        if image is not None and not image.pinned:
            yield loc, f"the digest of {image.reference} is not known: nothing of it can be planned"
    if use.trust_remote_code:
        yield [], "it runs program code out of the weights' repository (trust_remote_code)"
    for number, override in enumerate(use.overrides):
        if override.unverified:
            yield ["overrides", number], f"not verified: {override.unverified}"
    for slug, decoder in use.decoders.items():
        if decoder.unverified:
            yield ["decoders", slug], f"not verified: {decoder.unverified}"
        if decoder.drafter:
            yield from ((["decoders", slug], f"drafter: {text}") for text in _unpinned(decoder.drafter))


def _images(use: EngineUse) -> Iterator[tuple[Loc, Image | None]]:
    """The images of an engine and where they stand: its own, and those of overrides."""
    yield ["image"], use.image
    for number, override in enumerate(use.overrides):
        yield ["overrides", number, "image"], override.image


def _unverified(part: Precision | EngineUse) -> Iterator[Finding]:
    if part.unverified:
        yield [], f"not verified: {part.unverified}"


def _unpinned(weights: Weights) -> Iterator[str]:
    if not weights.pinned:
        yield f"{weights.repository} is not pinned to a revision: the next fetch may give other weights"
