"""The lossless gate: verdicts follow from counts, hold their error rate, and answers are asked as they should be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paribus.catalog import PromptLine
from paribus.conditions import CheckFailed
from paribus.quality.lossless import (
    ALPHA,
    FEWEST,
    MARGIN,
    Compared,
    LosslessVerdict,
    Scored,
    digest,
    judge,
    sign_test,
    violations,
)
from paribus.quality.lossless_run import Given, answers, compared
from scripted import DONE, Script, Scripted, Step, content, finish, usage


def prompts(subject: int, control: int, both: int, same: int) -> list[Compared]:
    """Prompts of which so many differ for the decoder only, for plain against plain only, for both, for neither."""
    kinds = [("p", "s")] * subject + [("c", "p")] * control + [("c", "s")] * both + [("p", "p")] * same
    return [Compared(prompt=str(n), plain="p", control=c, subject=s) for n, (c, s) in enumerate(kinds)]


@pytest.mark.parametrize(
    ("counts", "standing"),
    [
        ((0, 0, 0, 14), "passed"),
        ((0, 2, 1, 11), "passed"),
        ((2, 2, 0, 10), "passed"),
        ((1, 0, 0, 13), "undecided"),
        ((4, 0, 0, 10), "undecided"),
        ((5, 0, 0, 9), "failed"),
        ((9, 3, 0, 2), "undecided"),
        ((9, 1, 4, 0), "failed"),
    ],
)
def test_no_more_answers_may_differ_than_of_plain_against_plain(counts: tuple[int, ...], standing: str) -> None:
    found = prompts(*counts)
    differ, control, p, said = judge(found)
    assert (differ, control) == (counts[0] + counts[2], counts[1] + counts[2])
    assert said == standing
    assert (p < ALPHA) == (standing == "failed")


@given(st.integers(0, 30), st.integers(0, 30))
def test_the_sign_test_adds_up_coin_throws(more: int, less: int) -> None:
    n = more + less
    exact = sum(math.comb(n, k) for k in range(more, n + 1)) / 2**n
    assert sign_test(more, less) == pytest.approx(exact)


def test_a_lossless_decoder_rarely_fails_and_a_lossy_one_rarely_passes() -> None:
    rng = np.random.default_rng(23)

    def standings(rate: float) -> list[str]:
        found = []
        for _ in range(400):
            control, subject = rng.random(50) < 0.1, rng.random(50) < rate
            rows = [
                Compared(prompt=str(n), plain="p", control="c" if c else "p", subject="s" if s else "p")
                for n, (c, s) in enumerate(zip(control, subject, strict=True))
            ]
            found.append(judge(rows)[3])
        return found

    assert standings(0.1).count("failed") <= 20
    lossy = standings(0.5)
    assert lossy.count("failed") >= 380
    assert lossy.count("passed") == 0


def scored(*gaps: float) -> Scored:
    return Scored(tokens=40, gaps=list(gaps))


def rows(subject: list[Scored], control: list[Scored]) -> list[Compared]:
    return [
        Compared(prompt=str(n), plain="p", control="c", subject="s", control_scored=b, subject_scored=a)
        for n, (a, b) in enumerate(zip(subject, control, strict=True))
    ]


def test_given_text_that_plain_decoding_scores_is_judged_by_its_tokens() -> None:
    assert violations([0.0, 0.4, 0.5, 0.51, 7.0]) == 2
    ties, broken = [scored(MARGIN, 0.1)] * FEWEST, [scored(2.0, 3.0)] * FEWEST
    assert judge(rows(ties, ties)) == (0, 0, 1.0, "passed"), "other texts, but every token is a tie"
    assert judge(rows(broken, ties))[::3] == (FEWEST, "failed")
    assert judge(rows(broken, broken))[3] == "passed", "plain decoding breaks as many at another load"
    one = [scored(2.0), *ties[1:]]
    assert judge(rows(one, ties))[3] == "undecided"
    # As many prompts differ, but in more tokens: not passed.
    assert judge(rows([scored(2.0, 2.0), *ties[1:]], one))[3] == "undecided"
    assert judge(rows(ties[1:], ties[1:]))[3] == "undecided", "too few prompts"


def test_a_verdict_is_told_in_one_sentence() -> None:
    def told(found: list[Compared], **more: object) -> LosslessVerdict:
        differ, control, p, standing = judge(found)
        return LosslessVerdict(
            schema_version=1, system="s", plain="p", max_tokens=64, at_once=4, engine="e", hashes={}, prompts=found,
            differ=differ, control_differ=control, p=p, standing=standing, measured_at="2026-12-01T10:00:00Z", **more,
        )  # fmt: skip

    def verdict(*counts: int) -> LosslessVerdict:
        return told(prompts(*counts))

    forced = told(rows([scored(2.0, 0.3)] * 14, [scored(0.9), *[scored()] * 13]), form="teacher-forced", margin=MARGIN)
    assert forced.sentence == (
        "lossless: failed at T=0 on 14 prompts (14 of 560 tokens lie more than 0.5 below plain decoding's likeliest, "
        "1 of plain's own at another load)"
    )
    assert verdict(0, 0, 0, 14).sentence == "lossless: passed at T=0 on 14 prompts"
    assert verdict(6, 0, 1, 7).sentence == (
        "lossless: failed at T=0 (7 of 14 answers differ from plain decoding's, 1 of plain's own at another load)"
    )


def said(text: str) -> Script:
    return Script((Step(1, content(text)), Step(2, finish()), Step(2, usage(1) + DONE)))


ASKED = [PromptLine(id=str(n), messages=[{"role": "user", "content": f"question {n}"}]) for n in range(6)]


def test_answers_are_asked_at_temperature_0_in_order_and_so_many_at_once(scripted: Scripted) -> None:
    scripted.register("m", said("fine"))
    found = answers(scripted.endpoint("m"), ASKED, max_tokens=9, at_once=3)
    assert len({each.text for each in found}) == 1
    assert {(e.request["temperature"], e.request["max_tokens"], "seed" in e.request) for e in scripted.log()} == {
        (0.0, 9, False)
    }
    assert max(emission.active for emission in scripted.log()) <= 3
    rows = compared(ASKED, found, found, [Given("0", "other"), *found[1:]])
    assert [row.prompt for row in rows] == [str(n) for n in range(6)]
    assert rows[0].plain == rows[0].control == digest(found[0].text) != rows[0].subject
    assert judge(rows)[:2] == (1, 0)


def test_a_failed_answer_ends_the_gate(scripted: Scripted) -> None:
    scripted.register("m", Script((Step(0, b"{}"),), status=400, content_type="application/json", framing="length"))
    with pytest.raises(CheckFailed, match="needs every answer"):
        answers(scripted.endpoint("m"), ASKED, max_tokens=9, at_once=2)


@pytest.mark.parametrize("gaps", [[math.nan], [math.inf], [-1.0], [0.7, 0.8, 0.9]])
def test_gaps_that_hide_a_violation_are_none(gaps: list[float]) -> None:
    with pytest.raises(ValidationError):
        Scored(tokens=2, gaps=gaps)
