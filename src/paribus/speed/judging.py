"""The flags of a start and of a run: every rule of `speed.flags` in one table, and how starts are judged together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from paribus.conditions import Flag
from paribus.speed import flags as rules
from paribus.speed.flags import Facts, Rule

ROW_RULES: tuple[Rule, ...] = (rules.failures, rules.degenerate, rules.capped, rules.late)
"""Rules on rows alone: judged again over all starts of a run. Each sets the flag that it is named after."""

ROW_FLAGS = frozenset(rule.__name__ for rule in ROW_RULES)

START_RULES: tuple[Rule, ...] = (
    rules.not_started,
    rules.died,
    rules.interrupted,
    rules.usage_missing,
    rules.usage_unverified,
    rules.usage_mismatch,
    rules.counters_disagree,
    rules.cached,
    rules.thinking_mismatch,
    rules.cached_answers,
    rules.client_bound,
    rules.admits,
    rules.not_stationary,
    rules.compiled_in_window,
    rules.hardly_accepted,
    rules.settings_differ,
    rules.research_implementation,
    rules.drift,
    rules.fewer_at_once,
    rules.short_window,
    rules.preliminary,
    rules.sampling_left_out,
    rules.sampler_mismatch,
    rules.sampler_unverified,
    rules.synthetic,
    rules.no_done,
    rules.no_finish_reason,
    rules.revised,
    rules.unread_text,
    rules.busy,
    rules.throttled,
    rules.power_limited,
    rules.energy_disagrees,
)
"""Rules on what else was seen: a run carries what any of its starts carries."""


def judge(facts: Facts, table: Sequence[Rule] = ROW_RULES + START_RULES) -> list[Flag]:
    """The flags of one start: every rule of the table, then those found elsewhere, each id once."""
    found = [f for rule in table if (f := rule(facts)) is not None]
    return list({f.id: f for f in (*facts.also, *found)}.values())


_RANK = {"note": 0, "warning": 1, "invalid": 2}


def pooled(starts: Sequence[Sequence[Flag]], facts: Facts) -> list[Flag]:
    """The flags of a run: row rules judged over all rows; of the others the severest, saying in how many starts."""
    worst: dict[str, Flag] = {}
    seen: Counter[str] = Counter()
    for flags in starts:
        for one in flags:
            if one.id in ROW_FLAGS:
                continue
            seen[one.id] += 1
            if one.id not in worst or _RANK[one.severity] > _RANK[worst[one.id].severity]:
                worst[one.id] = one
    several = len(starts) > 1
    others = [
        one.model_copy(update={"text": f"{one.text.rstrip('.')} (in {seen[one.id]} of {len(starts)} starts)."})
        if several and seen[one.id] < len(starts)
        else one
        for one in worst.values()
    ]
    return [*judge(facts, ROW_RULES), *others]
