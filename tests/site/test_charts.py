"""Charts: well-formed SVG with a title and a text alternative, honest axes, marks that differ in shape and colour."""

from __future__ import annotations

import csv
import io
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_site import HOSTILE

from paribus.site.charts import Chart, Dot, Group, inline_mark, shape_of, thinned
from paribus.site.scale import axis

SVG = "{http://www.w3.org/2000/svg}"
values = st.lists(st.floats(min_value=1e-3, max_value=1e5), min_size=1, max_size=12)


def chart(*dots: Dot, log: bool = False, **more: object) -> Chart:
    return Chart("c", "Title", "Summary", "s", "s", (Group("", dots),), log=log, **more)


def parse(drawn: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(drawn.file.split("\n", 1)[1])


@given(st.lists(st.text(), min_size=1, max_size=5), values)
def test_any_text_and_any_numbers_make_well_formed_svg(texts, numbers):
    dots = [Dot(text, text, number, printed=text, href=text) for text, number in zip(texts, numbers, strict=False)]
    drawn = Chart("c", texts[0], texts[-1], texts[0], texts[0], (Group(texts[0], tuple(dots)),))
    tree = parse(drawn)
    assert tree.find(f"{SVG}title") is not None
    assert tree.find(f"{SVG}desc") is not None
    ElementTree.fromstring(drawn.svg)
    drawn.csv.encode()


def test_hostile_text_stays_text_in_elements_and_attributes():
    drawn = Chart("c", HOSTILE, HOSTILE, HOSTILE, "s", (Group(HOSTILE, (Dot(HOSTILE, HOSTILE, 1.0, href=HOSTILE),)),))
    names = {element.tag.removeprefix(SVG) for element in parse(drawn).iter()}
    assert names <= {"svg", "title", "desc", "style", "line", "text", "a", "rect", "circle"}
    attributes = {name for element in parse(drawn).iter() for name in element.attrib}
    assert not any(name.startswith("on") for name in attributes)


@given(values, st.booleans())
def test_every_value_lies_on_its_axis_and_order_is_kept(numbers, log):
    found = axis(numbers, log=log)
    places = [found.share(value) for value in sorted(numbers)]
    assert places == sorted(places)
    assert found.low <= min(numbers) * (1 + 1e-9)
    assert found.high >= max(numbers) * (1 - 1e-9)
    assert 2 <= len(found.ticks) <= 12


@pytest.mark.parametrize("pair", [(0.0, 0.0), (5.0, 5.0), (1e5, 1e5 - 1e-11), (-3.0, -3.0), (-1e5, -1e5 + 1e-11)])
def test_values_that_are_all_but_equal_still_have_an_axis(pair):
    found = axis(list(pair))
    assert found.low < found.high
    assert 0 <= found.share(pair[0]) <= 1


def test_an_axis_that_does_not_start_at_zero_says_so_and_a_log_axis_too():
    assert axis([80, 90]).note == "the axis does not start at zero"
    assert axis([8, 90]).note == ""
    assert axis([8, 90], log=True).note == "log scale"
    drawn = chart(Dot("a", "plain", 3.0), Dot("b", "plain", 5.0), log=True)
    assert "log scale" in drawn.axis_text
    assert "log scale" in drawn.file


def test_an_interval_is_drawn_from_end_to_end():
    drawn = parse(chart(Dot("a", "plain", 50.0, 25.0, 100.0)))
    bar = next(e for e in drawn.iter(f"{SVG}line") if "c-bar" in e.attrib.get("class", ""))
    assert (bar.attrib["x1"], bar.attrib["x2"]) == ("25.75%", "98.50%")


def test_decoders_differ_in_shape_and_in_colour():
    marks = {shape: str(inline_mark(shape)) for shape in ("plain", "speculation", "diffusion", "other")}
    classes = {shape: re.search(r"m-\w+", mark).group() for shape, mark in marks.items()}
    assert len(set(classes.values())) == 4
    assert "<circle" in marks["plain"]
    assert "<circle" in marks["speculation"]
    assert "<rect" in marks["diffusion"]
    assert shape_of("plain") == "plain"
    assert shape_of("block-diffusion") == "diffusion"
    assert {shape_of(m) for m in ("ngram", "mtp", "eagle3", "dflash", "draft")} == {"speculation"}


def test_the_csv_holds_what_the_chart_shows_and_no_formula():
    rows = list(csv.reader(io.StringIO(chart(Dot("=cmd()", "plain", 1.5, 1.0, 2.0, points=(1.2,))).csv)))
    assert rows[0] == ["group", "label", "decoder", "value", "low", "high", "unit"]
    assert rows[1] == ["", "'=cmd()", "plain", "1.5", "1.0", "2.0", "s"]
    assert rows[2][3] == "1.2"


@pytest.mark.parametrize("number", [1, 119, 120, 121, 5000])
def test_many_points_are_thinned_evenly_and_both_ends_stay(number):
    points = [float(i) for i in range(number)]
    kept = thinned(points)
    assert len(kept) == min(number, 120)
    assert (kept[0], kept[-1]) == (points[0], points[-1])


def test_a_long_label_gets_a_line_of_its_own_so_that_nothing_overlaps_at_390_pixels():
    short = parse(chart(Dot("a", "plain", 1.0, printed="1 s")))
    long = parse(chart(Dot("a" * 40, "plain", 1.0, printed="1 s [0.9 to 1.1]")))
    assert float(long.attrib["height"]) > float(short.attrib["height"])
    lines = {e.attrib["class"]: e.attrib["y"] for e in long.iter(f"{SVG}text")}
    assert lines["c-label"] != lines["c-value"]


def test_a_chart_without_values_can_be_drawn():
    assert parse(chart(Dot("a", "plain", None, printed="not measured"))) is not None
