"""The quality part of a duel: both sides' scores, their paired difference, and what lossless gates leave of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from paribus.catalog import Pair
from paribus.results.compare import seen_words
from paribus.results.lossless import DECLARED
from paribus.site import words
from paribus.site.content import Run
from paribus.site.page import Site, figure_path, run_path
from paribus.site.pages.duel import BASE, NOBODY, Duel, DuelRow
from paribus.site.pages.headline import as_served, best_of
from paribus.site.pages.names import gate_words, inherits
from paribus.site.pages.table import Cell, beside

OWN_ANSWERS = ("plain", "block-diffusion")
"""Decoders that inherit nothing: they are what their scores were asked of."""


def quality_rows(site: Site, pair: Pair, card: str, demo: bool, speed: Sequence[Duel]) -> Iterator[DuelRow]:
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
            best_of(r for r in runs if r.row["stack"] == stack and meant(r))
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


def _score(run: Run | None) -> Cell:
    score = next((s for s in run.scores if s.headline), None) if run is not None else None
    if run is None or score is None:
        return Cell(NOBODY)
    number = words.shown(score.value, score.low, score.high, "share")
    return Cell(number.value, "; ".join(s for s in (number.interval, *beside(run)) if s), href=BASE + run_path(run.id))


def _difference(left: Run | None, right: Run | None) -> tuple[str, str | None]:
    """The paired difference of two scores, where it was computed and stands."""
    figures = [f for f in left.ratios if f.unit == "points" and f.superseded_by is None] if left is not None else []
    figure = next((f for f in figures if right is not None and f.other_run_id == right.id), None)
    if figure is None:
        return "no paired difference yet", None
    number = words.shown(figure.value, figure.low, figure.high, "points")
    clear = figure.low is not None and figure.high is not None and not figure.low <= 0 <= figure.high
    said = str(number) if clear else f"{words.NO_DIFFERENCE} ({number})"
    said += seen_words(figure.detail)
    return said, BASE + figure_path(figure.figure_id)
