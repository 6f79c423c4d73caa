"""One start of one planned measure: from the running server to `requests.parquet` and `summary.json`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paribus.catalog import KINDS, Catalog, PlannedMeasure, PromptLine, Scale, Scenario, System
from paribus.conditions import EnvironmentFault, UsageError, start_number
from paribus.engines import Session, StartRecord
from paribus.engines.deaths import EngineDied
from paribus.engines.fingerprint import faults
from paribus.engines.fingerprinting import verify_sampler
from paribus.engines.weights import weights_path
from paribus.machine import Energy, scrub_value
from paribus.machine import Load as MachineLoad
from paribus.machine.proof import power_limited
from paribus.speed.counted import cached_prompt_tokens
from paribus.speed.files import finish
from paribus.speed.flags import Facts
from paribus.speed.measure import Load, Measured, Watch, measure
from paribus.speed.metrics.tokens import Tokenizer
from paribus.speed.rows import Row
from paribus.speed.summarise import Around
from paribus.speed.summary import SpeedSummary
from paribus.speed.tokenizer import load_tokenizer
from paribus.wire import Lag, Spool, run, standard_tokens

PATIENCE_S = 600.0
"""Idle timeout of planned measures: their servers are watched, so that only a stalled request has to be waited out."""
THROTTLED = 0.05
NONCE = "PARIBUS_NONCE"
"""Environment variable: a nonce that the maintainers asked for goes into every unique line."""


def measure_speed_start(session: Session, planned: PlannedMeasure, catalog: Catalog, folder: Path) -> StartRecord:
    """Measure one start into its folder: `requests.parquet`, `requests-lite.parquet`, `summary.json`; no manifest.

    Files appear whole or not at all, the summary last; an interrupted start leaves nothing that counts. Raises
    `EnvironmentFault` when the engine died, `CheckFailed` when nothing was answered. When the engine itself was the
    reason (`EngineDied`), what it had answered until then is written.
    """
    scenario, scale = catalog.scenario(planned.id), catalog.scale(str(planned.declared["scale"]))
    load = load_of(planned, session.system, session.accepted, catalog, folder)
    if session.system.model.kind == "diffusion" and "sampler_fingerprint" not in session.observed:
        session.observed |= verify_sampler(session, catalog)
    watch = Watch(
        gauges=session.gauges,
        warming_up=session.warming_up,
        measuring=session.measuring,
        stop=lambda: not session.alive(),
    )
    folder.mkdir(parents=True, exist_ok=True)
    with Spool() as spool:
        try:
            measured = run(measure(session.endpoint, load, spool, watch))
            session.hold.begin()
            if not session.alive():
                raise session.death()
        except EngineDied as error:
            if len(spool):
                session.record.observed |= scrub_value(error.why, root=catalog.root)
                session.record.observed["sampling_accepted"] = sorted(load.sampling)
                around = around_of(session, planned, scenario=scenario, scale=scale, catalog=catalog, measured=LOST)
                finish(folder, spool, load.prompts, around, tokenizer_of(session.system, catalog), needs_answers=False)
            raise
        around = around_of(session, planned, scenario=scenario, scale=scale, catalog=catalog, measured=measured)
        around = with_machine(around, session.load())
        tokenizer = tokenizer_of(session.system, catalog) or session.token_counter()
        secret = session.endpoint.api_key
        rows, summary = finish(folder, spool, load.prompts, around, tokenizer, secret=secret)
    record = session.record
    record.observed |= observed(rows, summary, load, record.counters) | drafted(
        session.system.decoder.method, record.counters
    )
    return record


LOST = Measured(None, None, "the server died", None, Lag(None, None, 0.0, 0), 0)
"""What is seen around the requests of a server that died: it was no steady load."""


def drafted(method: str, counters: Mapping[str, float]) -> dict[str, str]:
    """What the engine's counters say about its drafting, for the start's manifest; {} where it counts no drafts.

    Raises `EnvironmentFault` when an engine drafted that was declared to decode plainly.
    """
    drafts = counters.get("drafts")
    if drafts is None:
        return {}
    if method == "plain" and drafts:
        raise EnvironmentFault(f"declared is plain decoding, but the engine counted {drafts:,.0f} drafts: not measured")
    return {"drafting_seen": f"yes, {drafts:,.0f} drafts" if drafts else "no drafts"}


def load_of(planned: PlannedMeasure, system: System, accepted: frozenset[str], catalog: Catalog, folder: Path) -> Load:
    """The load of one planned measure. Sampling fields that the engine doesn't accept are left out."""
    scenario, scale = catalog.scenario(planned.id), catalog.scale(str(planned.declared["scale"]))
    cap, context = int(planned.declared["cap"]), context_of(planned, system)
    prompts = fitting(catalog.scenario_prompts(scenario, scale), context, cap)
    kinds = scale.warm_up_kinds or KINDS
    tuning = [
        p
        for p in catalog.prompt_set(scenario.prompts)
        if p.split == "tuning" and p.length == scenario.length and p.kind in kinds
    ]
    if not prompts:
        raise UsageError(f"no prompt of {scenario.scenario} fits the context of {system.name} ({context} tokens)")
    sampling: Mapping[str, float | int] = planned.declared.get("sampling") or {}
    start = start_number(folder.name)
    several = scenario.requests > 1
    return Load(
        concurrency=scenario.requests,
        cap=cap,
        prompts=prompts,
        tuning=fitting(tuning, context, cap) or prompts,
        sampling={name: value for name, value in sampling.items() if name in accepted},
        extra=system.thinking_settings | ({"ignore_eos": True} if scenario.ignore_end else {}),
        requests=scale.requests_of(scenario) if several else len(prompts),
        window_s=scale.window_s if several else 0.0,
        window_completions=scale.window_completions * scenario.requests if several else 0,
        start=start,
        tag=f"{os.environ.get(NONCE, '')} {planned.run} {start}".strip(),
        idle_timeout_s=PATIENCE_S,
        warm_up_blocks=scale.warm_up_blocks,
    )


def fitting(prompts: Iterable[PromptLine], context: int, cap: int) -> list[PromptLine]:
    """Prompts that fit a context together with an answer up to the cap, by 1.5 times their standard tokens.

    Others are `not_applicable` to this system: a comparison uses the prompts that both sides have.
    """
    return [prompt for prompt in prompts if 1.5 * standard_tokens(_words(prompt)) + cap <= context]


def context_of(planned: PlannedMeasure, system: System) -> int:
    """Tokens that one request may hold: the model's context, or what the launch settings leave of it."""
    return system.context_of(planned.declared.get("launch") or {})


def _words(prompt: PromptLine) -> str:
    parts = [prompt.prompt or "", *(str(m.get("content", "")) for m in prompt.messages or []), str(prompt.tools or "")]
    return "\n".join(parts)


def tokenizer_of(system: System, catalog: Catalog) -> Tokenizer | None:
    """The model's own tokenizer: `tokenizer.json` in the folder of its fetched weights; None without a whole one."""
    try:
        return load_tokenizer(weights_path(catalog.root, system) / "tokenizer.json")
    except (EnvironmentFault, UsageError):
        return None


def around_of(
    session: Session,
    planned: PlannedMeasure,
    *,
    scenario: Scenario,
    scale: Scale,
    catalog: Catalog,
    measured: Measured,
) -> Around:
    """What was seen around the requests of a start."""
    accepted = session.accepted
    counters = dict(session.record.counters)
    sampler_mismatch, sampler_unverified = faults(session.observed)
    facts = Facts(
        rows=(),
        cpu=catalog.hardware(str(planned.declared["hardware"])).card.kind == "cpu",
        headline=scenario.headline and not scenario.prefix_caching,
        hosted=session.hosted,
        thinking=planned.declared.get("thinking"),
        **of_the_server(session.observed, session.record.observed),
        synthetic=_synthetic(scenario, session.system),
        preliminary_scale=scale.scale if scale.preliminary else None,
        lag_ms_p99=measured.lag.lag_ms_p99,
        admitted=admitted_of(session.observed, measured, scenario.requests),
        warm_up=measured.warm_up.unsettled if measured.warm_up else "",
        window_short=measured.window_short,
        left_out=sorted(set(planned.declared.get("sampling") or {}) - accepted),
        sampler_mismatch=sampler_mismatch,
        sampler_unverified=sampler_unverified,
        power_limited=power_limited(session.observed),
    )
    return Around(
        concurrency=scenario.requests,
        window=measured.window,
        counters=counters,
        engine=measured.engine,
        cpu_share=measured.lag.cpu_share,
        facts=facts,
    )


def admitted_of(observed: Mapping[str, Any], measured: Measured, asked: int) -> int | None:
    """Requests admitted: what the gauge told; without one, what the server says where that is fewer than asked."""
    told = observed.get("admitted")
    fewer = isinstance(told, int) and asked > 1 and told < asked
    return measured.admitted if measured.admitted is not None or not fewer else told


def of_the_server(*observed: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Facts` that say how the server ran: from observed conditions, live or in a manifest."""
    found = {name: value for each in observed for name, value in each.items()}
    return {
        "compiled": tuple(map(str, found.get("compiled_in_window") or ())),
        "settings_differ": tuple(map(str, found.get("settings_differ") or ())),
        "research": str(found.get("engine_version") or "as its file says")
        if found.get("research_implementation")
        else "",
        "died": str(found.get("died") or ""),
    }


def _synthetic(scenario: Scenario, system: System) -> str:
    if scenario.synthetic:
        return f"the scenario {scenario.scenario}"
    return "faked acceptance" if system.decoder.acceptance == "synthetic" else ""


def with_machine(around: Around, load: MachineLoad | None) -> Around:
    """What the machine's telemetry adds: was it busy elsewhere, throttled, how much energy it took.

    Energy is the counter's, checked against the integral of polled power; further apart than 5%, there is none.
    """
    if load is None:
        return around
    slow = load.throttled_share is not None and load.throttled_share > THROTTLED
    energy = Energy(load.energy_j, integral_j=load.power_integral_j, missing=load.energy_missing)
    apart = f"counter {energy.joules:.0f} J, power integral {energy.integral_j:.0f} J" if energy.apart else ""
    facts = replace(
        around.facts,
        busy_share=load.others_share,
        throttled=(
            f"{100 * (load.throttled_share or 0):.0f}% of the window, {', '.join(load.throttle_reasons)}"
            if slow
            else ""
        ),
        throttled_severity="note" if load.power_cap_only else "invalid",
        energy_disagrees=apart,
    )
    whole = bool(energy.joules) and not apart
    return replace(
        around,
        facts=facts,
        energy_j=energy.joules if whole else None,
        energy_scope=load.energy_scope if whole else None,
        energy_missing=None if whole else energy.missing or apart or None,
    )


def write_unasked(planned: PlannedMeasure, catalog: Catalog, folder: Path, why: Mapping[str, str]) -> None:
    """The files of a start of which no request was kept, and a summary that says why (`not_started` or `died`)."""
    declared = planned.declared
    around = around_unasked(catalog.scenario(planned.id), catalog.scale(str(declared["scale"])), why)
    with Spool() as spool:
        finish(folder, spool, (), around, needs_answers=False)


def around_unasked(scenario: Scenario, scale: Scale, why: Mapping[str, str]) -> Around:
    """All there is to see around the requests of a start that has none."""
    preliminary = scale.scale if scale.preliminary else None
    not_started, died = (str(why.get(name) or "") for name in ("not_started", "died"))
    facts = Facts(rows=(), preliminary_scale=preliminary, not_started=not_started, died=died)
    return Around(concurrency=scenario.requests, facts=facts)


def observed(rows: Sequence[Row], summary: SpeedSummary, load: Load, counters: Mapping[str, float]) -> dict[str, Any]:
    """Observed conditions of the start that the requests and the engine's counters tell."""
    return {
        "admitted": summary.admitted,
        "cached_tokens": cached_prompt_tokens(rows, counters),
        "sampling_accepted": sorted(load.sampling),
        "tokens_method": summary.tokens_method,
        "energy_scope": summary.energy_scope,
    }
