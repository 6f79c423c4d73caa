"""Two runs are compared when only the subject differs; else every difference is named with both values."""

from dataclasses import replace
from typing import Any

import pytest
from synthetic_runs import Clone, _rescale

from paribus.catalog import Catalog
from paribus.cli import main
from paribus.conditions import CONDITIONS, CheckFailed, UsageError
from paribus.engines.numbers import NOT_TOLD
from paribus.results.batches import window_batches
from paribus.results.compare import Comparison, compare
from paribus.results.data import RunData
from paribus.results.figures import numbers
from paribus.results.gates import SUBJECTS, differences, parse_subjects, refusals
from paribus.results.pairing import BEST_STACK, CONTROLLED
from paribus.results.pairing import DECODER as DECODERS
from paribus.results.run import RunSummary
from paribus.results.seal import seal
from paribus.results.strip import strip_of

DECODER = parse_subjects("decoder")


def sealed(clone: Clone, decoder: str = "plain", scenario: str = "c1-long", **options: Any) -> RunData:
    run = clone.run(decoder, scenario, **options)
    seal(run, clone.catalog)
    return RunData.read(run)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunData, RunData]:
    """Speculation at 8 ms a word beside plain decoding at 12; three starts each."""
    from synthetic_runs import make_catalog

    root = tmp_path_factory.mktemp("pair")
    clone = Clone(root, make_catalog(root))
    names = ("ngram-simple-n4-m4", "plain")
    return tuple(sealed(clone, name, starts=3) for name in names)  # type: ignore[return-value]


def changed(data: RunData, **conditions: Any) -> RunSummary:
    """The summary of a run under other conditions."""
    declared = {**data.summary.declared, **{n: v for n, v in conditions.items() if CONDITIONS[n].how == "declared"}}
    observed = {**data.summary.observed, **{n: v for n, v in conditions.items() if CONDITIONS[n].how == "observed"}}
    return data.summary.model_copy(update={"declared": declared, "observed": observed})


def test_every_condition_that_may_be_the_subject_has_a_word() -> None:
    told = {name for names in SUBJECTS.values() for name in names}
    assert told == {name for name, condition in CONDITIONS.items() if condition.gates == "subject"}


NUMBERS = [
    ("kv_cache", "bf16", "fp8"),
    ("kv_cache", "bf16", f"bf16{NOT_TOLD}"),
    ("quantization", "none", "fp8"),
    ("dtype", "bf16", "f16"),
]


@pytest.mark.parametrize(("name", "one", "two"), NUMBERS)
def test_a_controlled_pair_and_a_stacks_decoders_have_the_same_numbers_and_best_stacks_need_not(
    pair: tuple[RunData, RunData], name: str, one: str, two: str
) -> None:
    left, right = changed(pair[0], **{name: one}), changed(pair[1], **{name: two})
    for only in (CONTROLLED, DECODERS):
        assert name in {d.name for d in refusals(left, right, parse_subjects(only))}, only
    assert refusals(left, right, parse_subjects(BEST_STACK)) == []
    named = [d.name for d in differences(left, right, parse_subjects(BEST_STACK))]
    assert name in named, "and the sentence says it"
    unread = changed(pair[1], **{name: None})
    assert name in {d.name for d in refusals(left, unread, parse_subjects(CONTROLLED))}, "not known is not the same"
    assert name not in {d.name for d in refusals(left, changed(pair[1], **{name: one}), parse_subjects(CONTROLLED))}


SAME_TYPES = [
    ("kv_cache", "fp8", "fp8_e4m3"),
    ("kv_cache", "bf16", "torch.bfloat16"),
    ("quantization", "compressed-tensors", "compressed_tensors"),
    ("dtype", "torch.bfloat16", "bfloat16"),
    ("dtype", "float16", "half"),
]


@pytest.mark.parametrize(("name", "one", "two"), SAME_TYPES)
def test_two_words_of_engines_for_one_type_of_numbers_are_no_difference(
    pair: tuple[RunData, RunData], name: str, one: str, two: str
) -> None:
    left, right = changed(pair[0], **{name: one}), changed(pair[1], **{name: two})
    for only in (CONTROLLED, DECODERS, BEST_STACK):
        assert name not in {d.name for d in differences(left, right, parse_subjects(only))}, only


def test_a_quantisation_that_was_not_read_is_not_that_there_is_none(pair: tuple[RunData, RunData]) -> None:
    left, right = changed(pair[0], quantization=None), changed(pair[1], quantization="none")
    assert "quantization" in {d.name for d in refusals(left, right, DECODER)}
    assert "quantization" not in {d.name for d in refusals(left, changed(pair[1], quantization=None), DECODER)}


def test_two_models_whose_weights_were_fetched_unpinned_are_compared(pair: tuple[RunData, RunData]) -> None:
    left, right = (changed(pair[0], model=name, weights=name, weights_revision=name * 20) for name in ("aa", "bb"))
    assert refusals(left, right, parse_subjects("model")) == []
    assert [d.name for d in refusals(left, right, parse_subjects("decoder"))] == [
        "model",
        "weights",
        "weights_revision",
    ]


def test_launch_settings_that_differ_are_named_in_the_sentence_one_by_one(pair: tuple[RunData, RunData]) -> None:
    settings = {"launch": {"slots": 4, "batch": 512}}, {"launch": {"slots": 4}}
    left, right = (replace(one, summary=changed(one, **given)) for one, given in zip(pair, settings, strict=True))
    with pytest.raises(CheckFailed, match=r"launch settings: batch 512 and none \(to compare just this: .*launch"):
        compare(left, right, DECODER)
    made = compare(left, right, parse_subjects("decoder,launch"))
    assert made.sentences()[0].endswith("; they also differ in: launch settings")
    assert "also differ" not in compare(*pair, DECODER).sentences()[0]


def test_what_the_server_samples_by_itself_gates_one_model_on_one_engine(pair: tuple[RunData, RunData]) -> None:
    """It decides what a request leaves open: llama.cpp's min_p of 0.05 against none is another answer."""
    everything = parse_subjects(",".join(SUBJECTS))
    left, right = (changed(pair[0], sampling_defaults={"min_p": value}) for value in (0.0, 0.05))
    assert [d.name for d in refusals(left, right, everything)] == ["sampling_defaults"]
    # Engines tell it in words of their own, and a diffusion model has a schedule: elsewhere it is shown.
    for name in ("engine", "model"):
        other = changed(pair[0], sampling_defaults="openai", **{name: "other"})
        assert refusals(left, other, everything) == []
        assert "sampling_defaults" in {d.name for d in refusals(left, other, DECODER)}


def test_the_decoder_is_compared_when_it_is_the_subject(pair: tuple[RunData, RunData]) -> None:
    made = compare(*pair, DECODER)
    speedup = made.ratios[0]
    # 50 ms, then one word each 8 or 12 ms: over 300 standard tokens that is nearly 12 / 8.
    assert speedup.metric in ("speedup_time_to_100", "speedup_time_to_300")
    assert 1.35 < speedup.value < 1.5
    assert speedup.low is not None
    assert speedup.low < speedup.value < (speedup.high or 0)
    assert speedup.basis == "starts and prompts"
    assert "times as fast as plain" in made.sentences()[0]
    assert {d.name for d in made.subject} == {"decoder", "decoder_parameters"}


def test_prompts_that_only_one_side_ran_are_in_no_speedup_and_are_named(pair: tuple[RunData, RunData]) -> None:
    """Plain decoding takes a hundred times as long over maths, which the other side left out."""
    fast, plain = (RunData(one.place, one.summary) for one in pair)
    fast.__dict__["rows"] = [[row for row in rows if row.kind != "maths"] for rows in fast.rows]
    slow = [
        [replace(r, e2e_ns=(r.e2e_ns or 0) * (100 if r.kind == "maths" else 1)) for r in rows] for rows in plain.rows
    ]
    plain.__dict__["rows"] = slow
    made = compare(fast, plain, DECODER)
    whole = next(one for one in made.ratios if one.metric == "speedup_answer_time")
    assert 1.3 < whole.value < 1.6
    assert any(note.startswith("2 of 6 prompts were measured on one side only") for note in made.notes)
    assert not any("one side only" in note for note in compare(*pair, DECODER).notes)


def test_prompts_that_one_side_answered_whole_nowhere_are_in_no_speedup_of_whole_answers_and_are_counted(
    pair: tuple[RunData, RunData],
) -> None:
    """Twenty copies of each prompt, and the fast side is cut at a slow one."""
    fast, plain = (RunData(one.place, one.summary) for one in pair)
    for one, whole in ((fast, pair[0]), (plain, pair[1])):
        slow = sorted({row.prompt_id for rows in whole.rows for row in rows})[0] + "-0"
        one.__dict__["rows"] = [
            [replace(row, prompt_id=f"{row.prompt_id}-{n}") for row in rows for n in range(20)] for rows in whole.rows
        ]
        one.__dict__["rows"] = [
            [
                replace(row, e2e_ns=(row.e2e_ns or 0) * 100, capped=one is fast) if row.prompt_id == slow else row
                for row in rows
            ]
            for rows in one.rows
        ]
    made = compare(fast, plain, DECODER)
    found = next(one for one in made.ratios if one.metric == "speedup_answer_time")
    assert 1.3 < found.value < 1.6
    note = "1 of 120 prompts have no whole answer on one side: they are not in the speed-up of whole answers"
    assert note in made.notes
    assert not any("no whole answer" in one for one in compare(*pair, DECODER).notes)


def test_seen_from_the_other_side_the_ratio_is_upside_down(pair: tuple[RunData, RunData]) -> None:
    one, two = compare(*pair, DECODER).ratios[0], compare(pair[1], pair[0], DECODER).ratios[0]
    assert one.value * two.value == pytest.approx(1)
    assert "ngram-simple-n4-m4 is" in compare(pair[1], pair[0], DECODER).sentences()[0]


def test_without_a_subject_it_is_refused_with_both_values_and_the_remedy(pair: tuple[RunData, RunData]) -> None:
    with pytest.raises(CheckFailed, match=r"decoder: ngram-simple-n4-m4 and plain .*--subject decoder"):
        compare(*pair, frozenset())


@pytest.mark.parametrize("name", [n for n, c in CONDITIONS.items() if c.gates == "always" and n != "energy_scope"])
def test_what_always_gates_is_never_compared(pair: tuple[RunData, RunData], name: str) -> None:
    everything = parse_subjects(",".join(SUBJECTS))
    value = {"acceptance_method": "approximate", "cached_tokens": 12, "sampling_accepted": ["top_p"]}.get(name, "other")
    right = changed(pair[1], **{name: value})
    left = pair[0].summary
    assert name in {d.name for d in refusals(left, right, everything - {"model"})}


@pytest.mark.parametrize("name", [n for n, c in CONDITIONS.items() if c.gates == "subject"])
def test_what_may_be_the_subject_is_refused_until_declared(pair: tuple[RunData, RunData], name: str) -> None:
    right = changed(pair[0], **{name: "other"})
    left = pair[0].summary
    assert [d.name for d in refusals(left, right)] == [name]
    assert refusals(left, right, {name}) == []
    assert [d.name for d in differences(left, right, {name})] == [name]


@pytest.mark.parametrize("name", [n for n, c in CONDITIONS.items() if c.gates == "shown"])
def test_what_is_only_shown_never_gates(pair: tuple[RunData, RunData], name: str) -> None:
    assert differences(pair[0].summary, changed(pair[0], **{name: "other"})) == []


def test_every_lossless_way_to_accept_drafts_may_meet(pair: tuple[RunData, RunData]) -> None:
    for one in ("none", "rejection", "block", "strict"):
        assert refusals(changed(pair[0], acceptance_method=one), changed(pair[0], acceptance_method="none")) == []
    synthetic = changed(pair[0], acceptance_method="synthetic")
    assert refusals(synthetic, pair[0].summary)


def test_fewer_requests_admitted_than_asked_is_refused(pair: tuple[RunData, RunData]) -> None:
    one, all_ = changed(pair[0], requests_at_once=16, admitted=12), changed(pair[0], requests_at_once=16, admitted=16)
    assert [d.name for d in refusals(one, all_)] == ["admitted"]
    assert "12 of 16" in str(refusals(one, all_)[0])


def test_one_request_less_than_asked_is_admitted_as_the_protocol_says(pair: tuple[RunData, RunData]) -> None:
    less, few = (changed(pair[0], requests_at_once=16, admitted=n) for n in (15, 14))
    unread = changed(pair[0], requests_at_once=16, admitted=None)
    assert refusals(less, unread) == []
    assert "not read" in str(refusals(few, unread)[0])
    said = [next(p.text for p in strip_of(one) if p.name == "requests") for one in (less, few)]
    assert ["admitted" in text for text in said] == [False, True]


def test_two_models_may_send_their_own_sampling_fields_if_none_is_left_out(pair: tuple[RunData, RunData]) -> None:
    model = parse_subjects("model")
    other = changed(pair[0], model="other", sampling={"temperature": 1.0, "top_k": 64})
    full = {"sampling_accepted": ["temperature", "top_k"]}
    assert refusals(pair[0].summary, other.model_copy(update={"observed": {**other.observed, **full}}), model) == []
    lacking = {**other.observed, "sampling_accepted": ["temperature"]}
    assert refusals(pair[0].summary, other.model_copy(update={"observed": lacking}), model)


def test_a_run_with_an_invalid_flag_is_in_no_comparison(clone: Clone) -> None:
    bad, good = sealed(clone, "ngram-simple-n4-m4", drop=1), sealed(clone, "plain")
    with pytest.raises(CheckFailed, match="failures"):
        compare(bad, good, DECODER)


def test_a_run_is_not_compared_with_itself(pair: tuple[RunData, RunData]) -> None:
    with pytest.raises(CheckFailed, match="the same run"):
        compare(pair[0], pair[0], DECODER)


def test_the_same_run_twice_is_a_usage_mistake(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = clone.run("plain", "c1-long", scale="demo")
    monkeypatch.chdir(clone.root)
    with pytest.raises(SystemExit) as end:
        main(["compare", run.run_id, str(run.folder)])
    assert end.value.code == 2
    assert f"the same run, {run.run_id}" in capsys.readouterr().err


def test_an_unknown_subject_is_named_with_what_there_is() -> None:
    with pytest.raises(UsageError, match="decoder"):
        parse_subjects("colour")
    with pytest.raises(UsageError):
        parse_subjects("precision")


def test_equal_decoders_show_no_clear_difference(clone: Clone) -> None:
    left = sealed(clone, "ngram-simple-n4-m4", pace=12.0, starts=3)
    made = compare(left, sealed(clone, "plain", starts=3), DECODER)
    assert made.ratios[0].value == pytest.approx(1)
    assert "no clear difference" in made.sentences()[0]


def _at_sixteen(clone: Clone, starts: int) -> Comparison:
    names = ("ngram-simple-n4-m4", "plain")
    runs = [sealed(clone, name, "c16-long", starts=starts, words=60) for name in names]
    return compare(runs[0], runs[1], DECODER, window_batches)


def test_without_a_steady_window_both_sides_are_compared_by_the_whole_run_and_no_batches(clone: Clone) -> None:
    names = ("ngram-simple-n4-m4", "plain")
    runs = [sealed(clone, name, "c16-long", scale="demo", words=60) for name in names]
    assert [one.summary.speed.throughput.value for one in runs if one.summary.speed] == [None, None]
    made = {one.metric: one for one in compare(runs[0], runs[1], DECODER, window_batches).ratios}
    assert "ratio_throughput" not in made
    ratio = made["ratio_throughput_whole_run"]
    assert ratio.value > 1
    assert (ratio.low, ratio.high) == (None, None)
    figures = {one.metric: one for one in numbers(runs[0])}
    assert "throughput" not in figures
    assert figures["throughput_whole_run"].headline


@pytest.mark.parametrize(("starts", "requests", "basis"), [(3, 48, "starts"), (1, 160, "batches"), (1, 48, "none")])
def test_throughput_at_sixteen_says_what_its_interval_rests_on(
    clone: Clone, starts: int, requests: int, basis: str
) -> None:
    _rescale(clone.root, "small", requests_16=requests, race_requests_16=None)
    made = _at_sixteen(Clone(clone.root, Catalog(clone.root)), starts)
    ratio = next(one for one in made.ratios if one.metric == "ratio_throughput")
    assert 1.2 < ratio.value < 1.55
    assert ratio.basis == basis
    sentence = next(s for s in made.sentences() if "Throughput" in s)
    assert ("one start" in sentence) == (basis == "batches")
    assert ("for these prompts only" in sentence) == (basis == "starts")


def test_whole_answers_at_sixteen_know_that_prompts_differ(clone: Clone) -> None:
    """Their intervals are over starts and prompts, as at one request; those of the window's throughput can't be."""
    made = _at_sixteen(clone, 3)
    ratio = next(one for one in made.ratios if one.metric == "speedup_answer_time")
    assert ratio.basis == "starts and prompts"
    figures = {one.metric: one for one in numbers(made.left)}
    for metric in ("answer_time", "ttft", "tokens_per_answer"):
        assert figures[metric].basis == "starts and prompts"
    assert figures["throughput"].basis == "starts"
    rows = [row for start in made.left.rows for row in start if row.counted and row.ok]
    mean_ms = sum((row.e2e_ns or 0) for row in rows) / len(rows) / 1e6
    assert figures["answer_time"].value == pytest.approx(mean_ms)


def test_short_answers_fall_back_to_a_smaller_k_and_say_so(clone: Clone) -> None:
    left = sealed(clone, "ngram-simple-n4-m4", words=20)
    made = compare(left, sealed(clone, "plain", words=20), DECODER)
    assert made.ratios[0].metric == "speedup_time_to_32"
    assert any("k = 32 is the largest" in note for note in made.notes)


def test_one_start_makes_no_claim_about_starts(clone: Clone) -> None:
    made = compare(sealed(clone, "ngram-simple-n4-m4"), sealed(clone, "plain"), DECODER)
    assert made.ratios[0].basis in ("prompts", "kinds")
    assert "knows nothing of what differs between starts" in made.sentences()[0]


def test_another_machine_is_said(clone: Clone) -> None:
    made = compare(sealed(clone, "ngram-simple-n4-m4"), sealed(clone, "plain", machine="m-other"), DECODER)
    assert any("two machines" in note for note in made.notes)
