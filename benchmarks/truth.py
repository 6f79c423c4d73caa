"""Who tells the truth? Load generators beside each other against endpoints whose own clock says what happened.

    .venv/bin/python benchmarks/truth.py [--peers DIR] [--write docs/truth.md] [--seconds 2] [--anyway]

Two parts. Load: a server in C (benchmarks/paced_server.c, compiled here) streams at a set pace; each client reports the
first token and the rate of each answer, and both are held against the server's log of the very same answers. Traps: the
scripted endpoint of the tests plays streams that are easily misread. Needs a C compiler and a quiet machine (it refuses
a load average over 0.5 unless told `--anyway`). `--peers DIR` holds environments: DIR/aiperf, DIR/guidellm, DIR/vllm;
make them with `python -m venv DIR/aiperf && DIR/aiperf/bin/pip install 'aiperf==0.13.*'` and so on. Compare within
one run only: the absolute numbers belong to the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from truth_clients import CONTESTANTS, Answer, Ask, Contestant, Plain, Report
from truth_traps import run_traps

from scripted import start_server
from scripted.script import WORDS

HERE = Path(__file__).resolve().parent
LOADS = ((16, 500, 5), (16, 2000, 3), (64, 1000, 3), (256, 100, 3))
"""Streams at once, pieces a second of each, answers of each stream: the first has 80,000 pieces."""
FIRST_MS = 200
PARTS = ("load", "traps")


@dataclass(frozen=True)
class Measured:
    """One client under one load: errors against the server's log, costs."""

    name: str
    load: tuple[int, int, int]
    answers: int
    ttft_p50: float
    ttft_p99: float
    ttft_mean: float
    rate_error: float
    busy: float
    report: Report
    pieces: int
    start_cpu_s: float
    load_cpu_s: float
    """CPU seconds between the first request's arrival at the server and the last answer's end, by its own log."""

    @property
    def cpu_us(self) -> float:
        """CPU microseconds a piece, beyond what the client needs for a single short answer."""
        return 1e6 * max(0.0, self.report.cpu_s - self.start_cpu_s) / self.pieces


@contextmanager
def paced(folder: Path) -> Iterator[str]:
    """The paced server, compiled and running; gives its address."""
    program = folder / "paced_server"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("this benchmark needs a C compiler")
    subprocess.run([compiler, "-O2", "-o", str(program), str(HERE / "paced_server.c")], check=True)
    process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.communicate()


def log_of(url: str, script: int) -> list[dict[str, int]]:
    """The server's log since it was last asked, of the answers of one script (by its number of pieces)."""
    with urllib.request.urlopen(f"{url}/log", timeout=30) as reply:
        rows = [json.loads(line) for line in reply.read().splitlines()]
    return [row for row in rows if row["pieces"] == script]


def first_token_errors(answers: Sequence[Answer], log: list[dict[str, int]]) -> list[float]:
    """Reported minus true time to the first token, in ms.

    By the answer's number where the client keeps it. Where its report doesn't say which of the server's answers was
    which, both sides are paired in order of size: no pairing has a smaller mean error, so that one is a lower bound.
    """
    true = {row["number"]: (row["first"] - row["got"]) / 1e6 for row in log}
    said = [(answer.number, answer.ttft_ms) for answer in answers if answer.ttft_ms is not None]
    if all(number in true for number, _ in said):
        return [ttft - true[number] for number, ttft in said if number is not None]
    return [a - b for a, b in zip(sorted(ttft for _, ttft in said), sorted(true.values()), strict=False)]


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else float("nan")


def measure(
    contestant: Contestant, url: str, load: tuple[int, int, int], plain: Ask, folder: Path, given: argparse.Namespace
) -> Measured:
    """One client under one load."""
    at_once, rate, rounds = load
    pieces = int(rate * given.seconds)
    slug = f"{type(contestant).__name__.lower()}-{at_once}x{rate}"
    small = replace(plain, url=url, model="f10-n3-i1000", requests=1, at_once=1)
    started = contestant.run(small, folder / f"{slug}-start", given.peers)
    log_of(url, pieces)
    full = replace(plain, url=url, model=f"f{FIRST_MS}-n{pieces}-i{1_000_000 // rate}", requests=rounds * at_once,
                   at_once=at_once)  # fmt: skip
    told = contestant.run(full, folder / slug, given.peers)
    log = log_of(url, pieces)
    speed = [(row["pieces"] - 1) / (row["last"] - row["first"]) * 1e9 for row in log]
    wrong = first_token_errors(told.answers, log)
    rates = [a.rate for a in told.answers if a.rate is not None]
    begin, end = min((r["got"] for r in log), default=0), max((r["end"] for r in log), default=1)
    return Measured(
        name=contestant.name,
        load=load,
        answers=len(told.answers),
        ttft_p50=quantile([abs(e) for e in wrong], 0.5),
        ttft_p99=quantile([abs(e) for e in wrong], 0.99),
        ttft_mean=mean(wrong),
        rate_error=100 * abs(mean(rates) / mean(speed) - 1) if rates and speed else float("nan"),
        busy=100 * sum(r["end"] - r["got"] for r in log) / (at_once * (end - begin)),
        report=told,
        pieces=max(1, pieces * len(log)),
        start_cpu_s=started.cpu_s,
        load_cpu_s=told.cpu_between(begin / 1e9, end / 1e9),
    )


def row(m: Measured) -> list[str]:
    if m.report.fault or not m.answers:
        return [f"{m.load[0]} × {m.load[1]:,}", m.name, m.report.fault or "nothing answered", *[""] * 8]
    return [
        f"{m.load[0]} × {m.load[1]:,}", m.name, f"{m.answers}", f"{m.ttft_p50:.2f}", f"{m.ttft_p99:.2f}",
        f"{m.ttft_mean:+.2f}", f"{m.rate_error:.2f}", f"{m.busy:.1f}", f"{m.pieces:,}",
        f"{m.report.cpu_s:.2f}", f"{m.load_cpu_s:.2f}", f"{m.cpu_us:.1f}", f"{m.report.rss_mb:.0f}",
    ]  # fmt: skip


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join([*r, *[""] * (len(head) - len(r))]) + " |" for r in rows)])


def tokenizer(folder: Path) -> Path:
    """A tokenizer in which every scripted word is one token, for clients that count by themselves."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    known = ["<|end|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *(f"Ġ{word}" for word in (*WORDS, "word"))]
    model = Tokenizer(models.WordLevel({word: i for i, word in enumerate(dict.fromkeys(known))}, unk_token="<|end|>"))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    folder.mkdir()
    model.save(str(folder / "tokenizer.json"))
    names = {f"{name}_token": "<|end|>" for name in ("eos", "bos", "pad", "unk")}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **names}))
    return folder


def prompts(path: Path) -> Path:
    texts = [f"say something about number {i}" for i in range(1024)]
    path.write_text("".join(json.dumps({"id": f"p{i}", "prompt": t, "text": t}) + "\n" for i, t in enumerate(texts)))
    return path


def put(file: Path, part: str, text: str) -> None:
    """Put one part's table between its marks; the other part keeps what it has."""
    page = file.read_text()
    begin, end = (f"<!-- truth {part}: {word} -->" for word in ("begin", "end"))
    before, _, rest = page.partition(begin)
    file.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}")


def arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="folder of environments with other load generators")
    parser.add_argument("--write", type=Path, help="put each table between its marks in this file")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each answer")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--anyway", action="store_true", help="on a busy machine too; the tables say so")
    given = parser.parse_args()
    given.peers = given.peers.resolve() if given.peers else None
    return given


def main() -> None:
    given = arguments()
    load = os.getloadavg()[0]
    if load > 0.5 and not given.anyway:
        raise SystemExit(f"the load average is {load:.1f}: wait until the machine is quiet, or say --anyway")
    there = [c for c in CONTESTANTS if c.there(given.peers)]
    absent = ", ".join(c.name for c in CONTESTANTS if c not in there)
    asked = (given.only,) if given.only else PARTS
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; load average "
        f"before: {load:.1f}. Not installed: {absent or 'none'}."
    )
    tables = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = Ask("", "", 1, 1, prompts(folder / "prompts.jsonl"), tokenizer(folder / "tokenizer"))
        if "load" in asked:
            with paced(folder) as url:
                for contestant in there:  # once for nothing: what Python compiles is kept for the next call
                    first = replace(plain, url=url, model="f10-n3-i1000", requests=1, at_once=1)
                    contestant.run(first, folder / f"first-{type(contestant).__name__.lower()}", given.peers)
                rows = []
                for each in LOADS:
                    for contestant in there:
                        rows.append(row(measure(contestant, url, each, plain, folder, given)))
                        print(" | ".join(rows[-1]), flush=True)
            head = ["streams × pieces/s", "client", "answers", "TTFT error p50 (ms)", "p99", "mean", "rate error (%)",
                    "server busy (%)", "pieces", "CPU s in all", "CPU s while the load runs", "CPU µs a piece",
                    "memory (MB)"]  # fmt: skip
            tables["load"] = table(head, rows)
        if "traps" in asked:
            timing = [c for c in there if not isinstance(c, Plain)]
            with start_server() as server:
                to_server = replace(plain, url=server.root)
                verdicts = run_traps(server, timing, to_server, folder, given.peers, lambda t: print(t, flush=True))
            tables["traps"] = table(["stream: figure", "right", *(c.name for c in timing)], verdicts)
    for part, found in tables.items():
        print(f"{machine}\n\n{found}")
        if given.write:
            put(given.write, part, f"{machine}\n\n{found}")


if __name__ == "__main__":
    main()
