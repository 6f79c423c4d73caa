"""The strict grader: right programs pass however they read their input, wrong and hostile ones don't."""

from __future__ import annotations

import base64
import json
import pickle
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from quality_journals import ROOT

from paribus.catalog import Catalog
from paribus.quality import sandbox
from paribus.quality.data import load_items
from paribus.quality.sandbox import Box, Limits
from paribus.quality.score import scorer_id
from paribus.quality.tasks import grader, pickled
from paribus.quality.tasks.grader import (
    Benches,
    Program,
    grade_program,
    grade_programs,
    matches,
    officially_matches,
)
from paribus.quality.tasks.livecodebench import LiveCodeBenchFamily, _program, limits_of
from paribus.quality.tasks.pickled import TestCase

pytestmark = pytest.mark.usefixtures("box")

SUM = "input()\nx = sum(map(int, input().split()))\n"
LIMITS = Limits(time_s=3.0, memory=512 << 20, output=1 << 20)
SUMS = (TestCase("2\n3 4\n", "7\n", "stdin"), TestCase("3\n1 1 1\n", "3\n", "stdin"))

READERS = {
    "input": "n = int(input())\nprint(sum(map(int, input().split())))",
    "sys.stdin.readline": "import sys\nsys.stdin.readline()\nprint(sum(map(int, sys.stdin.readline().split())))",
    "iterate": "import sys\n_, line = sys.stdin\nprint(sum(map(int, line.split())))",
    "sys.stdin.buffer.read": "import sys\nd = sys.stdin.buffer.read().split()\nprint(sum(map(int, d[1:])))",
    "sys.stdin.buffer.readline": "import sys\nr = sys.stdin.buffer.readline\nr()\nprint(sum(map(int, r().split())))",
    "open(0)": "d = open(0).read().split()\nprint(sum(map(int, d[1:])))",
    "os.read": "import os\nd = os.read(0, 9999).split()\nos.write(1, str(sum(map(int, d[1:]))).encode())",
    "global": "t = 0\ndef main():\n    global t\n    input()\n    t = sum(map(int, input().split()))\nmain()\nprint(t)",
    "main guard": "if __name__ == '__main__':\n    input()\n    print(sum(map(int, input().split())))",
    "sys.exit": "import sys\ninput()\nprint(sum(map(int, input().split())))\nsys.exit()",
    "SystemExit": "input()\nprint(sum(map(int, input().split())))\nraise SystemExit(0)",
    "recursion": "import sys\nsys.setrecursionlimit(10**6)\ninput()\nx = list(map(int, input().split()))\n"
    "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nassert f(20000) == 20000\nprint(sum(x))",
    "threads": "import threading\ndef main():\n    input()\n    print(sum(map(int, input().split())))\n"
    "threading.stack_size(64 << 20)\nt = threading.Thread(target=main)\nt.start()\nt.join()",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ninput()\n"
    "print(sum(P(int(v)).x for v in input().split()))",
    "numpy": "import numpy as np\ninput()\nprint(int(np.array(input().split(), dtype=int).sum()))",
    "written output": "import sys\nd = sys.stdin.read().split()\nsys.stdout.write(str(sum(map(int, d[1:]))) + '\\n')",
}

READERS |= {end: f"{SUM}print(x)\n{end}" for end in ("exit()", "exit(0)", "quit()", "quit(None)", "import os; exit(0)")}
READERS |= {
    "exit in a function": f"{SUM}def done():\n    print(x)\n    exit()\ndone()\nprint('never')",
    "exit from the midst": f"{SUM}print(x)\nif x: exit()\n1/0",
    "names of site": f"{SUM}assert callable(help) and copyright and credits and license and quit\nprint(x)",
    "attributes of streams": f"import sys\n{SUM}assert (sys.stdin.mode, sys.stdout.mode) == ('r', 'w')\n"
    "assert (sys.stdin.name, sys.stdout.name, sys.stdin.fileno()) == ('<stdin>', '<stdout>', 0)\n"
    "assert sys.stdin.buffer.mode == 'rb' and not sys.stdin.closed and sys.stdin.encoding == 'utf-8'\nprint(x)",
    "streams of its own": """
import io, os, sys
class Fast(io.IOBase):
    def __init__(self, file):
        self.number, self.reads, self.parts = file.fileno(), "r" in file.mode, []
        self.lines = iter(os.read(self.number, os.fstat(self.number).st_size).splitlines(True)) if self.reads else ()
    def readline(self):
        return next(self.lines, b"").decode()
    def write(self, text):
        self.parts.append(text.encode())
    def flush(self):
        os.write(self.number, b"".join(self.parts)) if self.parts else None
        self.parts = []
sys.stdin, sys.stdout = Fast(sys.stdin), Fast(sys.stdout)
sys.stdin.readline()
print(sum(map(int, sys.stdin.readline().split())))
""",
    "left for the end": f"import atexit, io, sys\nout = io.StringIO()\natexit.register(lambda: "
    f"sys.__stdout__.write(out.getvalue()))\n{SUM}print(x, file=out)",
    "left for the end, then exit": f"import atexit\n{SUM}atexit.register(print, x)\nexit()",
    "a thread that nobody joins": f"import threading, time\n{SUM}def main():\n    time.sleep(0.1)\n    print(x)\n"
    "threading.Thread(target=main).start()",
    "a pool's last work": f"from concurrent.futures import ThreadPoolExecutor\n{SUM}"
    "ThreadPoolExecutor(1).submit(print, x)",
    "a file that nobody closes": f"out = open(1, 'w')\n{SUM}out.write(str(x))",
    "another name for the output": f"import sys\nprint = sys.stdout.write\n{SUM}print(str(x))",
    "output put back": f"import io, sys\n{SUM}sys.stdout = io.StringIO()\nprint('no')\nsys.__stdout__.write(str(x))",
    "output closed": f"import sys\n{SUM}print(x)\nsys.stdout.close()",
    "its own file": f"{SUM}assert 'its own file' in open(__file__).read()  # its own file\nprint(x)",
    "its own name": f"import os, sys\n{SUM}assert os.path.samefile(sys.argv[0], __file__)\nprint(x)",
    "its own source": f"import inspect\ndef f(): return 1\n{SUM}assert 'return 1' in inspect.getsource(f)\nprint(x)",
    "/dev/stdin": "d = open('/dev/stdin').read().split()\nprint(sum(map(int, d[1:])))",
    "a mark before the first line": f"\ufeff{SUM}print(x)",
    "a declared encoding": f"# -*- coding: utf-8 -*-\n{SUM}print(x)",
    "a bigger stack": "import resource, sys, threading\n"
    "resource.setrlimit(resource.RLIMIT_STACK, (1 << 28, resource.getrlimit(resource.RLIMIT_STACK)[1]))\n"
    f"{SUM}print(x)",
    "processes": "from multiprocessing import Pool\ndef f(v): return int(v)\ninput()\nwith Pool(2) as pool:\n"
    "    print(sum(pool.map(f, input().split())))",
    "a pickle of its own class": f"import pickle\nclass P:\n    x = 1\n{SUM}"
    "assert pickle.loads(pickle.dumps(P())).x == 1\nprint(x)",
}  # fmt: skip

WRONG = {
    "constant": ("print(7)", "test 2: wrong output"),
    "crash": ("1/0", "test 1: error"),
    "syntax": ("print(", "test 1: error"),
    "exit code": ("input()\nprint(sum(map(int, input().split())))\nraise SystemExit(3)", "test 1: error"),
    "loop": ("while True: pass", "test 1: timeout"),
    "silent": ("", "test 1: wrong output"),
    "loud": ("while True: print('x' * 9999)", "test 1: output"),
    "memory": ("x = bytearray(2 << 30)", "test 1: memory"),
    "kill the runner": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", "test 1: lost"),
    "kill everything": ("import os, signal\nos.kill(-1, signal.SIGKILL)", "test 1: lost"),
    "exit with a fault": (f"{SUM}print(x)\nexit(3)", "test 1: error"),
    "exit with words": (f"{SUM}print(x)\nexit('no')", "test 1: error"),
    "error after the output": (f"{SUM}print(x)\n1/0", "test 1: error"),
    "a thread that never ends": (
        f"import threading, time\n{SUM}print(x)\nthreading.Thread(target=time.sleep, args=(99,)).start()",
        "test 1: timeout",
    ),
    "no way to write": ("import sys\nprint('7\\udcff')", "test 1: error"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_right_program_passes_however_it_reads(name: str) -> None:
    assert grade_program(Program(READERS[name], None, SUMS), LIMITS).first_fault is None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_or_hostile_program_fails_with_its_reason(name: str) -> None:
    code, fault = WRONG[name]
    verdict = grade_program(Program(code, None, SUMS), LIMITS)
    assert not verdict.right
    assert verdict.first_fault == fault


def test_the_expected_output_is_nowhere_to_be_found() -> None:
    code = """
import gc, sys
def everything():
    frame = sys._getframe()
    while frame:
        yield from list(frame.f_locals.values()) + list(frame.f_globals.values())
        frame = frame.f_back
    yield from gc.get_objects()
found = [t for t in everything() if isinstance(t, str) and t.startswith("secret-") and len(t) > 20]
print(found[0] if found else "nothing")
"""
    secret = "secret-" + "0123456789abcdef" * 2
    assert (
        grade_program(Program(code, None, (TestCase("", secret, "stdin"),)), LIMITS).first_fault
        == "test 1: wrong output"
    )
    assert grade_program(Program(code, None, (TestCase("", "nothing", "stdin"),)), LIMITS).right


def test_runs_do_not_see_each_other() -> None:
    code = "import builtins, os\np = '/tmp/seen'\nprint(os.path.exists(p))\nopen(p, 'w')\n"
    code += "print(hasattr(builtins, 'mark'))\nbuiltins.mark = 1"
    cases = (TestCase("", "False\nFalse", "stdin"), TestCase("", "False\nFalse", "stdin"))
    assert grade_program(Program(code, None, cases), LIMITS).right


HOSTILE = {
    "leaves files": "import os\nos.makedirs('/tmp/a/b', mode=0)\nopen('/tmp/seen', 'w')\nopen('/dev/shm/seen', 'w')",
    "leaves processes": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)",
    "kills the runner": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "stops the runner": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)",
    "never ends": "while True: pass",
    "crashes the compiler": "(" * 100_000,
    "takes all memory": "x = bytearray(4 << 30)",
}
WITNESS = """
import os
found = [p for p in ("/tmp/seen", "/tmp/a", "/dev/shm/seen") if os.path.exists(p)]
others = [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid(), os.getppid())]
mine = [p for p in others if open(f"/proc/{p}/status").read().find("sleep") >= 0]
reached = 0
for name in ("mem", "fd/0", "fd/5", "environ"):
    try:
        os.open(f"/proc/{os.getppid()}/{name}", os.O_RDONLY)
        reached += 1
    except OSError:
        pass
print(found, len(others) <= 1, mine, reached)
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_what_one_program_does_another_does_not_notice(name: str) -> None:
    """Programs follow each other in one sandbox as long as it stays clean."""
    limits = Limits(time_s=1.0, memory=512 << 20, output=1 << 20)
    case = (TestCase("", "[] True [] 0", "stdin"),)
    with Benches(limits) as benches:
        with benches.box() as box:
            box.load(HOSTILE[name])
            box.run(b"")
        for _ in range(2):
            with benches.box() as box:
                box.load(WITNESS)
                assert box.run(b"").output.decode().strip() == case[0].expected
        assert len(benches._free) == 1


def test_a_sandbox_is_used_again_while_it_stays_clean() -> None:
    with Benches(LIMITS) as benches:
        for _ in range(3):
            with benches.box() as box:
                box.load("print(1)")
                assert box.run(b"").status == "ok"
            first = benches._free[0][1]
        with benches.box() as box:
            assert box is first
            box.load("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)")
            assert box.run(b"").status == "lost"
        assert benches._free == []


ADD = "class Solution:\n    def add(self, a, b):\n        return a + sum(b)\n"


@pytest.mark.parametrize(
    ("code", "right"),
    [
        ("class Solution:\n    def add(self, a: int, b: List[int]) -> int:\n        return a + sum(b)", True),
        ("def add(a, b):\n    return a + sum(b)", True),
        ("class Solution:\n    def add(self, a, b):\n        print('noise')\n        return a + sum(b)", True),
        ("class Solution:\n    def add(self, a, b):\n        return a - sum(b)", False),
        ("class Solution:\n    def other(self, a, b):\n        return a + sum(b)", False),
        ("class Solution:\n    def add(self, a, b):\n        raise SystemExit(0)", False),
        ("print(6)", False),
        (f"{ADD}if __name__ == '__main__':\n    print(Solution().add(int(input()), []))", True),
        (f"{ADD}if __name__ == '__main__':\n    import sys\n    sys.exit(Solution().add(*sys.stdin))", True),
        (f"import os\n{ADD}os.write(1, b'noise')\nprint('noise', flush=True)", True),
        (f"import sys\n{ADD}sys.stdout = open('/dev/null', 'w')", True),
        (f"import sys\n{ADD}print('noise', file=sys.__stdout__)", True),
        (f"from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n{ADD}", True),
        (f"{ADD}exit()", False),
    ],
)
def test_a_function_is_called_with_json_and_its_result_compared(code: str, right: bool) -> None:
    cases = (TestCase("1\n[2, 3]", "6", "functional"), TestCase("0\n[]", "0", "functional"))
    verdicts = [grade_program(Program(code, "add", cases, official=rule), LIMITS) for rule in (False, True)]
    assert [verdict.officially_right for verdict in verdicts] == [right, right]
    assert verdicts[0].right is right


NAMES = {
    "cache": "@cache\n        def g(i): return 0 if i == len(a) else a[i] + g(i + 1)\n        return g(0)",
    "inf": "return sum(a) if max(a) > -inf else 0",
    "heappush": "h = []\n        for x in a: heappush(h, x)\n        return sum(heappop(h) for _ in a)",
    "accumulate": "return list(accumulate(a))[-1]",
    "bisect_left": "return sum(a) + bisect_left(a, 0)",
    "gcd": "return sum(a) * gcd(3, 2)",
    "copy": "return sum(copy.deepcopy(a))",
    "Counter": "return sum(Counter(a).elements())",
    "reduce": "return reduce(lambda x, y: x + y, a)",
    "modules": "return functools.reduce(operator.add, a) + math.floor(0.5) + len(re.findall('x', string.digits))",
    "types": "b: Optional[Dict[str, List[int]]] = defaultdict(list)\n        return sum(a) + len(b)",
    "deep": "import sys\n        assert sys.getrecursionlimit() == 100_000\n        return sum(a)",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_function_finds_the_names_that_the_benchmark_imports_for_it(name: str) -> None:
    """The site that these problems come from has them ready, and solutions are written for it."""
    code = f"class Solution:\n    def f(self, a: List[int]) -> int:\n        {NAMES[name]}"
    program = Program(code, "f", (TestCase("[3, 1, 2]", "6", "functional"),))
    found = grade_program(program, LIMITS)
    assert (found.right, found.first_fault) == (True, None)


@pytest.mark.parametrize("name", ["gcd", "add", "accumulate"])
def test_a_name_that_is_lent_to_a_program_is_no_solution(name: str) -> None:
    cases = (TestCase("4\n6", {"gcd": "2", "add": "10"}.get(name, "[]"), "functional"),)
    assert grade_program(Program("pass", name, cases), LIMITS).first_fault == "test 1: error"
    own = f"class Solution:\n    def {name}(self, a, b):\n        return {name}(a, b)"
    assert grade_program(Program(own, name, cases), LIMITS).right is (name != "accumulate")


def test_names_are_lent_to_functions_only() -> None:
    program = Program("print(gcd(4, 6))", None, (TestCase("", "2", "stdin"),))
    assert grade_program(program, LIMITS).first_fault == "test 1: error"
    assert grade_program(replace(program, official=True), LIMITS).right


def test_a_program_runs_under_every_limit() -> None:
    """Beside the clock on the wall, which a busy core puts off, the time on its core has an end of its own."""
    code = "import resource as r\nfor n in ('AS', 'FSIZE', 'CPU', 'CORE', 'NOFILE'):\n"
    code += "    print(*r.getrlimit(getattr(r, 'RLIMIT_' + n)))"
    expected = [LIMITS.memory, LIMITS.files, int(LIMITS.time_s) + 2, 0, 256]
    said = "\n".join(f"{value} {value}" for value in expected)
    assert grade_program(Program(code, None, (TestCase("", said, "stdin"),)), LIMITS).first_fault is None


def packed(count: int) -> str:
    rows = [{"input": f"{n} " * 2_000, "output": "", "testtype": "stdin"} for n in range(count)]
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(rows)))).decode()


def test_programs_hold_no_tests_and_an_item_is_unpacked_once_however_many_it_has(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, family, reads = catalog.task("smoke-livecodebench"), LiveCodeBenchFamily(), []
    items = [{"question_id": f"q{n}", "public_test_cases": "[]", "private_test_cases": packed(3 + n)} for n in range(9)]
    read = pickled.read_cases
    monkeypatch.setattr(pickled, "read_cases", lambda text: reads.append(text) or read(text))
    programs = [_program(item, f"print({n})") for item in items for n in range(20)]
    assert len(reads) == 2 * len(items)
    assert {type(program.cases) for program in programs} == {pickled.PackedCases}
    assert programs[0].cases.private is items[0]["private_test_cases"]
    assert pickled._unpacked.cache_info().currsize <= 4

    reads.clear()
    answers = [(item, f"```python\nprint({n})\n```") for item in items for n in range(3)]
    family.prepare(answers, task, lambda _done, _of: None)
    assert [family.grade(item, text, task).correct for item, text in answers] == [0.0] * len(answers)
    # Each of at most five passes over the items (programs by both rules, their runs, grades) unpacks an item once.
    assert len(reads) <= 2 * len(items) * 5


def test_what_is_said_of_grading_is_about_one_run(catalog: Catalog) -> None:
    task, family = catalog.task("smoke-livecodebench"), LiveCodeBenchFamily()
    first, second = load_items(task, ROOT).items[:2]
    for item in (first, second):
        family.prepare([(item, "```python\nprint(1)\n```")], task, lambda _done, _of: None)
        program = next(iter(family._verdicts))
        family._verdicts[program] = replace(family._verdicts[program], starved=2)
        assert family.grading is not None
        assert family.grading.starved == 2
        assert family.grading.interpreter == sandbox.runs_on()
        assert {one.cases for one in family._verdicts} == {_program(item, "").cases}


def test_another_python_or_numpy_is_another_scorer(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 takes programs that 3.11 refuses; scores by the two must not meet."""
    task = catalog.task("livecodebench-v6")
    here = scorer_id(task)
    assert f"Python {sys.version_info[0]}.{sys.version_info[1]}" in sandbox.runs_on()
    assert "numpy" in sandbox.runs_on()
    monkeypatch.setattr("paribus.quality.tasks.livecodebench.runs_on", lambda: "Python 3.99, numpy 2.0")
    assert scorer_id(task) != here


RESULTS = [
    # (result, expected, strict, official): Python's == beside the strict comparison of JSON
    ("[1, 2]", "[1, 2]", True, True),
    ("(1, 2)", "[1, 2]", True, True),
    ("[(1, 2)]", "[[1, 2]]", True, False),
    ("{1, 2}", "[1, 2]", False, False),
    ("{1: 2}", '{"1": 2}', True, False),
    ("{'1': [2]}", '{"1": [2]}', True, True),
    ("True", "1", False, True),
    ("[0, 1]", "[false, true]", False, True),
    ("1.0", "1", True, True),
    ("0.1 + 0.2", "0.3", True, False),
    ("10 ** 20 + 1", "100000000000000000001", True, True),
    ("10 ** 20 + 1", "100000000000000000000", False, False),
    ("None", "null", True, True),
    ("'a\\nb'", '"a\\nb"', True, True),
    ("__import__('numpy').int64(3)", "3", True, True),
    ("__import__('numpy').array([3, 4])", "[3, 4]", True, False),
    ("float('nan')", "0", False, False),
    ("iter([1])", "[1]", False, False),
]


@pytest.mark.parametrize(("result", "expected", "strict", "official"), RESULTS)
def test_results_are_compared_by_both_rules(result: str, expected: str, strict: bool, official: bool) -> None:
    program = Program(f"def f():\n    return {result}", "f", (TestCase("", expected, "functional"),))
    found = grade_program(program, LIMITS)
    # What the strict rule passes is not run again: its run says what the other rule makes of it.
    assert (found.right, found.officially_right) == (strict, strict and official)
    assert grade_program(replace(program, official=True), LIMITS).officially_right is official


OUTPUTS = [
    ("1.50 2", "1.5 2", True, True),
    ("YES 1.0", "YES 1", True, False),
    ("a  b", "a b", True, False),
    ("inf", "Infinity", False, True),
    ("nan", "NaN", False, False),
    ("sNaN 1", "sNaN  1", True, False),
    ("1 \n 2\n\n", "1\n2", True, True),
    ("1\n\n2", "1\n2", False, False),
    ("7", "8", False, False),
]


@pytest.mark.parametrize(("output", "expected", "strict", "official"), OUTPUTS)
def test_lines_are_compared_by_both_rules(output: str, expected: str, strict: bool, official: bool) -> None:
    case = TestCase("", expected, "stdin")
    assert (matches(case, output), officially_matches(case, output)) == (strict, official)


def test_the_official_rule_looks_at_no_exit_status_and_has_more_memory(catalog: Catalog) -> None:
    cases = (TestCase("", "7", "stdin"),)
    for end in ("exit(3)", "raise SystemExit('no')"):
        verdicts = [grade_program(Program(f"print(7)\n{end}", None, cases, official=o), LIMITS) for o in (False, True)]
        assert [verdict.right for verdict in verdicts] == [False, True]
    task = catalog.task("smoke-livecodebench")
    assert (limits_of(task).memory, limits_of(task, official=True).memory) == (1 << 30, 4 << 30)
    hungry = Program("x = bytearray(1200 << 20)\nprint(7)", None, cases)
    assert grade_program(hungry, limits_of(task)).first_fault == "test 1: memory"
    assert grade_program(replace(hungry, official=True), limits_of(task, official=True)).right


@pytest.mark.parametrize("down", ["before it begins", "in its first run"])
def test_a_sandbox_that_goes_down_by_itself_is_no_wrong_answer(monkeypatch: pytest.MonkeyPatch, down: str) -> None:
    made: list[Box] = []

    @contextmanager
    def failing(limits: Limits) -> Iterator[Box]:
        with sandbox.opened(limits) as box:
            made.append(box)
            if len(made) == 1 and down == "before it begins":
                box._process.kill()
                box._process.wait()
            elif len(made) == 1:
                monkeypatch.setattr(box, "_receive", lambda *_: (_ for _ in ()).throw(EOFError))
            yield box

    monkeypatch.setattr(grader, "opened", failing)
    assert grade_program(Program(READERS["input"], None, SUMS), LIMITS).first_fault is None
    assert len(made) == 2
    made[:] = [made[0]]
    assert grade_program(Program(WRONG["kill the runner"][0], None, SUMS), LIMITS).first_fault == "test 1: lost"
    assert len(made) == 3


def test_a_sandbox_that_another_thread_takes_meanwhile_is_no_fault() -> None:
    class Taken(list[object]):
        """Looks as if one were free, and none is when it is taken."""

        def __len__(self) -> int:
            return 1

        def pop(self, *_: object) -> object:
            raise IndexError

    benches = Benches(LIMITS)
    benches._free = Taken()
    with benches.box() as box:
        assert box.fresh


def test_many_programs_keep_their_order() -> None:
    programs = [Program(f"print({n % 3})", None, (TestCase("", "1", "stdin"),)) for n in range(9)]
    assert [verdict.right for verdict in grade_programs(programs, LIMITS)] == [n % 3 == 1 for n in range(9)]


def test_a_program_without_tests_is_not_right() -> None:
    assert not grade_program(Program("print(1)", None, ()), LIMITS).right


def solutions(catalog: Catalog, name: str) -> list[tuple[str, float, float]]:
    """(item, grade of its reference solution, grade of a solution that prints nothing) of every item."""
    task, family = catalog.task(name), LiveCodeBenchFamily()
    items = load_items(task, catalog.root).items
    right = [f"```python\n{item['reference_solution']}\n```" for item in items]
    empty = ["```python\nclass Solution: pass\n```"] * len(items)
    family.prepare([*zip(items, right, strict=True), *zip(items, empty, strict=True)], task, lambda done, of: None)
    return [
        (item["question_id"], family.grade(item, r, task).correct, family.grade(item, e, task).correct)
        for item, r, e in zip(items, right, empty, strict=True)
    ]


BEHIND = ["input = 3\noutput = 6\n", "input: 3\noutput: 6\n", "open = [1]\nclosed = []\n"]
BEHIND_A_CLASS = ["import json\nprint(json.dumps(Solution().f(3)))\n", "def test():\n    print(Solution())\ntest()\n"]


def test_an_example_behind_a_solution_takes_nothing_from_it(catalog: Catalog) -> None:
    task, family = catalog.task("smoke-livecodebench"), LiveCodeBenchFamily()
    items = load_items(task, catalog.root).items
    program = next(item for item in items if not item["starter_code"])
    method = next(item for item in items if item["starter_code"])
    pairs = [(program, tail) for tail in BEHIND] + [(method, tail) for tail in BEHIND + BEHIND_A_CLASS]
    answers = [(item, f"```python\n{item['reference_solution']}\n```\nSo:\n```\n{tail}```\n") for item, tail in pairs]
    family.prepare(answers, task, lambda _done, _of: None)
    assert [family.grade(item, text, task).correct for item, text in answers] == [1.0] * len(answers)


def test_every_shipped_reference_solution_passes(catalog: Catalog) -> None:
    found = solutions(catalog, "smoke-livecodebench")
    assert len(found) >= 4
    assert [(r, e) for _, r, e in found] == [(1.0, 0.0)] * len(found)


def test_reference_solutions_of_real_items_pass(catalog: Catalog, local_data: Path) -> None:
    rows = [json.loads(line) for line in (local_data / "lcb" / "lcb_sample6.jsonl").read_text().splitlines()]
    found = solutions(catalog, "livecodebench-v6")
    assert sorted(item for item, _, _ in found) == sorted(row["question_id"] for row in rows)
    assert [(r, e) for _, r, e in found] == [(1.0, 0.0)] * len(found)
