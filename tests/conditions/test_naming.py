"""Names and paths: what is accepted round-trips, what could leave the results folder is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.conditions import RunPath, SystemName, UsageError, inside, is_slug, slug, start_number

word = st.from_regex(r"[a-z0-9][a-z0-9]{0,5}(\.[a-z0-9]+)?", fullmatch=True)
slugs = st.lists(word, min_size=1, max_size=3).map("-".join)
systems = st.builds(SystemName, slugs, slugs, slugs, slugs, st.booleans())


@given(slugs)
def test_words_joined_by_single_hyphens_are_slugs(text: str) -> None:
    assert is_slug(text)


@pytest.mark.parametrize("text", ["", "A", "a--b", "-a", "a-", "../a", "a/b", "a..b", "a b", "a\n", ".a", "ä", "a_b"])
def test_anything_else_is_no_slug(text: str) -> None:
    assert not is_slug(text)
    with pytest.raises(UsageError, match="machine"):
        slug(text, "machine")


@given(systems)
def test_a_system_name_reads_back(name: SystemName) -> None:
    assert SystemName.parse(str(name)) == name


@given(systems, slugs)
def test_another_decoder_keeps_the_stack(name: SystemName, decoder: str) -> None:
    other = name.with_decoder(decoder)
    assert (other.stack, other.think, other.decoder) == (name.stack, name.think, decoder)


@pytest.mark.parametrize("text", ["a--b--c", "a--b--c--d--fast", "a--b--c--d--think--think", "a--b--c--../d"])
def test_what_is_not_a_system_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        SystemName.parse(text)


@given(slugs, slugs, systems, slugs, st.from_regex(r"[0-9a-f]{12}", fullmatch=True), st.integers(1, 99))
def test_a_run_path_reads_back(
    hardware: str, machine: str, system: SystemName, measure: str, conditions: str, n: int
) -> None:
    path = RunPath(hardware, machine, str(system), measure, conditions, n)
    assert RunPath.parse(str(path)) == path
    assert path.start(3) == f"{path}/start-3"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cpu/m/a--b--c--d/c1/0123456789ab.0",
        "cpu/m/a--b--c--d/c1/0123456789AB.1",
        "cpu/m/a--b--c--d/c1",
        "/cpu/m/a--b--c--d/c1/0123456789ab.1",
        "cpu/../a--b--c--d/c1/0123456789ab.1",
        "cpu/m/a--b--c--d/c1/0123456789ab.1/start-1",
    ],
)
def test_what_is_not_a_run_path_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        RunPath.parse(text)


def test_start_folders_count_from_one() -> None:
    assert start_number("start-12") == 12
    for text in ("start-0", "start-", "start-01", "start--1", "end-1"):
        with pytest.raises(UsageError):
            start_number(text)


def test_paths_in_files_stay_below_their_root(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    root = tmp_path / "root"
    assert inside(root, "a/b") == (root / "a/b").resolve()
    for bad in ("../x", "/etc/passwd", "a/../../x", "link/x"):
        with pytest.raises(UsageError):
            inside(root, bad)
