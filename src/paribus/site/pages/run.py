"""A run's page: the number, its sentence, its conditions, then what a sceptic asks, in order."""

from __future__ import annotations

import dataclasses
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.conditions import FLAGS
from paribus.quality.samples import USER
from paribus.results.strip import strip_of
from paribus.results.words import BASIS
from paribus.site import words
from paribus.site.charts import Chart, Dot, Group, shape_of, thinned
from paribus.site.content import Figure, Row, Run, parsed
from paribus.site.page import Page, Site, View, board_path, race_path, run_path
from paribus.site.pages.headline import lead_figure
from paribus.site.pages.names import CPU_TRACK, measure_title, run_words, scenario_title
from paribus.site.pages.run_facts import (
    ANSWER_FLAGS,
    MACHINE_FLAGS,
    answer_facts,
    differing_facts,
    flags_among,
    gaps,
    load_facts,
    observed_facts,
)

TRUST = {
    "self_reported": "Self-reported: nobody else has re-run or re-scored it.",
    "audited": "Audited: a maintainer re-ran or re-scored it.",
    "reproduced": "Reproduced: an independent party measured the same at full scale.",
    "disputed": "Disputed: another party measured something else; both numbers are shown.",
    "unresolved": "Unresolved: another party's number neither agrees nor disagrees clearly.",
}


@dataclass(frozen=True)
class StartFacts:
    """One start: when, where its time went, and its files."""

    number: int
    when: str
    seconds: tuple[tuple[str, str], ...]
    files: tuple[Row, ...]


def pages(site: Site) -> Iterator[Page]:
    """A page for every run, candidates of races and superseded runs too."""
    for run in site.content.runs.values():

        def view(run: Run = run) -> View:
            return _view(site, run)

        yield Page(run_path(run.id), "run.html", view, inputs_of(site, run))


def inputs_of(site: Site, run: Run) -> Any:
    """All that decides a run's page."""
    names = [figure.other_run_id or "" for figure in run.ratios]
    others = {name: site.content.runs[name].row for name in names if name in site.content.runs}
    races = [race.verdict for race in _races(site, run)]
    scenario = scenario_title(site, str(run.row["scenario_or_task"]))
    title = site.model_title(str(run.row["model"]))
    digest = site.content.request_digests.get(run.id)
    return [dataclasses.asdict(run) | {"summary": None}, digest, others, races, scenario, title]


def _view(site: Site, run: Run) -> View:
    lead = lead_figure(run)
    if run.row["kind"] == "quality":
        spread = _items(run, site.content.items_of(run.id))
    else:
        spread = _spread(run, site.content.requests_of(run.id))
    charts = tuple(c for c in (spread, _starts(run, lead)) if c is not None)
    values = {
        "run": run,
        "row": run.row,
        "title": site.model_title(str(run.row["model"])),
        "measure": measure_title(site, run),
        "decoder": run_words(run),
        "lead": lead,
        "number": _number(lead),
        "basis": BASIS.get(lead.basis, lead.basis) if lead is not None else "",
        "strip": strip_of(run.summary),
        "trust": TRUST.get(str(run.row["trust"]), str(run.row["trust"])),
        "machine": observed_facts(run),
        "differing": differing_facts(run),
        "machine_flags": flags_among(run, MACHINE_FLAGS),
        "load": load_facts(run),
        "answer_flags": flags_among(run, ANSWER_FLAGS),
        "answers": answer_facts(run),
        "spread": charts[0] if charts and charts[0].name.endswith("-requests") else None,
        "by_start": next((c for c in charts if c.name.endswith("-starts")), None),
        "kinds": [_kind(k) for k in run.kinds],
        "left_out_flags": [f for f in run.flags if f.id not in (*MACHINE_FLAGS, *ANSWER_FLAGS)],
        "left_out": gaps(run),
        "command": _command(run),
        "figures": [_listed(f, site) for f in (*run.figures.values(), *run.ratios)],
        "scores": [(s, words.shown(s.value, s.low, s.high, "share")) for s in run.scores],
        "starts": [_start(s) for s in run.starts],
        "board": board_path(str(run.row["hardware"]), str(run.row["scenario_or_task"]))
        if run.row["kind"] == "speed"
        else None,
        "races": [(r, race_path(r)) for r in _races(site, run)],
        "note": CPU_TRACK if run.row["hardware"] == "cpu" else "",
        "flag_kinds": FLAGS,
    }
    return View(values, charts)


def _number(figure: Figure | None) -> words.Shown:
    if figure is None:
        return words.shown(None)
    return words.shown(figure.value, figure.low, figure.high, figure.unit)


def _listed(figure: Figure, site: Site) -> dict[str, Any]:
    other = site.content.runs.get(figure.other_run_id or "")
    return {"figure": figure, "number": _number(figure), "other": other}


def _races(site: Site, run: Run) -> list[Any]:
    return [race for race in site.content.races if any(c["run_id"] == run.id for c in race.candidates)]


def _spread(run: Run, requests: Sequence[Row]) -> Chart | None:
    """Every request as a dot, a line a kind of text: time to the whole answer as received."""
    by_kind: dict[str, list[float]] = {}
    for request in requests:
        if request["ok"] and request["e2e_ms"] is not None:
            by_kind.setdefault(str(request["kind"] or "prompts"), []).append(request["e2e_ms"] / 1000)
    if not by_kind:
        return None
    every = [v for values in by_kind.values() for v in values]
    log = min(every) > 0 and max(every) / min(every) > 20
    dots = tuple(
        Dot(
            label=kind,
            shape=shape_of(run.decoder_method),
            value=statistics.median(values),
            printed=f"median {words.shown(statistics.median(values), unit='s')} · n = {len(values)}",
            points=thinned(values),
        )
        for kind, values in sorted(by_kind.items())
    )
    thin = any(len(v) > 120 for v in by_kind.values())
    return Chart(
        name=f"run-{run.id}-requests",
        title="Seconds from sending a request to its last text",
        summary="Each small dot is one request, the large mark is the median: "
        + "; ".join(f"{d.label} {d.printed}" for d in dots),
        axis="s; small dots: single requests" + (" (120 of each kind, evenly by rank)" if thin else ""),
        unit="s",
        groups=(Group("", dots),),
        log=log,
    )


def _items(run: Run, items: Sequence[Row]) -> Chart | None:
    """Every answer as a dot, right and wrong apart: its length in tokens."""
    groups: dict[str, list[float]] = {}
    for item in items:
        if item["tokens"] is not None:
            fate = str(item["status"]) if item["status"] not in ("ok", "capped") else ""
            fate = "broken off by the user simulator" if fate == USER else fate
            word = fate or ("right" if (item["correct"] or 0) >= 1 else "wrong or unfinished")
            groups.setdefault(word, []).append(float(item["tokens"]))
    if not groups:
        return None
    dots = tuple(
        Dot(
            label=word,
            shape=shape_of(run.decoder_method),
            value=statistics.median(lengths),
            printed=f"median {words.fixed(statistics.median(lengths), 0)} tokens · n = {len(lengths)}",
            points=thinned(lengths),
        )
        for word, lengths in sorted(groups.items())
    )
    return Chart(
        name=f"run-{run.id}-requests",
        title="Tokens of every answer",
        summary="; ".join(f"{d.label} {d.printed}" for d in dots),
        axis="tokens; small dots: single answers",
        unit="tokens",
        groups=(Group("", dots),),
    )


def _starts(run: Run, lead: Figure | None) -> Chart | None:
    """The leading number of every start, where there is more than one."""
    if lead is None or len(run.starts) < 2:
        return None
    dots = []
    for start in run.starts:
        value = _start_value(parsed(start["summary"]), lead.metric)
        if value is None:
            return None
        scale, unit = (0.001, "s") if lead.unit == "ms" else (1.0, lead.unit)
        printed = str(words.shown(value * scale, unit=unit))
        dots.append(Dot(f"start {start['start']}", shape_of(run.decoder_method), value * scale, printed=printed))
    return Chart(
        name=f"run-{run.id}-starts",
        title=f"{lead.title}, start by start",
        summary="; ".join(f"{d.label} {d.printed}" for d in dots),
        axis="s" if lead.unit == "ms" else words.shown(1, unit=lead.unit).unit,
        unit="s" if lead.unit == "ms" else lead.unit,
        groups=(Group("", tuple(dots)),),
    )


def _start_value(summary: Mapping[str, Any], metric: str) -> float | None:
    """A metric in a start's own summary."""
    found: Any = summary.get(metric)
    if metric.startswith("time_to_"):
        found = ((summary.get("time_to_k_ms") or {}).get(metric.removeprefix("time_to_")) or {}).get("mean")
    if isinstance(found, Mapping):
        found = found.get("value")
    return float(found) if isinstance(found, (int, float)) else None


def _kind(row: Row) -> dict[str, str]:
    def ms(value: float | None) -> str:
        return "–" if value is None else words.shown(value / 1000, unit="s").value

    checked = f"{row['check_passed']} of {row['checked']}" if row["checked"] else "–"
    speed = "–" if row["output_speed"] is None else words.shown(row["output_speed"]).value
    length = "–" if row["standard_tokens_mean"] is None else words.fixed(row["standard_tokens_mean"], 0)
    times = {f"t{k}": ms(row[f"time_to_{k}_ms"]) for k in (32, 100, 300, 800)}
    return {
        "kind": str(row["kind"]),
        "ok": str(row["ok"]),
        "speed": speed,
        "length": length,
        "checked": checked,
        **times,
    }


def _command(run: Run) -> list[str]:
    row = run.row
    folder = "build/demo-results" if run.demo else "results"
    measure = row["scenario_or_task"]
    settings = [f"systems={row['system']}", f"measures={measure}", f"scale={row['scale']}"]
    if row["sampling"] not in (None, "served"):
        settings.append(f"sampling={row['sampling']}")
    return [
        shlex.join(["snakemake", "--profile", str(row["hardware"]), "--config", *settings]),
        shlex.join(["paribus", "check", f"{folder}/{row['run']}"]),
    ]


def _start(row: Row) -> StartFacts:
    phases = (("engine", "engine_start_s"), ("warm-up", "warm_up_s"), ("measuring", "measuring_s"), ("rest", "rest_s"))
    seconds = tuple((name, words.fixed(row[key], 1)) for name, key in phases if row[key] is not None)
    files = parsed(row["files"]) or []
    return StartFacts(int(row["start"]), str(row["started_at"] or ""), seconds, tuple(files))
