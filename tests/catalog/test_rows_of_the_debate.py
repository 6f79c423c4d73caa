"""Each row of the table of what is talked about, held against the catalog: its weights, ways of decoding and flags.

The table (`systems.csv`, read in November 2026) is not part of the repository: with `PARIBUS_FACTS`, the folder that
holds it, its own rows are read, and a row, a repository or a flag that came later fails here. Without it the list below
is held against the catalog.
"""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from paribus.catalog import Catalog

ROOT = Path(__file__).parents[2]
CATALOG = Catalog(ROOT)
GOLDEN = Path(__file__).parent / "golden"
LLADA2 = ("llada2.0-mini", "llada2.0-flash", "llada2.1-mini", "llada2.1-flash")


@dataclass(frozen=True)
class Row:
    """A row: the models that stand for it, the ways of decoding that it is about, the repositories that it names."""

    models: tuple[str, ...]
    methods: frozenset[str]
    repositories: tuple[str, ...] = ()
    runs: bool = True


def row(models: str | tuple[str, ...], methods: str, *repositories: str, runs: bool = True) -> Row:
    return Row((models,) if isinstance(models, str) else models, frozenset(methods.split()), repositories, runs)


ROWS = {
    "DiffusionGemma 26B-A4B": row(
        "diffusiongemma-26b-a4b", "block-diffusion", "google/diffusiongemma-26B-A4B-it",
        "RedHatAI/diffusiongemma-26B-A4B-it-FP8-dynamic", "RedHatAI/diffusiongemma-26B-A4B-it-NVFP4",
        "nvidia/diffusiongemma-26B-A4B-it-NVFP4", "unsloth/diffusiongemma-26B-A4B-it-GGUF",
        "mlx-community/diffusiongemma-26b-a4b-it-4bit", "mlx-community/diffusiongemma-26b-a4b-it-8bit",
    ),
    "Gemma 4 26B A4B (AR)": row(
        "gemma-4-26b-a4b", "plain ngram", "google/gemma-4-26B-A4B-it", "RedHatAI/gemma-4-26B-A4B-it-FP8-dynamic",
        "RedHatAI/gemma-4-26B-A4B-it-NVFP4", "nvidia/Gemma-4-26B-A4B-NVFP4", "ggml-org/gemma-4-26B-A4B-it-GGUF",
    ),
    "Gemma 4 26B A4B + MTP": row("gemma-4-26b-a4b", "mtp", "google/gemma-4-26B-A4B-it-assistant"),
    "Gemma 4 26B A4B + DFlash (missing opponent)": row(
        "gemma-4-26b-a4b", "dflash", "z-lab/gemma-4-26B-A4B-it-DFlash"
    ),
    "Qwen3.6-35B-A3B (AR / MTP)": row(
        "qwen3.6-35b-a3b", "plain ngram mtp", "Qwen/Qwen3.6-35B-A3B", "Qwen/Qwen3.6-35B-A3B-FP8",
        "nvidia/Qwen3.6-35B-A3B-NVFP4",
    ),
    "Qwen3.6-35B-A3B + DFlash": row("qwen3.6-35b-a3b", "dflash", "z-lab/Qwen3.6-35B-A3B-DFlash"),
    "Qwen3.6-35B-A3B + DFlash2": row(
        "qwen3.6-35b-a3b", "dflash", "incoai/Qwen3.6-35B-A3B-DFlash2", "aminya/Qwen3.6-35B-A3B-DFlash2-GGUF"
    ),
    "Mercury 2": row("mercury-2", "undisclosed", "inception/mercury-2", runs=False),
    "Mercury 2.5": row("mercury-2.5", "undisclosed", "inception/mercury-2.5"),
    "Mercury 3": row("mercury-3", "undisclosed", "inception/mercury-3", "inception/mercury-3-20261019"),
    "Clover-35B-A3B-Preview": row(
        "clover-35b-a3b-preview", "plain block-diffusion", "Diffuspace/Clover-35B-A3B-Preview",
        "Diffuspace/Clover-35B-A3B-Preview-GGUF", "AtomicChat/Clover-35B-A3B-Preview-GGUF",
        "kapitsaprime/Clover-35B-A3B-Preview-MLX-4bit",
    ),
    "NCM": row("ncm", "", "hazyresearch/ncm-checkpoints", "HazyResearch/ncm", runs=False),
    "DUO": row("duo", "", "s-sahoo/duo", runs=False),
    "AURORA-LM": row("aurora-lm", "", runs=False),
    "LLaDA": row(
        ("llada-8b", *LLADA2), "block-diffusion", "GSAI-ML/LLaDA-8B-Instruct", "inclusionAI/LLaDA2.0-mini",
        "inclusionAI/LLaDA2.1-mini",
    ),
    "Dream": row("dream-7b", "block-diffusion", "Dream-org/Dream-v0-Instruct-7B"),
    "MDLM": row("mdlm", "", "kuleshov-group/mdlm-owt", runs=False),
    "SEDD": row("sedd", "", "louaaron/sedd-medium", runs=False),
}  # fmt: skip
"""The models of the table, by the names of its rows."""

NO_FLAG_OF_OURS = {
    "--enable-auto-tool-choice": "tools are asked for in the text; no scenario needs a parser of calls",
    "--tool-call-parser": "as above",
    "--enable-prefix-caching": "off (PROTOCOL rule 8), on only where a scenario wants it",
    "--override-generation-config": "--generation-config vllm passes over the whole file that it would mend",
    "--default-chat-template-kwargs": "the switch for thinking goes with each request",
    "--trust-remote-code": "off unless a file asks for it",
    "--no-think": "another program's",
    "--tp-size": "one card is planned",
    "--speculative-algorithm": "not where SGLang's speculation passes over the card's penalty",
    "--speculative-draft-model-path": "as above",
    "--speculative-draft-attention-backend": "as above",
    "--speculative-num-draft-tokens": "as above",
    "--speculative-dflash-draft-window-size": "for long contexts; as above",
    "--speculative-draft-window-size": "for long contexts; as above",
    "--mamba-scheduler-strategy": "--mamba-radix-cache-strategy in SGLang 0.5.23",
    "--diffusion-eps": "llama-diffusion-cli's: no server, so not supported",
    "--diffusion-algorithm": "as above",
    "--diffusion-steps": "as above",
    "--diffusion-block-length": "as above",
}
"""Flags of the table that no launch of ours has, and why."""


RUNTIMES = {
    "vLLM": "vllm", "Transformers": "transformers", "SGLang": "sglang", "llama.cpp": "llamacpp", "MLX / mlx-lm": "mlx",
    "NVIDIA NIM": "integrate.api.nvidia.com", "OpenRouter": "openrouter.ai",
    "LM Studio": "LM Studio isn't in this file: ", "Unsloth": "Unsloth Studio isn't in this file: ",
}  # fmt: skip
"""The table's runtimes: an engine of the catalog, a host that a file names, or the words that say why not."""
CARDS = {
    "H100": "h100", "H200": "h200", "B200": "b200", "GB300": "gb300", "DGX Spark": "dgx-spark",
    "DGX Station": "dgx-station", "RTX 5090": "rtx-5090", "RTX 4090": "rtx-4090", "RTX 6000 (Pro)": "rtx-6000-pro",
    "RTX 5070 Ti": "rtx-5070-ti", "A100": "a100", "M4 Pro": "m4-pro", "M3 Max": "m3-max",
}  # fmt: skip
"""The table's hardware and our profiles."""


def told(models: tuple[str, ...]) -> str:
    """What files and golden launch commands say of some models."""
    places = [CATALOG.model_file(name) for name in models] + [GOLDEN / f"{name}.txt" for name in models]
    return "\n".join(path.read_text(encoding="utf-8") for path in places if path.is_file()).casefold()


@pytest.mark.parametrize("name", ROWS)
def test_a_rows_models_are_in_the_catalog_and_run_or_say_why_not(name: str) -> None:
    wanted = ROWS[name]
    for model in wanted.models:
        systems = [s for s in CATALOG.systems.values() if s.name.model == model]
        assert systems
        assert wanted.runs or all(s.unsupported_on() for s in systems), model
    own = [s for s in CATALOG.systems.values() if s.name.model in wanted.models]
    assert wanted.methods <= {s.decoder.method for s in own}
    assert any(s.unsupported_on() is None for s in own) == wanted.runs


@pytest.mark.parametrize("name", ROWS)
def test_a_rows_repositories_are_in_its_models_files(name: str) -> None:
    text = told(ROWS[name].models)
    assert [each for each in ROWS[name].repositories if each.casefold() not in text] == []


@pytest.fixture(scope="module")
def table() -> list[dict[str, str]]:
    """The rows of the table itself."""
    folder = os.environ.get("PARIBUS_FACTS")
    path = Path(folder or "") / "systems.csv"
    if folder is None or not path.is_file():
        pytest.skip(
            "PARIBUS_FACTS names no folder with systems.csv: the list in this file was held against the catalog"
        )
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) >= len(ROWS), path
    return rows


def test_the_tables_models_are_those_of_this_list(table: list[dict[str, str]]) -> None:
    assert [each["name"] for each in table if each["kind"] == "model"] == list(ROWS)
    assert {each["kind"] for each in table} == {"model", "runtime", "hardware"}


def test_every_repository_of_the_table_is_in_its_models_files(table: list[dict[str, str]]) -> None:
    missing = {}
    for each in models_of(table):
        text = told(ROWS[each["name"]].models)
        missing[each["name"]] = [i for i in repositories(each["model_id_or_endpoint"]) if i.casefold() not in text]
    assert {name: ids for name, ids in missing.items() if ids} == {}
    assert sum(len(repositories(each["model_id_or_endpoint"])) for each in models_of(table)) > 30


def test_every_flag_of_the_table_is_in_a_launch_or_left_out_with_a_reason(table: list[dict[str, str]]) -> None:
    missing, seen = {}, 0
    for each in models_of(table):
        text = told(ROWS[each["name"]].models)
        flags = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]", each["launch"]))
        seen += len(flags)
        missing[each["name"]] = sorted(f for f in flags if f not in text and f not in NO_FLAG_OF_OURS)
    assert {name: flags for name, flags in missing.items() if flags} == {}
    assert seen > 40


def test_the_tables_numbers_of_context_are_in_its_models_files(table: list[dict[str, str]]) -> None:
    for each in models_of(table):
        text = told(ROWS[each["name"]].models).replace(",", "")
        numbers = [n.replace(",", "") for n in re.findall(r"\d[\d,]{3,}", each["context"])]
        assert [n for n in numbers if n not in text] == [], each["name"]


def test_licences_are_the_tables(table: list[dict[str, str]]) -> None:
    for each in models_of(table):
        first = each["licence"].split()[0]
        if first in ("Apache-2.0", "MIT", "proprietary") and "code" not in each["licence"]:
            model = CATALOG.models[ROWS[each["name"]].models[0]]
            assert model.licence.split()[0] == first, each["name"]


def test_the_tables_runtimes_and_cards_are_those_of_this_list(table: list[dict[str, str]]) -> None:
    for kind, known in (("runtime", RUNTIMES), ("hardware", CARDS)):
        assert sorted(each["name"] for each in table if each["kind"] == kind) == sorted(known)


def test_every_runtime_and_card_of_this_list_is_in_the_catalog_or_left_out_with_a_reason() -> None:
    text = told(tuple(CATALOG.models))
    engines = {engine for model in CATALOG.models.values() for engine in model.engines}
    assert [n for n, word in RUNTIMES.items() if word not in engines and word.casefold() not in text] == []
    for profile in CARDS.values():
        assert CATALOG.hardware(profile).card.title


def models_of(table: list[dict[str, str]]) -> list[dict[str, str]]:
    """The table's models."""
    return [each for each in table if each["kind"] == "model"]


def repositories(cell: str) -> list[str]:
    """`owner/name` of a cell, braces and bars spelled out (`a/b-{4bit,8bit}`, `a/b-mini|flash`)."""
    found = []
    for owner, name in re.findall(r"(?<![\w/:.-])([A-Za-z0-9][\w-]+)/([A-Za-z0-9][\w.-]*(?:\{[^}]*\})?)", cell):
        head, brace, choices = name.partition("{")
        ends = choices.rstrip("}").split(",") if brace else [""]
        found += [f"{owner}/{head}{end}".rstrip(".") for end in ends]
    return found


def test_cells_are_read_as_they_are_meant() -> None:
    cell = "google/a-it; FP8: Bb/c-FP8; MLX: mm/d-{4bit,8bit} (names as in x #1)"
    assert repositories(cell) == ["google/a-it", "Bb/c-FP8", "mm/d-4bit", "mm/d-8bit"]
    assert repositories('API "m" at https://api.example.ai/v1, xx/y-1 (S/M/L, rev 51ef...)') == ["xx/y-1"]
