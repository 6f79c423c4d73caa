"""The conditions strip: always every part, always in the same order; what nobody disclosed is printed as such."""

from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import PROMPT_SET, Clone

from paribus.conditions import CONDITIONS, flag
from paribus.results.seal import seal
from paribus.results.strip import ORDER, SEPARATOR, UNKNOWN, split_strip, strip, strip_line, strip_of

ANY = st.one_of(st.none(), st.booleans(), st.integers(0, 10**6), st.floats(0, 1e6), st.text(max_size=12))


def test_a_run_reads_in_one_line(clone: Clone) -> None:
    summary = seal(clone.run("ngram-simple-n4-m4", "c16-long", starts=2, words=40), clone.catalog)
    parts = {part.name: part.text for part in strip_of(summary)}
    assert parts["card"] == "Test CPU, 2 cores"
    assert parts["model"] == "smollm2-135m, q4-1, thinking off"
    assert parts["engine"] == "llamacpp 1.0"
    assert parts["decoder"] == "ngram-simple-n4-m4"
    assert parts["requests"] == "16 requests at once"
    assert parts["answers"] == "answers up to 256 tokens"
    assert parts["prompts"].startswith(f"{PROMPT_SET} (")
    assert parts["sampling"] == "served sampling: temperature 0.2, top_p 0.9"
    assert parts["date"] == "2026-12-01"
    assert parts["trials"] == "n = 96, 2 starts, small scale"
    assert parts["flags"].startswith("flags: ")


def test_the_number_of_cores_stands_there_once() -> None:
    conditions = {"hardware": "cpu", "card": "AMD EPYC, 2 cores", "cpu_count": 2}
    assert strip(conditions, [])[0].text == "AMD EPYC, 2 cores"


@given(st.dictionaries(st.sampled_from(list(CONDITIONS)), ANY))
def test_any_conditions_give_every_part_in_order(conditions: dict[str, object]) -> None:
    parts = strip(conditions, [])
    assert tuple(part.name for part in parts) == ORDER
    assert all(part.text for part in parts)
    assert len(strip_line(parts).split(SEPARATOR)) == len(ORDER)


def test_what_is_unknown_is_printed() -> None:
    texts = [part.text for part in strip({}, [])]
    assert sum(UNKNOWN in text for text in texts) == len(ORDER) - 1
    assert texts[-1] == "no flags"


def test_shared_parts_stand_once_and_the_others_become_columns() -> None:
    one = strip({"decoder": "plain", "cap": 64}, [flag("busy", "x")])
    two = strip({"decoder": "ngram", "cap": 64}, [flag("busy", "y")])
    shared, differing = split_strip([one, two])
    assert differing == ["decoder"]
    assert len(shared) == len(ORDER) - 1
    assert split_strip([]) == ([], [])
