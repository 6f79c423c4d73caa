#!/usr/bin/env python3
"""A stand-in for the `paribus` program in tests of the workflow: it writes the files that the rules wait for.

It reads build/plan.json as the real commands do, and notes every call in build/calls.txt, so that tests see the order.
`PAUSE` (seconds) makes measuring slow; `FAIL` (a command's name) makes one command fail; `WINNER` wins all races.
"""

import json
import os
import sys
import time
from pathlib import Path


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(value))
    draft.replace(path)


def measure(plan: dict, job_id: str) -> None:
    job = next(job for job in plan["jobs"] if job["job"] == job_id)
    order = [i for i in range(len(job["measures"])) if i != job["lead"]] + [job["lead"]]
    for index in order:
        run = Path(plan["results"]) / job["measures"][index]["run"] / f"start-{job['start']}"
        if not (run / "manifest.json").exists():
            note("measured", job["system"].split("--")[3], job["start"], job["measures"][index]["id"])
            time.sleep(float(os.environ.get("PAUSE", "0")))
            write(run / "manifest.json", {"parent": os.environ["PARIBUS_WORKFLOW_PID"]})


def seal(plan: dict, folder: Path) -> None:
    run = next(run for run in plan["runs"] if str(folder).endswith(run["run"]))
    found = sorted(folder.glob("start-*/manifest.json"))
    if len(found) != run["starts"] or (run["kind"] == "quality" and not (folder / "start-1/score.json").exists()):
        sys.exit(f"asked to seal {folder} too early")
    write(folder / "manifest.json", {"starts": [{} for _ in found]})


def tune(plan: dict, place: str) -> None:
    race = next(race for race in plan["races"] if race["verdict"] == place)
    if not all((Path(plan["results"]) / run / "manifest.json").exists() for run in race["runs"]):
        sys.exit(f"asked to decide {place} too early")
    verdict = {key: race[key] for key in ("stack", "scenario", "measure", "not_tried", "runs")}
    winner = race["candidates"][-1] if race["scenario"] == "race-one-long" else race["candidates"][-2]
    winner = os.environ.get("WINNER", winner)
    verdict |= {"metric": "m", "unit": "u", "candidates": [], "winner": winner, "plain_is_faster": False}
    write(Path(place), {**verdict, "decided_at": "now"})


def note(*words: object) -> None:
    with Path("build/calls.txt").open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


def main() -> None:
    command, *rest = sys.argv[1:]
    note(command, *(rest if command in ("fetch", "build", "site", "doctor") else []))
    if os.environ.get("FAIL") == command:
        sys.exit(f"{command} was told to fail")
    plan = json.loads(Path("build/plan.json").read_text())
    if command in ("speed", "quality"):
        measure(plan, rest[rest.index("--job") + 1])
    elif command == "score":
        write(Path(rest[0]) / "start-1/score.json", {})
    elif command == "seal":
        seal(plan, Path(rest[0]))
    elif command == "tune":
        tune(plan, rest[0])
    elif command == "doctor":
        write(Path(rest[rest.index("--out") + 1]), {})
    elif command == "fetch":
        needs = {need for job in plan["jobs"] for need in job["needs"]}
        [marker] = [n for n in needs if n.startswith(f"build/{rest[0].rstrip('s')}") and rest[1] in n]
        write(Path(marker), {})
    elif command == "build":
        write(Path("build/paribus.duckdb"), {})
    elif command == "site":
        write(Path("build/site/index.html"), {})


main()
