"""`paribus check systems/X.yaml`: faults with their line and what to do; doubts are warnings. Each rule is broken."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from paribus.catalog import Catalog, ModelFile
from paribus.catalog.reading import read_yaml
from paribus.cli.check import command
from paribus.conditions import UsageError
from paribus.results.check import check
from paribus.results.check_system import check_system
from paribus.results.findings import Report

ROOT = Path(__file__).parents[2]
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("systems", "hardware"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def found(path: Path) -> tuple[list[str], list[str]]:
    """Faults and warnings, each with where it is."""
    report = Report()
    with report.looking("catalog", str(path)):
        check_system(path, Catalog(path.parents[1]), report)
    told = {v: [f"{f.where} {f.text}" for f in report.findings if f.verdict == v] for v in ("fails", "warning")}
    return told["fails"], told["warning"]


def changed(home: Path, change: Change, name: str = "smollm2-135m") -> Path:
    path = home / f"systems/{name}.yaml"
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


def decoders(data: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data["engines"]["llamacpp"]["decoders"]
    return found


NOWHERE = {"source": "hosted", "repository": "a/b"}
AWAY = {"cards": ["cpu"], "without": ["poll", "nonsense"], "source": "x"}


def hub(data: dict[str, Any], **given: str) -> None:
    """Other weights, from the hub."""
    data["precisions"]["q4-1"]["weights"] = {"source": "hub", "repository": "a/b", "bytes": 1, **given}


@pytest.mark.parametrize("path", sorted(ROOT.glob("systems/*.yaml")), ids=lambda p: p.stem)
def test_our_own_files_hold(path: Path) -> None:
    faults, _ = found(path)
    assert faults == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["sampling"].update(temperature=True), "sampling.temperature: a number belongs here"),
        (lambda d: d["sampling"].update(top_p="0.9"), "sampling.top_p: a number belongs here"),
        (lambda d: d["engines"]["llamacpp"].update(trust_remote_code="no"), "trust_remote_code: true or false belongs"),
        (lambda d: d.update(context=True), "context: a whole number belongs here"),
        (lambda d: d.update(title=5), "title: text belongs here"),
        (lambda d: d.update(notes="one"), "notes: a list belongs here"),
        (lambda d: d.update(sampling=[1]), "sampling: keys with their values belong here"),
        (
            lambda d: d["engines"]["llamacpp"]["launch"].update(threads=[1]),
            "threads: one value belongs here: text, a n",
        ),
        (lambda d: d.update(released="2024-99-99"), "released: month must be in 1..12"),
        (lambda d: d.update(released="2023-02-29"), "released: day is out of range for month"),
        (lambda d: d.update(released="2024-13"), "released: month must be in 1..12"),
        (lambda d: d.update(retired={"date": "2024-00", "reason": "x", "source": "x"}), "retired.date: month must be"),
        (lambda d: d["engines"]["llamacpp"]["launch"].update(slots=1_000_000_000), "slots must be at most 4,096"),
        (
            lambda d: decoders(d).update(draft={"method": "draft", "acceptance": "strict", "drafter": NOWHERE}),
            "drafter.source: this must be 'pypi' or 'hub'",
        ),
        (
            lambda d: decoders(d).update(again={"method": "plain"}),
            "the decoders plain and again are both plain decoding of q4-1: keep one",
        ),
        (
            lambda d: d["engines"]["llamacpp"].update(overrides=[AWAY]),
            "overrides.0.without: no launch setting before it is called nonsense",
        ),
        (
            lambda d: d.update(kind="diffusion"),
            "a diffusion model needs a decoder of method block-diffusion (or undisclosed, of a hosted one)",
        ),
        (lambda d: d.update(titel="x"), "there is no such key; here belong: context, engines"),
        (lambda d: decoders(d)["plain"].update(methud="plain"), "here belong: acceptance, drafter"),
        (lambda d: d.pop("title"), "title: this key is missing"),
        (lambda d: d.update(kind="magic"), "kind: this must be 'autoregressive'"),
        (lambda d: d.update(context=None), "context is missing"),
        (lambda d: d["engines"]["llamacpp"].update(precisions=["q9"]), "names the precision q9"),
        (lambda d: d.update(sibling="nobody"), "nobody is no model of the catalog"),
        (lambda d: decoders(d)["ngram-cache"].pop("acceptance"), "`acceptance` is rejection, block or strict"),
        (lambda d: decoders(d)["ngram-cache"].update(acceptance="synthetic"), "no way to write text"),
        (lambda d: decoders(d)["ngram-cache"].update(acceptance="approximate"), "under `lossy`"),
        (lambda d: decoders(d)["plain"].update(parameters={"n": 1}), "plain decoding takes no parameters"),
        (lambda d: d["engines"]["llamacpp"]["launch"].update(speed="high"), "knows no launch setting speed"),
        (
            lambda d: d["engines"]["llamacpp"].update(overrides=[{"cards": ["h1000"], "source": "x"}]),
            "h1000 names none of: a100",
        ),
        (lambda d: d["precisions"]["q4-1"]["weights"].update(file="../../x"), "../../x lies outside"),
        (lambda d: d["precisions"]["q4-1"]["weights"].update(repository="/etc"), "/etc lies outside"),
        (
            lambda d: hub(d, revision="main"),
            "revision of source: hub is a commit of 40 hex digits, or unpinned, not main",
        ),
        (lambda d: hub(d, revision="v1.0"), "a commit of 40 hex digits"),
        (lambda d: hub(d, repository="--upload-pack=x/y"), "repository of source: hub is owner/name"),
        (lambda d: hub(d, repository="alone"), "repository of source: hub is owner/name"),
        (lambda d: hub(d, file="--out=x"), "file --out=x would be read as a flag"),
        (lambda d: d["precisions"]["q4-1"]["weights"].update(revision="main"), "is a version such as 0.1.2"),
        (lambda d: d["precisions"]["q4-1"]["weights"].update(repository="-r"), "is the name of a package"),
        (lambda d: d.update(sibling="--x/y"), "sibling: this must match the pattern"),
        (
            lambda d: d["engines"]["llamacpp"]["launch"].update(context_per_slot=99_999_999),
            "context_per_slot 99999999 is more than the model's context 8192",
        ),
        (
            lambda d: d["engines"]["llamacpp"].update(
                overrides=[{"cards": ["cpu"], "launch": {"context_per_slot": 16_384}, "source": "x"}]
            ),
            "context_per_slot 16384 is more than",
        ),
        (
            lambda d: d["engines"]["llamacpp"].update(image={"reference": "--privileged", "source": "x"}),
            "image.reference: this must match the pattern",
        ),
        (
            lambda d: d["engines"]["llamacpp"].update(how="binary", program="bash"),
            "llamacpp is not the program bash on the path; known: llama-server",
        ),
        (lambda d: d["precisions"]["q4-1"].update(kv_cache="fp8"), "kv_cache fp8 is quantised: say who says so"),
        (lambda d: d["precisions"]["q4-1"].update(kv_cache="q8_0"), "kv_cache q8_0 is quantised"),
        (lambda d: d.update(model="other"), "must be named after what it describes: other.yaml"),
    ],
)
def test_each_fault_is_told_with_what_to_do(home: Path, change: Change, says: str) -> None:
    faults, _ = found(changed(home, change))
    assert any(says in fault for fault in faults), faults


def test_a_fault_names_its_line(home: Path) -> None:
    path = home / "systems/smollm2-135m.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    place = lines.index("    memory_gb: 2.5")
    lines[place] = "    memory_gb: -1"
    path.write_text("\n".join(lines), encoding="utf-8")
    faults, _ = found(path)
    assert faults == [f"{path} line {place + 1}: precisions.q4-1.memory_gb: this must be greater than 0"]


def test_every_fault_is_told_not_only_the_first(home: Path) -> None:
    faults, _ = found(changed(home, lambda d: d.update(kind="magic", context=-1)))
    assert len(faults) == 2


def test_a_key_that_stands_twice_is_told(home: Path) -> None:
    path = home / "systems/smollm2-135m.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "\ntitle: another\n", encoding="utf-8")
    faults, _ = found(path)
    assert any("title stands twice" in fault for fault in faults)


def test_no_yaml_is_told_with_its_line(home: Path) -> None:
    path = home / "systems/smollm2-135m.yaml"
    path.write_text("model: smollm2-135m\ntitle: [\n", encoding="utf-8")
    faults, _ = found(path)
    assert "line 3" in faults[0]


@pytest.mark.parametrize("value", ["!!python/name:os.system x", "2026-13-45"])
def test_a_value_that_yaml_cannot_make_is_a_fault_and_no_traceback(home: Path, value: str) -> None:
    path = home / "systems/smollm2-135m.yaml"
    path.write_text(f"model: smollm2-135m\nreleased: {value}\n", encoding="utf-8")
    faults, _ = found(path)
    assert len(faults) == 1
    with pytest.raises(UsageError, match=r"smollm2-135m\.yaml"):
        read_yaml(path, ModelFile)


def test_a_file_that_is_not_there_is_named(home: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file .*nope\.yaml"):
        check(home, [str(home / "systems/nope.yaml")])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("compute_capability:", "compute_capabilty:", "there is no such key; here belong: compute_capability"),
        ('"2330:10de"', '"10de:2330"', "10de:2330 is no card of NVIDIA's"),
    ],
)
def test_a_fault_in_a_cards_file_is_told(home: Path, old: str, new: str, says: str) -> None:
    path = home / "hardware/h100/hardware.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    told = [f.text for f in check(home, [str(path)]).findings if f.verdict == "fails"]
    assert len(told) == 1, told
    assert says in told[0]


@pytest.mark.parametrize("path", sorted(ROOT.glob("hardware/*/hardware.yaml")), ids=lambda p: p.parent.name)
def test_our_own_cards_hold(path: Path) -> None:
    assert not check(ROOT, [str(path)]).failed


def test_what_is_not_pinned_or_not_verified_is_a_warning(home: Path) -> None:
    faults, warnings = found(home / "systems/clover-35b-a3b-preview.yaml")
    assert faults == []
    assert any("Diffuspace/Clover-35B-A3B-Preview is not pinned" in w for w in warnings)
    assert any("not verified: that the model writes token by token" in w for w in warnings)
    assert any("trust_remote_code" in w for w in warnings)
    _, none = found(home / "systems/smollm2-135m.yaml")
    assert none == []


def test_the_command_ends_with_0_or_1(home: Path) -> None:
    right = CliRunner().invoke(command, [str(ROOT / "systems/smollm2-135m.yaml")])
    assert right.exit_code == 0
    wrong = CliRunner().invoke(command, [str(changed(home, lambda d: d.update(kind="magic")))])
    assert wrong.exception is not None
    assert getattr(wrong.exception, "exit_code", None) == 1
    assert "line 4" in wrong.output


def test_an_image_without_a_digest_is_told_wherever_it_stands(home: Path) -> None:
    def images(data: dict[str, Any]) -> None:
        general, own = ({"reference": f"example.org/{name}:v1", "source": "x"} for name in ("general", "own"))
        override = {"cards": ["h100"], "image": own, "source": "x"}
        data["engines"]["llamacpp"].update(how="image", image=general, overrides=[override])

    _, warnings = found(changed(home, images))
    assert [w for w in warnings if "digest of example.org/general:v1 is not known" in w]
    assert [w for w in warnings if "digest of example.org/own:v1 is not known" in w]
    _, none = found(changed(home, lambda data: data["engines"]["llamacpp"].pop("how")))
    assert not [w for w in none if "digest" in w], "only named as recommended"


def test_what_is_wrong_on_every_card_is_told_once_and_what_is_on_some_with_their_names(home: Path) -> None:
    def slow(data: dict[str, Any], where: str | None) -> None:
        use = data["engines"]["llamacpp"]
        use["overrides"] = [{"cards": [card], "launch": {"poll": 1}, "source": "x"} for card in ("cpu", "h100", "h200")]
        for override in use["overrides"]:
            if override["cards"] == [where] or where is None:
                override["launch"]["speed"] = "high"

    good = yaml.safe_load((home / "systems/smollm2-135m.yaml").read_text(encoding="utf-8"))
    for where, place in (("h100", " (on h100)"), (None, " (on cpu, h100, h200)")):
        faults, _ = found(changed(home, lambda data, where=where: slow(data.update(good) or data, where)))
        assert len(faults) == 1, faults
        assert faults[0].endswith(place)
    faults, _ = found(changed(home, lambda data: data["engines"]["llamacpp"]["launch"].update(speed="high")))
    assert len(faults) == 1, faults
    assert "knows no launch setting speed" in faults[0]
    assert "(on " not in faults[0]


def test_what_is_wrong_in_a_siblings_file_is_that_files_fault(home: Path) -> None:
    path = changed(home, lambda data: data.update(sibling="dream-7b"))
    (home / "systems/dream-7b.yaml").write_text("model: [", encoding="utf-8")
    assert found(path)[0] == []
    assert found(home / "systems/dream-7b.yaml")[0]


def test_a_folder_of_the_catalog_is_checked_file_by_file_and_another_ending_is_told(home: Path) -> None:
    report = check(home, [str(home / "hardware/cpu"), str(home / "systems")])
    assert {f.where.partition(".yaml")[0] for f in report.findings} == {
        str(home / "hardware/cpu/hardware"),
        *(str(path.with_suffix("")) for path in (home / "systems").glob("*.yaml")),
    }
    other = (home / "systems/smollm2-135m.yaml").rename(home / "systems/smollm2-135m.yml")
    with pytest.raises(UsageError, match=r"smollm2-135m\.yml: .*call it smollm2-135m\.yaml"):
        check(home, [str(other)])
    (home / "nothing").mkdir()
    with pytest.raises(UsageError, match="nothing is a folder that holds no finished run and no file of the catalog"):
        check(home, [str(home / "nothing")])
