"""The duel: two sides row by row, each number with its interval, and who wins or "no clear difference"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from paribus.catalog import Pair
from paribus.conditions import ParibusError
from paribus.results.strip import Part, split_strip, strip_of
from paribus.site import words
from paribus.site.charts import Chart, Dot, Group, inline_mark, shape_of
from paribus.site.content import Race, Row, parsed
from paribus.site.page import Page, Site, View, board_path, figure_path, pair_path
from paribus.site.pages.duel import BASE, NOBODY, Duel, DuelRow
from paribus.site.pages.duel_quality import quality_rows
from paribus.site.pages.headline import lead_metric, shared_time
from paribus.site.pages.names import (
    CPU_TRACK,
    card_name,
    measure_title,
    metric_title,
    run_words,
    scenario_title,
)
from paribus.site.pages.race import race_chart, race_sentence
from paribus.site.pages.table import THESE_PROMPTS, Cell, figure_cell, of_these_prompts
from paribus.speed.summary import SpeedSummary


@dataclass(frozen=True)
class Block:
    """One scenario of a duel: its board, its rows, what to know."""

    title: str
    href: str
    rows: tuple[DuelRow, ...]
    refused: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Meeting:
    """A duel on one machine: speed by scenario, quality by task, speed-up by kind of text."""

    machine: str
    demo: bool
    strip: tuple[Part, ...]
    left: str
    right: str
    left_mark: Markup
    right_mark: Markup
    verdicts: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]
    quality: tuple[DuelRow, ...]
    kinds: Chart | None
    by_kind: tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]


def pages(site: Site) -> Iterator[Page]:
    """A page for every duel on every card that has runs of it."""
    try:
        pairs = site.catalog.pairs.pairs
    except ParibusError:
        return
    for pair in pairs:
        for card in sorted({str(row["hardware"]) for row in site.content.pairs if row["pair"] == pair.pair}):

            def view(pair: Pair = pair, card: str = card) -> View:
                return _view(site, pair, card)

            yield Page(pair_path(card, pair.pair), "pair.html", view)


def _view(site: Site, pair: Pair, card: str) -> View:
    rows = [row for row in site.content.pairs if row["pair"] == pair.pair and row["hardware"] == card]
    places = sorted({(bool(row["demo"]), str(row["machine"])) for row in rows})
    meetings = [_meeting(site, pair, card, rows, place=place) for place in places]
    stacks = (pair.left, pair.right)
    races = [r for r in site.content.races if r.first["hardware"] == card and r.first["stack"] in stacks]
    shown = [
        (race, scenario_title(site, str(race.first["scenario"])), race_sentence(race), race_chart(site, race, BASE))
        for race in races
    ]
    runs = [run for row in rows for run in _duel(site, row).runs]
    values = {
        "pair": pair,
        "card_name": card_name(site, card, runs),
        "meetings": [m for m in meetings if m.blocks],
        "races": shown,
        "note": pair.note or (CPU_TRACK if card == "cpu" else ""),
    }
    charts = [m.kinds for m in meetings] + [chart for _, _, _, chart in shown]
    return View(values, tuple(chart for chart in charts if chart is not None))


def _duel(site: Site, row: Row) -> Duel:
    runs = site.content.runs
    left, right = runs.get(str(row["left_run_id"])), runs.get(str(row["right_run_id"]))
    either = left or right
    measure = str(either.row["scenario_or_task"]) if either is not None else str(row["measure"])
    title = measure_title(site, either) if either is not None else scenario_title(site, measure)
    notes = parsed(row["notes"])
    # Which run carries which flags is a row of the duel.
    found = tuple(str(n) for n in notes if " carries flags: " not in str(n)) if isinstance(notes, list) else ()
    return Duel(measure, title, left, right, str(row["refused"] or ""), found)


def _meeting(site: Site, pair: Pair, card: str, rows: Sequence[Row], *, place: tuple[bool, str]) -> Meeting:
    demo, machine = place
    here = [_duel(site, r) for r in rows if bool(r["demo"]) == demo and r["machine"] == machine]
    order = {name: place for place, name in enumerate([*site.scenarios, *site.tasks])}
    here.sort(key=lambda duel: (order.get(duel.measure, len(order)), duel.measure))
    speed = [duel for duel in here if any(run.row["kind"] == "speed" for run in duel.runs)]
    shared, _ = split_strip([strip_of(run.summary) for duel in speed for run in duel.runs])
    return Meeting(
        machine=machine,
        demo=demo,
        strip=tuple(p for p in shared if p.name not in ("decoder", "flags")),
        left=_side(speed, "left", pair.left),
        right=_side(speed, "right", pair.right),
        left_mark=_mark(speed, "left"),
        right_mark=_mark(speed, "right"),
        verdicts=tuple((duel.title, _verdict(duel)) for duel in speed if duel.ratio is not None),
        blocks=tuple(
            Block(d.title, BASE + board_path(card, d.measure), tuple(_rows(d)), d.refused, _notes(d)) for d in speed
        ),
        quality=tuple(quality_rows(site, pair, card, demo, speed)),
        kinds=_kinds_chart(f"pair-{card}-{pair.pair}-{machine}{'-demo' if demo else ''}", speed),
        by_kind=_kinds_table(speed),
    )


def _side(duels: Sequence[Duel], which: str, stack: str) -> str:
    names = sorted({run_words(run) for duel in duels if (run := getattr(duel, which)) is not None})
    return words.opening(words.listed(names)) if names else stack


def _mark(duels: Sequence[Duel], which: str) -> Markup:
    run = next((run for duel in duels if (run := getattr(duel, which)) is not None), None)
    return inline_mark(shape_of(run.decoder_method)) if run is not None else Markup("")


def _notes(duel: Duel) -> tuple[str, ...]:
    """The comparison's own, and what the interval of a throughput leaves out where one is shown."""
    lead = lead_metric(duel.runs) or ""
    left_out = of_these_prompts(run.figures.get(lead) for run in duel.runs)
    return (*duel.notes, THESE_PROMPTS) if left_out else duel.notes


def _verdict(duel: Duel) -> str:
    left, right, ratio = duel.left, duel.right, duel.ratio
    assert left is not None
    assert right is not None
    assert ratio is not None
    said = words.speedup_sentence(
        run_words(left),
        run_words(right),
        requests=left.requests,
        ratio=(ratio.value, ratio.low, ratio.high),
        measure=words.measure_of(ratio.metric),
    )
    return words.opening(f"{said}.")


def _rows(duel: Duel) -> Iterator[DuelRow]:
    """The duel in one scenario: the leading numbers with the verdict, then what stands beside them."""
    times = shared_time(duel.runs)
    lead = lead_metric(duel.runs)
    ratio = duel.ratio
    for metric in dict.fromkeys(m for m in (times, lead, "answer_time") if m is not None):
        figures = [run.figures.get(metric) if run else None for run in (duel.left, duel.right)]
        known = next((f for f in figures if f is not None), None)
        if known is None:
            continue
        cells = [
            figure_cell(f, BASE) if f else Cell(NOBODY if run is None else "–")
            for f, run in zip(figures, (duel.left, duel.right), strict=True)
        ]
        unit = "s" if known.unit == "ms" else words.shown(1, unit=known.unit).unit
        about = ratio if metric == (times or lead) else None
        verdict = words.ratio_verdict(about.value, about.low, about.high) if about is not None else ""
        if about is not None:
            over = about.detail.get("prompts")
            common = f", over {words.count(over, 'prompt')} that both reach" if isinstance(over, int) else ""
            verdict += f"; {words.measure_of(about.metric)}{common}"
        href = BASE + figure_path(about.figure_id) if about is not None else None
        yield DuelRow(
            metric_title(metric), "" if metric.startswith("time_to_") else unit, cells[0], cells[1], verdict, href
        )
    yield _plain_row("First text after", "ms, median", duel, lambda s: s.ttft_ms.p50)
    yield _plain_row("Tokens an answer", "mean", duel, lambda s: s.tokens.mean)
    yield _plain_row("Checked answers right", "%", duel, _passed)
    flags = [", ".join(dict.fromkeys(f.id for f in run.flags)) if run else "" for run in (duel.left, duel.right)]
    if any(flags):
        yield DuelRow("Flags", "", Cell(flags[0] or "none"), Cell(flags[1] or "none"))


def _passed(summary: SpeedSummary) -> float | None:
    counts = summary.requests
    return 100 * counts.check_passed / counts.checked if counts.checked else None


def _plain_row(title: str, unit: str, duel: Duel, read: Callable[[SpeedSummary], float | None]) -> DuelRow:
    cells = []
    for run in (duel.left, duel.right):
        speed = run.summary.speed if run is not None else None
        value = read(speed) if speed is not None else None
        cells.append(Cell(NOBODY if run is None else "–" if value is None else words.fixed(value, 0)))
    return DuelRow(title, unit, cells[0], cells[1])


def _kinds_chart(name: str, duels: Sequence[Duel]) -> Chart | None:
    """The speed-up for every kind of text, a group a scenario."""
    dots = []
    for duel in duels:
        ratio, left = duel.ratio, duel.left
        if ratio is None or left is None:
            continue
        dots.append(
            Dot(
                label=duel.title,
                shape=shape_of(left.decoder_method),
                value=ratio.value,
                low=ratio.low,
                high=ratio.high,
                printed=str(words.shown(ratio.value, ratio.low, ratio.high, "x")),
                href=BASE + figure_path(ratio.figure_id),
                points=tuple(_kinds(duel).values()),
            )
        )
    if not dots:
        return None
    return Chart(
        name=name,
        title="How many times as fast the left side is",
        summary="; ".join(f"{d.label} {d.printed}" for d in dots),
        axis="times as fast; small dots: single kinds of text",
        unit="x",
        groups=(Group("", tuple(dots)),),
        log=True,
        reference=1.0,
        reference_label="dashed line: no difference",
    )


def _kinds(duel: Duel) -> dict[str, float]:
    """The ratio for every kind of text."""
    found = (duel.ratio.detail.get("kinds") or {}) if duel.ratio is not None else {}
    return {str(k): float(v) for k, v in sorted(found.items()) if isinstance(v, (int, float)) and v > 0}


def _kinds_table(duels: Sequence[Duel]) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """Kinds of text down, scenarios across: the same ratios as numbers."""
    known = [duel for duel in duels if _kinds(duel)]
    names = sorted({kind for duel in known for kind in _kinds(duel)})
    rows = tuple(
        (name, tuple(words.fixed(_kinds(d)[name], 2) if name in _kinds(d) else "–" for d in known)) for name in names
    )
    return tuple(duel.measure for duel in known), rows


__all__ = ["Race", "pages"]
