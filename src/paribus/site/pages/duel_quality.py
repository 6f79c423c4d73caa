"""The quality part of a duel: both sides' scores, their paired difference, and what lossless gates leave of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from paribus.catalog import Pair
from paribus.results.compare import seen_words
from paribus.site import words
from paribus.site.content import Run
from paribus.site.page import Site, figure_path, run_path
from paribus.site.pages.duel import BASE, NOBODY, Duel, DuelRow
from paribus.site.pages.headline import as_served, best_of
from paribus.site.pages.joining import OWN_ANSWERS, failed, gate_words, has_score, why_no_score
from paribus.site.pages.names import run_words
from paribus.site.pages.table import Cell, beside

SIDES = ("left", "right")


def quality_rows(site: Site, pair: Pair, card: str, demo: bool, speed: Sequence[Duel]) -> Iterator[DuelRow]:
    """Scores of both sides. One answer class has one score; a decoder has it when its lossless gates have passed."""
    cut = [_cut(site, speed, which) for which in SIDES]
    known = _said(site, {name: run for which in SIDES for name, run in _decoders(speed, which).items()})
    both = [_of_the_side(speed, which, named) for which, (_, named) in zip(SIDES, pair.sides(), strict=True)]
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
        sides = [
            [r for r in runs if r.row["stack"] == s and m(r)] for (s, _), m in zip(pair.sides(), both, strict=True)
        ]
        if not any(sides):
            continue
        own = [_asked(site, speed, which, side) for which, side in zip(SIDES, sides, strict=True)]
        left, right = (found for found, _ in own)
        cells = [
            Cell("no score", "not lossless" if lost else why) if lost or why else _score(run)
            for lost, (run, why) in zip(cut, own, strict=True)
        ]
        if any(cut):
            verdict, href = "; ".join(found for found in cut if found), None
        elif any(why for _, why in own):
            verdict, href = known, None
        elif left is not None and left is right:
            both_of = (known, f"both scores are of {run_words(left)}")
            verdict, href = "; ".join(part for part in both_of if part), None
        else:
            verdict, href = _difference(left, right)
            pairs = zip(SIDES, (left, right), strict=True)
            verdict += "".join(_inherited(site, speed, which, run) for which, run in pairs)
        yield DuelRow(task.title, "% right", cells[0], cells[1], verdict, href)


def _of_the_side(speed: Sequence[Duel], which: str, named: str | None) -> Callable[[Run], bool]:
    """Whether a quality run is of a side's answer class: that of its speed runs; without any, of the decoder named.

    A stack may have several, such as a diffusion model's card settings and its fast ones.
    """
    classes = {run.row["answer_class"] for run in _measured(speed, which)}
    if classes:
        return lambda run: run.row["answer_class"] in classes
    return lambda run: named is None or run.row["decoder"] == named


def _measured(speed: Sequence[Duel], which: str) -> list[Run]:
    """The speed runs that stand on one side of the duels."""
    return [run for duel in speed if (run := getattr(duel, which)) is not None]


def _decoders(speed: Sequence[Duel], which: str) -> dict[str, Run]:
    """The speculative decoders that stand on one side of the duels."""
    return {str(r.row["decoder"]): r for r in _measured(speed, which) if r.decoder_method not in OWN_ANSWERS}


def _cut(site: Site, speed: Sequence[Duel], which: str) -> str:
    """What a lossless gate found against a side's decoder; nothing where none failed."""
    return _said(site, {name: run for name, run in _decoders(speed, which).items() if failed(site, run)})


def _said(site: Site, decoders: Mapping[str, Run]) -> str:
    """What the lossless gates say of decoders."""
    return "; ".join(f"{name}: {gate_words(site, run)}" for name, run in sorted(decoders.items()))


def _asked(site: Site, speed: Sequence[Duel], which: str, asked: Sequence[Run]) -> tuple[Run | None, str]:
    """The run whose score is that of all runs of a side; else why none of those that there are is."""
    side = _measured(speed, which)
    own = best_of(one for one in asked if all(has_score(site, run, one) for run in side))
    if own is not None or not asked:
        return own, ""
    return None, why_no_score(site, [*side, *asked])


def _inherited(site: Site, speed: Sequence[Duel], which: str, asked: Run | None) -> str:
    """That a side's score was not asked of its decoder, and what is known of that."""
    if asked is None:
        return ""
    others = [run for run in _decoders(speed, which).values() if run.row["system"] != asked.row["system"]]
    said = sorted((str(run.row["decoder"]), gate_words(site, run)) for run in others)
    return "".join(f"; the {which} score is of {run_words(asked)}, {name}: {words}" for name, words in said)


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
