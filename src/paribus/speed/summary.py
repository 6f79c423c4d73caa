"""The summary of one speed start or run: `summary.json`. Milliseconds, tokens a second; null where undefined."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from paribus.conditions import Flag


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, populate_by_name=True)


class RequestCounts(_Part):
    """How the measured requests ended. `ok + failed` is their number; the others count among them."""

    ok: int
    failed: int
    cut: int
    capped: int
    unanswered: int
    degenerate: int
    checked: int
    check_passed: int


class Count(_Part):
    """A total over the answered requests and its mean a request."""

    total: float
    mean: float | None


class Spread(_Part):
    """Mean, median and 99th percentile (linear interpolation)."""

    mean: float | None
    p50: float | None
    p99: float | None


class Tail(_Part):
    """99th percentile only."""

    p99: float | None


class TimeToK(_Part):
    """Time until the k-th standard token, over the requests that reach k; `share` says how many do."""

    mean: float
    p50: float
    share: float


class Interval(_Part):
    """A value with its 95% interval; the bounds are null where one start allows none.

    `basis` says what the interval rests on (see `paribus.speed.statistics.Basis`): `prompts`, `kinds` or `batches`
    come from a single start and know nothing of what differs between starts.
    """

    value: float | None
    low: float | None
    high: float | None
    basis: str | None = None


class Decode(Interval):
    """Decode speed with the share of the answered requests that it covers."""

    coverage: float


class Throughput(Interval):
    """Throughput of the steady window, with the raw-arrival and whole-run figures beside it."""

    raw_arrival: float | None
    whole_run: float | None
    requests_per_s: float | None = None


class Stall(_Part):
    """Gaps between arrivals; never a rate."""

    p50: float | None
    p99: float | None
    max: float | None


class ClientLoad(_Part):
    """The load generator's own lag and share of one CPU."""

    lag_ms_p99: float | None
    cpu_share: float | None


class Acceptance(_Part):
    """From engine counters (null where the engine has none): see PROTOCOL section 3."""

    acceptance_length: float | None
    tokens_per_pass: float | None
    counted_tokens: float | None


class EngineLoad(_Part):
    """The engine's own gauges, asked each second of the window: requests being answered, requests that wait."""

    readings: int
    running_mean: float | None
    waiting_mean: float | None


class KindSummary(_Part):
    """One kind of text: what the speed-up is made of. `time_to_k_ms` keyed by k."""

    ok: int
    time_to_k_ms: dict[str, TimeToK | None]
    output_speed: float | None
    standard_tokens_mean: float | None
    checked: int
    check_passed: int


class SpeedSummary(_Part):
    """`summary.json` of a start or a run."""

    schema_version: Literal[1] = Field(1, alias="schema")
    requests: RequestCounts
    wall_s: float
    window_s: float | None
    concurrency_seen: int
    admitted: int | None
    tokens: Count
    reasoning_tokens: Count
    standard_tokens: Count
    bytes: Count
    tokens_method: Literal["usage", "tokenizer", "standard", "mixed"]
    ttft_ms: Spread
    ttfa_ms: Spread
    e2e_ms: Spread
    late_ms: Tail
    connect_ms: Tail
    time_to_k_ms: dict[str, TimeToK | None]
    """Keyed by k: 1, 32, 100, 300, 800. Null under half of the requests."""
    reader_wait_s: dict[str, float | None]
    output_speed: Interval
    """Model's tokens a second, TTFT included."""
    output_speed_standard: Interval
    """Standard tokens a second, TTFT included."""
    decode_speed: Decode
    throughput: Throughput
    """Standard tokens a second over the window (null at one request)."""
    throughput_native: float | None = None
    throughput_bytes: float | None = None
    """The window's UTF-8 bytes a second: where it ranks otherwise than standard tokens, the unit decides."""
    output_speed_bytes: Interval | None = None
    answer_time_ms: Spread | None = None
    """Whole answers only; null when more than 5% were capped."""
    window_ns: tuple[int, int] | None = None
    """Edges of the window, nanoseconds since the load's start (a start's summary only)."""
    tokens_at_method: str | None = None
    """How tokens after each piece were counted: usage, tokenizer, characters or mixed."""
    stall_ms: Stall
    acceptance: Acceptance | None = None
    engine: EngineLoad | None = None
    """Null at one request, and where the engine has no gauges."""
    energy_j: float | None = None
    energy_scope: str | None = None
    """Whose energy it is: board, soc or package. Never compared across scopes."""
    energy_missing: str | None = None
    """Why there is no energy figure; null where there is one."""
    energy_per_1k_standard_tokens_j: float | None = None
    energy_per_answer_j: float | None = None
    energy_per_checked_answer_j: float | None = None
    kinds: dict[str, KindSummary] = {}
    client: ClientLoad
    flags: list[Flag]

    @property
    def ranked(self) -> bool:
        """Whether no flag makes this summary invalid for rankings."""
        return all(flag.severity != "invalid" for flag in self.flags)
