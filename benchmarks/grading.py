"""Grading programs: ours, in the sandbox, beside LiveCodeBench's own runner, which has none. Read the ratio.

    PARIBUS_DATA=... .venv/bin/python benchmarks/grading.py [--solutions 100] [--rounds 3] [--upstream VENV]

The six sample problems below `PARIBUS_DATA/lcb`, a hundred different programs each (the reference solution, some with a
wrong answer, some that crash), on the cores that this process may use, two at most. Upstream is `nvidia-livecodebench`
26.3 from PyPI, put without its other dependencies into a folder that is removed afterwards (or taken from VENV). Both
take turns; printed are the seconds of each turn, the ratio of the medians, and in how many verdicts they agree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from paribus.catalog import Catalog
from paribus.quality.data import Item
from paribus.quality.tasks.grader import Program, grade_programs
from paribus.quality.tasks.livecodebench import _program, limits_of

ROOT = Path(__file__).resolve().parents[1]
UPSTREAM = "nvidia-livecodebench==26.3"

RUNNER = """
import json, sys, time
asked = json.load(sys.stdin)
from livecodebench.evaluation.compute_code_generation_metrics import codegen_metrics
began = time.monotonic()
_, found, _ = codegen_metrics(asked["samples"], asked["programs"], k_list=[1], num_process_evaluate=asked["cores"])
seconds = time.monotonic() - began
right = [[all(r is True for r in one) for one in found[n]] for n in range(len(asked["samples"]))]
print(json.dumps({"seconds": seconds, "right": right}))
"""


def variants(item: Item, count: int) -> list[str]:
    """Different programs for one problem: of ten, seven are right, two answer wrong, one crashes."""
    code = item["reference_solution"]
    kinds = {7: f"print('no')\n{code}", 8: f"print('no')\n{code}", 9: f"raise ValueError\n{code}"}
    if item["starter_code"]:
        name = json.loads(item["metadata"])["func_name"]
        kinds |= dict.fromkeys((7, 8), f"{code}\nSolution.{name} = lambda self, *a: None\n")
    return [f"{kinds.get(n % 10, code)}\n# variant {n}\n" for n in range(count)]


def sample_of(item: Item) -> dict[str, str]:
    """A problem as upstream's runner wants it."""
    cases = _program(item, "").cases
    name = json.loads(item["metadata"] or "{}").get("func_name")
    inputs, outputs = [c.stdin for c in cases], [c.expected for c in cases]
    return {"input_output": json.dumps({"inputs": inputs, "outputs": outputs, "fn_name": name})}


def upstream_python(folder: Path) -> Path:
    """An environment with upstream's package, numpy and tqdm: all that its runner imports."""
    uv = Path(sys.executable).with_name("uv")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", folder / "venv"], check=True)
    for words in (["--no-deps", UPSTREAM], ["numpy", "tqdm"]):
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *words], check=True)
    return python


def ours(programs: list[list[Program]], catalog: Catalog) -> tuple[float, list[list[bool]]]:
    limits = limits_of(catalog.task("livecodebench-v6"))  # measures this machine, once, before the clock runs
    began = time.monotonic()
    verdicts = iter(grade_programs([program for each in programs for program in each], limits))
    seconds = time.monotonic() - began
    return seconds, [[next(verdicts).right for _ in each] for each in programs]


def theirs(python: Path, asked: dict[str, object]) -> tuple[float, list[list[bool]]]:
    done = subprocess.run(
        [python, "-c", RUNNER], input=json.dumps(asked), capture_output=True, text=True, check=True, cwd="/"
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], answer["right"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--solutions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--upstream", type=Path, help="a virtual environment that holds nvidia-livecodebench")
    options = parser.parse_args()
    data = os.environ.get("PARIBUS_DATA")
    if not data:
        print("Not run: the sample problems lie below PARIBUS_DATA, which is not set.")
        return
    items = [json.loads(line) for line in (Path(data) / "lcb" / "lcb_sample6.jsonl").read_text().splitlines()]
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))
    codes = [variants(item, options.solutions) for item in items]
    programs = [[_program(item, code) for code in each] for item, each in zip(items, codes, strict=True)]
    asked = {"samples": [sample_of(i) for i in items], "programs": codes, "cores": len(os.sched_getaffinity(0))}
    with tempfile.TemporaryDirectory(prefix="paribus-upstream-") as folder:
        python = options.upstream / "bin" / "python" if options.upstream else upstream_python(Path(folder))
        times: dict[str, list[float]] = {"ours": [], "upstream": []}
        for turn in range(options.rounds):
            pair = [("ours", lambda: ours(programs, Catalog(ROOT))), ("upstream", lambda: theirs(python, asked))]
            found = {name: run() for name, run in (pair if turn % 2 == 0 else reversed(pair))}
            for name, (seconds, _) in found.items():
                times[name].append(seconds)
            mine, other = ([right for each in found[name][1] for right in each] for name in ("ours", "upstream"))
            same = sum(a == b for a, b in zip(mine, other, strict=True))
            seconds = ", ".join(f"{name} {found[name][0]:.1f} s" for name in ("ours", "upstream"))
            print(f"{seconds}; agree on {same} of {len(mine)}")
    ratio = statistics.median(times["ours"]) / statistics.median(times["upstream"])
    print(
        f"{len(items)} problems x {options.solutions} programs on {asked['cores']} cores, sandbox included: "
        f"{ratio:.2f} times upstream's seconds"
    )


if __name__ == "__main__":
    main()
