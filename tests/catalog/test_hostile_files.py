"""A contributor's file can hold anything that YAML can, and an adapter can be anybody's: one sentence, no traceback."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.catalog import Catalog, ModelFile, Surroundings, System, resolve
from paribus.catalog.reading import MOST_BYTES, MOST_DEEP, read_yaml
from paribus.cli._launches import check_launches
from paribus.cli._options import read_settings
from paribus.conditions import SystemName, UsageError
from paribus.engines import Adapter, check_launch, planned_launch
from paribus.results.check_system import check_system
from paribus.results.findings import Report

ROOT = Path(__file__).parents[2]
NAME = "smollm2-135m"
GOOD = (ROOT / f"systems/{NAME}.yaml").read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A catalog with one model of its own."""
    (tmp_path / "systems").mkdir()
    for name in ("hardware", "tasks", "envs", "claims", "pairs.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def written(home: Path, text: str | bytes) -> Path:
    path = home / f"systems/{NAME}.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def changed(home: Path, place: str, value: Any) -> Path:
    """The good file with one value replaced; `place`: its keys, separated by blanks."""
    data = yaml.safe_load(GOOD)
    *way, last = place.split()
    here = data
    for key in way:
        here = here[key]
    here[last] = value
    return written(home, yaml.safe_dump(data, sort_keys=False))


def faults(path: Path) -> list[str]:
    report = Report()
    with report.looking("catalog", str(path)):
        check_system(path, Catalog(path.parents[1]), report)
    return [f"{f.where} {f.text}" for f in report.findings if f.verdict == "fails"]


def plan(home: Path, systems: str = "*") -> None:
    catalog = Catalog(home)
    around = replace(Surroundings.observe(catalog, "m-test"), memory_gb=64.0, data=None, hub=False)
    check_launches(catalog, resolve(home, "cpu", {"systems": systems, "scale": "tiny"}, around))


def refused(home: Path, path: Path, says: str) -> None:
    """Both `check` and `plan` say it, in one line that names the file."""
    told = faults(path)
    assert any(says in text and path.name in text for text in told), told
    with pytest.raises(UsageError) as caught:
        plan(home)
    assert says in str(caught.value)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "too much, counting its aliases"),
        ("a: &a [*a]\n", "nested too deep"),
        ("a: &a {b: *a}\n", "nested too deep"),
        ("a: " + "[" * (MOST_DEEP + 1) + "]" * (MOST_DEEP + 1), "nested too deep"),
        ("a: " + "[" * 50_000, "nesting"),
        (GOOD + "\ntitle: another\n", "title stands twice here"),
        (GOOD + "\nnotes: [2026-01-02]\n", "YAML reads this as a date: put it in quotes"),
        (GOOD + "\nnotes: [!!binary aGVsbG8=]\n", "YAML reads this as a bytes: put it in quotes"),
        (GOOD + "\nmax_output: 99999999999999999999999\n", "this number is too large"),
        (GOOD + "\nmax_output: " + "9" * 5000 + "\n", "digits"),
        (GOOD + "\nmax_output: .inf\n", "inf is no number"),
        (GOOD + '\nnotes: ["a\\u202eb"]\n', "has a character that is no text"),
        (GOOD + '\nnotes: ["a\\0b"]\n', "has a character that is no text"),
        (GOOD + '\nnotes: ["\\ud800"]\n', "invalid Unicode"),
        ("? [a, b]\n: c\n", "unhashable"),
        ("a: *nobody\n", "undefined alias"),
        ("", "keys with their values belong here"),
        ("[]", "keys with their values belong here"),
        ("--- a\n--- b\n", "found another document"),
        (b"\xff\xfe\x00", "can't read"),
        ("#" * (MOST_BYTES + 1), "a file of the catalog has a few kB"),
    ],
)
def test_what_yaml_can_hold_and_the_catalog_cannot(home: Path, text: str | bytes, says: str) -> None:
    refused(home, written(home, text), says)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("precisions q4-1 weights file", "../../x", "lies outside"),
        ("precisions q4-1 weights repository", "~/x", "lies outside"),
        ("sibling", "../../etc/passwd", "this must match the pattern"),
        ("engines llamacpp launch context_per_slot", "many", "context_per_slot must be a whole number"),
        ("engines llamacpp launch slots", 0, "slots must be a whole number"),
        ("engines llamacpp launch slots", True, "slots must be a whole number"),
        ("engines llamacpp launch threads", {"a": 1}, "launch.threads"),
        ("precisions", [1], "precisions"),
        ("engines llamacpp decoders", None, "decoders"),
        ("context", "many", "context"),
    ],
)
def test_values_that_no_type_of_the_catalog_takes(home: Path, place: str, value: Any, says: str) -> None:
    refused(home, changed(home, place, value), says)


def test_a_settings_value_that_is_no_yaml_is_a_word() -> None:
    assert read_settings(("results=2026-13-45", "systems=*")) == {"results": "2026-13-45", "systems": "*"}


def test_a_file_that_is_a_folder(home: Path) -> None:
    path = home / f"systems/{NAME}.yaml"
    path.mkdir()
    refused(home, path, "can't read")


class Careless(Adapter):
    """A contributor's adapter, with the mistakes that one makes."""

    name = "careless"

    def command(self, launch: Any) -> list[str]:
        words = ["serve", str(launch.settings["port_range"] // 2)]
        if "draft" in launch.system.decoder.parameters:
            words.append(launch.system.decoder.parameters["draft"])
        return words

    def observe(self, running: Any) -> dict[str, Any]:
        return {}


def careless(parameters: dict[str, Any] | None = None) -> System:
    model = read_yaml(ROOT / f"systems/{NAME}.yaml", ModelFile)
    use = model.engines["llamacpp"]
    plain = use.decoders["plain"].model_copy(update={"parameters": parameters or {}})
    use = use.model_copy(update={"decoders": {"plain": plain}})
    model = model.model_copy(update={"engines": {"careless": use}})
    return System(model, SystemName(NAME, "q4-1", "careless", "plain"))


@pytest.mark.parametrize(
    ("settings", "parameters", "says"),
    [
        ({"port_range": "wide", "poll": 0}, {}, "can't use the launch setting port_range: 'wide' (TypeError"),
        ({"port_range": 4}, {"draft": 3}, "can't use the parameter draft: 3 (TypeError: command line"),
        ({"port_range": 4}, {"draft": "a\0b"}, "can't use the parameter draft"),
        ({}, {}, "careless needs the launch setting 'port_range', which the file doesn't give"),
    ],
)
def test_an_adapter_that_fails_on_a_setting_names_it(
    settings: dict[str, Any], parameters: dict[str, Any], says: str
) -> None:
    system = careless(parameters)
    with pytest.raises(UsageError) as caught:
        check_launch(Careless(), planned_launch(ROOT, system, "env", settings))
    assert says in str(caught.value)
    assert str(system.name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_check_and_plan_say_so_of_a_private_catalogs_adapter(tmp_path: Path) -> None:
    (tmp_path / "engines").mkdir()
    (tmp_path / "engines/careless.py").write_text(
        "from paribus.engines import Adapter\n\n\nclass Careless(Adapter):\n    name = 'careless'\n"
        "    ways = ('binary',)\n    programs = frozenset({'true'})\n\n"
        "    def command(self, launch):\n        return ['serve', str(launch.settings['a'] / 2)]\n\n"
        "    def observe(self, running):\n        return {}\n\n\nENGINE = Careless()\n",
        encoding="utf-8",
    )
    data = yaml.safe_load(GOOD) | {"model": "mine"}
    use = data["engines"].pop("llamacpp")
    use |= {"how": "binary", "program": "true", "launch": {"a": "half"}, "decoders": {"plain": {"method": "plain"}}}
    use["shown"] = []
    data["engines"] = {"careless": use}
    (tmp_path / "systems").mkdir()
    path = tmp_path / "systems/mine.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    report = Report()
    check_system(path, Catalog(ROOT), report)
    (text,) = [f.text for f in report.findings if f.verdict == "fails"]
    says = "the adapter of careless can't use the launch setting a: 'half' (TypeError"
    assert says in text
    catalog = Catalog(ROOT, tmp_path)
    around = replace(Surroundings.observe(catalog, "m-test"), memory_gb=64.0, data=None, hub=False)
    planned = resolve(ROOT, "cpu", {"systems": "mine--*", "scale": "tiny", "catalog": str(tmp_path)}, around)
    with pytest.raises(UsageError) as caught:
        check_launches(catalog, planned)
    assert says in str(caught.value)
    assert "mine.yaml, engines.careless, decoder plain" in str(caught.value)


def test_an_engine_that_nobody_knows_is_a_mistake_where_it_was_asked_for(home: Path) -> None:
    data = yaml.safe_load(GOOD)
    data["engines"]["lamacpp"] = data["engines"]["llamacpp"]
    path = written(home, yaml.safe_dump(data, sort_keys=False))
    with pytest.raises(UsageError, match=rf"{path.name}.*no adapter for the engine 'lamacpp'; known: .*llamacpp, mlx"):
        plan(home)
    plan(home, "*--llamacpp--*")
    data["engines"]["lamacpp"]["unsupported"] = "a test says so"
    written(home, yaml.safe_dump(data, sort_keys=False))
    plan(home)


def test_what_needs_prefix_caching_is_left_out_where_the_engine_keeps_nothing(home: Path) -> None:
    for name in ("diffusiongemma-26b-a4b", "gemma-4-26b-a4b"):
        (home / f"systems/{name}.yaml").symlink_to(ROOT / f"systems/{name}.yaml")
    catalog = Catalog(home)
    around = replace(Surroundings.observe(catalog, "m-test"), data=None, hub=False)
    asked = {"systems": "diffusiongemma-26b-a4b--bf16--*", "scale": "tiny"}
    planned = resolve(home, "h100", asked, around)
    check_launches(catalog, planned)
    left = [e for e in planned.excluded if e.name.startswith("smoke-tau2, ")]
    assert {e.name for e in left} == {
        f"smoke-tau2, diffusiongemma-26b-a4b--bf16--transformers--diffusion-card{think}" for think in ("", "--think")
    }
    assert all("it needs prefix caching, and transformers keeps nothing" in e.reason for e in left)
    quality = [job for job in planned.jobs if job.kind == "quality"]
    assert any(m.id == "smoke-tau2" for job in quality if job.engine == "vllm" for m in job.measures)
    text = (ROOT / "systems/diffusiongemma-26b-a4b.yaml").read_text(encoding="utf-8")
    path = home / "systems/diffusiongemma-26b-a4b.yaml"
    path.unlink()
    path.write_text(text.replace("    prefix_caching: false\n", ""), encoding="utf-8")
    assert any("`prefix_caching: false` is missing: transformers keeps nothing" in each for each in faults(path))
