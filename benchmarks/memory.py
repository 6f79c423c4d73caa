"""What a measuring process holds in memory for many long answers: resident megabytes, step by step.

    .venv/bin/python benchmarks/memory.py [requests, default 10000] [pieces of each, default 500]

The answers are made up and go through the same spool, files and summary as measured ones; prompts repeat, 168 of them.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from paribus.speed.files import traces_of
from paribus.speed.rows import write_rows
from paribus.speed.summarise import Around, summarise
from paribus.wire import Outcome, Spool, standard_tokens, write_outcomes
from scripted import DONE, content, finish, usage, words


def resident(step: str) -> None:
    """Print the process's memory now and at its peak."""
    status = Path("/proc/self/status").read_text()
    now, peak = (int(status.split(f"{name}:")[1].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    print(f"{step:<34} {now:5.0f} MB now, {peak:5.0f} MB at most so far", flush=True)


def answer(index: int, pieces: int) -> Outcome:
    """An answer of one-token pieces, 3 ms apart."""
    parts = [content(word) for word in words(pieces, index % 50)] + [finish() + usage(pieces) + DONE]
    reads = tuple((50_000_000 + i * 3_000_000, end) for i, end in enumerate(accumulate(map(len, parts))))
    sent = index * 2_000_000_000
    return Outcome(
        index, f"p{index % 168}", sent, sent, 0, sent + reads[-1][0], 200, None, b"".join(parts), reads,
        "text/event-stream", "measured", "chat", 0,
    )  # fmt: skip


def main() -> None:
    requests, pieces = (int(text) for text in (sys.argv[1:] + ["10000", "500"][len(sys.argv) - 1 :])[:2])
    resident("started")
    with Spool() as spool, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for index in range(requests):
            spool.add(answer(index, pieces))
        resident(f"{requests:,} answers have ended")
        write_outcomes(folder / "requests.parquet", spool)
        resident("raw file written")
        standard_tokens("a")
        resident("tables of the standard tokenizer")
        rows, _ = summarise(traces_of(spool, []), Around(1))
        resident("answers read, summary made")
        write_rows(folder / "requests-lite.parquet", rows)
        resident("rows written")


if __name__ == "__main__":
    main()
