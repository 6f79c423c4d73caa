"""A race's page tells a candidate that was tried and left out from one that was not tried."""

from pathlib import Path

import pytest
from building_sites import Built, build
from synthetic_site import HOSTILE, World

REASON = f"Its server did not start: llamacpp died while loading (exit code 3): error: {HOSTILE}."


def site(folder: Path, candidates: list[tuple[str, float | None, str | None]]) -> Built:
    """A site of one race; candidates with `REASON` have a run whose server didn't start."""
    world = World()
    world.race("race-c1-long", candidates)
    for row in world.rows["races"]:
        if row["left_out"] == REASON:
            flags = {"not_started": "invalid", "preliminary": "note"}
            row["run_id"] = world.run(decoder=row["decoder"], measure="race-c1-long", kind="race", flags=flags)
    if all(row["value"] is None for row in world.rows["races"] if row["decoder"] != "plain"):
        world.rows["races"][0]["winner"] = True
    return build(world, folder)


CASES = [
    (84.0, "Best of one tried: ngram-map-k-n4-m4, 84 tokens/s [76 to 92]. Plain decoding: 81", "One left out"),
    (None, "No candidate that speculates has a result. Plain decoding: 81", "Two left out"),
]


@pytest.mark.parametrize(("speed", "said", "left"), CASES)
def test_the_race_says_who_was_left_out_and_why(tmp_path: Path, speed: float | None, said: str, left: str) -> None:
    made = site(
        tmp_path,
        [
            ("plain", 81.0, None),
            ("ngram-map-k-n4-m4", speed, None if speed else REASON),
            ("ngram-simple-n4-m4", None, REASON),
            ("ngram-cache-d4", None, "it keeps state"),
        ],
    )
    (page,) = (page for name, page in made.pages.items() if name.startswith("race/"))
    finding = page.with_class("finding")[0].text
    assert finding.startswith(said)
    assert f"{left} after a try. One not tried." in finding
    rows = {r.text.split()[0]: r.text for r in page.all("tr")[1:]}
    assert "left out: Its server did not start: llamacpp died while loading" in rows["ngram-simple-n4-m4"]
    assert "not_started" in rows["ngram-simple-n4-m4"]
    assert "not tried: it keeps state" in rows["ngram-cache-d4"]
    assert ("best speculation" in page.text) == (speed is not None)
    assert ("no candidate that speculates has a result" in rows["plain"]) == (speed is None)
    assert all(len(p.all("script")) == 1 for p in made.pages.values())
