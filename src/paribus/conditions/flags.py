"""Flags: what a reader must know about a number before trusting it. One table; ids are permanent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

Severity = Literal["note", "warning", "invalid"]


@dataclass(frozen=True)
class FlagKind:
    """One kind of flag.

    `severity`: note (shown), warning (shown, ranked), invalid (not ranked). `rule`: when it is set.
    `sentence`: what the reader sees; `{detail}` is filled in by whoever sets it.
    """

    id: str
    severity: Severity
    rule: str
    sentence: str


class Flag(BaseModel):
    """A flag on one start or run, as stored in `summary.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    id: str
    severity: Severity
    text: str


def _table(*kinds: FlagKind) -> dict[str, FlagKind]:
    return {kind.id: kind for kind in kinds}


FLAGS = _table(
    FlagKind(
        "client_bound",
        "invalid",
        "the client's p99 scheduling lag is over 1% of the median stall or over 5% of the TTFT (warning on cpu)",
        "The load generator was too slow for this engine: {detail}.",
    ),
    FlagKind(
        "busy", "warning", "other processes' CPU and stolen time over 5%", "The machine was busy elsewhere: {detail}."
    ),
    FlagKind(
        "throttled",
        "invalid",
        "SM clock under 95% of the window's usual one (90th percentile) for over 5% of it, with a reason bit "
        "other than idle (power cap alone: note)",
        "The card was throttled: {detail}.",
    ),
    FlagKind(
        "power_limited",
        "warning",
        "the card's power limit is below its default",
        "The card's power was limited: {detail}.",
    ),
    FlagKind("late", "warning", "p99 lateness over 1% of the median e2e", "Requests left late: {detail}."),
    FlagKind(
        "cached",
        "invalid",
        "the engine reports cached prompt tokens in a headline scenario",
        "Parts of prompts came from a cache: {detail}.",
    ),
    FlagKind(
        "thinking_mismatch",
        "invalid",
        "thinking is off and more than 1% of the answers hold over 8 tokens of reasoning (1% or less: warning)",
        "The model thought though it ran with thinking off: {detail}.",
    ),
    FlagKind(
        "synthetic",
        "invalid",
        "random prompts, ignored end of sequence, pinned steps or faked acceptance",
        "Synthetic load, not natural text: {detail}.",
    ),
    FlagKind(
        "usage_mismatch",
        "invalid",
        "usage and the text disagree by more than max(8, 2%) tokens on sums",
        "The engine's token count does not match its text: {detail}.",
    ),
    FlagKind(
        "usage_missing", "note", "the engine sent no usage", "No usage from the engine; tokens counted by {detail}."
    ),
    FlagKind(
        "usage_unverified",
        "warning",
        "no tokenizer of the model was at hand to hold usage against the text; only three times the standard tokens or "
        "a third would be seen",
        "The engine's token count is taken at its word: {detail}.",
    ),
    FlagKind(
        "hidden_tokens",
        "warning",
        "a hosted API bills more tokens than it delivers",
        "More tokens billed than delivered: {detail}.",
    ),
    FlagKind(
        "degenerate",
        "invalid",
        "more than 2% of the answers are loops (warning on cpu)",
        "Answers that loop: {detail}.",
    ),
    FlagKind(
        "not_started",
        "invalid",
        "a race's candidate whose engine ended while loading or never answered: nothing was asked of it",
        "Its server did not start: {detail}.",
    ),
    FlagKind(
        "died",
        "invalid",
        "a race's candidate whose engine ended while it was measured: what it had answered until then is kept",
        "Its server died while it was measured: {detail}.",
    ),
    FlagKind(
        "interrupted",
        "invalid",
        "fewer requests ended than an endpoint was to be asked: a signal, a full disk, or a server that was gone "
        "(what was under way is kept and counts as no answer; the longest are missing)",
        "The load ended before everything was asked: {detail}.",
    ),
    FlagKind("failures", "invalid", "more than 1% of the requests failed", "Requests failed: {detail}."),
    FlagKind(
        "capped",
        "note",
        "more than 5% of the answers were cut by the cap: no figure that needs whole answers",
        "Answers cut by the token cap: {detail}.",
    ),
    FlagKind(
        "not_stationary",
        "warning",
        "two successive warm-up blocks never came within 2%",
        "The warm-up had not settled: {detail}.",
    ),
    FlagKind(
        "compiled_in_window",
        "invalid",
        "the engine's log tells of a compilation or a graph capture inside the measured part",
        "The engine compiled while it was measured: {detail}.",
    ),
    FlagKind(
        "settings_differ",
        "warning",
        "the running server tells another value of a setting that only decides the speed than the one declared (of one "
        "that decides the answers: a fault, nothing is measured)",
        "The server runs with other settings than declared: {detail}.",
    ),
    FlagKind(
        "hardly_accepted",
        "warning",
        "at least 100 tokens were drafted and fewer than 1% of them accepted: a drafter that does not fit its model",
        "Drafts were hardly ever accepted: {detail}.",
    ),
    FlagKind(
        "research_implementation",
        "invalid",
        "a server made for research, as the system's file says",
        "A research implementation, shown and not ranked: {detail}.",
    ),
    FlagKind(
        "drift",
        "warning",
        "the first third of the answers took over 1.5 times as long a token as the last third, or under 1/1.5 "
        "(medians, 24 answers at least)",
        "Speed changed while it was measured: {detail}.",
    ),
    FlagKind(
        "fewer_at_once",
        "invalid",
        "fewer requests were under way at once than asked",
        "Fewer requests under way at once than asked: {detail}.",
    ),
    FlagKind(
        "short_window",
        "warning",
        "the window is shorter than the scale asks for or holds fewer completions",
        "The steady window is short: {detail}.",
    ),
    FlagKind(
        "admits",
        "invalid",
        "10th percentile of the running gauge below requests - 1",
        "The engine admits fewer requests than asked: {detail}.",
    ),
    FlagKind(
        "sampler_mismatch",
        "invalid",
        "a diffusion model's fingerprint is beyond 5% of the reference",
        "The sampler is not the reference's: {detail}.",
    ),
    FlagKind(
        "sampler_unverified",
        "note",
        "a diffusion engine without pass counters",
        "The sampler could not be verified: {detail}.",
    ),
    FlagKind(
        "sampling_left_out",
        "note",
        "sampling fields that the engine does not accept",
        "Sampling fields left out: {detail}.",
    ),
    FlagKind(
        "preliminary",
        "note",
        "scale below full",
        "Preliminary: measured at the {detail} scale, too small for a ranking.",
    ),
    FlagKind("limited", "note", "three or four starts at full scale", "Limited: {detail} starts."),
    FlagKind("partial", "note", "a subset of a quality task", "A part of the task only: {detail}."),
    FlagKind(
        "canary",
        "note",
        "a quality canary: a few questions that show whether a decoder breaks answers; never ranked",
        "A canary, not a score: {detail}.",
    ),
    FlagKind(
        "not_lossless",
        "invalid",
        "the decoder failed one of the lossless gates on this kind of hardware",
        "This decoder is not lossless, though its file says so; it inherits no quality: {detail}.",
    ),
    FlagKind(
        "slow_grader",
        "invalid",
        "the grading machine is over 4 times slower than the reference machine: the time limits of tests were not "
        "scaled to it, and right programs may have failed",
        "Programs were graded on a machine that is too slow: {detail}.",
    ),
    FlagKind(
        "starved",
        "warning",
        "over 1% of the graded programs' answers had a test kept from its core by other work (over 5%: invalid)",
        "Programs were graded on a busy machine: {detail}.",
    ),
    FlagKind(
        "stand_in",
        "note",
        "a smoke task of our own in place of the public one",
        "A stand-in written for this project, not the public benchmark: {detail}.",
    ),
    FlagKind(
        "scripted_user",
        "invalid",
        "the user of a dialogue task was a script in place of the pinned user simulator",
        "The user was a script, no simulator: {detail}.",
    ),
    FlagKind(
        "user_failures",
        "invalid",
        "the user simulator broke dialogues off, which is no failure of the system (over 1% with failures: invalid)",
        "The user simulator, not the system, broke dialogues off: {detail}.",
    ),
    FlagKind(
        "simulator_here",
        "warning",
        "the user simulator ran on the machine that was measured: scores stand, times of answers are no speed",
        "The user simulator ran on the measured machine: {detail}, so they are no measure of speed.",
    ),
    FlagKind("left_out", "note", "parts of a task that a system can't do", "Left out: {detail}."),
    FlagKind(
        "possibly_seen",
        "warning",
        "items older than the model",
        "The model may have seen these items in training: {detail}.",
    ),
    FlagKind(
        "cached_answers",
        "invalid",
        "the same answer to different prompts",
        "The same answer came for different prompts: {detail}.",
    ),
    FlagKind("no_done", "note", "a stream ended without [DONE]", "Streams ended without [DONE]: {detail}."),
    FlagKind(
        "no_finish_reason",
        "warning",
        "an answer ended with [DONE] and no finish reason",
        "The server does not say whether these answers are whole or were cut: {detail}.",
    ),
    FlagKind(
        "revised",
        "note",
        "text was replaced after it was shown",
        "Text was revised after it was shown; only the final form counts: {detail}.",
    ),
    FlagKind(
        "unread_text",
        "invalid",
        "over 2% as much text as was delivered stands under names that are not read: it is in no count, and the first "
        "token may have come with it (less: warning)",
        "Text under names that are not read, missing from every figure: {detail}.",
    ),
    FlagKind(
        "energy_disagrees",
        "warning",
        "energy counter and power integral differ by more than 5%",
        "No energy figure: {detail}.",
    ),
    FlagKind(
        "counters_disagree",
        "warning",
        "the engine's own count of tokens differs by more than 1%",
        "The engine's counters disagree: {detail}.",
    ),
)


def flag(id: str, detail: str = "", severity: Severity | None = None) -> Flag:
    """A flag of the table with its detail filled in; `severity` where a rule weakens or strengthens it."""
    kind = FLAGS[id]
    return Flag(
        id=id, severity=severity or kind.severity, text=kind.sentence.replace("{detail}", detail or "no detail")
    )
