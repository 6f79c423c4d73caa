"""The duel: two sides row by row, each number with its interval, and who wins or "no clear difference"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from paribus.catalog import Pair
from paribus.conditions import ParibusError
from paribus.results.compare import seen_words
from paribus.results.lossless import DECLARED
from paribus.results.strip import Part, split_strip, strip_of
from paribus.site import words
from paribus.site.charts import Chart, Dot, Group, inline_mark, shape_of
from paribus.site.content import Figure, Race, Row, Run, parsed
from paribus.site.page import Page, Site, View, board_path, figure_path, pair_path, run_path
from paribus.site.pages.headline import as_served, lead_metric, shared_time, speedup_of
from paribus.site.pages.names import (
    CPU_TRACK,
    card_name,
    gate_words,
    inherits,
    measure_title,
    metric_title,
    run_words,
    scenario_title,
)
from paribus.site.pages.race import race_chart, race_sentence
from paribus.site.pages.table import Cell, beside, figure_cell
from paribus.speed.summary import SpeedSummary

NOBODY = "nobody has run this yet"
BASE = "../../"
OWN_ANSWERS = ("plain", "block-diffusion")
"""Decoders that inherit nothing: they are what their scores were asked of."""


@dataclass(frozen=True)
class Duel:
    """The two runs that meet under one measure; `refused` says why they can't be compared."""

    measure: str
    title: str
    left: Run | None
    right: Run | None
    refused: str
    notes: tuple[str, ...]

    @property
    def runs(self) -> list[Run]:
        """The sides that exist."""
        return [run for run in (self.left, self.right) if run is not None]

    @property
    def ratio(self) -> Figure | None:
        """How many times as fast the left side is as the right one; none where this pair's rules refuse it."""
        return speedup_of(self.left, self.right) if self.left and self.right and not self.refused else None


@dataclass(frozen=True)
class DuelRow:
    """One row of a duel: what, both sides' numbers, the verdict and its figure's page."""

    title: str
    unit: str
    left: Cell
    right: Cell
    verdict: str = ""
    href: str | None = None


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
            Block(d.title, BASE + board_path(card, d.measure), tuple(_rows(d)), d.refused, d.notes) for d in speed
        ),
        quality=tuple(_quality(site, pair, card, demo, speed)),
        kinds=_kinds_chart(f"pair-{card}-{pair.pair}-{machine}{'-demo' if demo else ''}", speed),
        by_kind=_kinds_table(speed),
    )


def _side(duels: Sequence[Duel], which: str, stack: str) -> str:
    names = sorted({run_words(run) for duel in duels if (run := getattr(duel, which)) is not None})
    return words.opening(words.listed(names)) if names else stack


def _mark(duels: Sequence[Duel], which: str) -> Markup:
    run = next((run for duel in duels if (run := getattr(duel, which)) is not None), None)
    return inline_mark(shape_of(run.decoder_method)) if run is not None else Markup("")


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


def _quality(site: Site, pair: Pair, card: str, demo: bool, speed: Sequence[Duel]) -> Iterator[DuelRow]:
    """Scores of both sides. One answer class has one score; a decoder that failed a lossless gate has none of it."""
    cut = [_cut(site, speed, which) for which in ("left", "right")]
    both = [
        _of_the_side(speed, which, named) for which, (_, named) in zip(("left", "right"), pair.sides(), strict=True)
    ]
    for task in site.tasks.values():
        runs = [
            r
            for r in site.content.quality_runs
            if r.row["hardware"] == card
            and r.row["scenario_or_task"] == task.task
            and r.demo == demo
            and not r.summary.part
            and as_served(r)
        ]
        left, right = (
            _newest([r for r in runs if r.row["stack"] == stack and meant(r)])
            for (stack, _), meant in zip(pair.sides(), both, strict=True)
        )
        if left is None and right is None:
            continue
        cells = [
            Cell("no score", "not lossless") if lost else _score(run)
            for lost, run in zip(cut, (left, right), strict=True)
        ]
        if any(cut):
            verdict, href = "; ".join(found for found in cut if found), None
        elif left is right:
            verdict, href = f"{_gates(site, pair.left, card, demo)}; scores are plain decoding's", None
        else:
            verdict, href = _difference(left, right)
            verdict += "".join(_inherited(site, speed, which) for which in ("left", "right"))
        yield DuelRow(task.title, "% right", cells[0], cells[1], verdict, href)


def _of_the_side(speed: Sequence[Duel], which: str, named: str | None) -> Callable[[Run], bool]:
    """Whether a quality run is of a side's answer class: that of its speed runs; without any, of the decoder named.

    A stack may have several, such as a diffusion model's card settings and its fast ones.
    """
    classes = {run.row["answer_class"] for duel in speed if (run := getattr(duel, which)) is not None}
    if classes:
        return lambda run: run.row["answer_class"] in classes
    return lambda run: named is None or run.row["decoder"] == named


def _decoders(speed: Sequence[Duel], which: str) -> dict[str, Run]:
    """The speculative decoders that stand on one side of the duels."""
    runs = (getattr(duel, which) for duel in speed)
    return {str(r.row["decoder"]): r for r in runs if r is not None and r.decoder_method not in OWN_ANSWERS}


def _cut(site: Site, speed: Sequence[Duel], which: str) -> str:
    """What a lossless gate found against a side's decoder; nothing where none failed."""
    failed = {name: run for name, run in _decoders(speed, which).items() if not inherits(site, run)}
    return "; ".join(f"{name}: {gate_words(site, run)}" for name, run in sorted(failed.items()))


def _inherited(site: Site, speed: Sequence[Duel], which: str) -> str:
    """That a side's score was not asked of its decoder, and what is known of that."""
    said = {name: gate_words(site, run) for name, run in _decoders(speed, which).items()}
    return "".join(f"; the {which} score is plain decoding's, {name}: {words}" for name, words in sorted(said.items()))


def _gates(site: Site, stack: str, card: str, demo: bool) -> str:
    """What the lossless gates say of the stack's decoders: one sentence where it is the same for all."""
    runs = {
        str(r.row["decoder"]): r
        for r in site.content.speed_runs
        if r.row["hardware"] == card
        and r.row["stack"] == stack
        and r.demo == demo
        and r.decoder_method not in OWN_ANSWERS
    }
    said = {decoder: gate_words(site, run) for decoder, run in sorted(runs.items())}
    if len(set(said.values())) <= 1:
        return next(iter(said.values()), DECLARED)
    return ", ".join(f"{decoder} {words}" for decoder, words in said.items())


def _newest(runs: Sequence[Run]) -> Run | None:
    return max(runs, key=lambda r: (str(r.row["started_at"]), r.id), default=None)


def _score(run: Run | None) -> Cell:
    score = next((s for s in run.scores if s.headline), None) if run is not None else None
    if run is None or score is None:
        return Cell(NOBODY)
    number = words.shown(score.value, score.low, score.high, "share")
    return Cell(number.value, "; ".join(s for s in (number.interval, *beside(run)) if s), href=BASE + run_path(run.id))


def _difference(left: Run | None, right: Run | None) -> tuple[str, str | None]:
    """The paired difference of two scores, where it was computed."""
    figures = left.ratios if left is not None else ()
    figure = next((f for f in figures if right is not None and f.other_run_id == right.id and f.unit == "points"), None)
    if figure is None:
        return "no paired difference yet", None
    number = words.shown(figure.value, figure.low, figure.high, "points")
    clear = figure.low is not None and figure.high is not None and not figure.low <= 0 <= figure.high
    said = str(number) if clear else f"{words.NO_DIFFERENCE} ({number})"
    said += seen_words(figure.detail)
    return said, BASE + figure_path(figure.figure_id)


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
