"""The front page: what this is, what was found, the chart, its table, what is missing, claims, how to cite and help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paribus.catalog import Pair
from paribus.conditions import ParibusError
from paribus.site import words
from paribus.site.content import Figure, Run
from paribus.site.page import Page, Site, View, pair_path
from paribus.site.pages import claims, coverage
from paribus.site.pages.board import Choice, by_hardware, choices, first_choices, make_board
from paribus.site.pages.headline import best_ratio, board_runs, speedup_of
from paribus.site.pages.names import card_name, run_words


def pages(site: Site) -> Iterator[Page]:
    """The front page."""

    def view() -> View:
        chosen = choose(site)
        board = make_board(site, chosen.hardware, chosen.scenario, "") if chosen else None
        values = {
            "board": board,
            "here": chosen,
            "choices": by_hardware(site),
            "rest": first_choices(site),
            "found": found(site, chosen),
            "grid": coverage.grid(site),
            "measures": list(coverage.measures(site)),
            "unmeasured": coverage.unmeasured(site),
            "left_out": site.content.left_out,
            "duels": duels(site),
            "claims": claims.counts(site),
            "cite": _cite(site, [run for part in board.parts for run in part.runs] if board else []),
            "measured": bool(site.content.runs),
        }
        return View(values, board.charts[:1] if board else ())

    yield Page("index.html", "index.html", view)


def choose(site: Site) -> Choice | None:
    """What the front page shows: whole results of a card, then of the cpu, then preliminary ones; long answers at 1."""
    open_choices = choices(site)

    def key(choice: Choice) -> tuple[bool, int, bool, bool, str]:
        runs = board_runs(site.content, choice.hardware, choice.scenario)
        whole = any(r.ranked and _whole(r) for r in runs)
        standing = 0 if whole else 1 if choice.hardware == "cpu" else 2
        return (not runs, standing, choice.hardware == "cpu", choice.scenario != "c1-long", choice.path)

    return min(open_choices, key=key, default=None)


def found(site: Site, chosen: Choice | None) -> str:
    """What was found on the chosen card, with one request and with several, in one sentence with intervals."""
    if chosen is None:
        return ""
    length = "long" if chosen.scenario.endswith("long") else "short"
    meetings = [m for s in (f"c1-{length}", f"c16-{length}") if (m := _meeting(site, chosen.hardware, s)) is not None]
    if chosen.hardware != "cpu":
        # A scale too small for a ranking never makes the headline; the cpu track, which shows the method, says so.
        meetings = [m for m in meetings if _whole(m[0]) and _whole(m[1])]
    if not meetings:
        return ""
    names = _sides(site, meetings[0])
    clauses = [_clause(m, names, first=place == 0) for place, m in enumerate(meetings)]
    where = card_name(site, chosen.hardware, [run for left, right, _ in meetings for run in (left, right)])
    where = f"the cpu track ({where})" if chosen.hardware == "cpu" else f"the {where}"
    scales = sorted({str(run.row["scale"]) for left, right, _ in meetings for run in (left, right) if not _whole(run)})
    standing = f" Preliminary: {words.listed(scales)} scale, too small for a ranking." if scales else ""
    return f"On {where}, {'; '.join(clauses)}.{standing}"


def _whole(run: Run) -> bool:
    return not (run.preliminary or run.demo)


Meeting = tuple[Run, Run, Figure]
"""Two runs and the ratio of the first over the second."""


def _meeting(site: Site, hardware: str, scenario: str) -> Meeting | None:
    """The duel that leads on a card in a scenario: of `pairs.yaml` in its order, else speculation beside plain."""
    try:
        pairs = {pair.pair: pair for pair in site.catalog.pairs.pairs}
    except ParibusError:
        pairs = {}
    order = list(pairs)
    meetings = []
    for row in site.content.pairs:
        left, right = (site.content.runs.get(str(row[f"{side}_run_id"])) for side in ("left", "right"))
        if row["hardware"] != hardware or row["pair"] not in order or left is None or right is None or row["refused"]:
            continue
        if any(_stands_in(site, pairs[row["pair"]], run) for run in (left, right)):
            continue
        figure = speedup_of(left, right)
        if left.row["scenario_or_task"] == scenario and figure is not None:
            meetings.append((bool(row["demo"]), order.index(row["pair"]), str(row["machine"]), (left, right, figure)))
    best = min(meetings, key=lambda m: m[:3], default=None)
    return best[3] if best is not None else best_ratio(board_runs(site.content, hardware, scenario))


def _stands_in(site: Site, pair: Pair, run: Run) -> bool:
    """Whether plain decoding is in a duel only because no speculation beside it is sound: then it leads nothing."""
    same = ("stack", "hardware", "machine", "measure", "demo")
    named = pair.left == pair.right or (str(run.row["stack"]), "plain") in pair.sides()
    if named or run.decoder_method != "plain":
        return False
    others = (r for r in site.content.speed_runs if all(r.row[key] == run.row[key] for key in same))
    return any(other.decoder_method != "plain" for other in others)


def _sides(site: Site, meeting: Meeting) -> tuple[str, str]:
    """How the two sides are called: by decoder where the stack is one, else by model and decoder."""
    left, right, _ = meeting
    if left.row["stack"] == right.row["stack"] and left.decoder_method != "block-diffusion":
        return f"the best speculation tried ({left.row['decoder']})", run_words(right)
    one, two = (f"{site.model_title(str(run.row['model']))} with {run_words(run)}" for run in (left, right))
    return one, two


def _clause(meeting: Meeting, names: tuple[str, str], *, first: bool) -> str:
    """One half of the finding: the first names both sides, the second only what changes."""
    run, _, figure = meeting
    measure = words.measure_of(figure.metric)
    load = f"{words.requests_at_once(run.requests)}, {measure},"
    if first:
        ratio = (figure.value, figure.low, figure.high)
        return words.speedup_sentence(*names, requests=run.requests, ratio=ratio, measure=measure)
    number = words.shown(figure.value, figure.low, figure.high, "x")
    distinct = words.clear(figure.low, figure.high)
    if distinct is False:
        return f"{load} there is {words.NO_DIFFERENCE} ({number.value} times as fast {number.interval})"
    if distinct is None:
        return f"{load} {number.value} times as fast, with {words.NO_INTERVAL} and so without a verdict"
    return f"{load} {number.value} times as fast {number.interval}"


def duels(site: Site) -> list[tuple[str, str]]:
    """Titles and pages of the duels, for every card that has runs of them."""
    try:
        titles = {pair.pair: pair.title for pair in site.catalog.pairs.pairs}
    except ParibusError:
        return []
    seen = sorted({(str(row["hardware"]), str(row["pair"])) for row in site.content.pairs if row["pair"] in titles})
    return [(f"{titles[pair]} ({card})", pair_path(card, pair)) for card, pair in seen]


def _cite(site: Site, runs: Sequence[Run]) -> str:
    dates = sorted(words.date(run.row["started_at"]) for run in runs)
    when = f", measured {dates[-1]}" if dates else ""
    return f"Paribus. {site.edition}{when}."
