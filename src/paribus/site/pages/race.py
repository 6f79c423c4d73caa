"""A race's page: every candidate that was tried, and what was not tried and why."""

from __future__ import annotations

from collections.abc import Iterator

from paribus.catalog import Scenario
from paribus.conditions import decoder_method
from paribus.results.strip import split_strip, strip_of
from paribus.site import words
from paribus.site.charts import Chart, Dot, Group, inline_mark, shape_of
from paribus.site.content import Race, Row
from paribus.site.page import Page, Site, View, board_path, race_id, race_path, run_path
from paribus.site.pages.names import CPU_TRACK, METHODS, metric_title, scenario_title

NONE_SPECULATES = "no candidate that speculates has a result"
"""Only then plain decoding wins."""


def pages(site: Site) -> Iterator[Page]:
    """A page for every race."""
    for race in site.content.races:

        def view(race: Race = race) -> View:
            return _view(site, race)

        yield Page(race_path(race), "race.html", view)


def _view(site: Site, race: Race) -> View:
    first = race.first
    runs = [site.content.runs[c["run_id"]] for c in race.tried if c["run_id"] in site.content.runs]
    shared, _ = split_strip([strip_of(run.summary) for run in runs])
    chart = race_chart(site, race, "../")
    scenario = site.catalog.scenarios.get(str(first["scenario"]))
    values = {
        "race": race,
        "first": first,
        "title": scenario_title(site, str(first["scenario"])),
        "stack": site.model_title(str(first["stack"]).split("--")[0]),
        "sentence": race_sentence(race),
        "interleaved": any(len(run.summary.starts) > 1 for run in runs),
        "strip": [part for part in shared if part.name not in ("decoder", "flags")],
        "chart": chart,
        "rows": [_row(site, c, unclear=unclear(race)) for c in race.candidates],
        "picks": [(s, board_path(str(first["hardware"]), s)) for s in _met(site, scenario, str(first["hardware"]))],
        "demo": bool(first["demo"]),
        "note": CPU_TRACK if first["hardware"] == "cpu" else "",
    }
    return View(values, (chart,) if chart else ())


def _met(site: Site, race: Scenario | None, hardware: str) -> list[str]:
    """Scenarios where a race's winner meets the others: those that are planned unasked, and any that has runs here."""
    rows = [run.row for run in site.content.speed_runs]
    seen = {str(row["scenario_or_task"]) for row in rows if row["hardware"] == hardware}
    return [
        name
        for name in (race.picks_for if race else [])
        if name in seen or name not in site.scenarios or not site.scenarios[name].external
    ]


def race_sentence(race: Race) -> str:
    """Who won, of how many, what was left out and what was not tried."""
    tried, rest = race.tried, race.not_tried
    winner = next((c for c in race.candidates if c["winner"]), None)
    speculative = [c for c in tried if decoder_method(str(c["decoder"])) != "plain"]
    if winner is None or winner["value"] is None:
        return "No candidate of this race has a result."
    number = words.shown(winner["value"], winner["low"], winner["high"], str(winner["unit"] or ""))
    if speculative:
        said = f"Best of {words.spelled(len(speculative))} tried: {winner['decoder']}, {number}."
    else:
        said = f"{words.opening(NONE_SPECULATES)}. Plain decoding: {number}."
    plain = next((c for c in tried if decoder_method(str(c["decoder"])) == "plain"), None)
    if plain is not None and plain is not winner:
        other = words.shown(plain["value"], plain["low"], plain["high"], str(plain["unit"] or ""))
        said += f" Plain decoding: {other}."
    if unclear(race):
        said += f" {words.opening(words.NO_DIFFERENCE)} between the best and the second."
    if winner["plain_is_faster"]:
        said += " Plain decoding had the better number than every speculative candidate."
    left = [c for c in rest if c["run_id"] is not None]
    for count, what in ((len(left), "left out after a try"), (len(rest) - len(left), "not tried")):
        if count:
            said += f" {words.opening(words.spelled(count))} {what}."
    return said


def unclear(race: Race) -> bool:
    """Whether the best speculation has no interval, or one that holds the next best speculation's number."""
    winner = next((c for c in race.tried if c["winner"]), None)
    rest = [c for c in race.tried if c is not winner and decoder_method(str(c["decoder"])) != "plain"]
    if winner is None or not rest:
        return False
    if winner["low"] is None or winner["high"] is None:
        return True
    second = (min if str(winner["unit"]) in ("ms", "s") else max)(c["value"] for c in rest)
    return bool(winner["low"] <= second <= winner["high"])


def race_chart(site: Site, race: Race, base: str) -> Chart | None:
    """All candidates with a result, best first."""
    tried = list(race.tried)
    if not tried:
        return None
    lower = str(race.first["unit"]) in ("ms", "s")
    tried.sort(key=lambda c: c["value"] if lower else -c["value"])
    unit = "s" if race.first["unit"] == "ms" else str(race.first["unit"] or "")
    dots = tuple(_dot(site, c, base) for c in tried)
    title = metric_title(str(race.first["metric"]))
    return Chart(
        name=f"race-{race_id(race)}",
        title=title,
        summary=f"{title}. " + "; ".join(f"{d.label} {d.printed}" for d in dots),
        axis=", ".join([words.shown(1, unit=unit).unit, "less is better" if lower else "more is better"]),
        unit=unit,
        groups=(Group("", dots),),
    )


def _dot(site: Site, candidate: Row, base: str) -> Dot:
    scale, unit = (0.001, "s") if candidate["unit"] == "ms" else (1.0, str(candidate["unit"] or ""))
    value, low, high = (None if candidate[k] is None else candidate[k] * scale for k in ("value", "low", "high"))
    known = candidate["run_id"] in site.content.runs
    method = decoder_method(str(candidate["decoder"]))
    return Dot(
        label=str(candidate["decoder"]) + (" · best speculation" if candidate["winner"] and method != "plain" else ""),
        shape=shape_of(method),
        value=value,
        low=low,
        high=high,
        printed=words.short(words.shown(value, low, high, unit)),
        href=base + run_path(str(candidate["run_id"])) if known else None,
    )


def _row(site: Site, candidate: Row, *, unclear: bool) -> dict[str, object]:
    method = decoder_method(str(candidate["decoder"]))
    run = site.content.runs.get(str(candidate["run_id"]))
    per_pass = run.figures.get("tokens_per_pass") if run is not None else None
    return {
        "decoder": candidate["decoder"],
        "mark": inline_mark(shape_of(method)),
        "method": METHODS.get(method, method),
        "number": words.shown(candidate["value"], candidate["low"], candidate["high"], str(candidate["unit"] or "")),
        "acceptance": "–" if candidate["acceptance_length"] is None else words.fixed(candidate["acceptance_length"], 2),
        "per_pass": "–" if per_pass is None else words.fixed(per_pass.value, 2),
        "winner": bool(candidate["winner"]),
        "best": "best speculation" if method != "plain" else NONE_SPECULATES,
        "unclear": unclear,
        "left_out": candidate["left_out"] or "",
        "flags": ", ".join(flag.id for flag in run.flags) if run is not None else "",
        "href": run_path(run.id) if run is not None else None,
    }
