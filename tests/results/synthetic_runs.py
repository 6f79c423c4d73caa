"""Synthetic runs, written by the writers that real ones are written by: outcomes, rows, summaries, manifests.

A stand-in engine streams one word a piece at a steady pace; each decoder has its own pace.
"""

import heapq
import json
import shutil
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from paribus.catalog import Catalog, SetPrompt
from paribus.catalog.configuration import Configuration
from paribus.catalog.declare import Place, declare_scenario
from paribus.conditions import RunPath
from paribus.engines.base import StartRecord
from paribus.engines.starts import Measured, StartFolder, manifest_of
from paribus.results.run import RunFolder
from paribus.results.seal import seal
from paribus.speed.files import finish
from paribus.speed.flags import Facts
from paribus.speed.load import WindowPlan, steady_window
from paribus.speed.measure import Load
from paribus.speed.metrics.tokens import Tokenizer
from paribus.speed.order import cycles
from paribus.speed.run import observed
from paribus.speed.summarise import Around
from paribus.wire import Outcome, Spool

ROOT = Path(__file__).parents[2]
PROMPT_SET = Catalog(ROOT).scenario("c1-short").prompts
"""The set that the scenarios name; the clone has one of that name with prompts of its own."""
STACK = "smollm2-135m--q4-1--llamacpp"
BUILD = "abcdef012345"
MS = 1_000_000
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PACE = {"plain": 12, "ngram-simple-n4-m4": 8, "ngram-map-k-n4-m4": 11}
"""Milliseconds a word, by decoder."""


def make_catalog(root: Path) -> Catalog:
    """A clone's catalog with a prompt set of its own: two prompts of each kind, length and split."""
    for name in ("systems", "tasks/speed", "tasks/scales", "tasks/quality", "hardware/cpu"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("prompts"))
    shutil.copy(ROOT / "pairs.yaml", root / "pairs.yaml")
    # Scales of their own, so that a change of the protocol's changes no test here: a fixed number, and a window.
    _rescale(root, "small", requests_16=48, race_requests_16=None)
    _rescale(root, "full", requests_16=None, window_s=3, window_completions=1, preliminary=False)
    (root / "results").mkdir()
    (root / "results" / "superseded.csv").write_text("old,new,date,reason\n")
    prompts = root / "tasks" / "speed" / "prompts"
    prompts.mkdir()
    lines = [
        json.dumps(
            {
                "id": f"{kind}-{length}-{split}-{n}",
                "kind": kind,
                "length": length,
                "split": split,
                "messages": [{"role": "user", "content": f"Say something about {kind}, number {n}."}],
            }
        )
        for kind in ("chat", "code", "maths")
        for length in ("short", "long")
        for split in ("measured", "tuning")
        for n in (1, 2)
    ]
    (prompts / f"{PROMPT_SET}.jsonl").write_text("\n".join(lines) + "\n")
    return Catalog(root)


def _rescale(root: Path, name: str, **changes: object) -> None:
    path = root / "tasks" / "scales" / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **changes}))


def answer(prompt: str, words: int, *, finish_reason: str = "stop") -> tuple[bytes, list[int]]:
    """A streamed answer of so many words, its own for each prompt; and where each piece ends in the body."""
    body, ends = b"", []
    for place in range(words):
        text = f"{prompt}: " if place == 0 else WORDS[place * 7 % 10] + f" {place} "
        event = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
        body += b"data: " + json.dumps(event).encode() + b"\n\n"
        ends.append(len(body))
    usage = {"prompt_tokens": 20, "completion_tokens": words * 2, "total_tokens": words * 2 + 20}
    for event in (
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]},
        {"choices": [], "usage": usage},
    ):
        body += b"data: " + json.dumps(event).encode() + b"\n\n"
    body += b"data: [DONE]\n\n"
    return body, ends


def outcome(index: int, prompt: SetPrompt, sent_ns: int, pace_ms: float, words: int, worker: int = 0) -> Outcome:
    """One whole exchange: first word after 50 ms, then one each `pace_ms`."""
    body, ends = answer(prompt.id, words)
    reads = [(int((50 + place * pace_ms) * MS), end) for place, end in enumerate(ends)]
    last = reads[-1][0] + MS
    reads.append((last, len(body)))
    return Outcome(
        index=index,
        prompt_id=prompt.id,
        due_ns=sent_ns,
        sent_ns=sent_ns + 10_000,
        connect_ns=0,
        ended_ns=sent_ns + 10_000 + last,
        status=200,
        error=None,
        body=body,
        reads=tuple(reads),
        content_type="text/event-stream",
        phase="measured",
        api="chat",
        worker=worker,
    )


def failed(index: int, prompt: SetPrompt, sent_ns: int, worker: int = 0) -> Outcome:
    """A request that the server refused."""
    return Outcome(
        index=index,
        prompt_id=prompt.id,
        due_ns=sent_ns,
        sent_ns=sent_ns,
        connect_ns=0,
        ended_ns=sent_ns + MS,
        status=500,
        error="http_500",
        body=b"{}",
        reads=((MS // 2, 2),),
        content_type="application/json",
        phase="measured",
        api="chat",
        worker=worker,
    )


def cut_off(whole: Outcome, now_ns: int) -> Outcome:
    """An exchange that was still under way when the load was over: what had come until then."""
    reads = tuple(read for read in whole.reads if whole.sent_ns + read[0] <= now_ns)
    body = whole.body[: reads[-1][1]] if reads else b""
    return replace(whole, error="cancelled", ended_ns=now_ns, reads=reads, body=body)


@dataclass(frozen=True)
class Clone:
    """A clone with a catalog and a results folder, in which runs can be made."""

    root: Path
    catalog: Catalog
    tokenizer: Tokenizer | None = None
    """What counts the model's tokens where runs are made; nowhere else is it at hand."""
    build: str = BUILD
    """The engine's build."""

    def configuration(self, scale: str, starts: int) -> Configuration:
        """A configuration of the cpu profile."""
        scaled = self.catalog.scale(scale)
        return Configuration(
            hardware="cpu",
            scale=scale,
            starts=starts,
            systems="*",
            measures="*",
            sampling="served",
            repeat=1,
            quality=True,
            results="results" if scaled.committed else "build/demo-results",
        )

    def sealed_run(self, decoder: str, **given: Any) -> RunFolder:
        """One run as `run` makes it, sealed."""
        run = self.run(decoder, **given)
        seal(run, self.catalog)
        return run

    def run(
        self,
        decoder: str = "plain",
        scenario: str = "c1-long",
        *,
        scale: str = "small",
        starts: int = 1,
        machine: str = "m-test",
        n: int = 1,
        words: int = 130,
        pace: float | None = None,
        drop: int | None = None,
        card: str = "Test CPU",
        day: int = 1,
    ) -> RunFolder:
        """One unsealed run. `drop`: index of a request that fails."""
        catalog, config = self.catalog, self.configuration(scale, starts)
        system = catalog.system(f"{STACK}--{decoder}")
        wanted = declare_scenario(catalog, config, catalog.scenario(scenario), starts)
        planned = wanted.planned(system, self.build, system.use.launch, Place("cpu", machine, n))
        for k in range(1, starts + 1):
            relative = f"{planned.run}/start-{k}"
            folder = StartFolder(self.root, self.root / config.results / relative, relative, "speed", k)
            folder.prepare()
            step = (pace or PACE[decoder]) * (1 + 0.01 * (k - 1))
            record = self._measure(folder, scenario, scale, step, words, drop)
            seen = {"card": card, "cpu": card, "cpu_count": 2, "memory_gb": 8.0, "engine_version": "1.0", "os": "Linux"}
            stamp = f"2026-12-{day:02}T10:0{k}:00Z"
            measured = Measured(planned, record, seen, {"engine": "1.0"}, stamp, stamp, 1.5, 10.0)
            folder.seal(manifest_of(folder, measured))
        return RunFolder(self.root / config.results, RunPath.parse(planned.run))

    def _measure(
        self, folder: StartFolder, scenario: str, scale: str, step: float, words: int, drop: int | None
    ) -> StartRecord:
        found, scaled = self.catalog.scenario(scenario), self.catalog.scale(scale)
        prompts = self.catalog.scenario_prompts(found, scaled)
        count = len(prompts) if found.requests == 1 else scaled.requests_of(found)
        plan = WindowPlan(found.requests, scaled.window_s, scaled.window_completions)
        endless = found.requests > 1 and scaled.requests_of(found) is None
        outcomes: list[Outcome] = []
        busy: list[tuple[int, int, Outcome | None]] = [(0, worker, None) for worker in range(found.requests)]
        turn = islice(cycles(prompts, folder.number), None if endless else count)
        while busy:
            now, worker, ended = heapq.heappop(busy)
            if ended is not None:
                outcomes.append(ended)
                plan.saw(ended)
            phase = plan.phase(now) if endless else "measured"
            prompt = next(turn, None) if phase else None
            if endless and plan.over:
                # What is still under way when the load is over is cut off; it only loaded the engine.
                outcomes += [cut_off(o, now) for _, _, o in busy if o is not None]
                break
            if prompt is None or phase is None:
                continue
            index = len(outcomes) + sum(o is not None for _, _, o in busy)
            # Each prompt has its own pace, so that there is something to resample.
            pace = step * (1 + 0.002 * (sum(map(ord, prompt.id)) % 30)) * (1 if found.requests == 1 else 4)
            one = (
                failed(index, prompt, now, worker)
                if index == drop
                else outcome(index, prompt, now, pace, words + index % 3, worker)
            )
            one = replace(one, phase=phase)
            heapq.heappush(busy, (one.ended_ns, worker, one))
        window = plan.window if endless else None
        if found.requests > 1 and not endless:
            window = steady_window([o.ended_ns for o in outcomes], found.requests)
        tokens = float(sum(2 * (words + o.index % 3) for o in outcomes if o.error is None and o.phase != "warm-up"))
        around = Around(
            concurrency=found.requests,
            window=window,
            counters={"generated_tokens": tokens},
            cpu_share=0.1,
            facts=Facts(rows=(), cpu=True, preliminary_scale=scale if scaled.preliminary else None, lag_ms_p99=0.01),
        )
        with Spool() as spool:
            for one in outcomes:
                spool.add(one)
            rows, summary = finish(folder.path, spool, prompts, around, self.tokenizer)
        load = Load(found.requests, 192, prompts, prompts, sampling={"temperature": 0.2, "top_p": 0.9})
        return StartRecord(
            counters={"generated_tokens": tokens}, observed=observed(rows, summary, load, around.counters)
        )
