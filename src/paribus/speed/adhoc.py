"""Measuring any OpenAI-compatible endpoint: `paribus speed --base-url ... --model ... --out DIR`."""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus import __version__
from paribus.catalog import PromptLine, prompts_hash
from paribus.conditions import CheckFailed, EnvironmentFault
from paribus.machine import Hold, write_atomic
from paribus.speed.load import Ended, ignore
from paribus.speed.measure import Load, Measured, Watch, measure
from paribus.speed.summary import SpeedSummary
from paribus.speed.synthetic import synthetic_words
from paribus.wire import Endpoint, Spool, run

if TYPE_CHECKING:
    from paribus.speed.metrics.tokens import Tokenizer
    from paribus.speed.summarise import Around


READERS = {"numpy": "numpy", "pyarrow": "pyarrow", "bpe_openai": "bpe-openai"}
"""What reads answers, by the module's name: the package's. Imported after the load only."""

FINISHING = "writing what was measured, which takes a moment; once more ends it without"


@dataclass(frozen=True)
class Asked:
    """What a person asked for. `requests`: how many are measured; more than there are prompts cycles them."""

    endpoint: Endpoint
    prompts: Sequence[PromptLine]
    warm_up_prompts: Sequence[PromptLine]
    requests: int
    concurrency: int = 1
    max_tokens: int = 1024
    warm_up: int = 4
    sampling: Mapping[str, float | int] = field(default_factory=dict)
    tokenizer: Tokenizer | None = None
    in_order: bool = True

    def load(self) -> Load:
        """The load; its tag is fresh, so that a second run of the same prompts meets no cache of the first."""
        return Load(
            concurrency=self.concurrency,
            cap=self.max_tokens,
            prompts=self.prompts,
            tuning=self.warm_up_prompts,
            sampling=self.sampling,
            requests=self.requests,
            tag=secrets.token_hex(8),
            warm_up_requests=self.warm_up,
            in_order=self.in_order,
        )


def measure_endpoint(asked: Asked, folder: Path, on_end: Ended = ignore) -> tuple[SpeedSummary, bool]:
    """Measure an endpoint into a folder; returns the summary, and whether it was interrupted.

    `requests.parquet`, `requests-lite.parquet`, `conditions.json` and `summary.json` are written however it ends, with
    the requests that had ended by then and those that an interruption broke off (`cancelled`, not counted); fewer than
    were asked for are flagged `interrupted`. After writing: `CheckFailed` when nothing was answered, `EnvironmentFault`
    when the load could not go on, such as for a full disk. `CheckFailed` with nothing left in the folder when no byte
    came from a server: the same folder can be given again. `EnvironmentFault` before anything is sent or written when
    a package is missing that the answers are read with. A signal after the load waits until the files are written; a
    second one doesn't (`KeyboardInterrupt`).
    """
    _check_readers()
    write_atomic(folder / "conditions.json", _json(conditions(asked)))
    with Spool() as spool, Hold(FINISHING, deliver=False) as hold:
        loaded = _load(asked, spool, on_end, hold)
        hold.begin()  # once more, for a signal that came just before the first time
        # What reads answers (numpy, Arrow, tokenizers) comes into memory once the load is over.
        from paribus.speed.files import finish, nothing_answered, nothing_came

        early = loaded.interrupted or hold.held is not None or loaded.fault is not None
        if not early and nothing_came(spool):
            (folder / "conditions.json").unlink()
            raise CheckFailed(_unanswered(asked, loaded, nothing_answered(spool, asked.endpoint.api_key, kept=False)))
        around = _around(asked, loaded.measured)
        _, summary = finish(folder, spool, asked.prompts, around, asked.tokenizer, needs_answers=False)
        if loaded.fault is not None:
            raise loaded.fault
        interrupted = loaded.interrupted or hold.held is not None
        if not interrupted and not summary.requests.ok:
            raise CheckFailed(_unanswered(asked, loaded, nothing_answered(spool, asked.endpoint.api_key)))
    return summary, interrupted


@dataclass(frozen=True)
class _Loaded:
    """How a load ended: what was seen beside it (None where it hadn't begun), and why it ended early."""

    measured: Measured | None = None
    interrupted: bool = False
    fault: EnvironmentFault | None = None


def _load(asked: Asked, spool: Spool, on_end: Ended, hold: Hold) -> _Loaded:
    """Put the load on the server. From its end on, however it ends, signals are held back."""
    seen: list[Measured | None] = [None]
    watch = Watch(on_end=on_end, broken_off=seen.append)
    try:
        try:
            return _Loaded(run(measure(asked.endpoint, asked.load(), spool, watch)))
        finally:
            hold.begin()
    except KeyboardInterrupt:
        return _Loaded(seen[-1], interrupted=True)
    except EnvironmentFault as error:
        return _Loaded(seen[-1], fault=error)


def _unanswered(asked: Asked, loaded: _Loaded, why: str) -> str:
    reason = f" ({loaded.measured.fault})" if loaded.measured is not None and loaded.measured.fault else ""
    return f"{asked.endpoint.base_url}{reason}: {why}"


def _check_readers() -> None:
    """Look for what reads answers, without importing it: the load would be lost with an import that fails after it."""
    missing = [package for module, package in READERS.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise EnvironmentFault(f"no answer could be read, for want of {', '.join(missing)}: run `uv sync`")


def _around(asked: Asked, measured: Measured | None) -> Around:
    from paribus.speed.flags import Facts
    from paribus.speed.summarise import Around

    hosted, synthetic = not is_local(asked.endpoint), synthetic_words(asked.endpoint.extra_body)
    facts = Facts(rows=(), hosted=hosted, synthetic=synthetic, planned=asked.requests)
    if measured is None:
        return Around(asked.concurrency, facts=facts)
    # No scale asks anything of this window: it is as long as the requests made it, unless there is none.
    missing = "" if measured.window or asked.concurrency == 1 else measured.window_short
    return Around(
        concurrency=asked.concurrency,
        window=measured.window,
        cpu_share=measured.lag.cpu_share,
        facts=replace(facts, lag_ms_p99=measured.lag.lag_ms_p99, window_short=missing),
    )


def is_local(endpoint: Endpoint) -> bool:
    """Whether the server runs on this machine or in this network; others are hosted."""
    host = endpoint.address().host
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host


def conditions(asked: Asked) -> dict[str, Any]:
    """What was asked, without the key: enough to ask the same again."""
    endpoint = asked.endpoint
    return {
        "schema": 1,
        "origin": "endpoint",
        "paribus": __version__,
        "base_url": endpoint.base_url,
        "model": endpoint.model,
        "api": endpoint.api,
        "extra_body": endpoint.extra_body,
        "requests_at_once": asked.concurrency,
        "requests": asked.requests,
        "cap": asked.max_tokens,
        "warm_up_requests": asked.warm_up,
        "sampling": dict(asked.sampling),
        "prompts": len(asked.prompts),
        "prompts_hash": prompts_hash(asked.prompts),
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()
