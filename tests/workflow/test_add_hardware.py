"""docs/add-hardware.md, followed to the letter in a folder of one's own: what it says works."""

import re
from dataclasses import replace
from pathlib import Path

import yaml

from paribus.catalog import Catalog, Surroundings, resolve
from paribus.machine.proof import prove

OURS = Path(__file__).resolve().parents[2]
GUIDE = (OURS / "docs/add-hardware.md").read_text(encoding="utf-8")
CARD = {
    "card": "NVIDIA GeForce RTX 3090", "card_count": 1, "pci_device_id": "2204:10de", "cuda_cores": 10496,
    "card_memory_gb": 25.8, "power_limit_w": 350.0, "power_default_w": 350.0,
}  # fmt: skip


def followed(folder: Path) -> Path:
    """A private catalog made as the guide says."""
    [example] = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    home = folder / "hardware" / yaml.safe_load(example)["hardware"]
    home.mkdir(parents=True)
    (home / "hardware.yaml").write_text(example, encoding="utf-8")
    (home / "profile.yaml").write_bytes((OURS / "hardware/h100/profile.yaml").read_bytes())
    return folder


def test_the_example_plans_on_a_machine_without_the_card(tmp_path):
    extra = followed(tmp_path / "mine")
    around = replace(Surroundings.observe(Catalog(OURS, extra), "m-test"), data=None, hub=False)
    plan = resolve(OURS, "rtx-3090", {"catalog": str(extra), "systems": "*"}, around)
    assert (plan.hardware, plan.totals.power_limit_w) == ("rtx-3090", 350)
    assert any("NVFP4 needs a Blackwell card" in item.reason for item in plan.excluded)


def test_the_example_proves_the_card_and_refuses_another(tmp_path):
    card = Catalog(OURS, followed(tmp_path / "mine")).hardware("rtx-3090").card
    assert prove("rtx-3090", card, CARD).observed == {"card_variant": "GeForce RTX 3090 24 GB"}
    assert prove("rtx-3090", card, CARD | {"pci_device_id": "2203:10de"}).refusal is not None


def test_every_command_and_file_that_the_guide_names_is_there():
    for profile in re.findall(r"hardware/([a-z0-9-]+)/profile\.yaml hardware/rtx-3090", GUIDE):
        assert (OURS / "hardware" / profile / "profile.yaml").is_file()
    assert (OURS / "tests/workflow/test_golden_plans.py").is_file()
    makefile = (OURS / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in re.findall(r"^make ([a-z]+)", GUIDE, re.M))
