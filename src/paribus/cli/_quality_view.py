"""Quality scores in words, for `paribus quality` and `paribus score`."""

from __future__ import annotations

import sys
import time

import click

from paribus.quality.summary import GroupScore, QualitySummary
from paribus.results.accounts import account_words, grading_words


class Counting:
    """A progress line on standard error: on a terminal it is rewritten, in a log it comes every ten seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last = 0.0
        self._said = -1

    def __call__(self, done: int, of: int) -> None:
        """Say how far it is."""
        now = time.monotonic()
        live = sys.stderr.isatty()
        if done == self._said or (done < of and now - self._last < (0.2 if live else 10.0)):
            return
        self._last, self._said = now, done
        end = "\r" if live and done < of else "\n"
        click.echo(f"{self._what}: {done} of {of}{end}", err=True, nl=False)


def report(summary: QualitySummary) -> str:
    """Scores with their intervals, counts, tokens and flags."""
    lines = [
        f"{summary.task}: {summary.items} items x {summary.repeats}, cap {summary.cap:,} tokens ({summary.scorer})"
    ]
    for score in summary.scores:
        interval = "" if score.low is None or score.high is None else f"  [{score.low:.3f}, {score.high:.3f}]"
        lines.append(f"  {'*' if score.headline else ' '} {score.name:<12} {score.value:.3f}{interval}  {score.title}")
    if len(summary.by_group) > 1:
        lines.append("    " + ", ".join(_group(name, one) for name, one in summary.by_group.items()))
    lines.append(
        f"  answers read {summary.answered}, failed {summary.failed}, cut by the cap {summary.capped} "
        f"({100 * summary.capped_share:.1f}%)"
        + (f", broken off by the user simulator {summary.user_failed}" if summary.user_failed else "")
    )
    lines.append(f"  ended by: {', '.join(f'{reason} {count}' for reason, count in summary.finish_reasons.items())}")
    lines.append(f"  an answer, {summary.requests_at_once} at once: {account_words(summary.account)}")
    for name, part in (("right", summary.account_right), ("wrong", summary.account_wrong)):
        if part is not None and summary.account_right is not None and summary.account_wrong is not None:
            lines.append(f"    {name} ({part.answers}): {account_words(part)}")
    if summary.grading is not None:
        lines.append(f"  graded on {grading_words(summary.grading)}")
    lines += [f"  {flag.severity}: {flag.text}" for flag in summary.flags]
    return "\n".join(lines)


def _group(name: str, one: GroupScore) -> str:
    return f"{name} {one.value:.3f}" + ("" if one.majority is None else f" (majority {one.majority:.3f})")
