"""Shortcuts that must give what the plain way gives, to the last digit."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import numpy as np
import pytest

from paribus.speed.metrics.arrivals import ONE_ARRIVAL_NS, last_of_each
from paribus.speed.statistics import percentile
from paribus.wire import Outcome, read_answer

WORDS = (" time", " größe", '"', "\\", "\u2028", "\n", "", " word", " 日本", "x" * 5000)


@pytest.mark.parametrize("seed", range(20))
def test_a_percentile_is_numpys(seed: int) -> None:
    chance = np.random.default_rng(seed)
    values = chance.normal(size=int(chance.integers(1, 400))) * 10.0 ** int(chance.integers(-3, 9))
    for share in (0.0, 0.025, 0.1, 0.5, 0.975, 0.99, 1.0, float(chance.random())):
        assert percentile(values, share) == float(np.quantile(values, share))


@pytest.mark.parametrize("seed", range(20))
def test_arrivals_are_found_as_if_walked_through(seed: int) -> None:
    chance = random.Random(seed)
    gaps = [chance.choice([0, 1, 300_000, 999_999, 1_000_000, 5_000_000]) for _ in range(chance.randrange(1, 200))]
    at = np.cumsum(gaps)
    starts = [0]
    for place, t in enumerate(at.tolist()):
        if t - at[starts[-1]] >= ONE_ARRIVAL_NS:
            starts.append(place)
    ends = [b - 1 for _, b in pairwise([*starts, len(at)])]
    assert last_of_each(at).tolist() == ends


@pytest.mark.parametrize("seed", range(20))
def test_events_read_together_are_as_if_parsed_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    words = [chance.choice(WORDS[: chance.choice([1, 2, len(WORDS)])]) for _ in range(300)]
    plain = chance.random() < 0.5
    events = [
        f"data: {json.dumps({'choices': [{'delta': {'content': word}}]}, ensure_ascii=plain)}\n\n".encode()
        for word in words
    ]
    ends = np.cumsum([len(event) for event in events]).tolist()
    reads = tuple((1000 * number, end) for number, end in enumerate(ends) if number % 3 == 2 or end == ends[-1])
    outcome = Outcome(
        0, "p", 0, 0, 0, 9, 200, None, b"".join(events), reads, "text/event-stream", "measured", "chat", 0
    )
    read = read_answer(outcome)
    arrived = [next(t for t, reached in reads if reached >= end) for end in ends]
    assert [(piece.t_ns, piece.text) for piece in read.pieces] == [
        (t, word) for t, word in zip(arrived, words, strict=True) if word
    ]
