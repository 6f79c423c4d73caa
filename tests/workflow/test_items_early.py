"""Items below `PARIBUS_DATA` that are not the task's are told when a run is planned, before anything is measured."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest
import yaml

from paribus.catalog import Catalog, resolve
from paribus.cli._items import check_items
from paribus.cli.doctor import examine
from paribus.conditions import UsageError
from paribus.quality.data import items_hash

ROWS = [{"id": f"q{n}"} for n in range(8)]
WRONG = [*ROWS[:7], {"id": "another"}]


@pytest.fixture
def data(small, tmp_path, monkeypatch):
    """A folder for items; the small catalog's task `exam` knows the hash of its 8 items."""
    path = small / "tasks/quality/exam.yaml"
    task = yaml.safe_load(path.read_text())
    task["data"]["items_hash"] = items_hash(Catalog(small).task("exam"), ROWS)
    path.write_text(yaml.safe_dump(task))
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("PARIBUS_DATA", str(folder))
    return folder


def write(folder, rows):
    (folder / "real.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def plan_with(small, around, folder, **settings):
    return resolve(small, "small", {"scale": "demo", **settings}, dataclasses.replace(around, data=folder))


@pytest.mark.parametrize("scale", ["demo", "full"])
def test_right_items_pass_and_wrong_ones_name_both_hashes(small, around, data, scale):
    write(data, ROWS)
    plan = plan_with(small, around, data, scale=scale)
    assert check_items(Catalog(small), plan) == ["exam"]
    write(data, WRONG)
    task = Catalog(small).task("exam")
    with pytest.raises(UsageError) as fault:
        check_items(Catalog(small), plan)
    assert items_hash(task, ROWS) in str(fault.value)
    assert items_hash(task, WRONG) in str(fault.value)


def test_only_what_is_planned_and_not_yet_measured_is_looked_at(small, around, data):
    write(data, WRONG)
    plan = plan_with(small, around, data)
    done = plan.model_copy(update={"jobs": [job.model_copy(update={"done": True}) for job in plan.jobs]})
    assert check_items(Catalog(small), done) == []
    assert check_items(Catalog(small), plan_with(small, around, data, measures="one-long")) == []


def test_doctor_says_that_wrong_items_are_lacking(small, around, data):
    write(data, ROWS)
    plan = plan_with(small, around, data)

    def finding():
        findings = examine(Catalog(small), plan, {"card": "a CPU", "card_count": 1})
        return next((f.state, f.text) for f in findings if f.subject == "data")

    assert finding() == ("good", "the items below PARIBUS_DATA are the task's: exam")
    write(data, WRONG)
    state, text = finding()
    assert state == "lacks"
    assert "these are not the task's items: expected hash" in text


@pytest.mark.parametrize(
    "command",
    [
        ["paribus", "plan", "--profile", "small", "--config", "scale=demo"],
        ["snakemake-module", "open"],
    ],
)
def test_planning_refuses_wrong_items_with_one_sentence_and_2(small, data, tmp_path, command):
    write(data, WRONG)
    code = "from paribus.cli import main; main()"
    if command[0] != "paribus":
        code = (
            "from types import SimpleNamespace as N; from paribus.cli import _snakefile as s; "
            f"s.show_steps = lambda *a: None; n = N(config={{}}); "
            f"w = N(basedir={str(small)!r}, is_main_process=True, configfiles=[], config_settings=n); "
            "s.open_workflow(w, {'hardware': 'small', 'scale': 'demo'}, None)"
        )
    (small / "results").mkdir(exist_ok=True)
    environment = {**os.environ, "PARIBUS_MACHINE": "m-test", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *command[1:]],
        cwd=small, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "exam: these are not the task's items: expected hash" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (small / "build/plan.json").exists()
