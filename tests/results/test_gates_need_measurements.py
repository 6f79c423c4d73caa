"""Lossless gates are fed by measurements alone: no run that a flag calls none, no answer that never came."""

from __future__ import annotations

import json

import pytest
from synthetic_runs import Clone
from test_lossless_join import NGRAM, canary, sealed, table
from test_quality_runs import quality_run

from paribus.quality.run import score_start
from paribus.results.build import build
from paribus.results.data import RunData
from paribus.results.pairing import sound
from paribus.results.run import RunFolder
from paribus.results.seal import seal

pytest.importorskip("lm_eval", reason="lm-eval is not installed (uv sync --extra quality)")

OTHER_BUILD = "fedcba543210"
CUT = "SELECT DISTINCT run_id FROM flags WHERE flag = 'not_lossless'"


def asked(clone: Clone, right: int, came: int, **more: str) -> RunFolder:
    """A run of ten questions of which so many were answered before the server was gone."""
    run = quality_run(clone, right, **more)
    path = run.folder / "start-1" / "journal.jsonl"
    head, *lines = path.read_text().splitlines()
    lost = {"error": "cut", "text": "", "finish_reason": None}
    entries = [json.loads(line) | ({} if place < came else lost) for place, line in enumerate(lines)]
    path.write_text("\n".join([head, *map(json.dumps, entries)]) + "\n")
    score_start(run.folder / "start-1", clone.catalog)
    seal(run, clone.catalog)
    return run


def test_a_broken_decoder_does_not_pass_beside_a_broken_run_of_plain_decoding(clone: Clone) -> None:
    canary(clone, 2)
    plain = asked(clone, 10, 2, name="smoke-mmlu-pro")
    assert not sound(RunData.read(plain))
    build(clone.root)
    ((standing, told, questions),) = table(clone, "SELECT standing, sentence, prompts FROM lossless")
    assert (standing, questions) == ("undecided", 0)
    assert f"without the answers of {plain.run_id}, whose flags say that they are no measurement" in told
    # Asked again, of a server that lasted, plain decoding shows what the decoder is.
    asked(clone, 2, 10, decoder=NGRAM, name="smoke-canary", build=OTHER_BUILD)
    asked(clone, 10, 10, name="smoke-mmlu-pro", build=OTHER_BUILD)
    build(clone.root)
    assert {row[0] for row in table(clone, "SELECT standing FROM lossless")} == {"undecided", "failed"}


def test_a_sound_decoder_whose_server_died_has_not_failed(clone: Clone) -> None:
    asked(clone, 10, 3, decoder=NGRAM, name="smoke-canary")
    canary(clone, 10, "plain", "smoke-mmlu-pro")
    build(clone.root)
    assert table(clone, "SELECT standing, prompts FROM lossless") == [("undecided", 0)]
    assert table(clone, CUT) == []


@pytest.mark.parametrize("side", ["decoder", "plain"])
def test_an_answer_that_never_came_is_held_against_nobody(
    clone: Clone, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of ten, in runs whose flags let that pass."""
    monkeypatch.setattr("paribus.quality.score._FAILED", 0.5)
    came = {"decoder": 10, "plain": 10} | {side: 7}
    asked(clone, 10, came["decoder"], decoder=NGRAM, name="smoke-canary")
    asked(clone, 10, came["plain"], name="smoke-mmlu-pro")
    build(clone.root)
    ((standing, told, questions),) = table(clone, "SELECT standing, sentence, prompts FROM lossless")
    assert (standing, questions) == ("undecided", 7)
    assert "not one question differs" in told


def test_the_canary_is_held_against_answers_of_its_own_answer_class(clone: Clone) -> None:
    """Another build's plain decoding has other answers."""
    canary(clone, 2)
    asked(clone, 10, 10, name="smoke-mmlu-pro", build=OTHER_BUILD)
    build(clone.root)
    assert table(clone, "SELECT standing, prompts FROM lossless") == [("undecided", 0)]


@pytest.mark.parametrize("broken", ["plain", NGRAM])
def test_the_gate_at_the_served_temperature_leaves_out_what_is_no_measurement(clone: Clone, broken: str) -> None:
    sides = {decoder: sealed(clone, decoder, words=130 if decoder == "plain" else 150) for decoder in ("plain", NGRAM)}
    build(clone.root)
    assert table(clone, "SELECT gate, standing FROM lossless") == [("served", "failed")]
    path = sides[broken].place.folder / "summary.json"
    flag = {"id": "failures", "severity": "invalid", "text": "half of the requests failed"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"flags": [flag]}))
    build(clone.root)
    assert table(clone, "SELECT gate, standing FROM lossless") == []
    assert table(clone, CUT) == []
