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
from paribus.quality.tasks.base import visible
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
        ("```python\n```", None),
        ("```python\nprint(1)\n```\n```python\n```", "print(1)\n"),
        ("```\n1 2\n```\n```python\nprint(1)", "print(1)\n"),
        ("```markdown\n# Solution\n```python\nprint(1)\n```\n```", "print(1)\n"),
        ("````markdown\n```python\nprint(0)\n```\n````\n```python\nprint(1)\n```", "print(1)\n"),
        ("```python\nprint(0)\n\nNo, better:\n```python\nprint(1)\n```", "print(1)\n"),
        ("```python\nprint(0)\nNo, better: ```python\nprint(1)\n```", "print(1)\n"),
        ("```python\nprint(1)\n``` That is all, as ``` ends it.\nText.\n```text\n1\n```", "print(1)\n"),
        ("```python\nprint(1)\n``` This prints one.\nIt is short.", "print(1)\n"),
        ("```python\nprint(1)```\nThat is all.", "print(1)\n"),
        ("```python\n# ```\nprint(1)\n```", "# ```\nprint(1)\n"),
        ("1. So:\n   ```python\n   if 1:\n       print(1)\n   ```\n", "if 1:\n    print(1)\n"),
        ("- So:\n\n      ```python\n      print(1)\n      ```\n", "print(1)\n"),
        ("- ```python\n  print(1)\n  ```\n", "print(1)\n"),
        (
            '```python\ndef f():\n    """\n    ```\n    f()\n    ```\n    """\n```',
            'def f():\n    """\n    ```\n    f()\n    ```\n    """\n',
        ),
        ("````markdown\n# Solution\n```python\nprint(1)\n```\n````", "print(1)\n"),
        ("Use ```print(1)``` here.", None),
        ("Begin with ```python and end with ```.", None),
        ("```python-repl\n>>> 1\n1\n```", None),
        ("```pycon\n>>> 1\n```\n```\nprint(1)\n```", "print(1)\n"),
        ("no code at all", None),
        ("```cpp\nint main;\n```", None),
        ("", None),
    ],
)
def test_the_last_block_of_python_is_the_solution(text: str, code: str | None) -> None:
    assert last_code(text) == code


TAGS = ["python", "Python", "py", "py3", "python3", "python3.11", "{python}", "{.python}", "{.python .numberLines}",
        "python:main.py", "python title=main.py", "python linenums", "language-python", " python", "Python 3",
        "python,editable", "pypy3"]  # fmt: skip
OPENERS = ["```{0}", "Here: ```{0}", "1. ```{0}", "**Solution**```{0}", "~~~{0}", "````{0}", "   ```{0}"]
BEFORE = [
    "",
    "Text.\n",
    "```text\n1\n```\n",
    "```\n1\n```\n",
    "```python\nprint(0)\n```\n",
    "```python\nprint(0)\n",
    "```markdown\n",
    "<think>\n```python\nprint(0)\n</think>\n",
    "draft\n```python\nprint(0)\n```\n</think>\n",
    "draft\n```python\nprint(0)\n</think>\n",
    "<think>a</think>b\n<think>\n```python\nprint(0)\n```</think>\n",
]
AFTER = [
    "",
    "\nDone.",
    "\n```text\n1\n```",
    "\n\nIt prints:\n```\n1\n```\n",
    "\n```output\n1\n```",
    "\nUse ```x``` so.",
]
CODES = ["print(1)\n", "x = '</think>'\nprint(x)\n", "if 1:\n    print('a</think>b')\n", "\n\nprint('<think>')\n"]


@given(
    st.sampled_from(TAGS), st.sampled_from(OPENERS), st.sampled_from(BEFORE), st.sampled_from(AFTER),
    st.sampled_from(CODES), st.sampled_from(["", " ", " Done, that is all."]),
)  # fmt: skip
def test_the_last_block_is_found_however_it_is_fenced(
    tag: str, opener: str, before: str, after: str, code: str, words: str
) -> None:
    if opener[0] != "~" and not opener.lstrip().startswith("`") and len(tag.split()) > 1:
        tag = "python"  # On a line of text, a fence with words behind it may be anything.
    fence = "~~~" if opener[0] == "~" else "````" if opener.startswith("````") else "```"
    text = before + opener.replace("{0}", tag) + f"\n{code}{fence}{words}{after}"
    assert last_code(text) == code


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("a\n</think>\n\nb", "\n\nb"),
        ("<think>a", ""),
        ("  <think>a</think>b</think>", "b</think>"),
        ("plain", "plain"),
        ("<think>a</think>b\n<think>c</think>d", "b\nd"),
        ("<think>a</think>b\n<think>c", "b\n"),
        ("```python\nx = '</think>'\n```", "```python\nx = '</think>'\n```"),
        ("a\n```python\nx\n</think>\n```python\ny\n```", "\n```python\ny\n```"),
        ("a ```x``` b</think>```python\ny\n```", "```python\ny\n```"),
    ],
)
def test_what_is_visible_of_an_answer(text: str, answer: str) -> None:
    assert visible(text) == answer


def test_the_official_rule_takes_the_last_two_fences_whatever_is_between() -> None:
    assert official_code("```python\nprint(1)\n```\nout:\n```\n1\n```") == "1\n"
    assert official_code("```python\nprint(1)") == ""


USES = ["import json\nprint(Solution().f(3))\n", "s = Solution()\nassert s.f(1) == 1\n", "from typing import List\n",
        "def test():\n    print(Solution().f(3))\ntest()\n", "class Node:\n    pass\n", "input()\n"]  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_a_use_of_the_class_that_was_asked_for_is_not_the_solution(use: str) -> None:
    code = "class Solution:\n    def f(self, x):\n        return x\n"
    text = f"```python\n{code}```\nUse it so:\n```\n{use}```\n"
    assert last_code(text, {"Solution", "f"}) == code
    assert last_code(f"{text}Better:\n```\nimport math\n{code}```\n", {"Solution", "f"}) == f"import math\n{code}"
    assert last_code(f"{text}Better:\n```\ndef f(x): return x\n```\n", {"Solution", "f"}) == "def f(x): return x\n"


SOLUTIONS = ["n = int(input())\nprint(n)\n", "import sys\nprint(sys.stdin.read())\n", "def solve():\n    pass\n",
             "class Solution:\n    def f(self, x):\n        return x\n",
             "for line in open(0):\n    print(line)\n"]  # fmt: skip
EXAMPLES = ["1\n2\n", "YES\n", "[1, 2]\n", "3 -1\n", "x = 5\ny = x + 1\n", "4 2\n1 2 3\n", "'abc'\n", "True\n",
            "f(3) = 5\n", "input = 3\noutput = 6\n", "input: 3\noutput: 6\n", "open = [1]\nclosed = []\n",
            "input\n3\n",
            "def f(n): for each\n", "import java.util.Scanner;\nclass Main {}\n", "print(solve(3))\n", "O(n log n)\n",
            "pip install numpy\n", "(" * 300 + "\n", "-" * 100_000 + "1\n", "a" + ".a" * 100_000 + "\n"]  # fmt: skip


@given(st.sampled_from(SOLUTIONS), st.lists(st.sampled_from(EXAMPLES), max_size=3), st.sampled_from(["```", "~~~"]))
def test_a_later_program_without_a_language_is_the_solution(code: str, examples: list[str], fence: str) -> None:
    draft = "A draft:\n```python\nprint(0)\n```\nwhich is too slow.\n\n"
    behind = "".join(f"\nIt prints:\n{fence}\n{example}{fence}\n" for example in examples)
    assert last_code(f"{draft}{fence}\n{code}{fence}\n{behind}") == code
    assert last_code(f"{draft}{fence}\n{code}") == "print(0)\n", "it is cut short"


@given(st.sampled_from(SOLUTIONS), st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=3))
def test_an_example_without_a_language_is_not_the_solution(code: str, examples: list[str]) -> None:
    behind = "".join(f"\nFor example:\n```\n{example}```\n" for example in examples)
    assert last_code(f"```python\n{code}```\n{behind}") == code


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
