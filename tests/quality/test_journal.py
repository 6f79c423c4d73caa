"""The journal: what was appended is there after any crash, and nothing that wasn't."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quality_journals import HEADER, entry

from paribus.conditions import CheckFailed, EnvironmentFault, UsageError
from paribus.quality.journal import Journal, Key, address_hash, read_journal
from paribus.wire import Endpoint


def test_a_journal_gives_back_what_was_appended(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal.jsonl"
    answers = [entry("t", "a", r, text) for r, text in enumerate(["plain", "Zeilen\nund\u2028mehr", "\ud800 lone", ""])]
    with Journal(path, HEADER) as journal:
        for answer in answers:
            journal.append(answer)
    header, entries = read_journal(path)
    assert header == HEADER
    assert list(entries.values()) == answers
    assert [answer.text for answer in answers] == ["plain", "Zeilen\nund\u2028mehr", "\ufffd lone", ""]


@settings(max_examples=30)
@given(st.data())
def test_a_crash_at_any_byte_loses_at_most_the_last_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        for repeat in range(3):
            journal.append(entry("t", "a", repeat, f"text {repeat}"))
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    kept = max(0, whole[:cut].count(b"\n") - 1)
    with Journal(path, HEADER) as journal:
        assert [e.repeat for e in journal.entries.values()] == list(range(kept))
        journal.append(entry("t", "a", kept, f"text {kept}"))
    assert [e.text for e in read_journal(path)[1].values()] == [f"text {n}" for n in range(kept + 1)]


def test_a_torn_last_line_is_ignored_by_readers_too(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.append(entry("t", "a", 0, "kept"))
    with path.open("ab") as file:
        file.write(b'{"kind":"answer","task":"t","item":"b"')
    assert list(read_journal(path)[1]) == [Key("t", "a", 0)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_sentence_to_the_end(tmp_path: Path) -> None:
    """Closing the file tries once more to write what found no room."""

    def fill() -> None:
        with Path("/dev/full").open("ab") as full, Journal(tmp_path / "journal.jsonl", HEADER) as journal:
            os.dup2(full.fileno(), journal._file.fileno())
            journal.append(entry("t", "a", 0, "first"))

    with pytest.raises(EnvironmentFault, match="is full"):
        fill()


def test_a_key_is_appended_once(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl", HEADER) as journal:
        journal.append(entry("t", "a", 0, "first"))
        with pytest.raises(ValueError, match="already has"):
            journal.append(entry("t", "a", 0, "second"))


def test_a_second_line_with_one_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.append(entry("t", "a", 0, "first"))
    with path.open("a") as file:
        file.write(entry("t", "a", 0, "second").model_dump_json() + "\n")
    with pytest.raises(CheckFailed, match="line 3: a second answer to t, a, 0, 0"):
        read_journal(path)


@pytest.mark.parametrize("form", ["1", "3", '"x"', "null", "[[]]"])
def test_a_journal_of_another_form_is_refused_in_one_sentence(tmp_path: Path, form: str) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path, HEADER).__exit__(None, None, None)
    path.write_text(path.read_text().replace('"schema_version":2', f'"schema_version":{form}'))
    with pytest.raises(CheckFailed, match="this Paribus reads form 2: its answers can't be scored"):
        read_journal(path)


def test_an_address_is_told_apart_and_not_told() -> None:
    here, there = (Endpoint(f"http://{host}/v1", "m") for host in ("10.1.2.3:8000", "10.1.2.4:8000"))
    assert address_hash(here) == address_hash(Endpoint("http://10.1.2.3:8000/v1/", "m"))
    assert address_hash(here) != address_hash(there)
    assert len(address_hash(here)) == 12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cap": 200}, "cap is 100 there and 200 here"),
        ({"items": ["a"]}, "other items"),
        ({"model": "n"}, "model is"),
        ({"extra_body": {"temperature": 0}}, "extra_body is {} there"),
        ({"endpoint": "0" * 12}, "endpoint is None there"),
        ({"served_as": "n"}, "served_as is"),
        ({"profile": "greedy"}, "profile is"),
    ],
)
def test_a_journal_of_other_conditions_is_not_continued(tmp_path: Path, change: dict, words: str) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path, HEADER).__exit__(None, None, None)
    with pytest.raises(UsageError, match=words):
        Journal(path, HEADER.model_copy(update=change))


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"kind":"answer"}', '{"kind":"header"}'])
def test_a_broken_line_in_the_middle_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.append(entry("t", "a", 0, "kept"))
    with path.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(CheckFailed, match="line 3"):
        read_journal(path)


def test_a_missing_or_empty_journal_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't read the journal"):
        read_journal(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_bytes(b'{"kind":"hea')
    with pytest.raises(CheckFailed, match="empty"):
        read_journal(tmp_path / "empty.jsonl")


HOLDING = """
import sys
from pathlib import Path
from paribus.quality.journal import Header, Journal
with Journal(Path(sys.argv[1]), Header.model_validate_json(sys.argv[2])):
    print("open", flush=True)
    sys.stdin.readline()
"""


def test_two_processes_never_write_one_journal(tmp_path: Path) -> None:
    """The second is refused and changes nothing; when the first has ended, however it did, another may go on."""
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.append(entry("t", "a", 0, "first"))
    words = [sys.executable, "-c", HOLDING, str(path), HEADER.model_dump_json()]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with path.open("ab") as file:
            file.write(b'{"kind":"ans')  # the other is in the middle of a line
        before = path.read_bytes()
        with pytest.raises(UsageError, match=r"another process is writing .*journal\.jsonl: wait until it has ended"):
            Journal(path, HEADER)
        assert path.read_bytes() == before
        holder.kill()
    with Journal(path, HEADER) as journal:
        assert [found.text for found in journal.entries.values()] == ["first"]


def test_a_journal_that_was_moved_away_is_no_longer_held(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER):
        path.replace(tmp_path / "journal.failed.jsonl")
        with Journal(path, HEADER) as journal:
            journal.append(entry("t", "a", 0, "anew"))
    assert len(read_journal(path)[1]) == 1


@pytest.mark.parametrize("below", ["", "deep/er"])
def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match="taken is a file: name a folder"):
        Journal(tmp_path / "taken" / below / "journal.jsonl", HEADER)
    (tmp_path / "loose").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="loose is a link to nothing: name a folder"):
        Journal(tmp_path / "loose" / below / "journal.jsonl", HEADER)
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_folder_in_the_place_of_the_journal_is_named(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(UsageError, match=r"journal\.jsonl is a folder"):
        Journal(tmp_path / "journal.jsonl", HEADER)
