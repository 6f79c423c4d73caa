"""When a run is flagged: each rule just below and just above its limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from speed_making import make_row

from paribus.conditions import FLAGS, flag
from paribus.speed.counted import Generated
from paribus.speed.flags import Facts
from paribus.speed.judging import ROW_RULES, START_RULES, judge, pooled
from paribus.speed.metrics.tokens import UsageCheck

GOOD = make_row()
FAILED = make_row(ok=False, error="cut")
LOOP = make_row(degenerate=True)
CAPPED = make_row(capped=True)


def rows(bad, n: int, of: int) -> Facts:
    return Facts(rows=[bad] * n + [GOOD] * (of - n))


def drifting(times: float, of: int = 30) -> Facts:
    """Answers of which the first third takes so many times as long."""
    took = [round(10**9 * (times if i < of // 3 else 1)) for i in range(of)]
    return Facts([make_row(index=i, e2e_ns=ns) for i, ns in enumerate(took)])


def thinking(tokens: float, n: int, of: int = 100) -> Facts:
    """Answers of a system with thinking off, n of which hold so many tokens of reasoning."""
    return Facts([make_row(reasoning_tokens=tokens)] * n + [GOOD] * (of - n), thinking=False)


SAME = [("a", "x"), ("b", "x"), ("c", "x"), ("d", "y")]
MISMATCH = UsageCheck(256, 40, "tokenizer", True, True)

# flag, facts that must not set it, facts that must, severity
TABLE = [
    ("failures", rows(FAILED, 1, 100), rows(FAILED, 2, 100), "invalid"),
    ("degenerate", rows(LOOP, 2, 100), rows(LOOP, 3, 100), "invalid"),
    ("degenerate", Facts(rows=[GOOD], cpu=True), replace(rows(LOOP, 3, 100), cpu=True), "warning"),
    ("capped", rows(CAPPED, 5, 100), rows(CAPPED, 6, 100), "note"),
    ("usage_missing", Facts([GOOD]), Facts([GOOD], without_usage={"standard"}), "note"),
    ("usage_missing", Facts([make_row(tokens_method="tokenizer")]), Facts([GOOD], without_usage={"tokenizer"}), "note"),
    (
        "usage_unverified",
        Facts([GOOD], usage=UsageCheck(40, 40, "tokenizer", False, False)),
        Facts([GOOD], usage=UsageCheck(41, 40, "standard tokens", False, True)),
        "warning",
    ),
    ("cached", Facts([GOOD], cached_tokens=0), Facts([GOOD], cached_tokens=5), "invalid"),
    ("cached", Facts([GOOD], cached_tokens=5, headline=False), Facts([GOOD], cached_tokens=5), "invalid"),
    ("thinking_mismatch", thinking(8, 100), thinking(9, 2), "invalid"),
    ("thinking_mismatch", thinking(0, 100), thinking(900, 1), "warning"),
    ("thinking_mismatch", replace(thinking(900, 100), thinking=True), thinking(900, 100), "invalid"),
    ("thinking_mismatch", replace(thinking(900, 100), thinking=None), thinking(900, 100), "invalid"),
    ("late", Facts([make_row(sent_ns=10**7)]), Facts([make_row(sent_ns=2 * 10**7)]), "warning"),
    (
        "usage_mismatch",
        Facts([GOOD], usage=replace(MISMATCH, mismatch=False)),
        Facts([GOOD], usage=MISMATCH),
        "invalid",
    ),
    ("compiled_in_window", Facts([GOOD]), Facts([GOOD], compiled=("a graph", "another")), "invalid"),
    ("settings_differ", Facts([GOOD]), Facts([GOOD], settings_differ=("slots 8 where 16 was declared",)), "warning"),
    ("research_implementation", Facts([GOOD]), Facts([GOOD], research="transformers 5"), "invalid"),
    ("hidden_tokens", Facts([GOOD], usage=MISMATCH), Facts([GOOD], usage=MISMATCH, hosted=True), "warning"),
    (
        "counters_disagree",
        Facts([GOOD], generated=Generated(909, 900, 9)),
        Facts([GOOD], generated=Generated(910, 900, 9)),
        "warning",
    ),
    ("cached_answers", Facts([GOOD], digests=SAME[2:]), Facts([GOOD], digests=SAME), "invalid"),
    (
        "client_bound",
        Facts([GOOD], lag_ms_p99=0.19, stall_ms_p50=20),
        Facts([GOOD], lag_ms_p99=0.21, stall_ms_p50=20),
        "invalid",
    ),
    ("client_bound", Facts([GOOD], lag_ms_p99=4.9), Facts([GOOD], lag_ms_p99=5.1), "invalid"),
    ("client_bound", Facts([GOOD], lag_ms_p99=4.9, cpu=True), Facts([GOOD], lag_ms_p99=5.1, cpu=True), "warning"),
    (
        "client_bound",
        Facts([GOOD], lag_ms_p99=0.1, stall_ms_p50=1),
        Facts([GOOD], lag_ms_p99=0.11, stall_ms_p50=1),
        "invalid",
    ),
    ("admits", Facts([GOOD], concurrency=16, admitted=15), Facts([GOOD], concurrency=16, admitted=14), "invalid"),
    ("admits", Facts([GOOD], concurrency=16), Facts([GOOD], concurrency=16, admitted=1), "invalid"),
    ("not_started", Facts([GOOD]), Facts([], not_started="llamacpp died while loading"), "invalid"),
    ("interrupted", Facts([GOOD], planned=1), Facts([GOOD], planned=2), "invalid"),
    ("not_stationary", Facts([GOOD]), Facts([GOOD], warm_up="blocks differ by 9%"), "warning"),
    ("drift", drifting(1.49), drifting(1.51), "warning"),
    ("drift", drifting(1 / 1.49), drifting(1 / 1.51), "warning"),
    ("drift", drifting(3, of=23), drifting(3, of=24), "warning"),
    ("fewer_at_once", Facts([GOOD], seen=128, asked=128), Facts([GOOD], seen=100, asked=128), "invalid"),
    ("short_window", Facts([GOOD]), Facts([GOOD], window_short="3 s"), "warning"),
    ("preliminary", Facts([GOOD]), Facts([GOOD], preliminary_scale="demo"), "note"),
    ("sampling_left_out", Facts([GOOD]), Facts([GOOD], left_out=["top_k"]), "note"),
    ("sampler_unverified", Facts([GOOD]), Facts([GOOD], sampler_unverified="no counters"), "note"),
    ("sampler_mismatch", Facts([GOOD]), Facts([GOOD], sampler_mismatch="14 passes for 10"), "invalid"),
    ("hardly_accepted", Facts([GOOD], drafted=(99, 0)), Facts([GOOD], drafted=(100, 0)), "warning"),
    ("hardly_accepted", Facts([GOOD], drafted=(1000, 10)), Facts([GOOD], drafted=(1000, 9)), "warning"),
    ("synthetic", Facts([GOOD]), Facts([GOOD], synthetic="claim-x"), "invalid"),
    ("no_done", Facts([GOOD]), Facts([GOOD], without_done=1), "note"),
    ("no_finish_reason", Facts([GOOD]), Facts([GOOD], without_finish=1), "warning"),
    ("revised", Facts([GOOD]), Facts([GOOD], revised=1), "note"),
    ("unread_text", Facts([GOOD]), Facts([GOOD], unread={"note": 1}), "warning"),
    ("unread_text", Facts([GOOD]), Facts([GOOD], unread={"note": 8}), "warning"),
    ("unread_text", Facts([GOOD]), Facts([GOOD], unread={"note": 8, "other": 1}), "invalid"),
    ("unread_text", Facts([]), Facts([], unread={"note": 1}), "invalid"),
    ("busy", Facts([GOOD], busy_share=0.05), Facts([GOOD], busy_share=0.06), "warning"),
    ("throttled", Facts([GOOD]), Facts([GOOD], throttled="9% of the window, thermal"), "invalid"),
    ("throttled", Facts([GOOD]), Facts([GOOD], throttled="power cap", throttled_severity="note"), "note"),
    ("power_limited", Facts([GOOD]), Facts([GOOD], power_limited="450 W of 700 W by default"), "warning"),
    ("energy_disagrees", Facts([GOOD]), Facts([GOOD], energy_disagrees="1 J, 2 J"), "warning"),
]


@pytest.mark.parametrize(("name", "below", "above", "severity"), TABLE)
def test_each_rule_at_its_limit(name, below, above, severity):
    assert name not in {f.id for f in judge(below)}
    assert {f.id: f.severity for f in judge(above)}[name] == severity


def test_every_rule_of_the_table_is_tested_and_every_flag_is_known():
    tested = {name for name, *_ in TABLE}
    assert len(ROW_RULES) + len(START_RULES) <= len(tested)
    assert tested <= set(FLAGS)
    assert all(rule.__doc__ for rule in ROW_RULES + START_RULES)


@pytest.mark.parametrize("rule", ROW_RULES, ids=lambda rule: rule.__name__)
def test_what_a_rule_on_rows_found_in_a_start_is_judged_anew_over_all_of_them(rule):
    above = next(above for name, _, above, _ in TABLE if name == rule.__name__)
    found = rule(above)
    assert found.id == rule.__name__, "a rule on rows is known by the flag that it sets"
    assert pooled([[found]], rows(FAILED, 0, 100)) == []


def test_nothing_measured_is_no_reason_to_flag_or_fail():
    assert judge(Facts(rows=[])) == []


def test_a_failure_says_how_many_and_why():
    text = judge(rows(FAILED, 2, 100))[0].text
    assert "2 of 100" in text
    assert "cut" in text


def test_a_run_is_judged_over_all_its_requests_not_by_its_worst_start():
    bad = judge(rows(FAILED, 2, 100))
    assert bad
    assert pooled([bad, []], rows(FAILED, 2, 200)) == []


def test_other_flags_of_a_start_stay_with_the_run_and_say_in_how_many_starts():
    weak, strong = flag("throttled", "cap", "note"), flag("throttled", "thermal")
    found = pooled([[weak], [strong], []], Facts(rows=[GOOD]))
    assert [(f.id, f.severity) for f in found] == [("throttled", "invalid")]
    assert found[0].text == "The card was throttled: thermal (in 2 of 3 starts)."
