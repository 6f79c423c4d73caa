"""Which runs are set against each other: plain decoding against speculation, and the duels of `pairs.yaml`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from paribus.catalog import Pair, Verdict
from paribus.conditions import SystemName
from paribus.results.data import RunData
from paribus.results.gates import invalid
from paribus.results.rows import stack_of
from paribus.results.run import UNRANKED

PLAIN = "plain"
DECODER = "decoder,launch"
CONTROLLED = "decoder,model,denoising,launch"
BEST_STACK = "decoder,model,denoising,engine,prefix-caching,number-types"
"""What may differ, and is then named. Each side is launched as its maintainers do it, and some decoders need settings
of their own (PROTOCOL rule 4): even where only the decoding is the subject, launch settings may be others; the types of
the cache, of the weights and of what is computed may not (section 5)."""

Place = tuple[bool, str, str, str]
"""Demo or not, hardware, machine, measure: where runs meet."""


@dataclass(frozen=True)
class Match:
    """Two runs to compare, first over second, with what may differ (words for `gates.parse_subjects`)."""

    left: RunData
    right: RunData
    subjects: str


@dataclass(frozen=True)
class Duel:
    """One pair of `pairs.yaml` at one place. `passed_over`: which side is not met at its best, and why, in words."""

    pair: Pair
    place: Place
    match: Match
    passed_over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decided:
    """A race's verdict with the place where it was found."""

    demo: bool
    hardware: str
    machine: str
    path: str
    verdict: Verdict


def place_of(data: RunData) -> Place:
    """Where a run may meet others."""
    summary = data.summary
    return data.place.demo, summary.hardware, summary.machine, summary.measure


def decoders(runs: Iterable[RunData]) -> list[Match]:
    """Every measured speculation against plain decoding of the same stack, at the same place (no races)."""
    groups: dict[tuple[Place, str], dict[str, RunData]] = defaultdict(dict)
    for data in latest(runs):
        name = SystemName.parse(data.summary.system)
        groups[place_of(data), stack_of(name)][name.decoder] = data
    return [
        Match(data, group[PLAIN], DECODER)
        for group in groups.values()
        if PLAIN in group
        for decoder, data in sorted(group.items())
        if decoder != PLAIN
    ]


def latest(runs: Iterable[RunData]) -> list[RunData]:
    """Of the repeats of one measure of one system on one machine the last sound one; no races, no canaries.

    A repeat with an invalid flag is in no comparison: it takes none away either. Where all have one, the last one.
    """
    return [max(repeats, key=lambda data: (sound(data), _age(data))) for repeats in _repeats(runs)]


def newer(runs: Iterable[RunData], standing: Iterable[RunData]) -> dict[str, str]:
    """Id of every run in whose place another repeat stands to the id of that one, see `latest`."""
    last = {(place_of(data), data.summary.system): data.summary.run_id for data in latest(standing)}
    behind = {
        data.summary.run_id: last.get((place_of(data), data.summary.system))
        for group in _repeats(runs)
        for data in group
    }
    return {old: new for old, new in behind.items() if new is not None and new != old}


def kept(runs: Sequence[RunData], pairs: Sequence[Pair]) -> list[Match]:
    """Every comparison that may once have led, of any two repeats and whichever decoder was a side's best.

    Its figures have permanent ids, which must go on naming something. What has led isn't written down anywhere, and
    the order in which runs arrive isn't that in which they were measured: so all are made. They are few, because only
    plain decoding and a race's winner are measured in full.
    """
    sides: dict[tuple[Place, str], list[RunData]] = defaultdict(list)
    for repeats in _repeats(runs):
        name = SystemName.parse(repeats[0].summary.system)
        sides[place_of(repeats[0]), stack_of(name)].extend(repeats)
    found = [
        Match(left, right, DECODER)
        for side in sides.values()
        for left, right in product(side, side)
        if _decoder(left) != PLAIN and _decoder(right) == PLAIN
    ]
    for pair in pairs:
        for place in sorted({place for place, stack in sides if stack == pair.left}):
            left, right = (
                [data for data in sides.get((place, stack), ()) if decoder in (None, _decoder(data))]
                for stack, decoder in pair.sides()
            )
            found += [Match(a, b, subjects_of(pair)) for a, b in product(left, right) if _decoders_meet(pair, a, b)]
    return found


def _decoders_meet(pair: Pair, left: RunData, right: RunData) -> bool:
    """Within one stack the other side is plain decoding unless the pair names it."""
    if pair.left != pair.right:
        return True
    return _decoder(left) != _decoder(right) and (pair.right_decoder is not None or _decoder(right) == PLAIN)


def _decoder(data: RunData) -> str:
    return SystemName.parse(data.summary.system).decoder


def _repeats(runs: Iterable[RunData]) -> list[list[RunData]]:
    """Repeats of one measure of one system on one machine together; no races, no canaries."""
    groups: dict[tuple[Place, str], list[RunData]] = defaultdict(list)
    for data in runs:
        if data.summary.kind != "race" and all(one.id != "canary" for one in data.summary.flags):
            groups[place_of(data), data.summary.system].append(data)
    return list(groups.values())


def sound(data: RunData) -> bool:
    """Whether a run is a measurement at all: no flag says that it is none."""
    return all(flag.severity != "invalid" for flag in data.summary.flags)


def _age(data: RunData) -> tuple[str, int, str]:
    return data.summary.starts[0].started_at, data.summary.n, data.summary.run


def duels(
    runs: Sequence[RunData],
    pairs: Sequence[Pair],
    verdicts: Sequence[Decided],
    picks: Mapping[str, Sequence[str]],
) -> list[Duel]:
    """Every pair of the catalog wherever both sides were measured. `picks`: race scenario to what it picks for."""
    table: dict[tuple[Place, str], dict[str, RunData]] = defaultdict(dict)
    for data in latest(runs):
        name = SystemName.parse(data.summary.system)
        table[place_of(data), stack_of(name)][name.decoder] = data
    found = []
    for pair in pairs:
        for place in sorted({place for place, stack in table if stack in (pair.left, pair.right)}):
            meeting = _match(pair, place, table, verdicts, picks)
            if meeting is not None:
                found.append(Duel(pair, place, *meeting))
    return found


def _match(
    pair: Pair,
    place: Place,
    table: Mapping[tuple[Place, str], Mapping[str, RunData]],
    verdicts: Sequence[Decided],
    picks: Mapping[str, Sequence[str]],
) -> tuple[Match, tuple[str, ...]] | None:
    """The two runs that meet, and what was passed over for them."""
    beside_plain = pair.left == pair.right and pair.right_decoder is None
    sides = [
        _chosen(
            table.get((place, stack), {}), decoder, _winner(stack, place, verdicts, picks, table), drafts=beside_plain
        )
        for stack, decoder in pair.sides()
    ]
    if beside_plain:
        sides[1] = _Chosen(table.get((place, pair.left), {}).get(PLAIN))
    left, right = sides[0].run, sides[1].run
    if left is None or right is None or left is right:
        return None
    said = tuple(
        f"{stack}: {side.passed_over}" for (stack, _), side in zip(pair.sides(), sides, strict=True) if side.passed_over
    )
    return Match(left, right, subjects_of(pair)), said


def subjects_of(pair: Pair) -> str:
    """What may differ between the two sides of a pair (words for `gates.parse_subjects`)."""
    if pair.left == pair.right and pair.right_decoder is None:
        return DECODER
    return CONTROLLED if pair.kind == "controlled" else BEST_STACK


def _winner(
    stack: str,
    place: Place,
    verdicts: Sequence[Decided],
    picks: Mapping[str, Sequence[str]],
    table: Mapping[tuple[Place, str], Mapping[str, RunData]],
) -> str | None:
    """The decoder that the race for this scenario picked, where one was run at this place."""
    demo, hardware, machine, _ = place
    scenarios = {str(data.summary.declared.get("scenario")) for data in table.get((place, stack), {}).values()}
    for one in verdicts:
        here = (one.demo, one.hardware, one.machine, one.verdict.stack) == (demo, hardware, machine, stack)
        if here and scenarios & set(picks.get(one.verdict.scenario, ())):
            return one.verdict.winner
    return None


@dataclass(frozen=True)
class _Chosen:
    """A side's run, and which better one was passed over for it, with the reason."""

    run: RunData | None
    passed_over: str = ""


def _chosen(side: Mapping[str, RunData], decoder: str | None, winner: str | None, *, drafts: bool) -> _Chosen:
    """A side's run: of the decoder that the pair names, else of the best. `drafts`: the other side is plain."""
    return _Chosen(side.get(decoder)) if decoder else _best(side, winner, drafts=drafts)


def _best(side: Mapping[str, RunData], winner: str | None, *, drafts: bool) -> _Chosen:
    """A side's run: the race's winner; without a race the fastest measured speculation, else what there is.

    A leaderboard puts ranked runs first and faulty ones last, and so does a side: another speculation stands in for one
    that can't be ranked, and plain decoding where every one's run is faulty.
    """
    speculative = {decoder: data for decoder, data in side.items() if decoder != PLAIN} or dict(side)
    windows = all(d.summary.speed is not None and d.summary.speed.throughput.value for d in speculative.values())

    def quick(decoder: str) -> tuple[bool, bool, float]:
        return decoder == winner, decoder != PLAIN, _speed(side[decoder], windows)

    first = max(speculative, key=quick, default=None)
    if first is None:
        return _Chosen(None)
    stand_ins = speculative if drafts or any(map(sound, speculative.values())) else side
    taken = max(stand_ins, key=lambda decoder: (side[decoder].summary.ranked, sound(side[decoder]), quick(decoder)))
    if taken == first:
        return _Chosen(side[first])
    passed_over = side[first].summary
    why = invalid(passed_over) or ", ".join(f.id for f in passed_over.flags if f.id in UNRANKED)
    return _Chosen(side[taken], f"{taken} stands in for {first}, whose run is not ranked ({why})")


def _speed(data: RunData, windows: bool) -> float:
    """What all requests write together: by the window where all have one, else by the whole run; alone, one answer."""
    speed = data.summary.speed
    if speed is None:
        return 0.0
    together = speed.throughput.value if windows else speed.throughput.whole_run
    several = (data.summary.declared.get("requests_at_once") or 1) > 1
    return (together if several else speed.output_speed_standard.value) or 0.0
