"""`paribus build`: the database and the data files from every sealed run, and from the catalog.

What a run gives is kept in `build/rows/`, under a hash of the run's files and of the code that reads them, so that the
cost of a build grows with what changed. The rows, and their order, depend on the runs and the catalog alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from paribus.catalog import Catalog, Verdict
from paribus.conditions import CheckFailed, ParibusError, RunPath, inside, run_id
from paribus.results.batches import window_batches
from paribus.results.cache import RowCache
from paribus.results.claims import claim_rows
from paribus.results.compare import compare, untold
from paribus.results.data import RunData
from paribus.results.database import arrow, write_database, write_exports
from paribus.results.facts import about, catalog_rows, left_out, replacements, supersede, superseded
from paribus.results.gate import gate_row, gates
from paribus.results.gates import parse_subjects
from paribus.results.lossless import lossless_rows, marked
from paribus.results.paired import margin_of
from paribus.results.pairing import Decided, Duel, Match, decoders, duels, kept, newer
from paribus.results.reading import read_model
from paribus.results.rows import Rows, TableRow, figure_row, rows_of
from paribus.results.run import RESULTS_ROOTS, RunFolder, all_runs, find_verdicts
from paribus.results.tables import DATA, DATABASE, TABLES


@dataclass
class Built:
    """What a build found: rows by table, runs that aren't sealed yet, and how much was known already.

    `unreadable`: runs and verdicts that are left out because they can't be read, with the reason.
    """

    rows: dict[str, list[TableRow]] = field(default_factory=lambda: {name: [] for name in TABLES})
    unsealed: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    runs: int = 0
    reused: int = 0


def build(root: Path) -> Built:
    """Write `build/paribus.duckdb` and `build/data/`.

    Runs come from strangers: one that can't be read is left out and named, and ends no build. Raises `CheckFailed` for
    a clash of ids.
    """
    try:
        built, tables = _built(root, {})
    except Exception:
        # Who is to blame is asked only now: looking at every run by itself takes as long as a first build.
        unreadable = _unreadable(root)
        if not unreadable:
            raise
        built, tables = _built(root, unreadable)
    write_exports(root / DATA, tables)
    return built


def _built(root: Path, unreadable: Mapping[str, str]) -> tuple[Built, Any]:
    built = collect(root, unreadable)
    return built, write_database(root / DATABASE, built.rows)


def _unreadable(root: Path) -> dict[str, str]:
    """Runs, races and lossless gates whose files break what reads them, by path, with the reason."""
    found: dict[str, str] = {}
    for place in all_runs(root):
        if (place.folder / "manifest.json").is_file():
            with _blaming(found, str(place.path)):
                _try(RunData.read(place))
    for gate in gates(root):
        with _blaming(found, str(gate.path)):
            gate_row(gate)
    for results in RESULTS_ROOTS:
        for path in find_verdicts(root / results):
            with _blaming(found, _named(root / results, path)):
                _verdict(root / results, path)
    return found


@contextmanager
def _blaming(found: dict[str, str], name: str) -> Iterator[None]:
    try:
        yield
    except ParibusError as error:
        found[name] = str(error)
    except Exception as error:
        found[name] = f"reading it failed ({type(error).__name__}: {' '.join(str(error).split())[:200]})"


def _try(data: RunData) -> None:
    """Make a run's rows as a build does, down to the columns' types."""
    for table, rows in rows_of(data).items():
        again: list[TableRow] = orjson.loads(orjson.dumps(rows))
        arrow(TABLES[table], again)


def collect(root: Path, unreadable: Mapping[str, str] | None = None) -> Built:
    """The rows of every table, without writing the database (the cache is written). `unreadable`: left out."""
    built, catalog = Built(unreadable=dict(unreadable or {})), Catalog(root)
    cache = RowCache(root)
    sealed = _sealed(root, built)
    built.rows["superseded"] = superseded(root)
    ids = {str(data.summary.run): data.summary.run_id for data in sealed}
    ids |= {name: run_id(name) for name in built.unreadable}
    replaced = replacements(ids, built.rows["superseded"])
    built.rows["lossless"] = lossless_rows(
        root,
        _standing(sealed, replaced),
        catalog,
        partial(_gates, cache),
        lambda path: str(path) not in built.unreadable,
    )
    sealed = marked(sealed, built.rows["lossless"])
    for data in sealed:
        _add(built, cache.rows(["run", cache.key_of(data)], partial(rows_of, data)))
    verdicts = _verdicts(root, built.unreadable)
    built.rows["races"] = [row for one in verdicts for row in _race(one)]
    picks = {s.scenario: s.picks_for for s in catalog.scenarios.values() if s.race}
    standing = _standing(sealed, replaced)
    found = duels(standing, catalog.pairs.pairs, verdicts, picks)
    leading = [*decoders(standing), *(duel.match for duel in found)]
    # Ratios that later runs have replaced keep their pages; they lead nothing.
    _comparisons(built, [*leading, *kept(sealed, catalog.pairs.pairs)], found, partial(_compared, cache, catalog))
    built.reused = cache.reused
    built.rows["left_out"] = left_out(root)
    supersede(built.rows, replaced, newer(sealed, standing))
    built.rows |= catalog_rows(catalog)
    built.rows["claims"] = claim_rows(catalog.claims.values(), built.rows["runs"], built.rows["figures"])
    _unique_figures(built)
    built.rows |= about(built.rows, catalog)
    return built


def _standing(sealed: Sequence[RunData], replaced: Mapping[str, str]) -> list[RunData]:
    """The runs that nothing superseded."""
    return [data for data in sealed if data.summary.run_id not in replaced]


def _sealed(root: Path, built: Built) -> list[RunData]:
    found: list[RunData] = []
    places: dict[str, RunFolder] = {}
    for place in all_runs(root):
        known = places.setdefault(place.run_id, place)
        if known is not place:
            raise CheckFailed(f"two runs have the id {place.run_id}: {known.path} and {place.path}")
        if not (place.folder / "manifest.json").is_file():
            built.unsealed.append(str(place.path))
            continue
        if str(place.path) in built.unreadable:
            continue
        found.append(RunData.read(place))
    built.runs = len(found)
    return found


def _add(built: Built, rows: Mapping[str, Sequence[TableRow]]) -> None:
    for table, more in rows.items():
        built.rows[table].extend(more)


def _gates(cache: RowCache, runs: Sequence[RunData], rules: str, make: Callable[[], list[TableRow]]) -> list[TableRow]:
    """Verdicts of the lossless gates that are made of some runs, from the cache where nothing has changed."""
    parts = ["lossless", rules, *map(cache.key_of, runs)]
    return cache.rows(parts, lambda: {"lossless": make()}, counted=False)["lossless"]


def _verdicts(root: Path, unreadable: Container[str]) -> list[Decided]:
    return [
        _verdict(root / results, path)
        for results in RESULTS_ROOTS
        for path in find_verdicts(root / results)
        if _named(root / results, path) not in unreadable
    ]


def _named(results: Path, path: Path) -> str:
    return path.relative_to(results).as_posix()


def _verdict(results: Path, path: Path) -> Decided:
    place = RunPath.parse("/".join(path.parent.relative_to(results).parts))
    verdict = read_model(path.parent, "race.json", Verdict)
    for run in verdict.runs:
        inside(results, run)
    demo = results.name == "demo-results"
    return Decided(demo, place.hardware, place.machine, f"{place}/race.json", verdict)


def _race(one: Decided) -> list[TableRow]:
    shared = {
        "verdict": one.path,
        "demo": one.demo,
        "hardware": one.hardware,
        "machine": one.machine,
        "stack": one.verdict.stack,
        "scenario": one.verdict.scenario,
        "measure": one.verdict.measure,
        "metric": one.verdict.metric,
        "unit": one.verdict.unit,
        "plain_is_faster": one.verdict.plain_is_faster,
        "decided_at": one.verdict.decided_at,
    }
    rows: list[TableRow] = [
        {
            "decoder": c.decoder,
            "run_id": run_id(c.run),
            "run": c.run,
            "value": c.value,
            "low": c.low,
            "high": c.high,
            "acceptance_length": c.acceptance_length,
            "winner": c.decoder == one.verdict.winner,
            "left_out": c.left_out,
        }
        for c in one.verdict.candidates
    ]
    rows += [
        {"decoder": decoder, "winner": False, "left_out": reason} for decoder, reason in one.verdict.not_tried.items()
    ]
    return [{**shared, "position": place, **row} for place, row in enumerate(rows, 1)]


def _comparisons(
    built: Built, matches: Sequence[Match], found: Sequence[Duel], compared: Callable[[Match], Rows]
) -> None:
    done: dict[Asked, Rows] = {}
    figures: dict[tuple[str, str], list[TableRow]] = {}
    for match in matches:
        asked = _asked(match)
        if asked not in done:
            done[asked] = compared(match)
            # What may differ is in no figure's id: two runs have one set of figures, of whatever lets them meet.
            figures[asked[:2]] = figures.get(asked[:2]) or done[asked]["figures"]
    for rows in figures.values():
        built.rows["figures"].extend(rows)
    built.rows["pairs"] = [_duel_row(duel, done[_asked(duel.match)]) for duel in found]


Asked = tuple[str, str, str]
"""Ids of the two sides, and what may differ between them."""


def _asked(match: Match) -> Asked:
    return match.left.summary.run_id, match.right.summary.run_id, match.subjects


def _compared(cache: RowCache, catalog: Catalog, match: Match) -> Rows:
    """The figures of two runs, from the cache where nothing has changed."""
    margin = margin_of(catalog, match.left.summary)
    sides = ["ratio", cache.key_of(match.left), cache.key_of(match.right), match.subjects, str(margin)]
    return cache.rows(sides, partial(_ratios, match, margin))


def _ratios(match: Match, margin: float | None) -> Rows:
    """Figures of two runs; or, where they can't be compared, the reason."""
    left, right = match.left.summary, match.right.summary
    try:
        made = compare(match.left, match.right, parse_subjects(match.subjects), window_batches, margin=margin)
    except CheckFailed as refused:
        return {"figures": [], "about": [{"refused": str(refused), "notes": []}]}
    ids, demo = (left.run_id, right.run_id), match.left.place.demo or match.right.place.demo
    ranked = left.ranked and right.ranked and not demo
    figures = [figure_row(one, ids, ranked, said) for one, said in zip(made.ratios, made.sentences(), strict=True)]
    notes = [*made.notes, *(f"they differ in {difference}" for difference in untold(made.subject))]
    return {"figures": figures, "about": [{"refused": None, "notes": notes}]}


def _duel_row(duel: Duel, compared: Rows) -> TableRow:
    demo, hardware, machine, measure = duel.place
    left, right = duel.match.left.summary.run_id, duel.match.right.summary.run_id
    return {
        "pair": duel.pair.pair,
        "title": duel.pair.title,
        "kind": duel.pair.kind,
        "demo": demo,
        "hardware": hardware,
        "machine": machine,
        "measure": measure,
        "left_run_id": left,
        "right_run_id": right,
        "refused": compared["about"][0]["refused"],
        "notes": [*duel.passed_over, *compared["about"][0]["notes"]],
    }


def _unique_figures(built: Built) -> None:
    """A permanent id names one figure only."""
    seen: dict[str, tuple[Any, ...]] = {}
    for row in built.rows["figures"]:
        what = row["run_id"], row["other_run_id"], row["metric"]
        if seen.setdefault(row["figure_id"], what) != what:
            raise CheckFailed(f"two figures have the id {row['figure_id']}: {seen[row['figure_id']]} and {what}")
