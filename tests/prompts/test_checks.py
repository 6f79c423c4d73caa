"""Checkers accept right answers in many forms, refuse wrong ones, and never hang on hostile text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.catalog import Check
from paribus.conditions import UsageError
from paribus.speed.checks import CHECKERS, passes, validate
from paribus.speed.checks.text import MAX_CHARACTERS


def check(kind: str, **parameters: Any) -> Check:
    return Check(kind=kind, parameters=parameters)


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
INTEGER = check("integer", value=42)
NUMBER = check("number", value=0.75, tolerance=0.001)
WORDS = check("contains_all", words=["copper", ["roof", "roofs"]], none=["tin"], max_words=20)
SHORT = check("short_answer", accept=["Ljubljana"], reject=["Zagreb"])
FRACTION = check("short_answer", accept=["3/4"])
LINE = check("exact_line", lines=["return a[from:]"])
JSON = check("json_schema", json_schema=SCHEMA, expect={"/name": "Ada", "/age": {"any_of": [36, 37]}})
CALL = {"name": "book", "arguments": {"room": {"any_of": ["A1", "a 1"]}, "people": 4, "why": {"text": 5}}}
TOOL = check("tool_call", calls=[CALL, {"name": "ring", "arguments": {}, "optional": ["tone"]}])
BOOK = {"name": "book", "arguments": {"room": "A1", "people": 4, "why": "planning"}}
RING = {"name": "ring", "arguments": {}}
NO_CALL = check("tool_call", calls=[])
LETTER = check("contains_all", words=["Ada"], none=["[date]", "[..]"])
COPIES = check("contains_all", words=["COPY . ."])
NOTICE = check("contains_all", words=["10点", "四小时"])
OPENS = check("contains_all", words=["7"])
ABOVE = check("contains_all", words=["grams > 0"])
BASES = check("contains_all", words=["10110101", "B5"])
GROWTH = check("contains_all", words=["O(n + k log k)"])
THREE = check("contains_all", words=["x = 3"])
WEIGHT = check("contains_all", words=["750"])
LITRES = check("contains_all", words=["1L"])
CLOSES = check("contains_all", words=["6 p.m."])
EITHER = check("contains_all", words=[["{0, 5}", "{0,5}"]])
TENTHS = check("contains_all", words=["11.2"])
YEAR = check("contains_all", words=["1930"])
SWAP = check("contains_all", words=["*a = *b"])
SIZES = check("short_answer", accept=["before = 32 kb"])
PLACE = check("tool_call", calls=[{"name": "go", "arguments": {"to": {"text": 4, "contains": [["cellar", "attic"]]}}}])
TASK = {"who": "Imke", "what": {"text": 6}, "until": {"any_of": ["2027-05-14", None]}}
TASKS = check(
    "tool_call",
    calls=[{"name": "plan", "arguments": {"tasks": [TASK], "notes": {"length": 1}}}],
    schemas={"plan": {"type": "object", "properties": {"notes": {"items": {"type": "string"}}}}},
)
DONE = {"who": "Imke", "what": "offers from two roofers", "until": "2027-05-14"}
SHARP = check("json_schema", json_schema={"type": "object"}, expect={"/a": "child's - own", "/b": [{"any_of": [1, 2]}]})


def plan(notes: list[Any], **changed: Any) -> str:
    return json.dumps({"name": "plan", "arguments": {"tasks": [{**DONE, **changed}], "notes": notes}})


CHECKED_16 = [
    "So 16 boxes are enough.\n\nCheck: 3 · 18 + 13 · 42 = 600.",
    "So 16 boxes are enough. Check: 3 · 18 + 13 · 42 = 54 + 546 = 600 ✓",
    "**16 boxes**, since 3 · 18 + 13 · 42 = 600.",
    "The answer is 16. Check: 3 · 18 + 13 · 42 = 600.",
    "The smallest number is 16 (3 · 18 + 13 · 42 = 600).",
    "3 + 13 = 16\n\n**Verification:**\n\n$3 \\cdot 18 + 13 \\cdot 42 = 600$",
    "## Check\n3 · 18 + 13 · 42 = 600\n\n16",
    "To check: 54 + 546 = 600\nSo 16 boxes are the fewest.",
    "Check: 54 + 546 = 600. With 3 cartons and 13 crates:\n16",
    "First I thought 23.\nThe answer is 23.\nNo: 7 · 42 more fit.\nThe answer is 16.",
    "Check: 3 + 13 = 16",
    "Checkout 1 needs 9 boxes.\nCheckout 2 needs 7, in all 16",
]
"""Forms of an answer that checks itself: the last number that is given as the result counts, not that of the check."""
CHECKED_17 = [
    "So 17 boxes are enough.\n\nCheck: 4 + 12 = 16",
    "The answer is 17. Check: 4 + 12 = 16.",
    "The answer is 16.\nNo: the answer is 17.",
    "16 crates would do, but then\n\n17",
    "17 boxes (4 + 12 = 16)",
]
RIGHT: list[tuple[Check, str]] = [
    (INTEGER, "42"),
    (INTEGER, "The answer is **42**."),
    (INTEGER, "Six times seven:\n$$6 \\cdot 7 = \\boxed{42}$$\nas 3 people saw."),
    (INTEGER, "6 × 7 = 42 km"),
    (INTEGER, "1. First 6.\n2. Then 7.\n\nTotal: 42.0"),
    (INTEGER, "42 minutes\n\nThere are 6 trays of 7."),
    (check("integer", value=-3), "so f'(1) = −3"),
    (check("integer", value=1234567), "Answer: 1,234,567 pesos"),
    (check("integer", value=1200), "It costs 1 200."),
    (check("integer", value=2000), r"\boxed{2{,}000}"),
    (check("integer", value=2000), "so it holds 2{,}000 litres"),
    *((check("integer", value=16), text) for text in CHECKED_16),
    (NUMBER, "3/4"),
    (check("number", value=1.15), r"$1\frac{3}{20}$"),
    (check("number", value=1.15), r"The answer is $\frac{23}{20} = 1\,\tfrac{3}{20}$."),
    (check("number", value=1.15), "1 3/20"),
    (check("number", value=-2.5), "x = −2½"),
    (check("number", value=0.5), r"\frac12"),
    (NUMBER, r"\frac{3}{4}"),
    (NUMBER, "The answer is 0.75."),
    (NUMBER, "x = 0.7504"),
    (WORDS, "The roof is made of copper."),
    (WORDS, "**Copper**, as on most ROOFS here."),
    (WORDS, "copper;\nroof"),
    (SHORT, "Ljubljana"),
    (SHORT, "Let me think.\n\nThe answer is: *Ljubljana*."),
    (SHORT, "ljubljana\n\nIt has been the capital since 1991."),
    (FRACTION, r"$\dfrac{3}{4}$"),
    (FRACTION, "p = 3 / 4"),
    (LINE, "return a[from:]"),
    (LINE, "```py\n    return a[from:]\n```"),
    (LINE, "The corrected line is `return a[from:]`."),
    (LINE, '"return a[ from: ]"'),
    (JSON, '{"name": "Ada", "age": 36}'),
    (JSON, 'Of course:\n```json\n{"age": 37.0, "name": " ada "}\n```\nAnything else?'),
    (JSON, '[1] {"name": "Bo", "age": 1}, corrected: {"name": "Ada", "age": 36}'),
    (TOOL, json.dumps([BOOK, RING])),
    (TOOL, json.dumps(RING) + "\n" + json.dumps(BOOK)),
    (TOOL, "<tool_call>" + json.dumps({**BOOK, "arguments": json.dumps(BOOK["arguments"])}) + json.dumps(RING)),
    (TOOL, json.dumps({"tool_calls": [{"type": "function", "function": BOOK}, {"function": RING}]})),
    (TOOL, json.dumps([{**RING, "arguments": {"tone": "low"}}, {"name": "book", "parameters": BOOK["arguments"]}])),
    (NO_CALL, "You can simply ring the bell."),
    (NO_CALL, "Buckwheat is no wheat [1], says the book [2]."),
    (TOOL, "[1] As you said: " + json.dumps([BOOK, RING])),
    (LETTER, "Ada, by that date I'll send your post on to the new address."),
    (COPIES, "RUN pip install .\nCOPY . ."),
    (NOTICE, "今晚 10 点停电，冰箱可保冷 四小时。"),
    (NOTICE, "今晚10点起 , 四 小时"),
    (OPENS, "It opens at 7am."),
    (OPENS, "from 7 p.m."),
    (OPENS, "at 7p.m. sharp"),
    (ABOVE, "CHECK (grams>0)"),
    (ABOVE, "CHECK (grams  >0)"),
    (BASES, "10110101₂ and B5₁₆"),
    (BASES, r"$10110101_2 = \text{B5}_{16}$"),
    (BASES, r"\(10110101_{2}\) or \(B5_{16}\)"),
    (GROWTH, r"$\mathcal{O}(n + k \log k)$"),
    (GROWTH, "O(n+k log k)"),
    (THREE, "x = 3, and x = 4"),
    (PLACE, '{"name": "go", "arguments": {"to": "The Attic"}}'),
    (TASKS, plan(["x"])),
    (TASKS, plan(["x"], until=None)),
    (SHARP, '{"a": "Child\u2019s \u2013 own", "b": [2.0]}'),
    (WEIGHT, "Rye, 750g"),
    (WEIGHT, "Rye, $750\\,\\text{g}$"),
    (WEIGHT, "Rye, \\(750\\mathrm{g}\\), that's \\approx1"),
    (WEIGHT, "$m\\approx750\\text{ grams}$"),
    (LITRES, "水を1L入れる"),
    (LITRES, "1 l of water"),
    (LITRES, "1\\,\\text{L} of water"),
    (CLOSES, "until 6pm"),
    (CLOSES, "until 6 PM."),
    (CLOSES, "until 6 p.m., then"),
    (SWAP, "int keep = *a;\n*a=*b;\n*b=keep;"),
    (SWAP, "`*a = *b;` comes first"),
    (SWAP, "\\*a = \\*b"),
    (SIZES, "before = 32kB"),
    (TENTHS, "y = 11.20"),
    (TENTHS, "$y = 11.200\\,\\text{l}$"),
    (TENTHS, "11.2."),
    (WEIGHT, "750.00 grams"),
    (WEIGHT, "750,0 g"),
    (WEIGHT, "It weighs 750.0."),
    (EITHER, "$x \\in \\{0, 5\\}$"),
    (EITHER, "\\(x\\in\\{0,5\\}\\)"),
    (EITHER, "{0,5}"),
    (GROWTH, "$O(n + k \\log{k})$"),
    (GROWTH, "\\(\\mathcal{O}(n + k \\log{k})\\)"),
    (GROWTH, "$O(n+k \\log k)$"),
]
WRONG: list[tuple[Check, str]] = [
    (INTEGER, "43"),
    (INTEGER, "42.5"),
    (INTEGER, "-42"),
    (INTEGER, "142"),
    (INTEGER, "The answer is 41, not 42"),
    (INTEGER, r"42 at first, but \boxed{24}"),
    (INTEGER, "I don't know."),
    (check("integer", value=2), r"\boxed{2{,}000}"),
    *((check("integer", value=16), text) for text in CHECKED_17),
    (check("integer", value=600), "The smallest number is 16.\n\nCheck: 3 · 18 + 13 · 42 = 600"),
    (check("number", value=0.65), r"$1\frac{3}{20}$"),
    (check("number", value=0.5), "x = 2½"),
    (NUMBER, "0.76"),
    (NUMBER, "4/3"),
    (NUMBER, "3/0"),
    (WORDS, "The roof is made of zinc."),
    (WORDS, "Copperplate on the roof"),
    (WORDS, "A copper roof with tin edges"),
    (WORDS, "The roof is made of copper. " * 5),
    (SHORT, "Zagreb, not Ljubljana"),
    (SHORT, "Maribor"),
    (SHORT, "Ljubljana-upon-nothing was my first thought, but it is:\nMaribor\nyes"),
    (FRACTION, "13/4"),
    (FRACTION, "3/42"),
    (FRACTION, "-3/4"),
    (LINE, "return a[from:-1]"),
    (LINE, "return a[from:] + b"),
    (LINE, ""),
    (JSON, '{"name": "Ada"}'),
    (JSON, '{"name": "Ada", "age": "36"}'),
    (JSON, '{"name": "Ada", "age": 35}'),
    (JSON, '{"name": "Ada", "age": 36, "extra": 1}'),
    (JSON, "{'name': 'Ada', 'age': 36}"),
    (JSON, '{"name": "Ada", "age": true}'),
    (TOOL, json.dumps([BOOK])),
    (TOOL, json.dumps([BOOK, RING, RING])),
    (TOOL, json.dumps([{"name": "book", "arguments": {**BOOK["arguments"], "people": "4"}}, RING])),
    (TOOL, json.dumps([{"name": "book", "arguments": {**BOOK["arguments"], "urgent": True}}, RING])),
    (TOOL, json.dumps([{"name": "Book it", "arguments": BOOK["arguments"]}, RING])),
    (NO_CALL, json.dumps(RING)),
    (NO_CALL, ""),
    (NO_CALL, "[1] " + json.dumps([BOOK])),
    (NO_CALL, '{"answer": "buckwheat is no wheat"}'),
    (TOOL, json.dumps([BOOK, RING, 5])),
    (LETTER, "Ada, on [date] you get [..] euros."),
    (LETTER, "Dear Ada, the key was handed back on [date]."),
    (COPIES, "COPY requirements.txt ."),
    (NOTICE, "今晚 110 点停电，四小时"),
    (OPENS, "It opens at 17pm or at 7pmx."),
    (OPENS, "1.7am"),
    (ABOVE, "CHECK (milligrams>0)"),
    (ABOVE, "CHECK (grams > 0.5)"),
    (BASES, "101101012 and B516"),
    (BASES, "10110101 and B56₁₆"),
    (GROWTH, "O(n log n + k log k)"),
    (THREE, "x = 3/2"),
    (THREE, "x = 3.5"),
    (PLACE, '{"name": "go", "arguments": {"to": "The kitchen"}}'),
    (PLACE, '{"name": "go", "arguments": {"to": ["attic"]}}'),
    (TASKS, plan([1])),
    (TASKS, plan([], what="offers")),
    (TASKS, plan(["x"], what="?")),
    (TASKS, plan(["x"], who="Sefa")),
    (TASKS, plan(["x"], until="2027-05-15")),
    (TASKS, json.dumps({"name": "plan", "arguments": {"tasks": [{}], "notes": ["x"]}})),
    (SHARP, '{"a": "child own", "b": [1]}'),
    (WEIGHT, "1750g"),
    (WEIGHT, "$750.5\\,\\text{g}$"),
    (WEIGHT, "part 750gx"),
    (LITRES, "11L or 1Lot"),
    (LITRES, "$11\\,\\text{L}$"),
    (LITRES, "水を10L入れる"),
    (CLOSES, "until 16 p.m."),
    (CLOSES, "until 6 a.m."),
    (CLOSES, "until 6 pmx"),
    (SWAP, "int keep = *a; a = b; b = keep;"),
    (SWAP, "*b = *a;"),
    (SWAP, "**a = b**"),
    (SIZES, "before = 132kB"),
    (YEAR, "in the 1930s"),
    (TENTHS, "11.02"),
    (TENTHS, "11.201 or 11.25"),
    (TENTHS, "111.20"),
    (WEIGHT, "750.05 or 750,000 or 1.750"),
    (WEIGHT, "750.0.1"),
    (WEIGHT, "750.001"),
    (EITHER, "{0,55}"),
    (EITHER, "\\{0, 5, 7\\}"),
    (EITHER, "(0, 5)"),
    (GROWTH, "$O(n + k \\log{n})$"),
    (GROWTH, "$O(n + k \\log{kn})$"),
    (GROWTH, "$O(n + \\log{k})$"),
    (SHARP, '{"a": "child\'s - own", "b": [3]}'),
]


@pytest.mark.parametrize(("rule", "text"), RIGHT, ids=lambda v: v.kind if isinstance(v, Check) else v[:30])
def test_right_answers_pass_in_many_forms(rule: Check, text: str) -> None:
    assert passes(rule, text)


@pytest.mark.parametrize(("rule", "text"), WRONG, ids=lambda v: v.kind if isinstance(v, Check) else v[:30])
def test_wrong_answers_are_refused(rule: Check, text: str) -> None:
    assert not passes(rule, text)


def test_every_checker_is_tried_with_three_right_and_three_wrong_answers() -> None:
    for kind in CHECKERS:
        assert sum(rule.kind == kind for rule, _ in RIGHT) >= 3, kind
        assert sum(rule.kind == kind for rule, _ in WRONG) >= 3, kind


def test_calls_that_the_engine_reports_count_before_the_text() -> None:
    native = [
        {"name": "book", "arguments": json.dumps(BOOK["arguments"]), "id": "1"},
        {"name": "ring", "arguments": ""},
    ]
    assert passes(TOOL, "", native)
    assert not passes(TOOL, json.dumps([BOOK, RING]), native[:1])
    assert not passes(TOOL, "", [{"name": "book", "arguments": "{broken"}, {"name": "ring", "arguments": "{}"}])


def test_the_order_of_calls_counts_only_when_asked() -> None:
    calls = [CALL, {"name": "ring", "arguments": {}}]
    assert passes(check("tool_call", calls=calls), json.dumps([RING, BOOK]))
    assert not passes(check("tool_call", calls=calls, ordered=True), json.dumps([RING, BOOK]))


def test_calls_are_matched_even_when_a_greedy_choice_would_fail() -> None:
    either, one = {"any_of": [1, 2]}, 1
    rule = check("tool_call", calls=[{"name": "f", "arguments": {"x": either}}, {"name": "f", "arguments": {"x": one}}])
    assert passes(rule, json.dumps([{"name": "f", "arguments": {"x": 1}}, {"name": "f", "arguments": {"x": 2}}]))
    assert not passes(rule, json.dumps([{"name": "f", "arguments": {"x": 2}}, {"name": "f", "arguments": {"x": 2}}]))


@given(
    st.integers(-(10**12), 10**12), st.sampled_from(["{}", "**{}**", "The answer is {}.", r"\boxed{{{}}}", "= {} m"])
)
def test_an_integer_is_found_in_every_form(value: int, form: str) -> None:
    assert passes(check("integer", value=value), form.format(value))
    assert not passes(check("integer", value=value + 1), form.format(value))


@given(
    st.integers(-999, 999),
    st.integers(0, 10**6),
    st.sampled_from(["Check: {}", "(check: 2 · 3 = {})", "**Check**\n{}"]),
)
def test_a_check_below_a_result_neither_makes_nor_breaks_it(value: int, other: int, form: str) -> None:
    told = f"In the end there are {value} left.\n\n" + form.format(f"1 + 1 = {other}")
    assert passes(check("integer", value=value), told)
    assert not passes(check("integer", value=value + 1), told)


@given(
    st.integers(0, 500), st.integers(1, 60), st.integers(2, 60), st.sampled_from([r"{}\frac{{{}}}{{{}}}", "{} {}/{}"])
)
def test_mixed_numbers_are_read_whole(whole: int, above: int, more: int, form: str) -> None:
    below = above + more
    assert passes(check("number", value=whole + above / below), form.format(whole, above, below))
    assert not passes(check("number", value=whole + above / below + 1), form.format(whole, above, below))


@given(st.integers(0, 10**12))
def test_thousands_may_be_grouped(value: int) -> None:
    assert passes(check("integer", value=value), f"In all {value:,} grains")


@given(st.dictionaries(st.sampled_from(["name", "age"]), st.none() | st.integers() | st.text(max_size=5)))
def test_json_passes_exactly_when_it_fits_and_says_the_right_thing(value: dict[str, Any]) -> None:
    name, age = value.get("name"), value.get("age")
    right = isinstance(name, str) and name.strip().casefold() == "ada" and age in (36, 37)
    assert passes(JSON, json.dumps(value)) == right


EVERY = [INTEGER, NUMBER, WORDS, SHORT, LINE, JSON, TOOL, NO_CALL]


@given(st.text(max_size=300), st.sampled_from(EVERY))
def test_any_text_gives_true_or_false(text: str, rule: Check) -> None:
    assert passes(rule, text) in (True, False)


HOSTILE = {
    "digits": "9" * 300_000,
    "grouped digits": "1" + ",000" * 90_000,
    "open brackets": "[" * 300_000,
    "open objects": '{"a":' * 60_000,
    "open strings": '{"' * 150_000,
    "closed depth": "[" * 900 + "]" * 900,
    "wide": "[" + "{},[]," * 50_000 + "0]",
    "broken at the end": '[{"name":"x","arguments":{}},' * 8_000 + "x",
    "blanks": " " * 300_000 + "x",
    "new lines": "\n" * 300_000 + "x",
    "fences": "```\n" * 80_000,
    "equals": "=" * 300_000,
    "equals and blanks": "= " * 150_000,
    "answers": "answer is " * 30_000,
    "asides": ("1 " * 20 + "(" + "=" * 199) * 1_600,
    "checks": "check 1\n" * 40_000,
    "polite checks": "let us " * 40_000,
    "sentences": "1. A" * 90_000,
    "mixed numbers": "1 2/3 " * 60_000,
    "boxes": "\\boxed{" * 40_000,
    "fractions": "\\frac{" * 50_000,
    "backticks": "`" * 300_000,
    "ligatures": "\ufdfa" * 300_000,
    "dashes": "-" * 300_000,
    "words": "copper " * 40_000,
    "huge exponent": '{"name": "Ada", "age": 1e999}',
    "long integer": '{"name": "Ada", "age": ' + "9" * 5_000 + "}",
    "not a number": '{"name": "Ada", "age": NaN}',
    "surrogate": '{"name": "\\ud800", "age": 36}',
    "beyond the limit": "x" * (MAX_CHARACTERS + 1),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_judged_without_hanging(text: str) -> None:
    """A checker that backtracks would take hours here, and pytest's time-out would end it."""
    for rule in EVERY:
        assert passes(rule, text) in (True, False)


def test_an_answer_beyond_the_limit_passes_nothing() -> None:
    assert passes(INTEGER, "x" * (MAX_CHARACTERS - 10) + "\n42")
    assert not passes(INTEGER, "x" * MAX_CHARACTERS + "\n42")
    assert not passes(NO_CALL, "words", [{"name": "f", "arguments": "x" * (MAX_CHARACTERS + 1)}])


UNIQUE = {"type": "array", "uniqueItems": True}


def test_a_costly_schema_meets_bounded_values_only() -> None:
    many = json.dumps([{"a": [i]} for i in range(20_000)])
    assert not passes(check("json_schema", json_schema=UNIQUE), many)
    assert passes(check("json_schema", json_schema=UNIQUE), json.dumps([{"a": i} for i in range(500)]))


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (check("integr", value=1), "there is no check 'integr'"),
        (check("integer"), "value: this key is missing"),
        (check("integer", value=1, extra=2), "extra: there is no such key"),
        (check("contains_all", words=[]), "words"),
        (check("json_schema", json_schema={"type": "objekt"}), "not a JSON Schema"),
        (check("json_schema", json_schema={"properties": {"a": {"pattern": "(a+)+$"}}}), "pattern is not allowed"),
        (check("json_schema", json_schema={"patternProperties": {"(a+)+$": {}}}), "patternProperties is not allowed"),
        (check("json_schema", json_schema={"$ref": "https://example.org/s.json"}), "leaves the schema"),
        (check("integer", value=float("nan")), "no plain JSON"),
    ],
)
def test_a_wrong_check_is_refused_in_one_sentence(rule: Check, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(rule)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_property_may_be_called_pattern_and_a_schema_may_refer_to_itself() -> None:
    tree = {"type": "object", "properties": {"pattern": {"type": "string"}, "child": {"$ref": "#"}}}
    rule = check("json_schema", json_schema=tree)
    assert passes(rule, '{"pattern": "x", "child": {"child": {}}}')
    assert not passes(rule, '{"child": {"child": 3}}')


@given(st.sampled_from(["[date]", "f()", "COPY . .", "(1, 2)", "{count}", "./a", "#[x]", "etc. a.s.o."]), st.data())
def test_no_form_loses_its_brackets_or_dots(form: str, data: st.DataObject) -> None:
    """A text that holds every letter of the form but not its marks doesn't hold the form."""
    marks = [at for at, mark in enumerate(form) if mark in "[](){}.#"]
    at = data.draw(st.sampled_from(marks))
    rule = check("contains_all", words=[form])
    assert passes(rule, f"so {form} it is")
    assert not passes(rule, f"so {form[:at]}~{form[at + 1 :]} it is")


def test_every_checker_says_what_it_accepts() -> None:
    for checker in CHECKERS.values():
        assert checker.judge.__doc__
        assert checker.parameters.__doc__
