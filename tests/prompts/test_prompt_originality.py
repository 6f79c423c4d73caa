"""No prompt of ours repeats another one, or has its words from an evaluation set."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_statistics import user_text

from paribus.catalog import Catalog
from paribus.catalog.overlap import RUN, runs_of, shared_runs, words_of

PROMPTS = Catalog(Path(__file__).parents[2]).prompt_set("own-v1")
TEXTS = {p.id: "\n".join(str(m["content"]) for m in p.messages or []) for p in PROMPTS}


def test_no_two_prompts_are_near_duplicates() -> None:
    """At most a fifth of the four-word runs of the shorter one; system messages aside."""
    cut = {p.id: runs_of(user_text(p), 4) for p in PROMPTS}
    for a, b in combinations(cut, 2):
        fewer = min(len(cut[a]), len(cut[b]))
        assert len(cut[a] & cut[b]) <= max(1, fewer / 5), (a, b)


def test_no_two_prompts_share_a_sentence() -> None:
    """No thirteen words of one in another, but for what all prompts of a kind must say: the format of calls."""
    framed = {p.id: user_text(p) if p.kind in ("tools", "json") else TEXTS[p.id] for p in PROMPTS}
    seen: dict[tuple[str, ...], str] = {}
    both = set()
    for id, text in framed.items():
        for run in runs_of(text):
            if seen.setdefault(run, id) != id:
                both.add((seen[run], id, " ".join(run)))
    assert both == set()


def texts_below(folder: Path) -> Iterator[str]:
    """All text of the evaluation data at hand."""
    for path in sorted(folder.rglob("*")):
        if path.name.endswith((".jsonl", ".json", ".md")):
            yield path.read_text(encoding="utf-8")
        elif path.name.endswith((".jsonl.gz", ".json.gz")):
            yield gzip.decompress(path.read_bytes()).decode()


def test_no_thirteen_words_in_a_row_are_from_an_evaluation_set() -> None:
    folder = os.environ.get("PARIBUS_DATA")
    if not folder:
        pytest.skip("PARIBUS_DATA is not set: no evaluation data to compare with")
    others = list(texts_below(Path(folder)))
    assert sum(map(len, others)) > 100_000, "PARIBUS_DATA holds too little text to compare with"
    assert shared_runs(TEXTS, others) == {}


@given(st.integers(1, RUN - 1), st.sampled_from(PROMPTS), st.integers(0, 10_000))
def test_a_copied_run_is_found_and_a_shorter_one_is_not(missing: int, prompt: object, at: int) -> None:
    id = prompt.id  # type: ignore[attr-defined]
    words = words_of(TEXTS[id])
    start = at % max(1, len(words) - RUN)
    copied = " ... ".join(words[start : start + RUN]).upper()
    shorter = " ".join(words[start : start + RUN - missing])
    if len(words) >= RUN:
        assert id in shared_runs({id: TEXTS[id]}, [f"Before. {copied}, after!"])
    assert shared_runs({id: TEXTS[id]}, [f"xxq {shorter} xxq"]) == {}


def test_scripts_without_blanks_are_compared_by_character() -> None:
    assert words_of("駅まで歩く、five分") == ["駅", "ま", "で", "歩", "く", "five", "分"]
    one = json.loads('"\\u4eca\\u5929\\u4e0b\\u96e8\\u6211\\u4eec\\u4e0d\\u53bb\\u516c\\u56ed\\u4e86\\u5427\\u597d"')
    assert set(shared_runs({"a": one}, [f"前{one}后"])) == {"a"}
