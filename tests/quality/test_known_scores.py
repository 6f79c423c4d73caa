"""Answer sheets of known answers get exactly the known scores, through lm-eval and from the journal alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from quality_journals import HEADER, ROOT, Sheet, entry

from paribus.catalog import Catalog
from paribus.conditions import UsageError
from paribus.quality import harness
from paribus.quality.asking import Question, missing
from paribus.quality.calibration import factor_of
from paribus.quality.data import item_id, load_items
from paribus.quality.journal import Entry, Key, read_journal
from paribus.quality.run import read_score, score_start
from paribus.quality.samples import Sample, accounts, read_samples
from paribus.quality.score import scores_of
from paribus.quality.summary import BY_EXAM_YEAR, QualitySummary
from paribus.quality.tasks.mmlu_pro import guessed


def ids(catalog: Catalog, name: str) -> list[str]:
    task = catalog.task(name)
    return [item_id(task, item) for item in load_items(task, catalog.root).items]


def score(summary: QualitySummary, name: str) -> float:
    (found,) = [each.value for each in summary.scores if each.name == name]
    return found


def test_aime_avg_and_majority(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-aime"), ROOT).items
    answers: dict = {}
    for number, item in enumerate(items):
        right, wrong = f"so \\boxed{{{item['answer']:03d}}}", "\\boxed{999}"
        # Item 0: 3 of 3 right; 1: 2 of 3; 2: one right, two different wrong ones (a tie); the rest: nothing read.
        texts = {0: [right] * 3, 1: [right, wrong, right], 2: [right, wrong, "The answer is 998."]}
        for repeat, text in enumerate(texts.get(number, ["I don't know"] * 3)):
            answers[item["id"], repeat] = text
    summary = score_start(sheet("smoke-aime", answers, repeats=3), catalog)
    assert score(summary, "avg@3") == pytest.approx((1 + 2 / 3 + 1 / 3) / 10)
    assert score(summary, "maj@3") == pytest.approx((1 + 1 + 1 / 3) / 10)
    assert (summary.items, summary.repeats, summary.answered, summary.failed) == (10, 3, 9, 0)
    headline = next(each for each in summary.scores if each.headline)
    assert headline.name == "avg@3"
    assert headline.low is not None
    assert headline.high is not None
    assert headline.low < headline.value < headline.high


def test_the_real_aime_has_an_interval_by_exam_year_beside_it(catalog: Catalog) -> None:
    """Three exams of two questions, right in 2 of 2, 1 of 2 and 0 of 2. Two exams are too few."""
    task, years = catalog.task("aime-2024-2026"), [2024, 2025, 2026]
    items = [{"id": f"q{year}-{n}", "year": year, "problem": "", "answer": 7} for year in years for n in range(2)]
    right = {2024: (1.0, 1.0), 2025: (1.0, 0.0), 2026: (0.0, 0.0)}
    nothing = accounts((missing(Key(task.task, "q", 0)),))
    samples = [
        Sample(str(item["id"]), 0, str(item["year"]), right[item["year"]][n % 2], "7", **nothing)
        for n, item in enumerate(items)
    ]
    header = HEADER.model_copy(update={"task": task.task, "family": "aime", "repeats": 1})
    found = {one.name: one for one in scores_of(task, header, items, samples, None)}
    by_year, headline = found[BY_EXAM_YEAR], next(one for one in found.values() if one.headline)
    assert by_year.value == headline.value == pytest.approx(0.5)
    # The years' means are 1, 0.5 and 0: an error of 0.5 / sqrt(3), times 4.30 (t of 2).
    assert (by_year.low, by_year.high) == (0.0, 1.0)
    two = scores_of(task, header, items[:4], samples[:4], None)
    assert BY_EXAM_YEAR not in {one.name for one in two}


def test_mmlu_pro_strict_lenient_official_and_unanswered(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-mmlu-pro"), ROOT).items
    letters = "ABCDEFGHIJ"
    answers: dict = {}
    for number, item in enumerate(items):
        right = item["answer"]
        other = letters[(letters.index(right) + 1) % 10]
        forms = [
            f"The answer is ({right}).",  # right by every rule
            f"**{right}**",  # lenient, and official by its last letter
            f"\\boxed{{{right}}}",  # the same
            f"the answer is ({other}), but the answer is ({right})",  # strict and lenient; official takes the first
            f"The answer is ({other}).",  # wrong by every rule
        ]
        answers[str(item["question_id"]), 0] = forms[number] if number < len(forms) else f"({other})"
    summary = score_start(sheet("smoke-mmlu-pro", answers), catalog)
    assert score(summary, "strict") == pytest.approx(2 / 10)
    assert score(summary, "lenient") == pytest.approx(4 / 10)
    assert score(summary, "official") == pytest.approx(3 / 10)
    assert score(summary, "answered") == 1.0
    assert score(summary, "guesses") == 0.0
    assert sum(one.value for one in summary.by_group.values()) > 0


def test_random_guesses_are_a_column_of_their_own(catalog: Catalog, sheet: Sheet) -> None:
    task = catalog.task("smoke-mmlu-pro")
    items = load_items(task, ROOT).items
    lucky = sum(guessed(f"{task.task}/{item['question_id']}", len(item["options"])) == item["answer"] for item in items)
    summary = score_start(sheet("smoke-mmlu-pro", {(str(q["question_id"]), 0): "no idea" for q in items}), catalog)
    assert [score(summary, name) for name in ("strict", "lenient", "official", "answered")] == [0.0, 0.0, 0.0, 0.0]
    assert score(summary, "guesses") == pytest.approx(lucky / len(items))


@pytest.mark.usefixtures("box")
def test_programs_strict_and_official(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-livecodebench"), ROOT).items
    answers = {}
    for number, item in enumerate(items):
        right = f"```python\n{item['reference_solution']}\n```"
        texts = [right, f"{right}\nIt prints:\n```\n42\n```", "```python\nprint('no')\n```", "no code"]
        answers[item["question_id"], 0] = texts[number] if number < 4 else right
    summary = score_start(sheet("smoke-livecodebench", answers), catalog)
    n = len(items)
    assert score(summary, "strict") == pytest.approx((n - 2) / n)
    assert score(summary, "official") == pytest.approx((n - 3) / n)
    assert score(summary, "answered") == pytest.approx((n - 1) / n)
    grading = summary.grading
    assert grading is not None
    assert grading.factor == factor_of(grading.workload_s)
    assert grading.test_seconds == 6.0


@pytest.mark.usefixtures("box")
def test_a_program_that_forgets_its_imports_is_right_by_the_official_rule_only(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-livecodebench"), ROOT).items
    task = next(i for i in items if not i["starter_code"])
    code = f"_ = deque, gcd, heappush\n{task['reference_solution']}"
    summary = score_start(sheet("smoke-livecodebench", {(task["question_id"], 0): f"```python\n{code}\n```"}), catalog)
    assert score(summary, "strict") == 0.0
    assert score(summary, "official") == pytest.approx(1 / len(items))


@pytest.mark.usefixtures("box")
def test_programs_for_the_real_problems_get_the_known_score(catalog: Catalog, sheet: Sheet, local_data: Path) -> None:
    items = load_items(catalog.task("livecodebench-v6"), ROOT).items
    solutions = [json.loads(line) for line in (local_data / "lcb" / "lcb_sample6.jsonl").read_text().splitlines()]
    right = {row["question_id"]: f"```python\n{row['reference_solution']}\n```" for row in solutions}
    names = [item["question_id"] for item in items if item["question_id"] in right]
    answers = {
        (name, repeat): right[name] if (n + repeat) % 2 else "pass" for n, name in enumerate(names) for repeat in (0, 1)
    }
    summary = score_start(sheet("livecodebench-v6", answers, repeats=2), catalog)
    assert score(summary, "strict") == pytest.approx(len(names) / 2 / len(items))
    assert summary.partial
    # One of the six is of August 2023: the figure's name says so.
    titled = [each for each in summary.scores if each.name != "answered"]
    assert all("contests of 2023-08 to 2025-05" in each.title for each in titled)


def test_failed_missing_and_capped_answers_count_wrong_and_are_named(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-aime"), ROOT).items
    right = {item["id"]: f"\\boxed{{{item['answer']}}}" for item in items}
    names = list(right)
    answers = {(name, 0): right[name] for name in names[:6]}
    answers[names[6], 0] = {"text": right[names[6]], "error": "http_500", "status": 500}
    answers[names[7], 0] = {"text": right[names[7]], "finish_reason": "length"}
    answers[names[8], 0] = {"text": right[names[8]], "finish_reason": "length"}
    folder = sheet("smoke-aime", answers)  # the last item has no answer at all
    summary = score_start(folder, catalog)
    assert score(summary, "avg@1") == pytest.approx(6 / 10)
    assert (summary.failed, summary.capped) == (2, 2)
    assert {flag.id: flag.severity for flag in summary.flags} == {
        "stand_in": "note",
        "failures": "invalid",
        "capped": "note",
    }
    said = next(flag.text for flag in summary.flags if flag.id == "failures")
    assert "http_500, missing" in said
    assert f"they count as wrong: {', '.join(sorted((names[6], names[9])))}" in said
    headline = next(each for each in summary.scores if each.headline)
    assert headline.title.endswith("(within 4,096 tokens)")
    assert summary.within == "within 4,096 tokens"
    assert summary.capped_share == pytest.approx(0.2)
    assert summary.finish_reasons == {"failed": 2, "length": 2, "stop": 6}
    assert summary.requests_at_once == 4
    samples = {sample.item: sample for sample in read_samples(folder / "samples.parquet")}
    assert samples[names[9]].error == "missing"
    assert (samples[names[7]].status, samples[names[7]].correct) == ("capped", 0.0)
    assert summary.account_right is not None
    assert summary.account_right.answers == 6


def cut(text: str) -> dict:
    return {"text": text, "finish_reason": "length"}


def test_cut_answers_have_no_vote(catalog: Catalog, sheet: Sheet) -> None:
    first, second, *_ = load_items(catalog.task("smoke-aime"), ROOT).items
    right, other = f"\\boxed{{{first['answer']}}}", f"\\boxed{{{second['answer']}}}"
    answers = {
        **{(first["id"], n): text for n, text in enumerate([cut(right), cut(right), "\\boxed{999}"])},
        **{(second["id"], n): text for n, text in enumerate([other, cut("\\boxed{999}"), cut("\\boxed{999}")])},
    }
    summary = score_start(sheet("smoke-aime", answers, repeats=3), catalog)
    assert score(summary, "avg@3") == pytest.approx(1 / 3 / 10)
    assert score(summary, "maj@3") == pytest.approx(1 / 10)


def test_cut_answers_are_wrong_by_our_rules_and_what_they_are_by_the_benchmarks(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-mmlu-pro"), ROOT).items
    answers = {(str(i["question_id"]), 0): cut(f"The answer is ({i['answer']}).") for i in items}
    summary = score_start(sheet("smoke-mmlu-pro", answers), catalog)
    found = [score(summary, name) for name in ("strict", "lenient", "official", "answered")]
    assert found == [0.0, 0.0, 1.0, 1.0]
    assert all(group.value == 0 for group in summary.by_group.values())


@pytest.mark.usefixtures("box")
def test_a_program_that_was_cut_is_wrong(catalog: Catalog, sheet: Sheet) -> None:
    item = load_items(catalog.task("smoke-livecodebench"), ROOT).items[0]
    answers = {(item["question_id"], 0): cut(f"```python\n{item['reference_solution']}\n```")}
    summary = score_start(sheet("smoke-livecodebench", answers), catalog)
    assert score(summary, "strict") == 0.0
    assert score(summary, "official") > 0


def test_scores_at_budgets_count_what_was_whole_within_them(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-aime"), ROOT).items
    tokens = [100, 2_048, 2_049, 8_000, 9_000]
    answers = {
        (item["id"], 0): {
            "text": f"\\boxed{{{item['answer']}}}",
            "completion_tokens": tokens[n % 5],
            "finish_reason": "length" if n == 0 else "stop",
        }
        for n, item in enumerate(items)
    }
    summary = score_start(sheet("smoke-aime", answers, cap=10_000), catalog)
    found = {each.name: each.value for each in summary.scores}
    assert found["avg@1"] == pytest.approx(9 / 10)
    assert found["at-2048"] == pytest.approx(3 / 10)
    assert found["at-4096"] == pytest.approx(5 / 10)
    assert found["at-8192"] == pytest.approx(7 / 10)
    assert "at-16384" not in found


def test_the_headline_is_the_score_at_a_budget_of_the_cap(catalog: Catalog, sheet: Sheet) -> None:
    """The same answers under a cap of 8,192 as those cut there are what a longer run says of that budget."""
    items = load_items(catalog.task("smoke-aime"), ROOT).items

    def answers(cap: int) -> dict:
        tokens = [min(cap, 1_000 * (n + 1)) for n in range(len(items))]
        return {
            (item["id"], 0): {
                "text": f"\\boxed{{{item['answer']}}}",
                "completion_tokens": tokens[n],
                "finish_reason": "length" if tokens[n] == cap else "stop",
            }
            for n, item in enumerate(items)
        }

    folder = sheet("smoke-aime", answers(20_000), cap=20_000)
    longer = score_start(folder, catalog)
    shutil.rmtree(folder)
    (at_budget,) = [each.value for each in longer.scores if each.name == "at-8192"]
    shorter = score_start(sheet("smoke-aime", answers(8_192), cap=8_192), catalog)
    assert score(shorter, "avg@1") == at_budget == pytest.approx(8 / 10)


def test_tokens_and_times_are_split_by_right_and_wrong(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-aime"), ROOT).items
    answers = {
        (item["id"], 0): {
            "text": f"\\boxed{{{item['answer'] if n < 5 else 999}}}",
            "completion_tokens": 10 if n < 5 else 30,
            "e2e_ns": 2_000_000,
        }
        for n, item in enumerate(items)
    }
    summary = score_start(sheet("smoke-aime", answers), catalog)
    assert summary.account_right is not None
    assert summary.account_wrong is not None
    parts = (summary.account, summary.account_right, summary.account_wrong)
    assert [part.answers for part in parts] == [10, 5, 5]
    assert [part.tokens for part in parts] == [20.0, 10.0, 30.0]
    assert [part.reasoning_tokens for part in parts] == [0.0, 0.0, 0.0]
    assert [part.answer_tokens for part in parts] == [20.0, 10.0, 30.0]
    assert [part.prompt_tokens for part in parts] == [10.0, 10.0, 10.0]
    assert [part.ttft_ms for part in parts] == [5.0, 5.0, 5.0]
    assert [part.answer_time_ms for part in parts] == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("fields", "reasoning", "split"),
    [
        ({"reasoning": "word " * 30, "reasoning_tokens": 44}, 44, 0),
        ({"reasoning": "word " * 30, "reasoning_tokens": None}, 90, 10),
        ({"text": "<think>" + "word " * 30 + "</think>" + "word " * 10, "reasoning_tokens": None}, 90, 10),
        ({"text": "<think>" + "word " * 40, "reasoning_tokens": None}, 120, 10),
        ({"text": "word " * 30 + "</think>" + "word " * 10, "reasoning_tokens": 0}, 90, 10),
        ({"text": "<think>\n\n</think>" + "word " * 10, "reasoning_tokens": None}, 0, 0),
        ({"reasoning_tokens": None}, 0, 0),
        ({"reasoning": "word " * 30, "reasoning_tokens": None, "completion_tokens": None}, None, 0),
    ],
)
def test_reasoning_that_an_engine_does_not_count_is_split_off(
    catalog: Catalog, sheet: Sheet, fields: dict, reasoning: int | None, split: int
) -> None:
    """vLLM sends reasoning and leaves it out of the usage: 30 words of 40 are three quarters of the tokens."""
    answer = {"text": "word " * 10, "completion_tokens": 120, **fields}
    account = score_start(
        sheet("smoke-aime", {(name, 0): answer for name in ids(catalog, "smoke-aime")}), catalog
    ).account
    assert account.reasoning_tokens == (None if reasoning is None else pytest.approx(reasoning, abs=4))
    assert account.reasoning_split == split
    if reasoning is not None:
        assert account.reasoning_tokens + account.answer_tokens == 120


def test_lm_eval_means_are_our_scores(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-mmlu-pro"), ROOT)
    answers = {(str(i["question_id"]), r): f"The answer is ({'ABCDEFGHIJ'[r]})." for i in items.items for r in range(4)}
    folder = sheet("smoke-mmlu-pro", answers, repeats=4)
    summary = score_start(folder, catalog)
    _, entries = read_journal(folder / "journal.jsonl")
    _, means = harness.evaluate(
        catalog.task("smoke-mmlu-pro"), items, 4, lambda qs: [entries[q.key] for q in qs], grade=True
    )
    assert means["correct"] == pytest.approx(score(summary, "strict"))
    assert means["lenient"] == pytest.approx(score(summary, "lenient"))
    assert means["official"] == pytest.approx(score(summary, "official"))


def test_lm_eval_asks_every_repeat_of_every_item_once_and_without_stop_strings(catalog: Catalog) -> None:
    task = catalog.task("smoke-mmlu-pro")
    items = load_items(task, ROOT)
    asked: list[Question] = []

    def fake(questions: list[Question]) -> list[Entry]:
        asked.extend(questions)
        return [entry(*q.key[:3], "The answer is (A).") for q in questions]

    harness.evaluate(task, items, 3, fake, grade=False)
    assert {q.key for q in asked} == {Key(task.task, str(i["question_id"]), r) for i in items.items for r in range(3)}
    assert len(asked) == 30
    assert {tuple(q.messages[0]) for q in asked} == {("role", "content")}


def test_the_prompt_of_mmlu_pro_shows_worked_examples_of_its_category(catalog: Catalog) -> None:
    task = catalog.task("smoke-mmlu-pro")
    items = load_items(task, ROOT)
    item = next(i for i in items.items if i["category"] == "biology")
    prompt = harness.family_of(task).prompt(item, items, task)
    assert prompt.startswith("The following are multiple choice questions (with answers) about biology.")
    assert prompt.count("Question:\n") == 2
    assert prompt.count("Answer: Let's think step by step.") == 2
    assert "A: Let's" not in prompt
    assert prompt.endswith("Answer: Let's think step by step.")
    assert f"J. {item['options'][9]}\n" in prompt


def test_the_real_prompt_has_five_examples(catalog: Catalog, local_data: Path) -> None:
    task = catalog.task("mmlu-pro")
    items = load_items(task, ROOT)
    for item in items.items[::100]:
        assert harness.family_of(task).prompt(item, items, task).count("Question:\n") == 6


def test_scoring_again_gives_the_same_bytes_and_another_scorer_keeps_the_old_score(
    catalog: Catalog, sheet: Sheet
) -> None:
    folder = sheet("smoke-aime", {(name, 0): "\\boxed{75}" for name in ids(catalog, "smoke-aime")})
    summary = score_start(folder, catalog)
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    score_start(folder, catalog)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
    old = json.loads((folder / "score.json").read_text()) | {"scorer": "aime-integer-00000000"}
    (folder / "score.json").write_text(json.dumps(old))
    score_start(folder, catalog)
    assert read_score(folder).scorer == summary.scorer
    assert json.loads((folder / "score-00000000.json").read_text())["scorer"] == "aime-integer-00000000"


def test_a_journal_of_other_items_is_refused_with_both_hashes(catalog: Catalog, sheet: Sheet) -> None:
    folder = sheet("smoke-aime", {})
    path = folder / "journal.jsonl"
    found = read_journal(path)[0].items_hash
    path.write_text(path.read_text().replace(found, "f" * 64))
    with pytest.raises(UsageError, match="f" * 64) as fault:
        score_start(folder, catalog)
    assert found in str(fault.value)


def test_a_part_is_flagged(catalog: Catalog, sheet: Sheet) -> None:
    items = load_items(catalog.task("smoke-aime"), ROOT, 4)
    answers = {(i["id"], 0): f"\\boxed{{{i['answer']}}}" for i in items.items}
    summary = score_start(sheet("smoke-aime", answers, limit=4), catalog)
    assert (summary.partial, score(summary, "avg@1"), summary.items) == (True, 1.0, 4)
    assert "partial" in {flag.id for flag in summary.flags}


@pytest.mark.usefixtures("local_data")
def test_real_problems_and_questions_get_the_known_score(catalog: Catalog, sheet: Sheet) -> None:
    problems = load_items(catalog.task("aime-2024-2026"), ROOT, 12).items
    years = [item["year"] for item in problems]
    assert {years.count(year) for year in years} == {4}
    answers = {
        (item["id"], repeat): f"\\boxed{{{item['answer'] if item['year'] == 2024 and repeat < 3 else 1000}}}"
        for item in problems
        for repeat in range(4)
    }
    summary = score_start(sheet("aime-2024-2026", answers, repeats=4, limit=12, released="2025-06"), catalog)
    assert score(summary, "avg@4") == pytest.approx(4 / 12 * 3 / 4)
    assert score(summary, "maj@4") == pytest.approx(4 / 12)
    assert {year: one.value for year, one in summary.by_group.items()} == {"2024": 0.75, "2025": 0.0, "2026": 0.0}
    assert {year: one.majority for year, one in summary.by_group.items()} == {"2024": 1.0, "2025": 0.0, "2026": 0.0}
    seen = next(flag.text for flag in summary.flags if flag.id == "possibly_seen")
    assert "8 of 12" in seen
    questions = load_items(catalog.task("mmlu-pro"), ROOT, 42).items
    sheets = {(str(q["question_id"]), 0): f"the answer is ({q['answer']})" for q in questions}
    again = score_start(sheet("mmlu-pro", sheets, limit=42), catalog)
    assert score(again, "strict") == 1.0
    assert len(again.by_group) == 14


def test_a_run_can_be_moved_and_scored_elsewhere(catalog: Catalog, sheet: Sheet, tmp_path: Path) -> None:
    folder = sheet("smoke-aime", {(name, 0): "\\boxed{75}" for name in ids(catalog, "smoke-aime")})
    copied = tmp_path / "elsewhere"
    shutil.copytree(folder, copied)
    assert score_start(copied, catalog) == score_start(folder, catalog)
