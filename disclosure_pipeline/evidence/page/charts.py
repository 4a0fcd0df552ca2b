"""The charts of the page, as SVG that loads nothing: no font, no script, no style of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.evaluation.plots.conversion import convert
from disclosure_pipeline.evaluation.plots.style import BLUE, ORANGE, PLUM, RULE, TEXT, TURQUOISE, legible

if TYPE_CHECKING:
    import altair as alt

FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
_WIDTH, _ROW = 470, 34
_SVG = "{http://www.w3.org/2000/svg}"
_KEPT = 64  # charts of candidates that are filed again
_DROPPED = ("role", "class", "pointer-events")

# Name -> colour, fill and shape, in the order of the palette; nothing is told by its colour alone.
Mark = tuple[str, str, str]
HOLLOW, FILLED = "transparent", ""
OWN: Mark = (BLUE, HOLLOW, "circle")
SYNTHETIC: Mark = (TURQUOISE, FILLED, "diamond")
OTHERS: Mark = (PLUM, HOLLOW, "M0,-1.2L0,1.2")
CHANCE: Mark = (ORANGE, HOLLOW, "cross")


def draw_rows(
    rows: Sequence[tuple[str, str, float]],
    marks: Mapping[str, Mark],
    axis: str,
    *,
    largest: float | None = None,
) -> str:
    """A row for each name, with a mark for each figure: (name of the row, name of the mark, figure)."""
    return _draw_rows(tuple(rows), tuple(marks.items()), axis, largest)


@lru_cache(maxsize=_KEPT)
def _draw_rows(
    rows: tuple[tuple[str, str, float], ...],
    named_marks: tuple[tuple[str, Mark], ...],
    axis: str,
    largest: float | None,
) -> str:
    import altair as alt  # only a chart needs it

    marks = dict(named_marks)
    data = pd.DataFrame(rows, columns=["row", "mark", "figure"])
    order = list(dict.fromkeys(data["row"]))
    names = [name for name in marks if name in set(data["mark"])]
    scale = alt.Scale(domain=[0, largest]) if largest else alt.Scale(zero=True)
    x = alt.X("figure:Q", title=axis, scale=scale, axis=alt.Axis(tickCount=6))
    y = alt.Y("row:N", title=None, sort=order, axis=alt.Axis(labelLimit=180))
    ends = data.groupby("row", as_index=False)["figure"].agg(["min", "max"]).reset_index()
    lines = (
        alt.Chart(ends)
        .mark_rule(color=RULE)
        .encode(x=alt.X("min:Q", title=axis, scale=scale), x2="max:Q", y=y)
    )
    fills = [marks[name][0] if marks[name][1] == FILLED else HOLLOW for name in names]
    points = (
        alt.Chart(data)
        .mark_point(size=90, strokeWidth=2.5, opacity=1)
        .encode(
            x=x,
            y=y,
            stroke=alt.Stroke(
                "mark:N", title=None, scale=alt.Scale(domain=names, range=[marks[name][0] for name in names])
            ),
            fill=alt.Fill("mark:N", title=None, scale=alt.Scale(domain=names, range=fills)),
            shape=alt.Shape(
                "mark:N", title=None, scale=alt.Scale(domain=names, range=[marks[name][2] for name in names])
            ),
        )
    )
    chart = alt.layer(lines, points).properties(width=_WIDTH, height=_ROW * len(order))
    return to_svg(chart)


def draw_map(points: Sequence[tuple[str, float, float, str]], x_title: str, y_title: str) -> str:
    """Candidates by their utility (x) and risk (y), named; (name, x, y, what it is, by its shape)."""
    return _draw_map(tuple(points), x_title, y_title)


@lru_cache(maxsize=_KEPT)
def _draw_map(points: tuple[tuple[str, float, float, str], ...], x_title: str, y_title: str) -> str:
    import altair as alt  # only a chart needs it

    data = pd.DataFrame(points, columns=["name", "x", "y", "kind"])
    kinds = {"this candidate": (PLUM, "diamond"), "another candidate": (BLUE, "circle")}
    names = [kind for kind in kinds if kind in set(data["kind"])]
    axis = alt.Axis(tickCount=5, format="~g")
    base = alt.Chart(data).encode(
        x=alt.X("x:Q", title=x_title, scale=alt.Scale(zero=True, nice=True), axis=axis),
        y=alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=True, nice=True), axis=axis),
    )
    marks = base.mark_point(size=110, strokeWidth=2.5, filled=True, opacity=1).encode(
        color=alt.Color(
            "kind:N", title=None, scale=alt.Scale(domain=names, range=[kinds[name][0] for name in names])
        ),
        shape=alt.Shape(
            "kind:N", title=None, scale=alt.Scale(domain=names, range=[kinds[name][1] for name in names])
        ),
    )
    labels = base.mark_text(align="left", dx=9, dy=-8, color=TEXT, fontSize=11, limit=160).encode(
        text="name:N"
    )
    return to_svg(alt.layer(marks, labels).properties(width=_WIDTH, height=260))


def to_svg(chart: alt.LayerChart) -> str:
    """The chart as an element of a page, the same for the same chart; it is described where it stands."""
    styled = legible(chart).configure_legend(
        orient="bottom", labelColor=TEXT, labelFontSize=12, labelLimit=300, symbolSize=90
    )
    specification: dict[str, Any] = styled.to_dict(validate=False)
    specification["config"]["font"] = FONT
    root = ET.fromstring(convert(specification))
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        for name in [name for name in element.attrib if name in _DROPPED or name.startswith("aria-")]:
            del element.attrib[name]
    width, height = root.attrib["width"], root.attrib["height"]
    root.attrib.clear()
    root.attrib.update(
        {"viewBox": f"0 0 {width} {height}", "width": width, "height": height, "aria-hidden": "true"}
    )
    return ET.tostring(root, encoding="unicode")
