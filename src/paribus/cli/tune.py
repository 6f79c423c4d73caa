"""`paribus tune`: decide a race between decoders from its candidates' runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from paribus.catalog import Plan, Race, Verdict
from paribus.catalog.configuration import catalog_of
from paribus.catalog.races import read_verdict
from paribus.cli._planning import read_plan, root_of
from paribus.conditions import CheckFailed, RunPath, SystemName, UsageError, decoder_method, inside
from paribus.machine import write_atomic
from paribus.speed.race import Entry, decide, read_part


@click.command()
@click.argument("verdict", required=False)
@click.option(
    "--plan", "plan_file", type=click.Path(path_type=Path), default=Path("build/plan.json"), show_default=True
)
def command(verdict: str | None, plan_file: Path) -> None:
    """Decide a race between the decoders of one model from the candidates' runs, and write its race.json.

    VERDICT is the path of the race.json, as the plan names it (the part below the results folder is enough). Without
    it, the plan's races are shown. The fastest candidate with speculation wins; one with an invalid flag is left out,
    with the reason, and so is one whose server did not start; every candidate stays in the file.

    \b
    Examples:
      paribus tune
      paribus tune results/cpu/m-x7k2q/smollm2-135m--q4-1--llamacpp--race/race-c1-long.demo/0123456789ab.1/race.json
    """
    plan = read_plan(plan_file)
    root = root_of(plan_file)
    if verdict is None:
        _show(plan, root)
        return
    race = find_race(plan, verdict)
    decided = judge(root, plan, race, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    write_atomic(inside(root, race.verdict), (decided.model_dump_json(indent=1) + "\n").encode())
    click.echo(sentence(decided))


def find_race(plan: Plan, verdict: str) -> Race:
    """The plan's race with this verdict path; `UsageError` names those there are."""
    wanted = verdict.removeprefix("./").strip("/")
    for race in plan.races:
        if race.verdict == wanted or race.verdict.removeprefix(plan.results + "/") == wanted:
            return race
    known = ", ".join(race.verdict for race in plan.races) or "none"
    raise UsageError(f"the plan has no race with the verdict {verdict!r}; its races: {known}")


def judge(root: Path, plan: Plan, race: Race, now: str) -> Verdict:
    """Read the candidates' starts and decide. `CheckFailed` when a start is missing."""
    catalog = catalog_of(root, plan)
    scenario = catalog.scenario(race.scenario)
    starts = {run.run: run.starts for run in plan.runs}
    entries = [_entry(root, plan, run, starts.get(run)) for run in race.runs]
    cpu = catalog.hardware(plan.hardware).card.kind == "cpu"
    return decide(race, race.scenario, scenario.requests, entries, decided_at=now, cpu=cpu)


def _entry(root: Path, plan: Plan, run: str, starts: int | None) -> Entry:
    name = SystemName.parse(RunPath.parse(run).system)
    folder = inside(root / plan.results, run)
    wanted = range(1, (starts or 1) + 1)
    missing = [k for k in wanted if not (folder / f"start-{k}" / "manifest.json").is_file()]
    if missing:
        raise CheckFailed(
            f"the race can't be decided yet: {run} lacks start {', '.join(map(str, missing))}; run the workflow first"
        )
    parts = [read_part(folder / f"start-{k}") for k in wanted]
    return Entry(name.decoder, run, decoder_method(name.decoder) != "plain", parts)


def sentence(verdict: Verdict) -> str:
    """The verdict in a few lines: the winner, then every candidate."""
    lines = [f"{verdict.stack}, {verdict.scenario}: {verdict.winner} wins by {verdict.metric} ({verdict.unit})"]
    if verdict.plain_is_faster:
        lines[0] += "; plain decoding is faster"
    elif _none_speculates(verdict):
        lines[0] += "; no candidate that speculates could be used"
    for one in sorted(verdict.candidates, key=lambda c: -(c.value or 0)):
        span = f" [{one.low:.1f} to {one.high:.1f}]" if one.low is not None and one.high is not None else ""
        value = f"{one.value:.1f}{span}" if one.value is not None else "no value"
        lines.append(f"  {one.decoder}: {value}" + (f"; left out: {one.left_out}" if one.left_out else ""))
    lines += [f"  {name}: not tried, {reason}" for name, reason in verdict.not_tried.items()]
    return "\n".join(lines)


def _none_speculates(verdict: Verdict) -> bool:
    """Whether plain decoding won because every candidate beside it was left out."""
    others = [one for one in verdict.candidates if one.decoder != verdict.winner]
    return decoder_method(verdict.winner) == "plain" and bool(others) and all(one.left_out for one in others)


def _show(plan: Plan, root: Path) -> None:
    if not plan.races:
        click.echo("the plan has no races")
    for race in plan.races:
        decided = read_verdict(inside(root, race.verdict))
        if decided is not None:
            click.echo(sentence(decided))
        else:
            click.echo(f"{race.stack}, {race.scenario}: not decided; candidates: {', '.join(race.candidates)}")
            click.echo(f"  paribus tune {race.verdict}")
