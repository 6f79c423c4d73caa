"""Taking the sampler fingerprint of a running server, and finding the reference's."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from paribus.catalog import Catalog, PromptLine, System
from paribus.catalog.faults import one_sentence
from paribus.conditions import EnvironmentFault, Manifest, UsageError
from paribus.engines.fingerprint import (
    NO_REFERENCE,
    PROMPTS,
    UNVERIFIED,
    Reading,
    Reference,
    fixed_prompts,
    read,
    verify,
)
from paribus.engines.local import NoAnswer, ask_json
from paribus.engines.session import Session
from paribus.wire import payload

FOLDER = Path("systems") / "fingerprints"
PROMPT_SET = "own-v1"
REFERENCES = ("transformers", "transformers-cpu")
"""Engines whose denoising is the reference: Transformers' own loop, or ours where the model has none."""

CANVAS = 256
"""Tokens of a canvas where neither the server nor the catalog says."""

_SETTLE_S, _GIVE_UP_S = 0.02, 5.0


def reference_file(system: System) -> Path:
    """Where the reference's readings of a system's sampler lie, below a catalog's root."""
    name = system.name
    return FOLDER / f"{name.model}--{name.precision}--{name.decoder}.json"


def reference_of(catalog: Catalog, system: System) -> Reference | None:
    """The reference's readings, where somebody has taken them: in a private catalog first.

    A `UsageError` names what is wrong with the file.
    """
    roots = [root for root in (catalog.extra, catalog.root) if root is not None]
    path = next((root / reference_file(system) for root in roots if (root / reference_file(system)).is_file()), None)
    if path is None:
        return None
    try:
        found = Reference.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path}: {one_sentence(error)}") from error
    if found.lossy != dict(system.decoder.lossy):
        raise UsageError(f"{path} is of other denoising settings than {system.name}: take it anew")
    return found


def canvas_of(system: System, observed: Mapping[str, Any]) -> int:
    """Tokens of a canvas or block: as the server tells it, else as the catalog does."""
    told = {**system.decoder.lossy, **(observed.get("effective_settings") or {})}
    return int(told.get("canvas_length") or told.get("block_length") or CANVAS)


def verify_sampler(session: Session, catalog: Catalog) -> dict[str, Any]:
    """Take the fingerprint of a session's server and hold it against the reference's: conditions to observe.

    Not while anything is measured: prompts are asked one after the other, and the counters are read between them.
    Without a reference there is nothing to read for, but on the reference implementation itself: its readings, kept
    with its start, are what a reference is made of (`paribus fingerprint`).
    """
    system = session.system
    reference = reference_of(catalog, system)
    if reference is None and session.engine.name not in REFERENCES:
        if "denoising_steps" not in session.counters():
            return verify([], None)
        return {"sampler_fingerprint": UNVERIFIED, "sampler_note": NO_REFERENCE}
    prompts = prompts_of(catalog)
    canvas = canvas_of(system, session.observed)
    try:
        readings = read(prompts, lambda prompt: _canvas(session, prompt, canvas), lambda: _settled(session))
    except (ValueError, NoAnswer) as error:
        raise EnvironmentFault(f"{system.name}: its sampler's fingerprint could not be taken: {error}") from error
    return verify(readings, reference)


def prompts_of(catalog: Catalog) -> list[PromptLine]:
    """The fixed prompts: tuning prompts of our set. Not its long inputs, which some research models can't hold."""
    mine = [p for p in catalog.prompt_set(PROMPT_SET) if p.split == "tuning" and p.kind != "long-input"]
    return fixed_prompts(mine)


def _canvas(session: Session, prompt: PromptLine, canvas: int) -> str:
    """The text of a prompt's first canvas."""
    body = payload(session.endpoint, prompt, max_tokens=canvas, sampling=session.sampling(), stream=False)
    answer = ask_json(f"{session.endpoint.base_url}/chat/completions", json.loads(body), timeout_s=600)
    try:
        message = answer["choices"][0]["message"]
        return str(message.get("reasoning_content") or "") + str(message.get("content") or "")
    except (LookupError, TypeError, AttributeError) as error:
        raise NoAnswer("an answer is no chat completion") from error


def _settled(session: Session) -> dict[str, float]:
    """Counters when they have stopped moving: some engines publish them a moment after they have answered."""
    until, last = time.monotonic() + _GIVE_UP_S, session.counters()
    while time.monotonic() < until:
        time.sleep(_SETTLE_S)
        now = session.counters()
        if now == last:
            return now
        last = now
    raise NoAnswer("its counters never come to rest")


def reference_from(manifest: Manifest) -> Reference:
    """A reference out of the manifest of a start on the reference implementation. Raises `UsageError`."""
    declared, observed = manifest.declared, manifest.observed
    if declared.get("engine") not in REFERENCES:
        raise UsageError(f"a reference comes from {' or '.join(REFERENCES)}, not from {declared.get('engine')}")
    readings = observed.get("sampler_readings") or []
    if len(readings) != PROMPTS:
        raise UsageError(f"{manifest.path} holds {len(readings)} readings of its sampler, a reference needs {PROMPTS}")
    return Reference(
        model=str(declared["model"]),
        precision=str(declared["precision"]),
        decoder=str(declared["decoder"]),
        lossy=declared.get("lossy") or {},
        engine_version=str(observed["engine_version"]),
        readings=[Reading(prompt=name, passes=passes, first=first) for name, passes, first in readings],
    )
