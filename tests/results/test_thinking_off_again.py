"""`paribus check` sees for itself that a run with thinking off held reasoning, whatever its summary says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paribus.catalog import Catalog
from paribus.conditions import flag
from paribus.results.gates import refusals
from paribus.results.recompute import around_from, same_flags
from paribus.site.pages.run_facts import ANSWER_FLAGS
from paribus.speed.summarise import summarise
from paribus.speed.trace import Prompt, trace
from paribus.wire import Outcome
from scripted import DONE, content, finish, reasoning, usage, words

CATALOG = Catalog(Path(__file__).parents[2])


def outcome(index: int) -> Outcome:
    """A whole answer of 60 tokens, half of them reasoning."""
    text = words(60, index)
    body, reads = b"", []
    parts = [reasoning("".join(text[:30])), content("".join(text[30:])), finish() + usage(60) + DONE]
    for i, part in enumerate(parts):
        body += part
        reads.append(((i + 1) * 10**8, len(body)))
    return Outcome(
        index=index, prompt_id=f"p{index}", due_ns=index * 10**9, sent_ns=index * 10**9, connect_ns=0,
        ended_ns=index * 10**9 + 3 * 10**8, status=200, error=None, body=body, reads=tuple(reads),
        content_type="text/event-stream", phase="measured", api="chat", worker=0,
    )  # fmt: skip


def made_again(declared: dict[str, Any]) -> list[Any]:
    """The flags that a check makes of three such answers."""
    none = dict.fromkeys(("admitted", "window_ns", "engine", "energy_j", "energy_scope", "energy_missing"))
    summary: Any = SimpleNamespace(client=SimpleNamespace(lag_ms_p99=None, cpu_share=None), flags=[], **none)
    manifest: Any = SimpleNamespace(declared=declared, observed={}, counters={}, origin="catalog")
    around = around_from(manifest, summary, CATALOG.scenario("c1-short"), CATALOG.scale("full"), cpu=False)
    traces = [trace(outcome(i), {f"p{i}": Prompt(f"p{i}", "chat", "short")}) for i in range(3)]
    return list(summarise(traces, around)[1].flags)


@pytest.mark.parametrize(("thinking", "found"), [(False, True), (True, False), (None, False)])
def test_a_check_makes_the_flag_again(thinking: bool | None, found: bool) -> None:
    flags = {f.id: f.severity for f in made_again({"thinking": thinking})}
    assert flags.get("thinking_mismatch") == ("invalid" if found else None)


def test_a_summary_that_leaves_it_out_is_told() -> None:
    faults = list(same_flags([], [f for f in made_again({"thinking": False}) if f.id == "thinking_mismatch"]))
    assert len(faults) == 1
    assert (
        "the flag thinking_mismatch is missing: The model thought though it ran with thinking off: 3 of 3" in faults[0]
    )


def test_such_a_run_is_in_no_comparison() -> None:
    same: dict[str, Any] = {"conditions": {}, "kind": "speed", "origin": "catalog", "quality": None}
    one: Any = SimpleNamespace(**same, flags=[])
    two: Any = SimpleNamespace(**same, flags=[flag("thinking_mismatch", "x")])
    assert refusals(one, one) == []
    assert ["thinking_mismatch" in str(each) for each in refusals(one, two)] == [True]
    assert "thinking_mismatch" in ANSWER_FLAGS, "shown among what is said of the answers"
