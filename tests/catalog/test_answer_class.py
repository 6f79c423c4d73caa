"""Whatever is in the answer class is declared as well: runs of two classes never share a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from paribus.catalog import Catalog, ModelFile, System
from paribus.conditions import hash12

Place = dict[str, Any]
Change = Callable[[Place], Any]

FILE: dict[str, Any] = {
    "model": "m",
    "title": "M",
    "family": "m",
    "kind": "autoregressive",
    "licence": "none",
    "released": "2026-01",
    "context": 4096,
    "source": "a test",
    "sampling": {"temperature": 0.5, "source": "a test"},
    "thinking": {
        "switch": "effort",
        "on": {"reasoning_effort": "high"},
        "off": {"reasoning_effort": "none"},
        "source": "a test",
    },
    "precisions": {
        "q4": {
            "weights": {
                "source": "hub",
                "repository": "owner/weights",
                "file": "one.gguf",
                "sha256": "a" * 64,
                "file_sha256": "b" * 64,
            },
            "kv_cache": "f16",
            "quantization": "q4",
            "dtype": "bf16",
            "state_cache": "float32",
        }
    },
    "engines": {
        "served": {
            "precisions": ["q4"],
            "launch": {"moe_backend": "marlin"},
            "launch_source": "a test",
            "hosted": {
                "url": "https://openrouter.ai/api/v1",
                "model": "theirs",
                "api_key_env": "OPENROUTER_API_KEY",
                "source": "a test",
            },
            "decoders": {
                "draft": {
                    "method": "draft",
                    "lossy": {"threshold": 0.5},
                    "drafter": {
                        "source": "hub",
                        "repository": "owner/drafter",
                        "file": "draft.gguf",
                        "sha256": "c" * 64,
                        "file_sha256": "d" * 64,
                        "lossy": True,
                    },
                }
            },
        }
    },
}
"""A model's file that sets everything which an answer class can count. Nothing pins its weights."""


def precision(place: Place) -> dict[str, Any]:
    (found,) = place["file"]["precisions"].values()
    return found  # type: ignore[no-any-return]


def weights(place: Place) -> dict[str, Any]:
    return precision(place)["weights"]  # type: ignore[no-any-return]


def use(place: Place) -> dict[str, Any]:
    (found,) = place["file"]["engines"].values()
    return found  # type: ignore[no-any-return]


def drafter(place: Place) -> dict[str, Any]:
    return use(place)["decoders"]["draft"]["drafter"]  # type: ignore[no-any-return]


def renamed(names: dict[str, Any]) -> None:
    (name,) = names
    names["another"] = names.pop(name)


CHANGES: dict[str, Change] = {
    "model": lambda p: p["file"].update(model="n"),
    "weights.source": lambda p: weights(p).update(source="hosted"),
    "weights.repository": lambda p: weights(p).update(repository="owner/others"),
    "weights.revision": lambda p: weights(p).update(revision="0" * 40),
    "weights.file": lambda p: weights(p).update(file="two.gguf"),
    "weights.sha256": lambda p: weights(p).update(sha256="e" * 64),
    "weights.file_sha256": lambda p: weights(p).update(file_sha256="e" * 64),
    "precision": lambda p: (renamed(p["file"]["precisions"]), use(p).update(precisions=["another"])),
    "kv_cache": lambda p: precision(p).update(kv_cache="bf16"),
    "quantization": lambda p: precision(p).update(quantization="q5"),
    "dtype": lambda p: precision(p).update(dtype="f16"),
    "state_cache": lambda p: precision(p).update(state_cache="bfloat16"),
    "engine": lambda p: renamed(p["file"]["engines"]),
    "engine_build": lambda p: p.update(build="another"),
    "sampling.temperature": lambda p: p["file"]["sampling"].update(temperature=0.6),
    "thinking": lambda p: p.update(think=False),
    "effort.reasoning_effort": lambda p: p["file"]["thinking"].update(on={"reasoning_effort": "low"}),
    "lossy.threshold": lambda p: use(p)["decoders"]["draft"].update(lossy={"threshold": 0.6}),
    "kernels.moe_backend": lambda p: use(p).update(launch={"moe_backend": "cutlass"}),
    "hosted.url": lambda p: use(p)["hosted"].update(
        url="https://api.inceptionlabs.ai/v1", api_key_env="INCEPTION_API_KEY"
    ),
    "hosted.model": lambda p: use(p)["hosted"].update(model="their-other"),
    "drafter.source": lambda p: drafter(p).update(source="pypi", repository="drafts"),
    "drafter.repository": lambda p: drafter(p).update(repository="owner/others"),
    "drafter.revision": lambda p: drafter(p).update(revision="0" * 40),
    "drafter.file": lambda p: drafter(p).update(file="two.gguf"),
    "drafter.sha256": lambda p: drafter(p).update(sha256="e" * 64),
    "drafter.file_sha256": lambda p: drafter(p).update(file_sha256="e" * 64),
}
"""For each field of an answer class another value of it."""


def made(*changes: Change) -> tuple[System, str]:
    """The file's system after some changes, and the build of its engine."""
    place: Place = {"file": deepcopy(FILE), "think": True, "build": "0123456789ab"}
    for change in changes:
        change(place)
    model = ModelFile.model_validate(place["file"])
    return next(s for s in model.systems() if s.name.think == place["think"]), place["build"]


def hashes(*changes: Change) -> tuple[str, str]:
    """Answer class and system hash after some changes."""
    system, build = made(*changes)
    launch = system.launch_on("cpu")
    return system.answer_class_hash(build, launch), hash12(system.declared(build, launch))


def fields(value: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from fields(item, f"{before}{name}.")
        else:
            yield before + name


def test_another_value_of_each_field_is_tried_below() -> None:
    system, build = made()
    answer_class = system.answer_class(build, system.launch_on("cpu"))
    assert set(fields(answer_class)) == set(CHANGES)
    seen = {name for s in Catalog(Path(__file__).parents[2]).systems.values() for name in s.answer_class("b", {})}
    assert seen <= set(answer_class), "our own files set nothing else"


@pytest.mark.parametrize("field", CHANGES)
def test_whatever_makes_another_answer_class_makes_another_path(field: str) -> None:
    for one, other in zip(hashes(), hashes(CHANGES[field]), strict=True):
        assert one != other


@pytest.mark.parametrize("left_out", ["kv_cache", "quantization", "dtype", "state_cache"])
def test_a_type_of_numbers_that_is_said_or_not_makes_two_paths(left_out: str) -> None:
    for one, other in zip(hashes(), hashes(lambda p: precision(p).pop(left_out)), strict=True):
        assert one != other


def test_a_drafter_that_becomes_lossy_makes_another_path_and_a_lossless_one_is_no_part_of_the_class() -> None:
    def lossless(place: Place) -> None:
        drafter(place).update(lossy=False)

    for one, other in zip(hashes(), hashes(lossless), strict=True):
        assert one != other
    (same, path), (also, elsewhere) = hashes(lossless), hashes(lossless, CHANGES["drafter.file"])
    assert same == also
    assert path != elsewhere, "it decides the speed"


def pinned(place: Place) -> None:
    for one in (weights(place), drafter(place)):
        one.update(revision="0" * 40)


def test_the_hash_of_a_file_says_nothing_new_beside_its_revision() -> None:
    def unhashed(place: Place) -> None:
        for one in (weights(place), drafter(place)):
            del one["file_sha256"]

    assert hashes(pinned) == hashes(pinned, unhashed)
    assert made(pinned)[0].drafter.identity == made(pinned, unhashed)[0].drafter.identity  # type: ignore[union-attr]
    for one, other in zip(hashes(), hashes(unhashed), strict=True):
        assert one != other, "where nothing else pins it"


@pytest.mark.parametrize(
    "more", [{"bytes": 7}, {"bytes": 7, "bytes_source": "a test"}, {"licence": "MIT"}, {"revision_source": "a test"}]
)
def test_what_is_only_known_of_weights_moves_nothing(more: dict[str, Any]) -> None:
    assert hashes() == hashes(lambda p: weights(p).update(more))


def test_what_is_declared_says_it_in_words() -> None:
    system, build = made(pinned)
    declared = system.declared(build, {})
    assert declared["weights"] == f"owner/weights@{'0' * 40}/one.gguf"
    assert declared["weights_artifact"] == {"sha256": "a" * 64}
    assert declared["number_types"] == {
        "kv_cache": "f16", "quantization": "q4", "dtype": "bf16", "state_cache": "float32",
    }  # fmt: skip
    assert declared["model_sampling"] == {"temperature": 0.5}
    assert declared["hosted"] == {"url": "https://openrouter.ai/api/v1", "model": "theirs"}
    assert declared["lossy_drafter"]["repository"] == "owner/drafter"
    assert made(CHANGES["weights.source"])[0].declared(build, {})["weights_artifact"]["source"] == "hosted"


def test_what_a_file_leaves_out_is_declared_nowhere() -> None:
    def bare(place: Place) -> None:
        pinned(place)
        del weights(place)["sha256"]
        for name in ("kv_cache", "quantization", "dtype", "state_cache"):
            del precision(place)[name]
        del use(place)["hosted"]
        drafter(place).update(lossy=False)

    declared = made(bare)[0].declared("b", {})
    assert not declared.keys() & {"weights_artifact", "number_types", "hosted", "lossy_drafter"}
