"""When a speed run is flagged: one function a rule (the table: `judging`). What flags mean: `conditions.flags`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from paribus.conditions import Flag, flag
from paribus.conditions.flags import Severity
from paribus.conditions.thinking import thought
from paribus.speed.counted import Generated
from paribus.speed.metrics.tokens import UsageCheck
from paribus.speed.rows import Row
from paribus.speed.statistics import percentile


@dataclass(frozen=True)
class Facts:
    """What the rules look at: the counted rows, and what was seen around them.

    `cpu`: the cpu profile, where `client_bound` and `degenerate` are warnings. `hosted`: a server that Paribus did not
    start. `headline`: a scenario whose prompts must not come from a cache. Percentages and shares are of 1.
    """

    rows: Sequence[Row]
    concurrency: int = 1
    cpu: bool = False
    hosted: bool = False
    headline: bool = True
    thinking: bool | None = None
    """Whether the system runs with thinking on; None where nobody declared it."""
    synthetic: str = ""
    preliminary_scale: str | None = None
    lag_ms_p99: float | None = None
    stall_ms_p50: float | None = None
    admitted: int | None = None
    seen: int | None = None
    """The most requests that were under way at once, soak included."""
    asked: int = 1
    """As many could have been: the requests at once, or all there were."""
    planned: int = 0
    """As many requests were to be measured, of an endpoint; 0 in a plan, where a load that is broken off is none."""
    usage: UsageCheck | None = None
    generated: Generated | None = None
    """The engine's own count of generated tokens beside ours."""
    cached_tokens: int | None = None
    """Prompt tokens from a cache, as usage or the engine's counter says."""
    digests: Sequence[tuple[str, str]] = ()
    """(prompt id, hash of what was delivered) of each answered request."""
    without_usage: Collection[str] = ()
    """How the tokens of answers without usage were counted: methods of `TokenCount`."""
    without_done: int = 0
    without_finish: int = 0
    """Answers that ended with [DONE] and no finish reason."""
    revised: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    """UTF-8 bytes of text under names that the reader doesn't know, by name."""
    warm_up: str = ""
    """Why the warm-up hadn't settled; empty when it had."""
    window_short: str = ""
    left_out: Sequence[str] = ()
    """Sampling fields that the engine doesn't accept."""
    sampler_unverified: str = ""
    sampler_mismatch: str = ""
    compiled: Sequence[str] = ()
    """What the engine's log says was compiled in the measured part."""
    drafted: tuple[float, float] | None = None
    """The engine's own count of drafted and of accepted tokens."""
    settings_differ: Sequence[str] = ()
    """Settings that the server reads back differently, in words."""
    research: str = ""
    """What is said of a server made for research; empty for any other."""
    busy_share: float | None = None
    throttled: str = ""
    throttled_severity: Severity = "invalid"
    energy_disagrees: str = ""
    power_limited: str = ""
    not_started: str = ""
    """Why the engine of a race's candidate didn't start; empty where it did."""
    died: str = ""
    """Why it died while it was measured; empty where it didn't."""
    also: Sequence[Flag] = field(default_factory=tuple)
    """Flags found elsewhere."""


Rule = Callable[[Facts], Flag | None]

FAILED, LOOPS, CAPPED, BUSY = 0.01, 0.02, 0.05, 0.05
UNREAD = 0.02
DRIFT, ENOUGH = 1.5, 8
ENOUGH_DRAFTED, HARDLY = 100, 0.01
WAKING_MS = 0.1
"""Lag that waking any process costs. Beside gaps of a few milliseconds it passes 1% and moves no figure."""


def _percent(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f}%)"


def failures(facts: Facts) -> Flag | None:
    """More than 1% failed."""
    bad = [row for row in facts.rows if not row.ok]
    if not facts.rows or len(bad) <= FAILED * len(facts.rows):
        return None
    words = ", ".join(f"{n} {word}" for word, n in Counter(row.error or "empty" for row in bad).most_common(3))
    return flag("failures", f"{_percent(len(bad), len(facts.rows))}: {words}")


def degenerate(facts: Facts) -> Flag | None:
    """More than 2% of the answers loop."""
    answered = [row for row in facts.rows if row.ok]
    loops = sum(row.degenerate for row in answered)
    if not answered or loops <= LOOPS * len(answered):
        return None
    return flag("degenerate", _percent(loops, len(answered)), "warning" if facts.cpu else None)


def capped(facts: Facts) -> Flag | None:
    """More than 5% cut by the cap."""
    answered = [row for row in facts.rows if row.ok]
    stopped = sum(row.capped for row in answered)
    return flag("capped", _percent(stopped, len(answered))) if answered and stopped > CAPPED * len(answered) else None


def usage_missing(facts: Facts) -> Flag | None:
    """An answered request without usage."""
    if not facts.without_usage:
        return None
    words = {"tokenizer": "the model's own tokenizer", "standard": "standard tokens (o200k_base)"}
    return flag("usage_missing", " and ".join(words.get(m, m) for m in sorted(facts.without_usage)))


def usage_unverified(facts: Facts) -> Flag | None:
    """Usage that no tokenizer of the model could be held against."""
    check = facts.usage
    if check is None or check.mismatch or check.by == "tokenizer":
        return None
    return flag("usage_unverified", "no tokenizer of the model was at hand to hold it against the text")


def usage_mismatch(facts: Facts) -> Flag | None:
    """Usage and text differ by more than max(8, 2%) on sums (hosted, with more usage: `hidden_tokens`)."""
    check = facts.usage
    if check is None or not check.mismatch:
        return None
    detail = f"usage says {check.usage:,.0f} tokens, the text holds {check.text:,.0f} by {check.by}"
    return flag("hidden_tokens" if facts.hosted and check.more_usage else "usage_mismatch", detail)


def counters_disagree(facts: Facts) -> Flag | None:
    """The engine's counter of generated tokens is off by more than 1%."""
    found = facts.generated
    if found is None or not found.apart:
        return None
    return flag("counters_disagree", f"it counted {found.counted:,.0f} tokens, its usage says {found.told:,.0f}")


def cached(facts: Facts) -> Flag | None:
    """Cached prompt tokens in a headline scenario."""
    tokens = facts.cached_tokens
    return flag("cached", f"{tokens:,} prompt tokens") if facts.headline and tokens else None


def thinking_mismatch(facts: Facts) -> Flag | None:
    """Reasoning in answers of a system that runs with thinking off (PROTOCOL rule 2); up to 1% of them: a warning."""
    if facts.thinking is not False:
        return None
    return thought(row.reasoning_tokens + row.hidden_tokens for row in facts.rows if row.ok or row.cut).mismatch


def cached_answers(facts: Facts) -> Flag | None:
    """The same answer to different prompts, for more than 2% of the answers (short answers may be equal by right)."""
    prompts: dict[str, set[str]] = defaultdict(set)
    for prompt, digest in facts.digests:
        if digest:
            prompts[digest].add(prompt)
    same = [group for group in prompts.values() if len(group) > 1]
    touched = sum(len(group) for group in same)
    asked = len({prompt for prompt, _ in facts.digests})
    if asked < 2 or touched <= max(1, LOOPS * asked):
        return None
    return flag("cached_answers", f"{touched} of {asked} prompts share an answer")


def client_bound(facts: Facts) -> Flag | None:
    """The client's p99 lag is over 1% of the median stall or 5% of the median time to first text (and over 0.1 ms)."""
    lag = facts.lag_ms_p99
    if lag is None or lag <= WAKING_MS:
        return None
    first = percentile([row.ttft_ns / 1e6 for row in facts.rows if row.ok and row.ttft_ns is not None], 0.5)
    severity: Severity | None = "warning" if facts.cpu else None
    if facts.stall_ms_p50 and lag > 0.01 * facts.stall_ms_p50:
        return flag(
            "client_bound", f"p99 lag {lag:.2f} ms beside a median gap of {facts.stall_ms_p50:.2f} ms", severity
        )
    if first is not None and lag > 0.05 * first:
        return flag("client_bound", f"p99 lag {lag:.2f} ms beside a first text after {first:.2f} ms", severity)
    return None


def late(facts: Facts) -> Flag | None:
    """p99 of the lateness over 1% of the median e2e."""
    lateness = percentile([max(row.sent_ns - row.due_ns, 0) / 1e6 for row in facts.rows], 0.99)
    whole = percentile([row.e2e_ns / 1e6 for row in facts.rows if row.ok and row.e2e_ns is not None], 0.5)
    if lateness is None or whole is None or lateness <= 0.01 * whole:
        return None
    return flag("late", f"p99 {lateness:.2f} ms, beside a median answer of {whole:.0f} ms")


def admits(facts: Facts) -> Flag | None:
    """The 10th percentile of the running gauge is below the requests asked minus one."""
    if not admits_fewer(facts.admitted, facts.concurrency):
        return None
    return flag("admits", f"{facts.admitted} of {facts.concurrency}")


def admits_fewer(admitted: int | None, asked: int) -> bool:
    """PROTOCOL's rule at several requests, for the flag, the gate and the strip alike: below `asked` - 1.

    `admitted`: 10th percentile of the running gauge; the gauge is read between two requests too, so one less is none
    missing. None, where nothing was read, is no reason to refuse.
    """
    return admitted is not None and asked >= 2 and admitted < asked - 1


def interrupted(facts: Facts) -> Flag | None:
    """The load ended before everything was asked: long answers are missing rather than short ones."""
    ended = len(facts.rows)
    return flag("interrupted", f"{ended:,} of {facts.planned:,} requests had ended") if ended < facts.planned else None


def not_started(facts: Facts) -> Flag | None:
    """There was no server to ask."""
    return flag("not_started", facts.not_started.rstrip(".")) if facts.not_started else None


def died(facts: Facts) -> Flag | None:
    """The server was gone before everything was asked."""
    return flag("died", facts.died.rstrip(".")) if facts.died else None


def not_stationary(facts: Facts) -> Flag | None:
    """Two successive warm-up blocks never came within 2%."""
    return flag("not_stationary", facts.warm_up) if facts.warm_up else None


def compiled_in_window(facts: Facts) -> Flag | None:
    """A compilation or a capture in the measured part (PROTOCOL rule 8)."""
    several = f" and {len(facts.compiled) - 1} more" if len(facts.compiled) > 1 else ""
    return flag("compiled_in_window", facts.compiled[0] + several) if facts.compiled else None


def hardly_accepted(facts: Facts) -> Flag | None:
    """Enough was drafted, and next to nothing of it accepted: a drafter of another precision, or for another runner.

    vllm-project/vllm#41789 (0.2% with a quantised target), #49559 (none with the second model runner).
    """
    drafted, accepted = facts.drafted or (0.0, 0.0)
    if drafted < ENOUGH_DRAFTED or accepted >= HARDLY * drafted:
        return None
    return flag("hardly_accepted", f"{accepted:,.0f} of {drafted:,.0f} drafted tokens")


def settings_differ(facts: Facts) -> Flag | None:
    """A setting that only decides the speed reads back differently."""
    return flag("settings_differ", "; ".join(facts.settings_differ)) if facts.settings_differ else None


def research_implementation(facts: Facts) -> Flag | None:
    """A server made for research."""
    return flag("research_implementation", facts.research) if facts.research else None


def drift(facts: Facts) -> Flag | None:
    """The first and the last third of the answers differ by more than 1.5 times in their time a token (medians).

    A warm-up whose first two blocks are equally slow passes for settled; what it missed shows here.
    """
    rows = [r for r in sorted(facts.rows, key=lambda r: r.index) if r.ok and r.e2e_ns and r.standard_tokens]
    third = len(rows) // 3
    if third < ENOUGH:
        return None
    first, last = (
        percentile([row.e2e_ns / row.standard_tokens / 1e6 for row in part if row.e2e_ns], 0.5)
        for part in (rows[:third], rows[-third:])
    )
    if first is None or last is None or 1 / DRIFT <= first / last <= DRIFT:
        return None
    return flag("drift", f"{first:.2f} ms a token in the first third of the answers, {last:.2f} ms in the last")


def fewer_at_once(facts: Facts) -> Flag | None:
    """The client never had as many requests under way as it was asked to."""
    if facts.seen is None or facts.seen >= facts.asked:
        return None
    return flag("fewer_at_once", f"{facts.seen} of {facts.asked}")


def short_window(facts: Facts) -> Flag | None:
    """The window is shorter than the scale asks for, or holds fewer completions."""
    return flag("short_window", facts.window_short) if facts.window_short else None


def preliminary(facts: Facts) -> Flag | None:
    """A scale below full."""
    return flag("preliminary", facts.preliminary_scale) if facts.preliminary_scale else None


def sampling_left_out(facts: Facts) -> Flag | None:
    """Sampling fields that the engine doesn't accept."""
    return flag("sampling_left_out", ", ".join(sorted(facts.left_out))) if facts.left_out else None


def sampler_mismatch(facts: Facts) -> Flag | None:
    """A diffusion model whose fingerprint is not the reference's."""
    return flag("sampler_mismatch", facts.sampler_mismatch) if facts.sampler_mismatch else None


def sampler_unverified(facts: Facts) -> Flag | None:
    """A diffusion engine without pass counters, or without a reference's readings to hold them against."""
    return flag("sampler_unverified", facts.sampler_unverified) if facts.sampler_unverified else None


def synthetic(facts: Facts) -> Flag | None:
    """A synthetic scenario, or faked acceptance."""
    return flag("synthetic", facts.synthetic) if facts.synthetic else None


def no_done(facts: Facts) -> Flag | None:
    """Whole answers whose stream ended without [DONE]."""
    return flag("no_done", str(facts.without_done)) if facts.without_done else None


def no_finish_reason(facts: Facts) -> Flag | None:
    """Answers that ended with [DONE] alone: whole, cut by the cap or broken off, nobody says."""
    return flag("no_finish_reason", f"{facts.without_finish} answers") if facts.without_finish else None


def revised(facts: Facts) -> Flag | None:
    """Text that was replaced after it was shown."""
    return flag("revised", f"{facts.revised} answers") if facts.revised else None


def unread_text(facts: Facts) -> Flag | None:
    """Text under names that aren't read, more than 2% of what was delivered; less: a warning."""
    lost, delivered = sum(facts.unread.values()), sum(row.bytes for row in facts.rows)
    if not lost:
        return None
    most = sorted(facts.unread.items(), key=lambda item: (-item[1], item[0]))
    names = ", ".join(f"{name} ({size:,} bytes)" for name, size in most[:3]) + (", ..." if len(most) > 3 else "")
    return flag("unread_text", names, None if lost > UNREAD * delivered else "warning")


def busy(facts: Facts) -> Flag | None:
    """Others' CPU and stolen time over 5%."""
    if facts.busy_share is None or facts.busy_share <= BUSY:
        return None
    return flag("busy", f"{100 * facts.busy_share:.0f}% of the CPU time went to others")


def throttled(facts: Facts) -> Flag | None:
    """The card's clock fell, with a reason other than idle (a power cap alone: note)."""
    return flag("throttled", facts.throttled, facts.throttled_severity) if facts.throttled else None


def power_limited(facts: Facts) -> Flag | None:
    """The card's power limit is below its default."""
    return flag("power_limited", facts.power_limited) if facts.power_limited else None


def energy_disagrees(facts: Facts) -> Flag | None:
    """Energy counter and power integral differ by more than 5%."""
    return flag("energy_disagrees", facts.energy_disagrees) if facts.energy_disagrees else None
