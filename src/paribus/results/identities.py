"""Identities that no true measurement violates; and what is merely implausible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.catalog import Catalog
from paribus.conditions import UsageError
from paribus.speed.rows import KS, Row
from paribus.speed.summary import SpeedSummary

SLACK = 1 + 1e-9
IMPLAUSIBLE = 25
"""So many times faster than a profile's rough speed is implausible (not impossible)."""


def row_faults(row: Row) -> list[str]:
    """What can't be, in one request: times in their order, counts that are none."""
    name = f"request {row.index}"
    faults = []
    if row.sent_ns < row.due_ns - 1_000_000:
        faults.append(f"{name} was sent before it was due")
    if row.ok and (row.ttft_ns is None or row.e2e_ns is None):
        faults.append(f"{name} is answered and has no first or last text")
    times = [time for time in (row.ttft_ns, row.ttfa_ns, row.e2e_ns) if time is not None]
    if times != sorted(times):
        faults.append(f"{name}: ttft <= ttfa <= e2e does not hold")
    reached = [time for k in KS if (time := row.time_to(k)) is not None]
    if reached != sorted(reached) or any(row.e2e_ns is None or time > row.e2e_ns for time in reached):
        faults.append(f"{name}: the times to its tokens do not grow up to its end")
    if row.e2e_ns is not None and row.sent_ns + row.e2e_ns > row.ended_ns:
        faults.append(f"{name} ended before its last text")
    if min(row.tokens, row.standard_tokens, row.bytes, row.reasoning_tokens) < 0 or row.reasoning_tokens > row.tokens:
        faults.append(f"{name}: its counts of tokens are impossible")
    if row.ok == (row.error is not None):
        faults.append(f"{name} is both answered and failed, or neither")
    return faults


def summary_faults(summary: SpeedSummary, counted: Sequence[Row], counters: Mapping[str, float]) -> list[str]:
    """What can't be, in a start's summary."""
    faults = []
    requests = summary.requests
    if requests.ok + requests.failed != len(counted):
        faults.append(
            f"{requests.ok} answered and {requests.failed} failed are not the {len(counted)} measured requests"
        )
    if sum(kind.ok for kind in summary.kinds.values()) != requests.ok:
        faults.append("the kinds of text do not add up to all answers")
    if requests.check_passed > requests.checked or requests.checked > len(counted):
        faults.append("more answers were verified than there are")
    for name in ("output_speed", "output_speed_standard", "decode_speed", "throughput"):
        one = getattr(summary, name)
        if None not in (one.value, one.low, one.high) and not one.low / SLACK <= one.value <= one.high * SLACK:
            faults.append(f"{name} lies outside its own interval")
    return faults + _speculation(summary, counters)


def _speculation(summary: SpeedSummary, counters: Mapping[str, float]) -> list[str]:
    """1 <= tokens_per_pass <= acceptance_length <= draft + 1; nothing accepted that wasn't drafted."""
    faults = []
    drafts, drafted, accepted = (counters.get(n) for n in ("drafts", "draft_tokens", "accepted_tokens"))
    if accepted is not None and drafted is not None and accepted > drafted:
        faults.append("more draft tokens were accepted than drafted")
    one = summary.acceptance
    if one is None or counters.get("denoising_steps"):
        return faults
    length, per_pass = one.acceptance_length, one.tokens_per_pass
    if per_pass is not None and per_pass < 1 / SLACK:
        faults.append("a pass gave less than one token")
    if per_pass is not None and length is not None and per_pass > length * SLACK:
        faults.append("tokens_per_pass is larger than acceptance_length")
    if length is not None and drafts and drafted is not None and length > (1 + drafted / drafts) * SLACK:
        faults.append("acceptance_length is larger than the drafts allow")
    return faults


def too_fast(summary: SpeedSummary, hardware: str, catalog: Catalog) -> str | None:
    """A number that is implausible beside the profile's rough speeds: a warning, never a fault."""
    try:
        rough = catalog.hardware(hardware).speeds.decode_1
    except UsageError:
        return None
    value = summary.output_speed.value
    if value is not None and value > IMPLAUSIBLE * rough and summary.concurrency_seen <= 1:
        return f"{value:,.0f} tokens/s is over {IMPLAUSIBLE} times what this profile expects ({rough:,.0f})"
    return None
