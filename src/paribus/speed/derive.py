"""From a trace to its row: every figure of one request."""

from __future__ import annotations

from paribus.speed.metrics.decode_speed import decoding
from paribus.speed.metrics.reader_wait import wait_s
from paribus.speed.metrics.time_to_k import reached_ns
from paribus.speed.rows import KS, READERS, Row
from paribus.speed.trace import Trace


def row_of(trace: Trace) -> Row:
    """The row of one request. What was delivered before a failure is counted; times stand for whole answers too."""
    some = len(trace.at_ns) > 0
    after = decoding(trace.at_ns, trace.native)
    times = {f"t{k}_ns": reached_ns(trace.at_ns, trace.standard, k) for k in KS}
    waits = {f"wait_{speed}_s": wait_s(trace.at_ns, trace.standard, speed) for speed in READERS}
    return Row(
        index=trace.index,
        prompt_id=trace.prompt.id,
        kind=trace.prompt.kind,
        length=trace.prompt.length,
        counted=trace.counted,
        worker=trace.worker,
        due_ns=trace.due_ns,
        sent_ns=trace.sent_ns,
        connect_ns=trace.connect_ns,
        ended_ns=trace.ended_ns,
        status=trace.status,
        error=trace.error,
        finish_reason=trace.finish_reason,
        ok=trace.ok,
        cut=trace.cut,
        capped=trace.capped,
        unanswered=trace.unanswered,
        degenerate=trace.degenerate,
        check_passed=trace.check_passed,
        tokens=trace.count.total,
        tokens_method=trace.count.method,
        reasoning_tokens=trace.count.reasoning,
        standard_tokens=int(trace.standard[-1]) if some else 0,
        bytes=int(trace.size[-1]) if some else 0,
        prompt_tokens=trace.prompt_tokens,
        cached_tokens=trace.cached_tokens,
        ttft_ns=int(trace.at_ns[0]) if some else None,
        ttfa_ns=int(trace.at_ns[trace.visible]) if trace.visible is not None else None,
        e2e_ns=int(trace.at_ns[-1]) if some else None,
        arrivals=after.arrivals,
        decode_tokens=after.tokens,
        decode_ns=after.ns,
        stall_max_ns=after.longest_gap_ns,
        text_tokens=trace.count.text,
        hidden_tokens=trace.count.hidden,
        **times,
        **waits,  # type: ignore[arg-type]  # mypy can't see which names the keys are
    )
