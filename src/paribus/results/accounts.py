"""The token and time account of a quality run in words: for the command line and for a run's page."""

from __future__ import annotations

from paribus.quality.summary import Grading, QualitySummary, TokenAccount


def account_words(account: TokenAccount) -> str:
    """Mean tokens and times of an answer: `prompt 812, reasoning 0, answer 184 tokens; first text after 0.2 s, ...`."""
    if account.reasoning_tokens is None:
        parts = [("prompt", account.prompt_tokens), ("written", account.tokens)]
    else:
        parts = [
            ("prompt", account.prompt_tokens),
            ("reasoning", account.reasoning_tokens),
            ("answer", account.answer_tokens),
        ]
    tokens = ", ".join(f"{name} {'unknown' if value is None else f'{value:,.0f}'}" for name, value in parts)
    waits = [("first text", account.ttft_ms), ("whole", account.answer_time_ms)]
    times = ", ".join(f"{name} after {value / 1000:,.1f} s" for name, value in waits if value is not None)
    split = (
        " (reasoning split off by standard tokens, as the engine doesn't count it)" if account.reasoning_split else ""
    )
    return f"{tokens} tokens{split}" + (f"; {times}" if times else "")


def grading_words(grading: Grading) -> str:
    """Where programs were graded, and what that did to their time limit."""
    limit = grading.test_seconds * grading.factor
    speed = f"a fixed workload in {grading.workload_s:.3f} s (reference {grading.reference_s:.3f} s)"
    on = f", {grading.interpreter}" if grading.interpreter else ""
    return (
        f"{grading.cores} cores{on}, {speed}: {limit:.1f} s of CPU a test, {grading.factor:.2f} times the rule's; "
        f"{grading.starved} tests waited for a core"
    )


def account_facts(quality: QualitySummary) -> list[tuple[str, str]]:
    """Label and value of each line of the account: the load, the ends, all answers, right ones, wrong ones."""
    facts = [
        ("measured at", f"{quality.requests_at_once:,} request{'' if quality.requests_at_once == 1 else 's'} at once"),
        ("ended by", ", ".join(f"{reason} {count:,}" for reason, count in quality.finish_reasons.items())),
        ("an answer", account_words(quality.account)),
    ]
    for name, part in (("a right answer", quality.account_right), ("a wrong answer", quality.account_wrong)):
        if part is not None:
            facts.append((name, f"{account_words(part)} (mean of {part.answers:,})"))
    if quality.grading is not None:
        facts.append(("programs graded on", grading_words(quality.grading)))
    return facts
