"""Quality beside speed: joined by answer class and proof; each score says with which decoder and load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from paribus.results.strip import Part, split_strip, strip_of
from paribus.site import words
from paribus.site.charts import Chart, Dot, Group, inline_mark, shape_of
from paribus.site.content import Figure, Run, Score
from paribus.site.page import Page, Site, View, board_path, run_path
from paribus.site.pages.headline import as_served, best_of, lead_metric
from paribus.site.pages.joining import OWN_ANSWERS, failed, gate_words, has_score, proven, steps
from paribus.site.pages.names import CPU_TRACK, METHODS, hardware_title, measure_title, run_words
from paribus.site.pages.table import Cell, beside, figure_cell


@dataclass(frozen=True)
class ScoreRow:
    """One quality run: its headline score, how it was measured."""

    run: Run
    task: str
    stand_in: bool
    number: words.Shown
    score: Score | None
    beside: tuple[str, ...]
    measured: str
    href: str


@dataclass(frozen=True)
class SpeedRow:
    """One decoder that gives these answers: its leading number in every scenario."""

    mark: Markup
    label: str
    method: str
    gate: str
    demo: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class AnswerClass:
    """Everything about one answer class on one card: scores, and the speeds of the decoders that give these answers."""

    key: str
    title: str
    system: str
    demo: bool
    strip: tuple[Part, ...]
    scores: tuple[ScoreRow, ...]
    scenarios: tuple[tuple[str, str, str], ...]
    speeds: tuple[SpeedRow, ...]
    cut: tuple[tuple[str, str], ...]
    """Decoders that were declared to give these answers and failed a gate, each with what was found."""
    waiting: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Decoders whose gates haven't all passed, each with what is known and the commands that are left to run."""


def pages(site: Site) -> Iterator[Page]:
    """The page on quality."""

    def view() -> View:
        cards = []
        charts = []
        for hardware in sorted({str(r.row["hardware"]) for r in site.content.quality_runs}):
            classes = _classes(site, hardware)
            chart = _chart(hardware, classes)
            charts += [chart] if chart else []
            cards.append((hardware_title(site, hardware), classes, chart, CPU_TRACK if hardware == "cpu" else ""))
        return View({"cards": cards, "tasks": list(site.tasks.values())}, tuple(charts))

    yield Page("quality.html", "quality.html", view)


def _classes(site: Site, hardware: str) -> list[AnswerClass]:
    grouped: dict[tuple[str, bool], list[Run]] = {}
    for run in site.content.quality_runs:
        if run.row["hardware"] == hardware:
            grouped.setdefault((str(run.row["answer_class"]), run.demo), []).append(run)
    return [_one_class(site, hardware, key, demo, runs) for (key, demo), runs in sorted(grouped.items())]


def _one_class(site: Site, hardware: str, key: str, demo: bool, runs: Sequence[Run]) -> AnswerClass:
    first = runs[0]
    shared, _ = split_strip([strip_of(run.summary) for run in runs])
    same = [
        r
        for r in site.content.speed_runs
        if r.row["hardware"] == hardware and r.row["answer_class"] == key and r.demo == demo and as_served(r)
    ]
    scenarios = [s for s in site.scenarios if any(r.row["scenario_or_task"] == s for r in same)]
    leads = {s: lead_metric([r for r in same if r.row["scenario_or_task"] == s]) for s in scenarios}
    joined: list[Run] = []
    waiting: list[Run] = []
    cut: set[tuple[str, str]] = set()
    for r in same:
        if failed(site, r):
            cut.add((str(r.row["decoder"]), gate_words(site, r)))
        else:
            (joined if any(has_score(site, r, one) for one in runs) else waiting).append(r)
    row = first.row
    thinking = ", thinking" if row["think"] else ""
    return AnswerClass(
        key=key,
        title=site.model_title(str(row["model"])),
        system=f"{row['precision']}, {row['engine']}{thinking}",
        demo=demo,
        strip=tuple(p for p in shared if p.name in ("card", "model", "engine", "sampling", "date")),
        scores=tuple(_score_row(site, run) for run in sorted(runs, key=lambda r: str(r.row["scenario_or_task"]))),
        scenarios=tuple((s, _lead_title(leads[s], same, s), board_path(hardware, s)) for s in scenarios),
        speeds=tuple(_speeds(site, joined, scenarios, leads)),
        cut=tuple(sorted(cut)),
        waiting=tuple(_waiting(site, waiting, runs)),
    )


def _waiting(site: Site, runs: Sequence[Run], asked: Sequence[Run]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """What is left to run for each decoder that has none of the scores: of plain decoding, for who was asked them."""
    for decoder, run in sorted({str(r.row["decoder"]): r for r in runs}.items()):
        about = next(iter(asked), run) if proven(site, run) else run
        yield decoder, gate_words(site, about), tuple(step.command for step in steps(site, about))


def _lead_title(metric: str | None, runs: Sequence[Run], scenario: str) -> str:
    if metric is None:
        return ""
    if metric.startswith("time_to_"):
        return f"s to {metric.removeprefix('time_to_')} tokens"
    here = [r.figures[metric] for r in runs if metric in r.figures and r.row["scenario_or_task"] == scenario]
    return words.shown(1, unit=here[0].unit).unit if here else ""


def _score_row(site: Site, run: Run) -> ScoreRow:
    score = next((s for s in run.scores if s.headline), None)
    task = site.tasks.get(str(run.row["scenario_or_task"]))
    load = words.requests_at_once(run.requests) + ("" if as_served(run) else f", {run.row['sampling']} sampling")
    return ScoreRow(
        run=run,
        task=measure_title(site, run),
        stand_in=any(flag.id == "stand_in" for flag in run.flags) or (task is not None and task.stand_in),
        number=words.shown(score.value, score.low, score.high, "share") if score else words.shown(None),
        score=score,
        beside=beside(run),
        measured=f"{run_words(run)}, {load}",
        href=run_path(run.id),
    )


def _speeds(
    site: Site, runs: Sequence[Run], scenarios: Sequence[str], leads: dict[str, str | None]
) -> Iterator[SpeedRow]:
    """A row a decoder. One that isn't proven is here only because scores were asked of itself, and says so."""
    by_decoder: dict[str, list[Run]] = {}
    for run in runs:
        by_decoder.setdefault(str(run.row["decoder"]), []).append(run)
    for decoder, group in sorted(by_decoder.items(), key=lambda item: (not item[0].startswith("plain"), item[0])):
        cells = tuple(figure_cell(_latest(group, s, leads[s]), "") for s in scenarios)
        method = group[0].decoder_method
        gate = "" if method in OWN_ANSWERS else gate_words(site, group[0])
        if gate and not proven(site, group[0]):
            gate = f"has the scores that were measured with it, and no others: {gate}"
        title = METHODS.get(method, method)
        yield SpeedRow(inline_mark(shape_of(method)), decoder, title, gate, group[0].demo, cells)


def _latest(runs: Sequence[Run], scenario: str, metric: str | None) -> Figure | None:
    """The figure of the run that stands for them (`best_of`). All of them stand on the scenario's board."""
    best = best_of(r for r in runs if r.row["scenario_or_task"] == scenario and metric in r.figures)
    return best.figures[metric] if best is not None and metric is not None else None


def _chart(hardware: str, classes: Sequence[AnswerClass]) -> Chart | None:
    """The scores of sound runs, a group a task; those that the cap cut short are named by their budget."""
    groups: dict[str, list[Dot]] = {}
    for one in classes:
        for row in one.scores:
            quality = row.run.summary.quality
            if row.score is None or quality is None or not row.run.sound:
                continue
            low = None if row.score.low is None else row.score.low * 100
            high = None if row.score.high is None else row.score.high * 100
            label = f"{one.title}, {one.system}" + (" · demo" if one.demo else "")
            label += "" if as_served(row.run) else f", {row.run.row['sampling']} sampling"
            shape = shape_of(row.run.decoder_method)
            dot = Dot(label, shape, row.score.value * 100, low, high, str(row.number), row.href)
            # In front, where a long name isn't cut.
            budget = f"{words.opening(quality.within)}: " if quality.within else ""
            groups.setdefault(budget + row.task, []).append(dot)
    if not groups:
        return None
    made = tuple(Group(task, tuple(dots)) for task, dots in sorted(groups.items()))
    return Chart(
        name=f"quality-{hardware}",
        title="Scores, per cent right",
        summary="; ".join(f"{g.title}: {d.label} {d.printed}" for g in made for d in g.dots),
        axis="% right, more is better",
        unit="%",
        groups=made,
    )
