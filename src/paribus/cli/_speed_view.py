"""How `paribus speed` shows its result: a table of text."""

from __future__ import annotations

import textwrap

from paribus.speed.summary import Interval, SpeedSummary, Spread

WIDE = 110


def table(summary: SpeedSummary) -> str:
    """The summary as a table of text, flags below it. Plain Python: a library for tables takes a tenth of a second."""
    rows = [("metric", "value", "detail"), *_rows(summary)]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = [f"{name:<{first}}  {value:>{second}}  {detail}".rstrip() for name, value, detail in rows]
    for flag in summary.flags:
        lines += textwrap.wrap(f"{flag.severity}: {flag.text} [{flag.id}]", WIDE)
    return "\n".join(lines)


def _rows(s: SpeedSummary) -> list[tuple[str, str, str]]:
    r = s.requests
    rows = [
        ("requests answered", f"{r.ok} of {r.ok + r.failed}", _ended(s)),
        ("output speed", _number(s.output_speed.value, "tok/s"), _span(s.output_speed)),
        ("  in standard tokens", _number(s.output_speed_standard.value, "tok/s"), _span(s.output_speed_standard)),
        (
            "decode speed",
            _number(s.decode_speed.value, "tok/s"),
            f"{_span(s.decode_speed)} coverage {100 * s.decode_speed.coverage:.0f}%".strip(),
        ),
    ]
    if s.throughput.value is not None:
        detail = f"{_span(s.throughput)} window {s.window_s:.1f} s".strip()
        rows.append(("throughput, standard tokens", _number(s.throughput.value, "tok/s"), detail))
    if s.throughput.whole_run is not None and s.concurrency_seen > 1:
        rows.append(("  whole run", _number(s.throughput.whole_run, "tok/s"), f"{s.concurrency_seen} at once"))
    rows += [
        ("time to first text", _number(s.ttft_ms.mean, "ms"), _tail(s.ttft_ms)),
        ("time to first answer", _number(s.ttfa_ms.mean, "ms"), _tail(s.ttfa_ms)),
        ("time to last text", _number(s.e2e_ms.mean, "ms"), _tail(s.e2e_ms)),
    ]
    for k, time_to in s.time_to_k_ms.items():
        if time_to is not None and k != "1":
            rows.append(
                (f"time to {k} standard tokens", _number(time_to.mean, "ms"), f"{100 * time_to.share:.0f}% reach it")
            )
    for speed, wait in s.reader_wait_s.items():
        rows.append((f"a reader at {speed} tokens/s waits", _number(wait, "s"), "after the first text"))
    rows.append(("longest gaps", _number(s.stall_ms.p99, "ms"), f"p99; longest {_number(s.stall_ms.max, 'ms')}"))
    rows.append(("tokens an answer", _number(s.tokens.mean, ""), f"counted by {s.tokens_method}"))
    return rows


def _ended(s: SpeedSummary) -> str:
    r = s.requests
    parts = [("failed", r.failed), ("capped", r.capped), ("without visible answer", r.unanswered)]
    words = [f"{n} {word}" for word, n in [*parts, ("looping", r.degenerate)] if n]
    if r.checked:
        words.append(f"{r.check_passed} of {r.checked} verified as right")
    return ", ".join(words)


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "none"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def _span(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return ""
    return f"{interval.low:,.1f} to {interval.high:,.1f} (over {interval.basis})"


def _tail(spread: Spread) -> str:
    return f"median {_number(spread.p50, 'ms')}, p99 {_number(spread.p99, 'ms')}" if spread.p50 is not None else ""
