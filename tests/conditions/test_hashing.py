"""Hashes: the same facts, the same twelve digits, whatever the order of keys."""

import hashlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from paribus.conditions import canonical, conditions_hash, figure_id, hash12, run_id, sha256_file

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def test_canonical_json_sorts_keys_and_drops_blanks() -> None:
    assert canonical({"b": 1, "a": [1.0, "é", None]}) == '{"a":[1,"é",null],"b":1}'.encode()


@given(st.dictionaries(st.text(max_size=4), json_values, max_size=5))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    assert hash12(value) == hash12(dict(reversed(list(value.items()))))


def test_hashes_are_the_start_of_sha256() -> None:
    assert hash12({}) == hashlib.sha256(b"{}").hexdigest()[:12]
    assert conditions_hash("a" * 12, "b" * 12) != conditions_hash("b" * 12, "a" * 12)


def test_ids_have_their_letter_and_ten_characters() -> None:
    for made, letter in ((run_id("cpu/m/x"), "r"), (figure_id(["r1"], "ttft"), "f")):
        assert made[0] == letter
        assert len(made) == 11
        assert made[1:].isalnum()
        assert made == made.lower()
    assert run_id("cpu/m/x") == run_id("/cpu/m/x/")
    assert figure_id(["r1", "r2"], "speedup") != figure_id(["r2", "r1"], "speedup")


def test_a_file_is_hashed_whole(tmp_path: Path) -> None:
    data = b"x" * (3 << 20)
    (tmp_path / "f").write_bytes(data)
    assert sha256_file(tmp_path / "f") == hashlib.sha256(data).hexdigest()
