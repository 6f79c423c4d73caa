"""Set-up's links: ours are pointed at this clone, anything else is left alone and said."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

OURS = Path(__file__).resolve().parents[2]


def load(name):
    loader = importlib.machinery.SourceFileLoader(f"script_{name.replace('-', '_')}", str(OURS / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


profiles = load("profiles")
lint = load("lint-workflow")


def make_clone(root: Path) -> Path:
    for name in ("cpu", "h100"):
        (root / "hardware" / name).mkdir(parents=True)
        (root / "hardware" / name / "hardware.yaml").write_text(f"hardware: {name}\n")
    (root / "hardware" / "notes").mkdir()
    return root


@pytest.fixture
def clone(tmp_path):
    return make_clone(tmp_path / "clone")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "home" / ".config" / "snakemake"


def test_every_profile_is_linked_and_the_second_time_nothing_is_said(clone, folder):
    assert len(profiles.link_profiles(clone, folder)) == 2
    assert {p.name: p.readlink() for p in folder.iterdir()} == {
        "cpu": clone / "hardware/cpu",
        "h100": clone / "hardware/h100",
    }
    assert profiles.link_profiles(clone, folder) == []


def test_a_link_to_another_clone_is_pointed_at_this_one(clone, folder, tmp_path):
    other = make_clone(tmp_path / "other")
    profiles.link_profiles(other, folder)
    said = profiles.link_profiles(clone, folder)
    assert (folder / "cpu").readlink() == clone / "hardware/cpu"
    assert "now points to this clone" in said[0]


def test_a_link_to_a_clone_that_is_gone_is_pointed_at_this_one(clone, folder, tmp_path):
    folder.mkdir(parents=True)
    (folder / "cpu").symlink_to(tmp_path / "gone/hardware/cpu")
    profiles.link_profiles(clone, folder)
    assert (folder / "cpu").readlink() == clone / "hardware/cpu"


@pytest.mark.parametrize("what", ["folder", "file", "link elsewhere", "link without hardware.yaml"])
def test_what_is_not_ours_is_left_alone_and_said(clone, folder, tmp_path, what):
    folder.mkdir(parents=True)
    mine = folder / "cpu"
    if what == "folder":
        mine.mkdir()
        (mine / "profile.yaml").write_text("cores: 1\n")
    elif what == "file":
        mine.write_text("cores: 1\n")
    elif what == "link elsewhere":
        (tmp_path / "mine").mkdir()
        mine.symlink_to(tmp_path / "mine")
    else:
        (tmp_path / "x/hardware/cpu").mkdir(parents=True)
        mine.symlink_to(tmp_path / "x/hardware/cpu")
    before = mine.readlink() if mine.is_symlink() else None
    said = profiles.link_profiles(clone, folder)
    assert any("is not ours and stays as it is" in sentence for sentence in said)
    assert (mine.readlink() if mine.is_symlink() else None) == before
    assert (folder / "h100").readlink() == clone / "hardware/h100"


def test_unlinking_removes_only_links_into_this_clone(clone, folder, tmp_path):
    profiles.link_profiles(clone, folder)
    other = make_clone(tmp_path / "other")
    (folder / "h100").unlink()
    (folder / "h100").symlink_to(other / "hardware/h100")
    assert profiles.unlink_profiles(clone, folder) == [f"removed {folder / 'cpu'}"]
    assert [p.name for p in folder.iterdir()] == ["h100"]
    assert "no link" in profiles.unlink_profiles(clone, folder)[0]
    assert "no link" in profiles.unlink_profiles(clone, tmp_path / "nowhere")[0]


def test_links_go_where_snakemake_looks(tmp_path):
    """The real script in a home of its own: with and without XDG_CONFIG_HOME."""
    script = str(OURS / "scripts/profiles")
    for extra, place in (({}, ".config/snakemake"), ({"XDG_CONFIG_HOME": str(tmp_path / "x")}, "x/snakemake")):
        home = tmp_path if extra else tmp_path / "h"
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", **extra}
        run = subprocess.run(
            [sys.executable, script, "link"], env=environment, capture_output=True, text=True, check=True
        )
        assert (home / place / "cpu").readlink() == OURS / "hardware/cpu"
        assert "linked" in run.stdout
        subprocess.run([sys.executable, script, "unlink"], env=environment, capture_output=True, check=True)
        assert not (home / place / "cpu").is_symlink()


def test_make_alone_lists_the_targets():
    listed = subprocess.run(["make"], cwd=OURS, capture_output=True, text=True, check=True).stdout
    targets = {line.split()[0] for line in listed.splitlines()}
    assert targets >= {"setup", "demo", "test", "test-system", "lint", "bench", "system-packages", "unlink"}


def test_the_linter_exempts_one_complaint_by_name_and_no_other():
    report = (
        "Lints for rule speed (line 3, /a/b.smk):\n"
        "    * Specify a conda environment or container for each rule.:\n"
        "      This way, ...\n"
        "    * No log directive defined:\n"
        "Lints for snakefile /a/Snakefile:\n"
        "    * Absolute path \"/x\" in line 9:\n"
    )  # fmt: skip
    found = lint.complaints(report)
    assert [title for _, title in found if title not in lint.EXEMPT] == [
        "No log directive defined",
        'Absolute path "/x" in line 9',
    ]
