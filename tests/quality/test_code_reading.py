"""Programs: which block of an answer is the solution, which outputs are equal, which test files are read."""

from __future__ import annotations

import base64
import contextlib
import json
import pickle
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.conditions import UsageError
from paribus.quality.tasks.grader import matches, same_lines
from paribus.quality.tasks.livecodebench import last_code, official_code
from paribus.quality.tasks.pickled import TestCase, read_cases, unpickle_plain


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nprint(1)\n```", "print(1)\n"),
        ("First:\n```python\nprint(1)\n```\nbetter:\n```python\nprint(2)\n```\n", "print(2)\n"),
        ("```python\nprint(1)\n```\nIt prints:\n```text\n1\n```", "print(1)\n"),
        ("```python\nprint(1)\n```\nIt prints:\n```\n1\n```", "print(1)\n"),
        ("```\nprint(1)\n```", "print(1)\n"),
        ("```Python3\nprint(1)\n```", "print(1)\n"),
        ("~~~py\nprint('```')\n~~~", "print('```')\n"),
        ("````python\nx = '''\n```\n'''\n````", "x = '''\n```\n'''\n"),
        ("```python\nprint(1)", "print(1)\n"),
        ("```python\nprint(1)\n```\n```python\nprint(2", "print(1)\n"),
        ("<think>\n```python\nprint(0)\n```\n</think>\n```python\nprint(1)\n```", "print(1)\n"),
        ("```python\n```", "\n"),
        ("no code at all", None),
        ("```cpp\nint main;\n```", None),
        ("", None),
    ],
)
def test_the_last_block_of_python_is_the_solution(text: str, code: str | None) -> None:
    assert last_code(text) == code


def test_the_official_rule_takes_the_last_two_fences_whatever_is_between() -> None:
    assert official_code("```python\nprint(1)\n```\nout:\n```\n1\n```") == "1\n"
    assert official_code("```python\nprint(1)") == ""


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert isinstance(last_code(text), str | None)
    assert isinstance(official_code(text), str)


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("1 2\n", "1 2", True),
        ("1\n2\n", "1 \n 2\n\n", True),
        ("1.50", "1.5", True),
        ("1000", "1e3", True),
        ("YES", "yes", False),
        ("1\n2", "1 2", False),
        ("1.5", "1.4999999999", False),
        ("0.1", "0.10000000000000001", False),
        ("1", "True", False),
        ("nan", "nan", True),
        ("inf", "1e999", False),
        ("1\n", "", False),
        ("", "", True),
    ],
)
def test_lines_are_equal_as_text_or_as_exact_numbers(expected: str, output: str, same: bool) -> None:
    assert same_lines(expected, output) is same


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("3", "3\n", True),
        ("[1, 2]", "[1,2]", True),
        ("true", "true", True),
        ("true", "1", False),
        ("1", "1.0", True),
        ("0.3", "0.30000000000000004", True),
        ('"a"', '"b"', False),
        ("[1, 2]", "[2, 1]", False),
        ("null", "null", True),
        ("null", "", False),
        ('{"a": [1]}', '{"a": [1]}', True),
    ],
)
def test_results_of_functions_are_equal_as_json(expected: str, output: str, same: bool) -> None:
    assert matches(TestCase("", expected, "functional"), output) is same


@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.booleans()))
def test_every_value_equals_itself(value: list) -> None:
    text = json.dumps(value)
    assert matches(TestCase("", text, "functional"), text)


CASES = [
    {"input": "1\n", "output": "2\n", "testtype": "stdin"},
    {"input": "[1]", "output": "1", "testtype": "functional"},
]


def packed(value: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


@pytest.mark.parametrize("text", [json.dumps(CASES), packed(json.dumps(CASES)), packed(CASES)])
def test_cases_are_read_from_json_and_from_a_packed_pickle(text: str) -> None:
    assert read_cases(text) == [TestCase("1\n", "2\n", "stdin"), TestCase("[1]", "1", "functional")]


class Evil:
    def __reduce__(self) -> tuple:
        return (exec, ("raise SystemExit('ran')",))


@pytest.mark.parametrize("value", [Evil(), [Evil()], {"a": Evil()}, print, TestCase("", "", "stdin"), {1, 2}.__class__])
def test_a_pickle_that_asks_for_code_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match="asks for"):
        unpickle_plain(pickle.dumps(value))
    with pytest.raises(UsageError, match="asks for"):
        read_cases(packed(value))


@pytest.mark.parametrize("text", ["nonsense", "e30=", packed("nonsense"), packed([1]), "{}", '[{"input": "1"}]'])
def test_broken_cases_are_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        read_cases(text)


@given(st.binary(max_size=200))
def test_any_bytes_are_plain_or_refused(data: bytes) -> None:
    with contextlib.suppress(UsageError):
        unpickle_plain(data)
