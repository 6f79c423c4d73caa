"""Rows for the site's tests: a small world of runs with known numbers, written through the database's own DDL.

`demo_world` is what `make demo` leaves behind; `wide_world` adds a card, a diffusion model, many starts, missing data;
`hostile_world` is the same with names and texts that try to break out of a page.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paribus.catalog.claims import Claim
from paribus.conditions import figure_id, run_id
from paribus.results.claims import claim_rows
from paribus.results.database import write_database
from paribus.results.run import RunSummary
from paribus.results.strip import strip_line, strip_of

REPOSITORY = Path(__file__).parents[2]
KINDS = ("chat", "code", "infill", "json", "long-input", "maths", "tools")
Rows = dict[str, list[dict[str, Any]]]

HOSTILE = "</title></svg><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}\x00\x1b[31m\u202e&amp;"
"""Ends every context it may be put into: element, attribute, SVG, template, terminal, text direction."""


def clone(folder: Path) -> Path:
    """A repository's root with our catalog, templates and assets, and a second card."""
    for name in ("site", "systems", "hardware", "tasks"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("*.jsonl*"))
    shutil.copy(REPOSITORY / "pairs.yaml", folder / "pairs.yaml")
    card = folder / "hardware" / "h100-test"
    card.mkdir(exist_ok=True)
    (card / "hardware.yaml").write_text(
        "hardware: h100-test\n"
        "card: {kind: nvidia, title: NVIDIA H100 SXM 80 GB, memory_gb: 80}\n"
        "systems: none--none--none--none\n"
        "speeds: {decode_1: 100, decode_16: 1000, prompt: 5000, engine_start_s: 60}\n"
    )
    return folder


def figure(run_ids: list[str], metric: str, title: str, unit: str, value: float, **more: Any) -> dict[str, Any]:
    """A row of `figures`; the interval is 4% to either side unless given."""
    row = {
        "figure_id": figure_id(run_ids, metric),
        "run_id": run_ids[0],
        "other_run_id": run_ids[1] if len(run_ids) > 1 else None,
        "metric": metric,
        "title": title,
        "unit": unit,
        "better": "lower" if unit == "ms" else "higher",
        "value": value,
        "low": value * 0.96,
        "high": value * 1.04,
        "basis": "starts and prompts",
        "coverage": 1.0,
        "headline": False,
        "kind_low": None,
        "kind_high": None,
        "ranked": True,
        "superseded_by": None,
        "sentence": f"{title}: {value:.3g} {unit}",
        "detail": {},
    }
    return {**row, **more}


def _speed_summary(speed: float, requests: int, flags: list[dict[str, str]], length: int) -> dict[str, Any]:
    n = 14 if requests == 1 else 24
    interval = {"value": speed, "low": speed * 0.96, "high": speed * 1.04}
    none = {"value": None, "low": None, "high": None}
    times = {
        str(k): {"mean": k / speed * 1000, "p50": k / speed * 990, "share": 0.9} if k <= length else None
        for k in (1, 32, 100, 300, 800)
    }
    together = {**interval, "value": speed * 1.8} if requests > 1 else none
    return {
        "schema": 1,
        "requests": {
            "ok": n,
            "failed": 0,
            "cut": 0,
            "capped": 9,
            "unanswered": 0,
            "degenerate": 1,
            "checked": 6,
            "check_passed": 2,
        },
        "wall_s": 30.0,
        "window_s": 5.0 if requests > 1 else None,
        "concurrency_seen": requests,
        "admitted": requests,
        "tokens": {"total": 1900, "mean": length * 0.8},
        "reasoning_tokens": {"total": 0, "mean": 0},
        "standard_tokens": {"total": 1850, "mean": length * 0.78},
        "bytes": {"total": 8000, "mean": 570},
        "tokens_method": "usage",
        "ttft_ms": {"mean": 120.0, "p50": 96.4, "p99": 400.0},
        "ttfa_ms": {"mean": 120.0, "p50": 96.4, "p99": 400.0},
        "e2e_ms": {"mean": 1900.0, "p50": 1850.0, "p99": 4000.0},
        "late_ms": {"p99": 0.2},
        "connect_ms": {"p99": 0.4},
        "time_to_k_ms": times,
        "reader_wait_s": {"8": 0.0, "30": 0.2},
        "output_speed": interval,
        "output_speed_standard": interval,
        "decode_speed": {**none, "coverage": 0.5},
        "throughput": {**together, "raw_arrival": None, "whole_run": None},
        "stall_ms": {"p50": 12.0, "p99": 40.0, "max": 80.0},
        "client": {"lag_ms_p99": 0.05, "cpu_share": 0.01},
        "flags": flags,
    }


def _quality_summary(task: str, flags: list[dict[str, str]]) -> dict[str, Any]:
    empty = {
        "answers": 4,
        "prompt_tokens": None,
        "answer_tokens": 120.0,
        "tokens": 120.0,
        "reasoning_tokens": 0.0,
        "ttft_ms": 90.0,
        "answer_time_ms": 900.0,
    }
    return {
        "schema": 1,
        "task": task,
        "family": "aime",
        "scorer": "aime-integer",
        "items": 4,
        "repeats": 1,
        "answered": 4,
        "failed": 0,
        "capped": 1,
        "cap": 192,
        "by_group": {"2025": {"value": 0.25, "low": 0.01, "high": 0.8, "questions": 4}},
        "account": empty,
        "requests_at_once": 16,
        "finish_reasons": {"length": 1, "stop": 3},
        "items_hash": "0" * 64,
        "partial": True,
        "stand_in": True,
        "flags": flags,
        "scores": [
            {"name": "avg", "title": "Right answers", "value": 0.25, "low": 0.01, "high": 0.8, "headline": True}
        ],
    }


class World:
    """Rows under construction."""

    def __init__(self) -> None:
        self.rows: Rows = defaultdict(list)

    def run(
        self,
        *,
        hardware: str = "cpu",
        machine: str = "m-test",
        stack: str = "smollm2-135m--q4-1--llamacpp",
        decoder: str = "plain",
        measure: str = "c1-long",
        scale: str = "demo",
        speed: float | None = 80.0,
        starts: int = 1,
        demo: bool = True,
        n: int = 1,
        card: str | None = "Example CPU",
        kind: str = "speed",
        flags: Mapping[str, str] | None = None,
        ranked: bool = True,
        text: str = "",
        day: int = 3,
    ) -> str:
        """Add one run and what belongs to it; returns its id."""
        model, precision, engine = stack.split("--")[:3]
        system = f"{model}--{precision}--{engine}--{decoder}"
        path = f"{hardware}/{machine}/{system}/{measure}{'.' + scale if scale != 'full' else ''}/{'ab' * 6}.{n}"
        name = run_id(path)
        requests = 16 if "16" in measure or kind == "quality" else 1
        given = [
            {"id": i, "severity": s, "text": text or f"About {i}."}
            for i, s in ({"preliminary": "note"} if flags is None else flags).items()
        ]
        declared = {
            "edition": "2026.12",
            "protocol": 1,
            "hardware": hardware,
            "model": model,
            "precision": precision,
            "thinking": False,
            "engine": engine,
            "engine_build": "aabbccddeeff",
            "decoder": decoder,
            "lossy": {},
            "scenario": measure if kind != "quality" else None,
            "requests_at_once": requests,
            "scale": scale,
            "cap": 192 if measure.endswith("long") else 64,
            "prompts": text or "own-v1",
            "prompts_hash": "0123456789ab",
            "sampling_profile": "served",
            "sampling": {"temperature": 0.2, "top_p": 0.9},
            "starts": starts,
            "task": measure if kind == "quality" else None,
            "repeats": 1 if kind == "quality" else None,
            "items_hash": "0" * 64 if kind == "quality" else None,
        }
        observed = {
            "card": card,
            "cpu": card,
            "cpu_count": 2,
            "memory_gb": 8,
            "engine_version": text or "b10549",
            "os": text or "Linux",
            "power_limit_w": None,
            "cached_tokens": 0,
            "started_at": f"2026-12-{day:02}T10:00:00Z",
        }
        records = [self._start(name, k, observed, speed, requests, kind, day) for k in range(1, starts + 1)]
        length = 180 if measure.endswith("long") else 60
        summary = RunSummary.model_validate(
            {
                "schema": 1,
                "run": path,
                "run_id": name,
                "kind": kind,
                "hardware": hardware,
                "machine": machine,
                "system": system,
                "measure": measure,
                "n": n,
                "origin": "catalog",
                "declared": declared,
                "observed": observed,
                "hashes": {"answer_class": f"{model[:6]:0<12}", "conditions": "ab" * 6},
                "starts": records,
                "flags": given,
                "speed": _speed_summary(speed, requests, given, length) if kind != "quality" and speed else None,
                "quality": _quality_summary(measure, given) if kind == "quality" else None,
            }
        )
        self.rows["runs"].append(
            {
                "run_id": name,
                "run": path,
                "kind": kind,
                "hardware": hardware,
                "machine": machine,
                "system": system,
                "stack": stack,
                "model": model,
                "precision": precision,
                "engine": engine,
                "decoder": decoder,
                "think": False,
                "measure": measure,
                "scenario_or_task": measure,
                "sampling": "served",
                "scale": scale,
                "conditions": "ab" * 6,
                "answer_class": f"{model[:6]:0<12}",
                "n": n,
                "starts": starts,
                "started_at": f"2026-12-{day:02}T10:00:00Z",
                "ended_at": f"2026-12-{day:02}T10:10:00Z",
                "ranked": ranked,
                "origin": "catalog",
                "demo": demo,
                "superseded_by": None,
                "card": card,
                "contributor": text or "somebody",
                "trust": "self_reported",
                "strip": strip_line(strip_of(summary)),
                "summary": summary.model_dump(mode="json", by_alias=True),
                "declared": declared,
                "observed": observed,
            }
        )
        self.rows["flags"] += [
            {"run_id": name, "flag": f["id"], "severity": f["severity"], "text": f["text"]} for f in given
        ]
        if kind == "quality":
            self._scores(name, text)
        elif speed is not None:
            self._numbers(name, measure, speed, requests, length, text, starts)
        return name

    def _start(
        self, name: str, k: int, observed: Mapping[str, Any], speed: float | None, requests: int, kind: str, day: int
    ) -> dict[str, Any]:
        files = [
            {"name": "requests.parquet", "bytes": 123456, "sha256": "ab" * 32, "raw": True},
            {"name": "summary.json", "bytes": 4321, "sha256": "cd" * 32, "raw": False},
        ]
        summary: dict[str, Any] = {}
        if speed is not None and kind != "quality":
            summary = _speed_summary(speed * (1 + 0.01 * (k - 2)), requests, [], 180)
        when = {"started_at": f"2026-12-{day:02}T10:0{k}:00Z", "ended_at": f"2026-12-{day:02}T10:0{k}:50Z"}
        timings = {"engine_start": 1.4, "warm_up": 6.0, "measuring": 30.2, "rest": 0.8}
        self.rows["starts"].append(
            {
                "run_id": name,
                "start": k,
                **when,
                **{f"{p}_s": s for p, s in timings.items()},
                "observed": dict(observed),
                "counters": {},
                "versions": {},
                "summary": summary,
                "files": files,
            }
        )
        return {
            "start": k,
            **when,
            "sha256": "ef" * 32,
            "log": "ef" * 32,
            "observed": dict(observed),
            "versions": {},
            "timings": timings,
            "contributor": "somebody",
        }

    def _scores(self, name: str, text: str) -> None:
        for place, right in enumerate((1.0, 0.0, 0.0, 0.0)):
            self.rows["items"].append(
                {
                    "run_id": name,
                    "start": 1,
                    "item": f"q{place}",
                    "repeat": 0,
                    "correct": right,
                    "tokens": 90 + 30 * place,
                }
                | {"answer": text or "42", "status": "capped" if place == 3 else "ok"}
            )
        title = text or "Right answers"
        self.rows["scores"] += [
            {
                "run_id": name,
                "position": 1,
                "name": "avg",
                "title": title,
                "value": 0.25,
                "low": 0.01,
                "high": 0.8,
                "headline": True,
                "group": False,
            },
            {
                "run_id": name,
                "position": 2,
                "name": "2025",
                "title": "2025",
                "value": 0.25,
                "low": None,
                "high": None,
                "headline": False,
                "group": True,
            },
        ]
        self.rows["figures"].append(
            figure([name], "score_avg", title, "share", 0.25, low=0.01, high=0.8, headline=True, basis="questions")
        )

    def _numbers(
        self, name: str, measure: str, speed: float, requests: int, length: int, text: str, starts: int
    ) -> None:
        several = requests > 1
        basis = "kinds" if starts == 1 else "starts and prompts"
        add = self.rows["figures"].append
        add(
            figure(
                [name],
                "output_speed_standard",
                text or "What it writes a second",
                "tok/s",
                speed,
                headline=not several,
                basis=basis,
            )
        )
        add(figure([name], "ttft", "Time to first text", "ms", 96.4, basis=basis))
        for k in (32, 100):
            if k < length:
                add(figure([name], f"time_to_{k}", f"Time to {k} standard tokens", "ms", k / speed * 1000, basis=basis))
        if several:
            add(
                figure(
                    [name],
                    "throughput",
                    "Text of all requests a second",
                    "tok/s",
                    speed * 1.8,
                    headline=True,
                    basis="batches" if starts == 1 else "starts",
                )
            )
        for place, kind in enumerate(KINDS):
            kind_name = text or kind
            for i in range(2):
                self.rows["requests"].append(
                    {
                        "run_id": name,
                        "start": 1,
                        "index": place * 2 + i,
                        "prompt_id": f"{kind_name}-{i}",
                        "kind": kind_name,
                        "length": "long",
                        "counted": True,
                        "ok": i == 0 or place != 2,
                        "error": None,
                        "tokens": 150.0,
                        "standard_tokens": 148,
                        "ttft_ms": 90.0 + place,
                        "e2e_ms": 150 / speed * 1000 * (1 + 0.2 * place + 0.1 * i),
                    }
                )
            if not text or place == 0:
                self.rows["kinds"].append(
                    {
                        "run_id": name,
                        "kind": kind_name,
                        "ok": 2,
                        "time_to_32_ms": 32 / speed * 1000,
                        "time_to_100_ms": 100 / speed * 1000,
                        "time_to_300_ms": None,
                        "time_to_800_ms": None,
                        "output_speed": speed,
                        "standard_tokens_mean": 148.0,
                        "checked": 2,
                        "check_passed": 1,
                    }
                )

    def ratio(self, left: str, right: str, value: float, low: float | None, high: float | None, **more: Any) -> str:
        """Add a speed-up of one run over another."""
        kinds = {kind: value * (0.9 + 0.03 * i) for i, kind in enumerate(KINDS)}
        row = (
            figure(
                [left, right],
                "speedup_time_to_100",
                "Speed-up over the first 100 standard tokens",
                "x",
                value,
                low=low,
                high=high,
                basis="starts and prompts",
                headline=True,
                kind_low=min(kinds.values()),
                kind_high=max(kinds.values()),
                detail={"k": 100, "kinds": kinds, "prompts": 7},
            )
            | more
        )
        self.rows["figures"].append(row)
        return str(row["figure_id"])

    def pair(self, left: str, right: str, measure: str, *, demo: bool = True, refused: str | None = None) -> None:
        """Add a duel of the cpu pair."""
        self.rows["pairs"].append(
            {
                "pair": "smollm2-plain-speculation",
                "title": "a duel",
                "kind": "controlled",
                "demo": demo,
                "hardware": "cpu",
                "machine": "m-test",
                "measure": measure,
                "left_run_id": left,
                "right_run_id": right,
                "refused": refused,
                "notes": ["each side has one start"],
            }
        )

    def race(self, scenario: str, candidates: list[tuple[str, float | None, str | None]], text: str = "") -> None:
        """Add a race: decoder, result (None: not tried) and reason."""
        stack = "smollm2-135m--q4-1--llamacpp"
        tried = [c for c in candidates if c[1] is not None and c[0] != "plain"]
        winner = max(tried, key=lambda c: c[1] or 0)[0] if tried else None
        for place, (decoder, value, reason) in enumerate(candidates, 1):
            name = None
            if value is not None:
                name = self.run(decoder=decoder, measure=scenario, speed=value, kind="race", text=text)
            self.rows["races"].append(
                {
                    "verdict": f"cpu/m-test/{stack}--race/{scenario}.demo/{'ab' * 6}.1/race.json",
                    "demo": True,
                    "hardware": "cpu",
                    "machine": "m-test",
                    "stack": stack,
                    "scenario": scenario,
                    "measure": f"{scenario}.demo",
                    "position": place,
                    "decoder": decoder,
                    "run_id": name,
                    "run": None,
                    "metric": "output_speed_standard",
                    "unit": "tok/s",
                    "value": value,
                    "low": None if value is None else value * 0.9,
                    "high": None if value is None else value * 1.1,
                    "acceptance_length": None if decoder == "plain" or value is None else 1.4,
                    "winner": decoder == winner,
                    "plain_is_faster": False,
                    "left_out": reason,
                    "decided_at": "2026-12-03T10:00:00Z",
                }
            )

    def claim(self, name: str, **changes: Any) -> None:
        """Add a claim, with how it stands beside this world's runs."""
        told = Claim.model_validate(
            {
                "claim": name,
                "by": "A vendor",
                "system": "Diffusionlike 26B A4B",
                "ours": ["diffusionlike-26b--bf16--vllm--*"],
                "hardware": "h100-test",
                "about": "speed",
                "metric": "output speed",
                "numbers": [{"said": "over 1,000", "unit": "tokens/s", "low": 1000}],
                "disclosed": {"card": "H100", "prompts": "1,024 random tokens"},
                "not_disclosed": ["precision", "length of answers"],
                "confirmed": {"status": "secondary", "where": "a copy"},
                "sources": ["a page"],
                "measured_as": "output_speed_standard",
            }
            | changes
        )
        self.rows["claims"] += claim_rows([told], self.rows["runs"], self.rows["figures"])

    def models(self, **titles: str) -> None:
        """Add models by name."""
        self.rows["models"] += [
            {
                "model": name.replace("_", "-"),
                "title": title,
                "family": name.split("_")[0],
                "kind": "autoregressive",
                "licence": "Apache-2.0",
                "released": "2024-11",
                "context": 8192,
                "source": "",
                "file": {},
            }
            for name, title in titles.items()
        ]

    def write(self, path: Path) -> Path:
        """Write the database."""
        if not self.rows["meta"]:
            self.rows["meta"] = [{"key": "schema", "value": "1"}, {"key": "edition", "value": "2026.12"}]
        write_database(path, self.rows)
        return path


def demo_world() -> World:
    """What the demo leaves: four scenarios with plain and the winner, two races, four stand-in tasks."""
    world = World()
    world.models(**{"smollm2_135m": "SmolLM2 135M Instruct"})
    for measure, plain, fast, interval in (
        ("c1-short", 78.0, 80.1, (0.93, 1.14)),
        ("c1-long", 82.0, 96.3, (1.08, 1.29)),
        ("c16-short", 10.2, 10.1, (0.9, 1.1)),
        ("c16-long", 9.6, 9.9, (0.94, 1.13)),
    ):
        right = world.run(measure=measure, speed=plain)
        left = world.run(
            measure=measure,
            decoder="ngram-simple-n4-m4",
            speed=fast,
            flags={"preliminary": "note", "degenerate": "warning"},
        )
        world.ratio(left, right, fast / plain, *interval)
        world.pair(left, right, f"{measure}.demo")
    reasons = [
        ("ngram-cache-d4", None, "it keeps the n-grams of earlier requests"),
        ("ngram-mod-n24", None, "it needs a fresh server"),
    ]
    world.rows["left_out"].append(
        {"name": "smoke-livecodebench", "hardware": "cpu", "scale": "demo", "reason": "there is no <sandbox> here"}
    )
    world.race(
        "race-c1-long",
        [
            ("plain", 81.0, None),
            ("ngram-simple-n4-m4", 97.0, None),
            ("ngram-map-k-n4-m4", 84.0, None),
            ("ngram-map-k4v-n4-m4", 83.0, None),
            *reasons,
        ],
    )
    world.race(
        "race-c16-long",
        [("plain", 9.5, None), ("ngram-simple-n4-m4", 9.9, None), ("ngram-map-k-n4-m4", 9.2, None), *reasons],
    )
    for task in ("smoke-aime", "smoke-mmlu-pro", "smoke-livecodebench", "smoke-tau2"):
        world.run(measure=task, kind="quality", flags={"preliminary": "note", "stand_in": "note"})
    return world


def wide_world() -> World:
    """The demo's world and a card with a diffusion model, a classic one with drafts, five starts, missing data."""
    world = demo_world()
    world.models(gemmalike_26b="Gemmalike 26B A4B", diffusionlike_26b="Diffusionlike 26B A4B")
    card = {"hardware": "h100-test", "card": "NVIDIA H100 80GB HBM3", "scale": "full", "demo": False, "starts": 5}
    classic, diffusion = "gemmalike-26b--bf16--vllm", "diffusionlike-26b--bf16--vllm"
    for measure, speeds in (("c1-long", (110.0, 231.0, 305.0)), ("c16-long", (62.0, 71.0, 40.0))):
        plain = world.run(stack=classic, measure=measure, speed=speeds[0], flags={}, **card)
        drafts = world.run(
            stack=classic, decoder="mtp-n4", measure=measure, speed=speeds[1], flags={"capped": "note"}, **card
        )
        world.run(stack=diffusion, decoder="block-diffusion-d48", measure=measure, speed=speeds[2], flags={}, **card)
        world.ratio(drafts, plain, speeds[1] / speeds[0], speeds[1] / speeds[0] - 0.04, speeds[1] / speeds[0] + 0.04)
    world.run(
        stack=classic,
        decoder="eagle3-n3",
        measure="c1-long",
        speed=None,
        ranked=False,
        flags={"failures": "invalid"},
        **card,
    )
    world.run(stack=classic, decoder="dflash-n8", measure="c1-short", speed=250.0, flags={}, **(card | {"card": None}))
    world.claim("c001")
    world.claim("c002", scenario="claim-random", numbers=[{"said": "up to 400", "unit": "tokens/s", "high": 400}])
    world.claim("c003", scenario="c16-long", reply={"text": "We ran it with other prompts.", "source": "A vendor"})
    world.claim("c004", about="statement", numbers=[], hardware=None, measured_as=None)
    return world


def hostile_world() -> World:
    """A demo whose texts are hostile wherever strangers or models write them."""
    world = World()
    world.models(**{"smollm2_135m": HOSTILE})
    right = world.run(text=HOSTILE, card=HOSTILE)
    left = world.run(
        text=HOSTILE,
        card=HOSTILE,
        decoder="ngram-simple-n4-m4",
        speed=90.0,
        flags={"degenerate": "warning", "busy": "warning"},
    )
    world.ratio(left, right, 1.1, 0.9, 1.3, sentence=HOSTILE)
    world.pair(left, right, "c1-long.demo", refused=HOSTILE)
    world.race(
        "race-c1-long",
        [("plain", 81.0, None), ("ngram-simple-n4-m4", 97.0, None), ("ngram-mod-n24", None, HOSTILE)],
        text=HOSTILE,
    )
    world.run(measure="smoke-aime", kind="quality", text=HOSTILE)
    said = [{"said": HOSTILE, "unit": HOSTILE, "low": 1.0, "of": HOSTILE}]
    reply = {"text": HOSTILE, "source": HOSTILE}
    world.claim(
        "c001",
        by=HOSTILE,
        system=HOSTILE,
        ours=["'; rm -rf ~; echo '*", "smollm2-135m--q4-1--llamacpp--*"],
        metric=HOSTILE,
        numbers=said,
        against=said,
        disclosed={"card": HOSTILE},
        not_disclosed=[HOSTILE],
        sources=[HOSTILE],
        remarks=[reply],
        reply=reply,
        hardware="cpu",
        scenario="c1-long",
    )
    return world
