"""What the quality harness costs: its wall clock beside that of a perfect closed loop over the same answers.

    .venv/bin/python benchmarks/quality_overhead.py [--at-once 16] [--seconds 5] [--rounds 8] [--tokens 400] [--even]

The scripted endpoint of the tests, in a process of its own, answers token by token, in times between a half and three
halves of the mean (the same ones each time; `--even`: all alike, the worst case, because all of them end at once and
are read, journaled and followed up at once). A perfect loop asks for the next answer, in the same order, the moment
one has ended. What `generate` (lm-eval, our client, the synced journal) takes above that is overhead:

- against the answers as they were served, by the endpoint's own clock: what the harness costs. The target is under 3%
  at 16 requests.
- against the script: with what the endpoint itself was late, which on two cores is next to the harness's fault.

Slots that have nothing left to ask at the end, while the last answers come, are idle in the perfect loop too: the
shape of the work and no overhead; their share stands beside it. Loading lm-eval is measured apart: it is paid before
a server is started.
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from paribus.catalog import Catalog
from paribus.quality.asking import Asking
from paribus.quality.data import load_items
from paribus.quality.journal import read_journal
from paribus.quality.run import Evaluation, generate, prepare
from scripted import DONE, Emission, Script, Step, content, finish, start_server, usage

ROOT = Path(__file__).resolve().parents[1]
MODEL = "m"


def answer(tokens: int, seconds: float) -> Script:
    """An answer of so many one-token pieces, evenly over the time."""
    pieces = [Step(1000 * seconds * (n + 1) / tokens, content("word ")) for n in range(tokens)]
    return Script((*pieces, Step(1000 * seconds, finish()), Step(1000 * seconds, usage(tokens) + DONE)))


def perfect(seconds: Sequence[float], at_once: int) -> float:
    """When the last answer ends in a closed loop without gaps: the next one starts when the first slot is free."""
    free = [0.0] * at_once
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def gaps(served: Sequence[Emission], at_once: int) -> list[float]:
    """Seconds from an answer's last byte until the next request was there, for every request but the first ones."""
    began = sorted(each.got_ns for each in served)
    ended = sorted(each.writes[-1][1] for each in served)
    return [(start - end) / 1e9 for start, end in zip(began[at_once:], ended, strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="how long the server takes for an answer, on average"
    )
    parser.add_argument("--rounds", type=int, default=8, help="answers for each of the slots")
    parser.add_argument("--tokens", type=int, default=400, help="of an answer, on average")
    parser.add_argument("--even", action="store_true", help="all answers take the same time")
    options = parser.parse_args()
    catalog = Catalog(ROOT)
    task = catalog.task("smoke-mmlu-pro")
    items = load_items(task, ROOT)
    repeats = -(-options.at_once * options.rounds // len(items.items))
    items = replace(items, items=items.items[: options.at_once * options.rounds // repeats])
    asked = len(items.items) * repeats
    draw = random.Random(7)
    shares = [1.0 if options.even else draw.uniform(0.5, 1.5) for _ in range(asked)]
    began = time.monotonic()
    prepare(task, ROOT)
    loading = time.monotonic() - began
    with start_server() as server, tempfile.TemporaryDirectory(prefix="paribus-overhead-") as folder:
        scripts = [answer(max(1, round(options.tokens * share)), options.seconds * share) for share in shares]
        server.register(MODEL, *scripts)
        evaluation = Evaluation(task, items, repeats, 4096, None, None, MODEL, None, False)
        asking = Asking(server.endpoint(MODEL), {"temperature": 0.2}, 4096, options.at_once)
        began_ns, cpu = time.monotonic_ns(), time.process_time()
        generate(evaluation, asking, ROOT, Path(folder))
        ended_ns, cpu = time.monotonic_ns(), time.process_time() - cpu
        _, entries = read_journal(Path(folder) / "journal.jsonl")
        served = server.log(MODEL)
    assert len(entries) == len(served) == asked
    assert not any(entry.error for entry in entries.values())
    wall = (ended_ns - began_ns) / 1e9
    took = [(each.writes[-1][1] - each.got_ns) / 1e9 for each in served]
    script, best = (perfect(each, options.at_once) for each in ([options.seconds * share for share in shares], took))
    between = gaps(served, options.at_once)
    before = (min(each.got_ns for each in served) - began_ns) / 1e9
    after = (ended_ns - max(each.writes[-1][1] for each in served)) / 1e9
    print(
        f"{asked} answers of {options.tokens} tokens on average, {options.at_once} at once, on {os.cpu_count()} cores"
    )
    print(f"loading the harness {loading:.1f} s, once, before the server starts")
    print(f"generation {wall:.2f} s (CPU {cpu:.2f} s)")
    print(f"  a perfect loop over the answers as served {best:.2f} s: overhead {100 * (wall / best - 1):.2f}%")
    print(f"  a perfect loop over the script {script:.2f} s: {100 * (wall / script - 1):.2f}%, the endpoint's included")
    print(f"  before the first request {before:.2f} s, after the last answer {after:.2f} s, once each")
    p50, p99 = (1000 * each for each in (statistics.median(between), statistics.quantiles(between, n=100)[98]))
    print(f"  from an answer's end to the next request {p50:.1f} ms (median), {p99:.1f} ms (99%)")
    idle = 1 - sum(took) / (best * options.at_once)
    print(f"  idle at the tail {100 * idle:.1f}% of the slots' time, in the perfect loop too: no overhead")


if __name__ == "__main__":
    main()
