"""`paribus show systems`: what runs where, at 100 columns, with the reason for everything that doesn't."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from paribus.catalog import Card, Catalog, HardwareFile, Speeds
from paribus.catalog.fit import VERDICTS, fit, unfit
from paribus.catalog.weights import Precision
from paribus.cli.show import command
from paribus.conditions import UsageError

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
SPEEDS = Speeds(decode_1=1, decode_16=1, prompt=1, engine_start_s=1)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def card(
    memory: float | None = 80, kind: str = "nvidia", capability: float | None = 9.0, count: int = 1, **more: Any
) -> HardwareFile:
    name = more.pop("name", "h100")
    about = {"kind": kind, "title": "a card", "memory_gb": memory, "compute_capability": capability, "count": count}
    made = Card.model_validate(about | more)
    return HardwareFile(hardware=name, card=made, speeds=SPEEDS)


def system(name: str):
    return CATALOG.systems[name]


def with_drafter(name: str, **about: Any):
    found = system(name)
    decoder = found.decoder.model_copy(update={"drafter": found.drafter.model_copy(update=about)})
    use = found.use.model_copy(update={"decoders": {**found.use.decoders, found.name.decoder: decoder}})
    return replace(found, model=found.model.model_copy(update={"engines": {found.name.engine: use}}))


GEMMA = "gemma-4-26b-a4b--{}--vllm--{}"


@pytest.mark.parametrize(
    ("name", "profile", "verdict", "words"),
    [
        (GEMMA.format("bf16", "plain"), card(), "runs", ""),
        (GEMMA.format("bf16", "plain"), card(name="new-card"), "unverified", "rtx-6000-pro, a100 alone"),
        (GEMMA.format("bf16", "plain"), card(memory=40), "doesn't fit", "it needs 64 GB and a card has 40 GB"),
        (GEMMA.format("bf16", "plain"), card(memory=40, count=2), "runs", ""),
        (
            GEMMA.format("bf16", "mtp-n4"),
            card(memory=64),
            "unverified",
            "55.35 GB (51.6 of weights, 2.9 of cache",
        ),
        (GEMMA.format("bf16", "eagle3-n3"), card(), "unverified", "says of no card that it ran there"),
        (GEMMA.format("bf16", "eagle3-n3"), card(memory=64), "unverified", "2.9 of cache, 1.9 of its drafter)"),
        ("gemma-4-26b-a4b--q4-k-m--llamacpp--mtp-n3", card(memory=23), "doesn't fit", "23.46 GB (23 + 0.46 for its"),
        (GEMMA.format("bf16", "dflash-n15"), card(), "unverified", "image of its own"),
        (GEMMA.format("fp8", "plain"), card(capability=8.0), "not supported", "8.9 and a card has 8"),
        (GEMMA.format("fp8", "plain"), card(capability=None), "runs", ""),
        (GEMMA.format("bf16", "plain"), card(kind="apple"), "not supported", "it runs on nvidia"),
        ("mercury-3--hosted--hosted--undisclosed", card(), "not supported", "use the profile hosted"),
        ("mercury-3--hosted--hosted--undisclosed", card(None, "hosted", None), "unverified", "effort"),
        ("mercury-2--hosted--hosted--undisclosed", card(None, "hosted", None), "not supported", "retired"),
        (GEMMA.format("bf16", "plain"), card(None, "hosted", None), "not supported", "somebody else serves"),
        ("ncm--bf16--transformers--levels", card(), "not supported", "not an instruction model"),
        (GEMMA.format("bf16", "plain"), card(None, "any", None), "unverified", "known only where it is"),
    ],
)
def test_what_fits_is_reckoned_from_needs_and_the_cards_facts(
    name: str, profile: HardwareFile, verdict: str, words: str
) -> None:
    found = fit(system(name), profile)
    assert (found.verdict, words in found.reason) == (verdict, True), found
    assert bool(found.reason) == (verdict != "runs")
    assert (unfit(system(name), profile, {"vllm": "b"}) is None) == found.can_run


@pytest.mark.parametrize("decoder", ["plain", "ngram-n5", "mtp-n1", "mtp-n4", "dflash-n15"])
def test_what_a_recipe_verifies_on_a_card_fits_there_with_its_drafter(decoder: str) -> None:
    """vllm-project/recipes, gemma-4-26B-A4B-it: the RTX 5090 is verified, in FP8 with 92% of it; it has 32,607 MiB."""
    profile = CATALOG.hardware("rtx-5090")
    found = system(GEMMA.format("fp8", decoder))
    assert found.launch_on("rtx-5090")["gpu_memory_utilization"] == 0.92
    assert found.memory_gb is not None
    assert found.memory_gb < 0.92 * 32_607 * 2**20 / 1e9
    assert fit(found, profile).verdict == ("runs" if decoder == "plain" else "unverified")
    if found.drafter:
        assert "without a drafter; by arithmetic it needs" in fit(found, profile).reason


def test_weights_cache_and_drafter_must_fit_the_part_of_the_card_that_the_engine_may_use() -> None:
    tight = system(GEMMA.format("fp8", "mtp-n4"))
    precision = tight.precision.model_copy(update={"cache_gb": 3.5})
    model = tight.model.model_copy(update={"precisions": tight.model.precisions | {"fp8": precision}})
    found = fit(replace(tight, model=model), CATALOG.hardware("rtx-5090"))
    assert found.verdict == "doesn't fit"
    assert "it needs 31.54 GB (27.2 of weights, 3.5 of cache, 0.84 of its drafter) and may use 31.45 GB" in found.reason


@pytest.mark.parametrize("lacks", [{"cache_source": None}, {"weights": {"bytes": 0}}])
def test_a_cache_is_added_to_weights_of_known_size_only_and_says_who_says_so(lacks: dict[str, Any]) -> None:
    given = system(GEMMA.format("fp8", "plain")).precision.model_dump()
    assert Precision.model_validate(given).cache_gb == 1.5
    given |= lacks | ({"weights": given["weights"] | lacks["weights"]} if "weights" in lacks else {})
    with pytest.raises(ValidationError, match="cache_gb needs the size of the weights"):
        Precision.model_validate(given)


def test_an_engine_may_use_nine_tenths_of_a_card_unless_its_launch_says_otherwise() -> None:
    """A discrete card's data sheet counts in 2^30: 64 GB are 68.4. Memory that card and CPU share is told in 10^9."""
    given = system(GEMMA.format("bf16", "eagle3-n3"))
    use = given.use.model_copy(update={"launch": {}})
    drafting = replace(given, model=given.model.model_copy(update={"engines": {"vllm": use}}))
    assert drafting.launch_on("some-card") == {}
    for profile, usable in ((card(memory=64), "61.54"), (card(memory=64, unified=True), "57.6")):
        assert f"and may use {usable} GB" in fit(drafting, profile).reason
    precision = drafting.precision.model_copy(update={"cache_gb": 5.5})
    model = drafting.model.model_copy(update={"precisions": drafting.model.precisions | {"bf16": precision}})
    tight = replace(drafting, model=model)
    assert tight.memory_gb == pytest.approx(58.97, abs=0.01)
    assert fit(tight, card(memory=64)).can_run
    assert fit(tight, card(memory=64, unified=True)).verdict == "doesn't fit"


def test_a_drafter_of_unknown_size_is_never_counted_as_none_without_a_word() -> None:
    builds = dict.fromkeys(["vllm", "sglang", "transformers", "mlx", "llamacpp"], "b")
    cards = [CATALOG.hardware(name) for name in ("h200", "gb300", "m3-max")]
    unsized = [s for s in CATALOG.systems.values() if s.drafter and not s.drafter.sized]
    assert unsized
    unsized.append(with_drafter(GEMMA.format("bf16", "eagle3-n3"), bytes=0))
    found = [fit(s, profile, builds=builds) for s in unsized for profile in cards]
    assert {each.verdict for each in found} <= {"unverified", "not supported", "doesn't fit"}
    runs = [each for each in found if each.can_run]
    assert runs
    assert all("the size of its drafter is not known" in each.reason for each in runs)


def test_an_engine_without_a_lock_is_not_supported_and_says_which() -> None:
    found = fit(system(GEMMA.format("bf16", "plain")), card(), builds={})
    assert (found.verdict, "envs/vllm/requirements.txt" in found.reason) == ("not supported", True)


def show(*arguments: str) -> str:
    result = CliRunner().invoke(command, ["systems", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_matrix_has_every_stack_and_every_card_in_100_columns() -> None:
    text = show()
    assert max(len(line) for line in text.splitlines()) <= 100
    for name in CATALOG.systems:
        assert "--".join(name.split("--")[:3]) in text
    for path in ROOT.glob("hardware/*/hardware.yaml"):
        assert path.parent.name in text
    assert all(f"{verdict}:" in text for verdict in VERDICTS)


def test_a_card_gets_every_system_with_its_reason_and_fits_100_columns() -> None:
    text = show("--card", "rtx-5090")
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "it needs 64 GB and NVIDIA GeForce RTX 5090 has 32 GB" in text
    assert "gemma-4-26b-a4b--bf16--vllm: plain, ngram-n5" in text


def test_filters_by_model_card_and_verdict() -> None:
    text = show("gemma-4-26b-a4b", "--card", "h100", "--verdict", "runs", "--all")
    assert "gemma-4-26b-a4b--bf16--vllm--plain--think" in text
    assert "qwen" not in text
    assert "doesn't fit" not in text
    assert show("ncm", "--verdict", "runs") == "none of them: runs\n"
    for wrong in (("--card", "h1000"), ("nobody*",)):
        with pytest.raises(UsageError, match="names no"):
            show(*wrong)


def test_json_has_one_row_a_system_and_card_and_a_reason_for_every_no() -> None:
    rows = json.loads(show("--json"))
    cards = {path.parent.name for path in ROOT.glob("hardware/*/hardware.yaml")}
    assert {(row["system"], row["card"]) for row in rows} == {(s, c) for s in CATALOG.systems for c in cards}
    assert all((row["reason"] is None) == (row["verdict"] == "runs") for row in rows)
    assert {row["track"] for row in rows if row["system"].startswith("ncm--")} == {"research"}


def test_a_card_that_is_as_found_has_the_memory_of_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    args = ["systems", "smollm2-135m", "--card", "cpu", "--json"]
    seen = {row["verdict"] for row in json.loads(CliRunner().invoke(command, args).stdout)}
    assert seen != {"doesn't fit"}
    monkeypatch.setattr("paribus.cli.show.memory_gb", lambda: 0.1)
    small = json.loads(CliRunner().invoke(command, args).stdout)
    assert {row["verdict"] for row in small} == {"doesn't fit"}


@pytest.mark.parametrize(
    ("name", "card", "verdict"),
    [
        ("diffusiongemma-26b-a4b--fp8--vllm--diffusion-card", "rtx-5090", "doesn't fit"),  # 27.2 + 5.4 of 29.7 GB
        ("diffusiongemma-26b-a4b--nvfp4--vllm--diffusion-card", "rtx-5090", "unverified"),
        ("diffusiongemma-26b-a4b--fp8--vllm--diffusion-card", "h100", "runs"),
        ("qwen3.6-35b-a3b--nvfp4-nvidia--vllm--plain", "rtx-5090", "runs"),  # 23.4 GB of weights
    ],
)
def test_the_weights_and_the_cache_of_the_longest_request_fit_what_the_engine_may_use(name, card, verdict) -> None:
    assert fit(CATALOG.systems[name], CATALOG.hardware(card)).verdict == verdict


def test_drafters_whose_size_is_published_are_counted() -> None:
    sizes = {
        name: CATALOG.systems[f"qwen3.6-35b-a3b--q4-k-m--llamacpp--{name}"].drafter.needs_gb
        for name in ("mtp-n2", "mtp-n3", "mtp-n4", "dflash-n4")
    }
    assert sizes == {"mtp-n2": 1.99, "mtp-n3": 1.99, "mtp-n4": 1.99, "dflash-n4": 0.421}
