"""What the quality harness costs: its wall clock beside the time in which a server could have answered at best.

    .venv/bin/python benchmarks/quality_overhead.py [--at-once 16] [--seconds 5] [--rounds 10] [--tokens 400]

The scripted endpoint of the tests, in its own process, answers every request in the same time, token by token. With N
requests at once and R rounds, no harness can be done before R x seconds; what `generate` (lm-eval, our client, the
journal on disk, synced for every answer) takes above that is overhead. Loading lm-eval is measured apart: it is paid
before a server is started. Read the ratio; the target is under 3% at 16 requests.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from paribus.catalog import Catalog
from paribus.quality.asking import Asking
from paribus.quality.data import load_items
from paribus.quality.journal import read_journal
from paribus.quality.run import Evaluation, generate, prepare
from scripted import DONE, Script, Step, content, finish, start_server, usage

ROOT = Path(__file__).resolve().parents[1]


def answer(tokens: int, seconds: float) -> Script:
    """An answer of so many one-token pieces, evenly over the time."""
    pieces = [Step(1000 * seconds * (n + 1) / tokens, content("word ")) for n in range(tokens)]
    return Script((*pieces, Step(1000 * seconds, finish()), Step(1000 * seconds, usage(tokens) + DONE)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the server takes for an answer")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=400)
    options = parser.parse_args()
    catalog = Catalog(ROOT)
    task = catalog.task("smoke-mmlu-pro")
    items = load_items(task, ROOT)
    answers = options.at_once * options.rounds
    repeats = -(-answers // len(items.items))
    items = replace(items, items=items.items[: answers // repeats])
    asked = len(items.items) * repeats
    began = time.monotonic()
    prepare(task, ROOT)
    loading = time.monotonic() - began
    with start_server() as server, tempfile.TemporaryDirectory(prefix="paribus-overhead-") as folder:
        server.register("m", answer(options.tokens, options.seconds))
        evaluation = Evaluation(task, items, repeats, 4096, None, None, "m", None, False)
        asking = Asking(server.endpoint("m"), {"temperature": 0.2}, 4096, options.at_once)
        began, cpu = time.monotonic(), time.process_time()
        generate(evaluation, asking, ROOT, Path(folder))
        wall, cpu = time.monotonic() - began, time.process_time() - cpu
        _, entries = read_journal(Path(folder) / "journal.jsonl")
    assert len(entries) == asked
    assert not any(entry.error for entry in entries.values())
    rounds = -(-asked // options.at_once)
    best = rounds * options.seconds
    took = statistics.fmean((entry.e2e_ns or 0) / 1e9 for entry in entries.values())
    late = rounds * (took - options.seconds)
    print(f"{asked} answers of {options.tokens} tokens, {options.at_once} at once, on {os.cpu_count()} cores")
    print(f"loading the harness {loading:.1f} s, once, before the server starts")
    print(f"generation {wall:.2f} s, at best {best:.2f} s: overhead {100 * (wall / best - 1):.2f}% (CPU {cpu:.2f} s)")
    print(f"of which {late:.2f} s in answers that came later than scripted, {wall - best - late:.2f} s beside them")


if __name__ == "__main__":
    main()
