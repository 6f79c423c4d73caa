"""The Snakefile under the real Snakemake, with stand-in commands: order, resumption, refusals."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from paribus.catalog import PromptSource, read_yaml
from paribus.speed.sources import fetch_prompts

OURS = Path(__file__).resolve().parents[2]


class Clone:
    """A clone of the small catalog with our workflow in it, and a `paribus` that only writes files."""

    def __init__(self, root: Path, home: Path):
        self.root, self.home = root, home
        for name in ("Snakefile", "workflows"):
            source = OURS / name
            shutil.copytree(source, root / name) if source.is_dir() else shutil.copy(source, root / name)
        shutil.copy(OURS / "hardware/cpu/profile.yaml", root / "hardware/small/profile.yaml")
        (root / "build").mkdir(exist_ok=True)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PARIBUS_", "SNAKEMAKE", "XDG_"))}
        return {**kept, "HOME": str(self.home), "PARIBUS_MACHINE": "m-test", "HF_HUB_OFFLINE": "1", **more}

    def command(self, *arguments: str) -> list[str]:
        return [str(self.home / "venv/bin/python"), "-m", "snakemake", *arguments]

    def run(self, *arguments: str, profile: str = "hardware/small", **more: str) -> subprocess.CompletedProcess[str]:
        command = self.command("--profile", profile, *arguments)
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )

    @property
    def calls(self) -> list[str]:
        path = self.root / "build/calls.txt"
        return path.read_text().splitlines() if path.exists() else []

    def measured(self) -> list[str]:
        return [line.removeprefix("measured ") for line in self.calls if line.startswith("measured ")]


@pytest.fixture
def home(tmp_path):
    """A home with an environment like ours, in which `paribus` is the stand-in."""
    binaries = tmp_path / "home/venv/bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(Path(sys.executable).resolve())
    shutil.copy(Path(__file__).with_name("stand_in_commands.py"), binaries / "paribus")
    (binaries / "paribus").chmod(0o755)
    version = sysconfig.get_python_version()
    packages = tmp_path / f"home/venv/lib/python{version}/site-packages"
    packages.mkdir(parents=True)
    (packages / "ours.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{OURS / 'src'}\n")
    base = Path(sys.executable).resolve().parent
    (tmp_path / "home/venv/pyvenv.cfg").write_text(f"home = {base}\nversion = {version}\n")
    return tmp_path / "home"


@pytest.fixture
def clone(small, home):
    return Clone(small, home)


def test_a_whole_run_races_measures_the_winners_and_then_has_nothing_to_do(clone):
    first = clone.run("--config", "scale=demo")
    assert first.returncode == 0, first.stdout
    measured = [line for line in clone.measured() if "smoke-code" not in line]  # only where there is a sandbox
    assert measured == [
        "plain 1 race-one-long",
        "plain 1 race-many-long",
        "fast-n4 1 race-one-long",
        "fast-n4 1 race-many-long",
        "fast-n8 1 race-one-long",
        "fast-n8 1 race-many-long",
        # The winners, known only after the races, take their turn right after plain's start.
        "plain 1 one-long",
        "plain 1 many-long",
        "fast-n4 1 many-long",
        "fast-n8 1 one-long",
        "plain 1 smoke-exam",
    ]
    names = [line.split()[0] for line in clone.calls]
    assert names.index("fetch") > names.index("doctor")
    assert max(i for i, n in enumerate(names) if n == "fetch") < names.index("speed")
    assert names.count("tune") == 2
    assert names[-3:] == ["build", "site", "status"]
    again = clone.run("--config", "scale=demo")
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout


def test_where_only_plain_decoding_is_left_in_a_race_it_alone_is_measured(clone):
    """So a verdict ends when no other candidate's server started."""
    first = clone.run("--config", "scale=demo", "measures=one-*", WINNER="plain")
    assert first.returncode == 0, first.stdout
    full = [line for line in clone.measured() if "race" not in line]
    assert full == ["plain 1 one-long"]
    assert "Nothing to be done" in clone.run("--config", "scale=demo", "measures=one-*").stdout


@pytest.mark.system
def test_starts_alternate_and_committed_results_need_nothing_in_a_fresh_clone(clone, tmp_path):
    first = clone.run("--config", "measures=one-*")
    assert first.returncode == 0, first.stdout
    races = [line for line in clone.measured() if "race" in line]
    assert [line.split()[:2] for line in races] == [
        ["plain", "1"], ["fast-n4", "1"], ["fast-n8", "1"], ["fast-n8", "2"], ["fast-n4", "2"], ["plain", "2"],
    ]  # fmt: skip
    full = [line.split()[:2] for line in clone.measured() if "race" not in line]
    assert full == [["plain", "1"], ["fast-n8", "1"], ["fast-n8", "2"], ["plain", "2"]]
    assert not [line for line in clone.calls if line.startswith(("build", "site"))]
    # What git would carry to a fresh clone: everything but build/ and Snakemake's own folder, with dates in any order.
    fresh = tmp_path / "fresh"
    shutil.copytree(clone.root, fresh, ignore=shutil.ignore_patterns("build", ".snakemake"), copy_function=shutil.copy)
    for number, path in enumerate(sorted(fresh.rglob("*.*"), reverse=True)):
        os.utime(path, (1_700_000_000 + number % 7, 1_700_000_000 + number % 7))
    (fresh / "build").mkdir()
    again = subprocess.run(
        clone.command("--profile", "hardware/small", "--config", "measures=one-*"),
        cwd=fresh, env=clone.environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Nothing to be done" in again.stdout + again.stderr
    assert not (fresh / "build/calls.txt").exists()


def test_items_of_the_hub_are_fetched_before_anything_is_measured(clone):
    task = clone.root / "tasks/quality/exam.yaml"
    text = task.read_text()
    task.write_text(text.replace("data:\n", "data:\n  hub: [{repository: some/items, files: {a.jsonl: null}}]\n"))
    run = clone.run("--config", "scale=full", "measures=exam", HF_HUB_OFFLINE="0")
    assert run.returncode == 0, run.stdout
    assert clone.measured() == ["plain 1 exam"]
    assert clone.calls.index("fetch items exam") < clone.calls.index("quality")
    assert "size not known, not counted: the items of exam (some/items)" in run.stdout
    assert "Nothing to be done" in clone.run("--config", "scale=full", "measures=exam", HF_HUB_OFFLINE="0").stdout


@pytest.mark.parametrize("typed", ["starts=", "systems="])
def test_an_empty_setting_is_refused_by_the_workflow_too(clone, typed):
    run = clone.run("-n", "--config", typed)
    assert run.returncode == 2
    assert f"paribus: --config {typed} is empty" in run.stdout
    assert "Traceback" not in run.stdout


def test_a_profile_may_leave_the_number_of_starts_open(clone):
    with (clone.root / "hardware/small/hardware.yaml").open("a") as file:
        file.write("starts: null\n")
    run = clone.run("-n", "--config", "scale=demo")
    assert run.returncode == 0, run.stdout


def test_a_dry_run_starts_nothing_writes_no_plan_and_says_what_waits(clone):
    dry = clone.run("-n", "--config", "scale=demo")
    assert dry.returncode == 0
    assert "waits for a race: one-long of the winner of race-one-long" in dry.stdout
    assert clone.calls == []
    assert not (clone.root / "build/plan.json").exists()


@pytest.mark.system
def test_a_failed_step_stops_with_its_log_and_loses_nothing(clone):
    failed = clone.run("--config", "scale=demo", "measures=one-*", FAIL="seal")
    assert failed.returncode == 1
    assert "failed:  seal (log: build/logs/" in failed.stdout
    assert clone.calls[-1] == "status"
    assert "Traceback" not in failed.stdout
    before = clone.measured()
    assert before
    again = clone.run("--config", "scale=demo", "measures=one-*")
    assert again.returncode == 0, again.stdout
    assert clone.measured()[: len(before)] == before
    assert len(clone.measured()) == len(set(clone.measured()))


@pytest.mark.system
def test_after_kill_9_the_next_run_continues_without_repeating_a_finished_measure(clone):
    arguments = clone.command("--profile", "hardware/small", "--config", "scale=demo", "measures=one-*")
    for count in (1, 3):
        process = subprocess.Popen(
            arguments, cwd=clone.root, env=clone.environment(PAUSE="0.3"), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while len(clone.measured()) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert len(clone.measured()) >= count
    finished = {
        str(path): path.read_bytes() for path in clone.root.glob("build/demo-results/*/*/*/*/*/start-1/manifest.json")
    }
    last = clone.run("--config", "scale=demo", "measures=one-*")
    assert last.returncode == 0, last.stdout
    for path, content in finished.items():
        assert Path(path).read_bytes() == content
    assert "Nothing to be done" in clone.run("--config", "scale=demo", "measures=one-*").stdout


def test_a_mistake_is_one_sentence_and_exit_code_2(clone):
    run = clone.run("--config", "scal=demo")
    assert run.returncode == 2
    assert "paribus: --config has no key 'scal'" in run.stdout
    assert "Traceback" not in run.stdout


@pytest.mark.parametrize("more", [(), ("-n",), ("--config", "scale=demo")])
def test_a_target_that_is_not_there_yet_says_so_and_fails(clone, more):
    run = clone.run("sweep", *more)
    assert run.returncode == 2, run.stdout
    assert "paribus: the target sweep is not there yet" in run.stdout
    assert "Traceback" not in run.stdout
    assert clone.measured() == []


def test_the_target_claims_plans_claims_and_nothing_else(clone):
    without = clone.run("claims", "-n")
    assert without.returncode == 2
    assert "measures='claim-*' names no scenario and no task" in without.stdout
    for name in ("claim-random-1024.yaml", "prompts/random-1024.yaml"):
        shutil.copy(OURS / "tasks/speed" / name, clone.root / "tasks/speed" / name)
    source = read_yaml(clone.root / "tasks/speed/prompts/random-1024.yaml", PromptSource)
    ours = clone.root / "tasks/speed/prompts" / f"{source.warm_up}.jsonl"
    if not ours.exists():
        shutil.copy(OURS / "tasks/speed/prompts" / ours.name, ours)
    fetch_prompts(clone.root, source, print)
    planned = clone.run("claims", "-n")
    assert planned.returncode == 0, planned.stdout
    assert "claim-random-1024" in planned.stdout
    assert "c1-long" not in planned.stdout


def test_an_unknown_profile_is_refused_without_a_traceback(clone):
    run = clone.run(profile="h999")
    assert run.returncode == 1
    assert "h999" in run.stdout
    assert "Traceback" not in run.stdout


def test_the_profile_of_another_clone_is_refused(clone, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(clone.root / "hardware", other / "hardware")
    links = clone.home / ".config/snakemake"
    links.mkdir(parents=True)
    (links / "small").symlink_to(other / "hardware/small")
    refused = clone.run("-n", profile="small")
    assert refused.returncode == 2
    assert f"belongs to another clone ({other})" in refused.stdout
    assert "Traceback" not in refused.stdout


@pytest.mark.system
def test_a_second_workflow_in_the_same_clone_is_refused(clone):
    arguments = clone.command("--profile", "hardware/small", "--config", "scale=demo", "measures=one-*")
    first = subprocess.Popen(
        arguments, cwd=clone.root, env=clone.environment(PAUSE="2"), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not clone.measured() and time.monotonic() < deadline:
            time.sleep(0.05)
        second = clone.run("--config", "scale=demo", "measures=one-*")
        assert second.returncode != 0
        assert "another Snakemake is running in this folder" in second.stdout
        assert "Traceback" not in second.stdout
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
