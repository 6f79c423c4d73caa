"""The load generators that benchmarks/truth.py holds against the truth: how each is called, and what it then says.

Each runs as a command of its own, as a person would call it. Peers live in environments beside each other in one
folder (`--peers DIR`): DIR/aiperf, DIR/guidellm, DIR/vllm. One that isn't there is reported as not installed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
SLOWEST_S = 600


@dataclass(frozen=True)
class Ask:
    """One call: a server, the model's name (its script), how many requests, how many at once."""

    url: str
    model: str
    requests: int
    at_once: int
    prompts: Path
    """JSON lines with `id`, `prompt` and `text` (the same words)."""
    tokenizer: Path


@dataclass(frozen=True)
class Answer:
    """What a client says of one answered request; None for what it doesn't say."""

    ttft_ms: float | None = None
    e2e_ms: float | None = None
    tokens: float | None = None
    rate: float | None = None
    """Tokens a second after the first."""
    number: int | None = None
    """The answer's number at the server, for a client whose report says which answer was which."""


@dataclass(frozen=True)
class Report:
    """What a client says, and what it cost: CPU seconds and peak memory of its whole process tree."""

    answers: list[Answer] = field(default_factory=list)
    failed: int = 0
    flags: frozenset[str] = frozenset()
    cpu_s: float = 0.0
    rss_mb: float = 0.0
    wall_s: float = 0.0
    fault: str = ""
    cpu_so_far: tuple[tuple[float, float], ...] = ()
    """The tree's CPU seconds, read ten times a second: (this machine's monotonic clock in seconds, CPU seconds)."""

    def cpu_between(self, begin_s: float, end_s: float) -> float:
        """CPU seconds between two moments, by straight lines between the readings."""
        return self._cpu_at(end_s) - self._cpu_at(begin_s)

    def _cpu_at(self, moment_s: float) -> float:
        at = bisect_left(self.cpu_so_far, (moment_s, 0.0))
        if at in (0, len(self.cpu_so_far)):
            return self.cpu_so_far[min(at, len(self.cpu_so_far) - 1)][1] if self.cpu_so_far else float("nan")
        (t0, c0), (t1, c1) = self.cpu_so_far[at - 1 : at + 1]
        return c0 + (c1 - c0) * (moment_s - t0) / (t1 - t0)


class Contestant:
    """One load generator."""

    name = ""
    program = ""

    def there(self, peers: Path | None) -> bool:
        return peers is not None and (peers / self.program).exists()

    def command(self, ask: Ask, folder: Path, peers: Path | None) -> list[str]:
        raise NotImplementedError

    def read(self, folder: Path) -> Report:
        raise NotImplementedError

    def run(self, ask: Ask, folder: Path, peers: Path | None) -> Report:
        """Call it; never raises for what it does."""
        folder.mkdir(parents=True)
        cpu, rss, wall, rc, so_far = timed(self.command(ask, folder, peers), folder)
        try:
            told = self.read(folder)
        except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
            told = Report(fault=f"exit {rc}, no report ({type(error).__name__})")
        return Report(told.answers, told.failed, told.flags, cpu, rss, wall, told.fault, so_far)


def environment() -> dict[str, str]:
    """What every client runs in: Python may keep what it has compiled, in a folder beside nobody's packages.

    Some are installed compiled, some not, and where Python must not write, it compiles a whole program at every start.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled = {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "paribus-truth-compiled")}
    return kept | compiled | {"HF_HUB_DISABLE_TELEMETRY": "1"}


def timed(command: list[str], folder: Path) -> tuple[float, float, float, int, tuple[tuple[float, float], ...]]:
    """CPU seconds (of everything it waited for), peak memory of the tree in MB, wall seconds, exit code, and CPU
    seconds so far at moments in between."""
    began = time.monotonic()
    so_far = [(began, 0.0)]
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
            env=environment(), start_new_session=True,
        )  # fmt: skip
        peak = 0.0
        tree = psutil.Process(process.pid)
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            memory, cpu = now_of(tree)
            peak = max(peak, memory)
            so_far.append((time.monotonic(), max(cpu, so_far[-1][1])))  # a process that ends takes its seconds along
            if time.monotonic() - began > SLOWEST_S:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.1)
        process.returncode = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what it may have left running
    cpu = used.ru_utime + used.ru_stime
    return cpu, peak, time.monotonic() - began, process.returncode, (*so_far, (time.monotonic(), cpu))


def now_of(tree: psutil.Process) -> tuple[float, float]:
    """Resident memory (MB) and CPU seconds of a process and all below it, those it has waited for included."""
    memory, cpu = 0, 0.0
    try:
        for process in [tree, *tree.children(recursive=True)]:
            memory += process.memory_info().rss
            cpu += sum(process.cpu_times()[:4])
    except psutil.Error:
        pass
    return memory / 1e6, cpu


class Ours(Contestant):
    """`paribus speed`."""

    name = "Paribus"

    def there(self, peers: Path | None) -> bool:
        return True

    def command(self, ask: Ask, folder: Path, peers: Path | None) -> list[str]:
        return [
            str(Path(sys.executable).with_name("paribus")), "speed", "--base-url", f"{ask.url}/v1", "--model",
            ask.model, "--out", str(folder / "out"), "--prompts", str(own_prompts(ask, folder)), "--requests",
            str(ask.requests), "--concurrency", str(ask.at_once), "--max-tokens", "100000", "--warmup", "0",
            "--tokenizer", str(ask.tokenizer), "--json",
        ]  # fmt: skip

    def read(self, folder: Path) -> Report:
        from paribus.speed.rows import read_rows
        from paribus.wire import read_outcomes

        numbers = {each.index: number_of(each.body) for each in read_outcomes(folder / "out" / "requests.parquet")}
        summary = json.loads((folder / "out" / "summary.json").read_bytes())
        answers = [
            Answer(
                row.ttft_ns / 1e6,
                row.e2e_ns / 1e6,
                row.tokens,
                row.decode_tokens / row.decode_ns * 1e9 if row.decode_ns and row.decode_tokens is not None else None,
                numbers[row.index],
            )
            for row in read_rows(folder / "out" / "requests-lite.parquet")
            if row.ok and row.ttft_ns is not None and row.e2e_ns is not None
        ]
        flags = frozenset(flag["id"] for flag in summary["flags"])
        return Report(answers, summary["requests"]["failed"], flags)


def number_of(body: bytes) -> int | None:
    """The number that the paced server gave to an answer: in the `id` of its events."""
    found = re.search(rb'"id":"c(\d+)"', body)
    return int(found[1]) if found else None


def own_prompts(ask: Ask, folder: Path) -> Path:
    """The prompts with the keys that ours knows."""
    rows = [json.loads(line) for line in ask.prompts.read_text().splitlines()]
    path = folder / "prompts.jsonl"
    path.write_text("".join(json.dumps({"id": row["id"], "prompt": row["prompt"]}) + "\n" for row in rows))
    return path


class Plain(Contestant):
    """A client of a few lines, to see what more is worth. It is given no trap."""

    script = ""

    def there(self, peers: Path | None) -> bool:
        return True

    def command(self, ask: Ask, folder: Path, peers: Path | None) -> list[str]:
        script = str(HERE / self.script)
        return [sys.executable, script, ask.url, ask.model, str(ask.requests), str(ask.at_once), "told.json"]

    def read(self, folder: Path) -> Report:
        told = json.loads((folder / "told.json").read_bytes())
        return Report([Answer(**row) for row in told["answers"]], told["failed"])


class Lines(Plain):
    """Reads lines, as most load generators do: see `benchmarks/line_client.py`."""

    name = "a plain line reader"
    script = "line_client.py"


class Bare(Plain):
    """Keeps bytes and times and does nothing else: see `benchmarks/bare_client.py`."""

    name = "a bare reader"
    script = "bare_client.py"


class AIPerf(Contestant):
    """NVIDIA's AIPerf."""

    name = "AIPerf"
    program = "aiperf/bin/aiperf"

    def command(self, ask: Ask, folder: Path, peers: Path | None) -> list[str]:
        assert peers is not None
        return [
            str(peers / self.program), "profile", "-m", ask.model, "--url", ask.url, "--endpoint-type", "chat",
            "--streaming", "--concurrency", str(ask.at_once), "--request-count", str(ask.requests), "--tokenizer",
            str(ask.tokenizer), "--input-file", str(ask.prompts), "--custom-dataset-type", "single_turn",
            "--output-artifact-dir", "report", "--ui", "none",
        ]  # fmt: skip

    def read(self, folder: Path) -> Report:
        answers, failed = [], 0
        for line in (folder / "report" / "profile_export.jsonl").read_text().splitlines():
            row = json.loads(line)
            if row.get("error"):
                failed += 1
                continue
            answers.append(
                Answer(
                    value(row["metrics"], "time_to_first_token"),
                    value(row["metrics"], "request_latency"),
                    value(row["metrics"], "output_sequence_length"),
                    value(row["metrics"], "output_token_throughput_per_user"),
                )
            )
        return Report(answers, failed)


def value(metrics: Mapping[str, Any], name: str) -> float | None:
    found = metrics.get(name)
    return float(found["value"]) if found and found.get("value") is not None else None


class GuideLLM(Contestant):
    """GuideLLM, of the vLLM project."""

    name = "GuideLLM"
    program = "guidellm/bin/guidellm"

    def command(self, ask: Ask, folder: Path, peers: Path | None) -> list[str]:
        assert peers is not None
        return [
            str(peers / self.program), "run", "--backend", f"kind=openai_http,target={ask.url},model={ask.model}",
            "--profile", f"kind=concurrent,streams={ask.at_once}", "--constraint",
            f"kind=max_requests,count={ask.requests}", "--data", f"kind=json_file,path={ask.prompts}", "--output",
            "kind=json,path=report.json", "--disable-console",
        ]  # fmt: skip

    def read(self, folder: Path) -> Report:
        (benchmark,) = json.loads((folder / "report.json").read_bytes())["benchmarks"]
        answers = [
            Answer(
                row["time_to_first_token_ms"],
                row["request_latency"] * 1000,
                row["output_tokens"],
                1000 / row["inter_token_latency_ms"] if row.get("inter_token_latency_ms") else None,
            )
            for row in benchmark["requests"]["successful"]
        ]
        return Report(answers, len(benchmark["requests"]["errored"]))


VLLM_BENCH = """
from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = FlexibleArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""
"""What `vllm bench serve` does. The command itself wants a package named `vllm`, which builds for CPUs lack."""


class VllmBench(Contestant):
    """`vllm bench serve`, from an environment that has vLLM (tried with 0.32.0, its build for CPUs)."""

    name = "vllm bench serve"
    program = "vllm/bin/vllm"

    def command(self, ask: Ask, folder: Path, peers: Path | None) -> list[str]:
        assert peers is not None
        return [
            str(peers / "vllm" / "bin" / "python"), "-c", VLLM_BENCH, "--backend", "openai-chat", "--base-url", ask.url,
            "--endpoint", "/v1/chat/completions", "--model", ask.model, "--tokenizer", str(ask.tokenizer),
            "--dataset-name", "custom", "--dataset-path", str(ask.prompts), "--custom-output-len", "100000",
            "--skip-chat-template", "--disable-shuffle", "--disable-tqdm", "--num-prompts", str(ask.requests),
            "--max-concurrency", str(ask.at_once), "--save-result", "--save-detailed", "--result-dir", ".",
            "--result-filename", "report.json",
        ]  # fmt: skip

    def read(self, folder: Path) -> Report:
        told = json.loads((folder / "report.json").read_bytes())
        answers = []
        for first, gaps, tokens, error in zip(
            told["ttfts"], told["itls"], told["output_lens"], told["errors"], strict=True
        ):
            if not error:
                rest = sum(gaps)
                rate = (tokens - 1) / rest if rest > 0 and tokens > 1 else None
                answers.append(Answer(1000 * first, 1000 * (first + rest), tokens, rate))
        return Report(answers, sum(bool(error) for error in told["errors"]))


CONTESTANTS: tuple[Contestant, ...] = (Ours(), Bare(), Lines(), AIPerf(), GuideLLM(), VllmBench())
