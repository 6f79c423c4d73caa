"""The Snakemake profiles of all cards: linked by set-up, alike but for their name, and usable without the card."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from real_clone import RealClone

from paribus.cli.show import command as show
from paribus.conditions import UsageError

OURS = Path(__file__).resolve().parents[2]
PROFILES = sorted(path.parent.name for path in OURS.glob("hardware/*/hardware.yaml"))


def test_set_up_links_every_profile(tmp_path):
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    script = str(OURS / "scripts/profiles")
    subprocess.run([sys.executable, script, "link"], env=environment, capture_output=True, check=True)
    folder = tmp_path / ".config/snakemake"
    assert sorted(link.name for link in folder.iterdir()) == PROFILES
    assert all((folder / name).readlink() == OURS / "hardware" / name for name in PROFILES)
    assert len(PROFILES) >= 16


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_the_others_but_for_its_name_and_its_cards(name):
    text = (OURS / "hardware" / name / "profile.yaml").read_text(encoding="utf-8")
    profile, cpu = (
        yaml.safe_load(text),
        yaml.safe_load((OURS / "hardware/cpu/profile.yaml").read_text(encoding="utf-8")),
    )
    assert f"snakemake --profile {name}`" in text.splitlines()[0]
    # As a list it would not be looked for beside the profile.
    assert profile["configfile"] == "hardware.yaml"
    kind = yaml.safe_load((OURS / "hardware" / name / "hardware.yaml").read_text(encoding="utf-8"))["card"]["kind"]
    assert profile["resources"] == {"machine": 1, "gpu": 0 if kind in ("cpu", "hosted") else 1}
    assert {k: v for k, v in profile.items() if k != "resources"} == {k: v for k, v in cpu.items() if k != "resources"}


@pytest.mark.system
@pytest.mark.parametrize("name", ["h100", "hosted"])
def test_a_profile_is_planned_by_snakemake_on_a_machine_without_its_card(name, tmp_path):
    clone = RealClone(tmp_path / "clone")
    done = clone.call("snakemake", "--profile", f"hardware/{name}", "-n")
    assert done.returncode == 0, done.stdout
    assert f"Paribus, {name}, scale full" in done.stdout
    assert not (clone.root / "build/plan.json").exists()


@pytest.mark.system
def test_the_proof_stops_a_run_on_another_machine_before_anything_is_fetched(tmp_path):
    clone = RealClone(tmp_path / "clone")
    done = clone.call("snakemake", "--profile", "hardware/h100")
    assert done.returncode != 0
    assert "the profile h100 is for NVIDIA H100 (H100 SXM 80 GB; " in done.stdout
    built = [str(path.relative_to(clone.root)) for path in (clone.root / "build").rglob("*.json")]
    assert built == ["build/plan.json"]
    assert list((clone.root / "build").glob("weights/*")) == []


def test_show_tells_a_cards_variants_and_what_is_in_doubt():
    shown = CliRunner().invoke(show, ["hardware", "h100"])
    assert shown.exit_code == 0
    assert "H100 PCIe 80 GB" in shown.output
    assert "2331:10de" in shown.output
    assert "H100 NVL 94 GB: power_limit_w: the maker of the server sets it" in shown.output
    assert isinstance(CliRunner().invoke(show, ["hardware", "h999"]).exception, UsageError)
