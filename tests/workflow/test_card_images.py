"""A card with a container image of its own: what is pulled, built on and declared there is that image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.catalog import Catalog, Plan, Surroundings, resolve
from paribus.catalog.fit import fit, unfit

GENERAL, OWN = ("sha256:" + digits * 16 for digits in ("aaaa", "bbbb"))


def image(digest: str | None) -> dict[str, str]:
    pin = {"digest": digest} if digest else {}
    return {"reference": "example.org/engines/llamacpp:v1", "source": "a test", **pin}


@pytest.fixture
def cards(small: Path) -> Path:
    """The small catalog with two cards; beta runs in an image, and in another one on the second card."""
    path = small / "hardware" / "small" / "hardware.yaml"
    other = {**yaml.safe_load(path.read_text()), "hardware": "second"}
    (small / "hardware" / "second").mkdir()
    (small / "hardware" / "second" / "hardware.yaml").write_text(yaml.safe_dump(other))
    pin(small, GENERAL, OWN)
    return small


def pin(root: Path, general: str | None, own: str | None) -> None:
    path = root / "systems" / "beta.yaml"
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    override = {"cards": ["second"], "image": image(own), "source": "a test"}
    data["engines"]["llamacpp"].update(how="image", image=image(general), overrides=[override])
    path.write_text(yaml.safe_dump(data))


def planned(root: Path, card: str, around: Surroundings) -> Plan:
    return resolve(root, card, {"systems": "beta--*"}, replace(around, builds={}))


@pytest.mark.parametrize(("card", "build"), [("small", "a" * 12), ("second", "b" * 12)])
def test_what_is_pulled_and_declared_is_the_cards_own_image(
    cards: Path, around: Surroundings, card: str, build: str
) -> None:
    plan = planned(cards, card, around)
    assert plan.jobs
    for job in plan.jobs:
        assert f"build/images/llamacpp-{build}.json" in job.needs
        assert [need for need in job.needs if "/images/" in need] == [f"build/images/llamacpp-{build}.json"]
        assert job.hardware == card
        assert {measure.declared["engine_build"] for measure in job.measures} == {build}


def test_two_images_are_two_answer_classes(cards: Path, around: Surroundings) -> None:
    classes = [
        {m.hashes["answer_class"] for job in planned(cards, card, around).jobs for m in job.measures}
        for card in ("small", "second")
    ]
    assert len(classes[0]) == len(classes[1]) == 1
    assert classes[0] != classes[1]


@pytest.mark.parametrize(("general", "own", "left_out"), [(None, OWN, "small"), (GENERAL, None, "second")])
def test_a_card_whose_image_has_no_digest_is_left_out_and_the_other_one_is_not(
    cards: Path, around: Surroundings, general: str | None, own: str | None, left_out: str
) -> None:
    pin(cards, general, own)
    catalog = Catalog(cards)
    (system,) = (s for s in catalog.systems.values() if s.name.model == "beta")
    for card in ("small", "second"):
        profile, out = catalog.hardware(card), card == left_out
        assert fit(system, profile, 16.0, builds={}).can_run is not out
        assert ("digest" in (unfit(system, profile, {}, 16.0) or "")) is out
        assert bool(planned(cards, card, around).jobs) is not out
