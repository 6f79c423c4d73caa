"""Charts: SVG in the page, fluid without a script (x in per cent, y in pixels), with title and text alternative.

Every value is a dot with its interval; decoders differ in shape and colour: plain a hollow circle, speculation a filled
circle, diffusion a square, others a diamond. Labels stand at the dots; there is no legend to look up.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from paribus.site.markup import clean, joined, tag, text
from paribus.site.scale import Axis, axis, tick_text

ROW, LABEL, HEAD, SECOND = 42, 15, 26, 16
"""Heights in pixels: one dot with its label, the label's baseline, a group's heading, a second line of text."""

BESIDE, LONGEST = 46, 52
"""Letters that fit beside each other, and into one line, at 390 pixels."""


@dataclass(frozen=True)
class Dot:
    """One dot: label at its left, printed value at its right, the value with its interval on the axis.

    `shape`: plain, speculation, diffusion or other. `href` is relative to the page. `points` are single observations.
    """

    label: str
    shape: str
    value: float | None
    low: float | None = None
    high: float | None = None
    printed: str = ""
    href: str | None = None
    points: tuple[float, ...] = ()


@dataclass(frozen=True)
class Group:
    """Dots under one heading (empty: none)."""

    title: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Chart:
    """One chart. `name` is unique in the site: it names the chart's SVG and CSV files and its place in the page."""

    name: str
    title: str
    summary: str
    axis: str
    unit: str
    groups: tuple[Group, ...]
    log: bool = False
    reference: float | None = None
    reference_label: str = ""

    @property
    def dots(self) -> list[Dot]:
        """All dots in order."""
        return [dot for group in self.groups for dot in group.dots]

    @property
    def svg(self) -> Markup:
        """The chart for a page: it takes the page's width and colours."""
        return _svg(self, {"class_": "chart", "width": "100%"})

    @property
    def axis_text(self) -> str:
        """What the axis shows; a page prints it below the chart, where it can wrap."""
        drawn = any(dot.low is not None and dot.high is not None for dot in self.dots)
        bars = "lines: 95% intervals" if drawn else ""
        return "; ".join(part for part in (self.axis, bars, self.reference_label, _scale(self).note) if part)

    @property
    def file(self) -> str:
        """The chart as a file that stands alone, 720 pixels wide; without links, which only hold inside the page."""
        apart = replace(
            self, groups=tuple(Group(g.title, tuple(replace(d, href=None) for d in g.dots)) for g in self.groups)
        )
        drawn = _svg(apart, {"xmlns": "http://www.w3.org/2000/svg", "width": "720", "class_": "chart"}, _STYLE)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'

    @property
    def csv(self) -> str:
        """What the chart shows as CSV."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["group", "label", "decoder", "value", "low", "high", "unit"])
        for group in self.groups:
            for dot in group.dots:
                cells = [_cell(group.title), _cell(dot.label), dot.shape]
                writer.writerow([*cells, dot.value, dot.low, dot.high, self.unit])
                writer.writerows([*cells, point, None, None, self.unit] for point in dot.points)
        return out.getvalue()


def _cell(value: str) -> str:
    """Text for a spreadsheet: never taken for a formula."""
    safe = str(clean(value))
    return f"'{safe}" if safe[:1] in ("=", "+", "-", "@", "\t") else safe


def _scale(chart: Chart) -> Axis:
    values = [v for d in chart.dots for v in (d.value, d.low, d.high, *d.points) if v is not None]
    return axis([*values, *([chart.reference] if chart.reference is not None else [])], log=chart.log)


def _svg(chart: Chart, attributes: dict[str, str], style: Markup | None = None) -> Markup:
    scale = _scale(chart)
    body: list[Markup] = []
    y = 4.0
    for group in chart.groups:
        if group.title:
            body.append(tag("text", _fit(group.title, BESIDE), x="0", y=y + 16, class_="c-group"))
            y += HEAD
        for dot in group.dots:
            body.append(_row(dot, scale, y))
            y += ROW + (SECOND if _tall(dot) else 0)
    bottom = y + 2
    height = bottom + (22 if style is None else 46)
    ids = f"{chart.name}-t", f"{chart.name}-d"
    return tag(
        "svg",
        tag("title", chart.title, id=ids[0]),
        tag("desc", chart.summary, id=ids[1]),
        style or Markup(""),
        _grid(chart, scale, bottom),
        *body,
        Markup("") if style is None else tag("text", chart.axis_text, x="0", y=bottom + 36, class_="c-axis"),
        height=f"{height:g}",
        role="img",
        aria_labelledby=" ".join(ids),
        **attributes,
    )


def _x(scale: Axis, value: float) -> str:
    """A value's place across the chart; the outermost dots keep off the edge."""
    return f"{1.5 + 97 * scale.share(value):.2f}%"


def _grid(chart: Chart, scale: Axis, bottom: float) -> Markup:
    parts: list[Markup] = []
    for tick in scale.ticks:
        x = _x(scale, tick)
        anchor = "start" if tick == scale.ticks[0] else "end" if tick == scale.ticks[-1] else "middle"
        place = {"start": "0", "end": "100%", "middle": x}[anchor]
        parts.append(tag("line", x1=x, x2=x, y1=0, y2=bottom, class_="c-grid"))
        parts.append(tag("text", tick_text(tick), x=place, y=bottom + 16, text_anchor=anchor, class_="c-tick"))
    if chart.reference is not None:
        x = _x(scale, chart.reference)
        parts.append(tag("line", x1=x, x2=x, y1=0, y2=bottom, class_="c-ref"))
    return joined(parts)


def _row(dot: Dot, scale: Axis, top: float) -> Markup:
    second = SECOND if _tall(dot) else 0
    y = top + 27 + second
    label = tag("text", _fit(dot.label, LONGEST), x="0", y=top + LABEL, class_="c-label")
    if dot.href is not None:
        label = tag("a", label, href=dot.href)
    parts = [label, tag("text", dot.printed, x="100%", y=top + LABEL + second, text_anchor="end", class_="c-value")]
    for number, point in enumerate(dot.points):
        # Three lines, in turn, so that equal values don't hide each other.
        parts.append(tag("circle", cx=_x(scale, point), cy=f"{y + (number % 3 - 1) * 4:g}", r=2.5, class_="c-point"))
    if dot.value is not None:
        if dot.low is not None and dot.high is not None:
            ends = {"x1": _x(scale, dot.low), "x2": _x(scale, dot.high)}
            parts.append(tag("line", **ends, y1=y, y2=y, class_=f"c-bar {_class(dot.shape)}"))
        parts.append(mark(dot.shape, _x(scale, dot.value), y))
    return joined(parts)


def _tall(dot: Dot) -> bool:
    """Whether label and value need a line each."""
    return len(dot.label) + len(dot.printed) > BESIDE


def _fit(label: str, most: int) -> str:
    """The label cut to what fits; the page's table and the CSV hold it whole."""
    return label if len(label) <= most else label[: most - 1] + "…"


def _class(shape: str) -> str:
    return f"m-{shape}" if shape in ("plain", "speculation", "diffusion") else "m-other"


def mark(shape: str, x: str, y: float) -> Markup:
    """A decoder's mark at a place: hollow circle, filled circle, square, diamond."""
    kind = f"mark {_class(shape)}"
    if shape == "diffusion":
        return tag("rect", x=x, y=f"{y - 5:g}", width=10, height=10, transform="translate(-5 0)", class_=kind)
    if shape in ("plain", "speculation"):
        return tag("circle", cx=x, cy=f"{y:g}", r=5, class_=kind)
    # A small square stands apart from diffusion's by size and colour; per cent can't be used inside a path.
    return tag("rect", x=x, y=f"{y - 3:g}", width=6, height=6, transform="translate(-3 0)", class_=kind)


def inline_mark(shape: str) -> Markup:
    """A decoder's mark for a line of text; the text beside it names the decoder, so it is hidden from readers aloud."""
    return tag("svg", mark(shape, "7", 7), class_="key", width=14, height=14, aria_hidden="true", focusable="false")


def shape_of(method: str) -> str:
    """The mark that belongs to a decoder's method."""
    if method in ("plain", "block-diffusion"):
        return {"plain": "plain", "block-diffusion": "diffusion"}[method]
    return "speculation" if method in ("ngram", "mtp", "eagle3", "dflash", "draft") else "other"


def thinned(points: Sequence[float], most: int = 120) -> tuple[float, ...]:
    """At most `most` of the points, evenly by rank, both ends kept."""
    ordered = sorted(points)
    if len(ordered) <= most:
        return tuple(ordered)
    return tuple(ordered[round(i * (len(ordered) - 1) / (most - 1))] for i in range(most))


_STYLE = tag(
    "style",
    Markup(
        ".chart{font:13px system-ui,sans-serif;background:#fffdf8;color:#1a1a1a}"
        "text{fill:#1a1a1a}.c-group{font-weight:600}.c-tick,.c-axis{fill:#595959;font-size:12px}"
        ".c-value{font-variant-numeric:tabular-nums}.c-grid{stroke:#ddd8cc}.c-ref{stroke:#1a1a1a;stroke-dasharray:3 3}"
        ".c-point{fill:#1a1a1a;fill-opacity:.35}.c-bar{stroke-width:2;stroke:currentColor}"
        ".mark{stroke-width:2;stroke:currentColor;fill:currentColor}.m-plain{color:#1a1a1a}circle.m-plain{fill:#fffdf8}"
        ".m-speculation{color:#d55e00}.m-diffusion{color:#0072b2}.m-other{color:#767676}"
    ),
)

__all__ = ["Chart", "Dot", "Group", "inline_mark", "mark", "shape_of", "text", "thinned"]
