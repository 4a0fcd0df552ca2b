"""Charts and tables of the page, and how it writes figures, bounds and subjects.

Charts are SVG without fonts, scripts or styles, so they load nothing. Their Vega-Lite specifications are
written by hand: building them with Altair takes as long as drawing them.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite
from typing import Any

from disclosure_pipeline.evaluation.frames import LABELS, find_heading, find_words
from disclosure_pipeline.evaluation.long_table import PLACES
from disclosure_pipeline.evaluation.plots.drawing import (
    BLUE,
    ORANGE,
    PLUM,
    RULE,
    TEXT,
    TURQUOISE,
    DrawingError,
    convert,
)
from disclosure_pipeline.evaluation.plots.pictures import specify_power
from disclosure_pipeline.evaluation.power import GatePower
from disclosure_pipeline.measures.chance import difference_by_chance
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.policy.sentences import Content, write_figure, write_rounded
from disclosure_pipeline.tables.messages import capitalized


def require_words(name: str, frame: str) -> Words:
    """Return the words for a column of a frame of a dossier, which must exist."""
    words = find_words(name, frame)
    assert words is not None, f"no words for {frame}.{name}"
    return words


@dataclass(frozen=True)
class PageTable:
    """A table of texts; the first cell of each row is its heading."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Chart:
    """A chart as SVG, titled by its finding, and its figures as a table."""

    title: str
    svg: str
    description: str
    table: PageTable


def write_figures(content: Content, row: Mapping[str, Any], frame: str, *names: str) -> list[str]:
    """Write figures of a row of a frame of a dossier with their units."""
    return [write_rounded(row.get(name), require_words(name, frame), content) for name in names]


def find_worst(rows: Iterable[Mapping[str, Any]], label: str, figure: str) -> dict[str, Mapping[str, Any]]:
    """Return the row with the largest exact figure for each label, in order of first appearance."""
    worst: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        name = str(row[label])
        if name not in worst or rank(row, figure) > rank(worst[name], figure):
            worst[name] = row
    return worst


def rank(row: Mapping[str, Any], figure: str) -> float:
    """Return a number by which rows of a frame are ordered as by the exact figure, -infinity without it.

    In the edition for publication, whose rounded figures may tie, rows keep their exact places.
    """
    places = row.get(PLACES)
    if places is not None:
        return float(places.get(figure, -inf))
    value = _RANKED[figure](row) if figure in _RANKED else row.get(figure)
    return -inf if value is None else float(value)


def place_rows(rows: Sequence[Mapping[str, Any]], figures: Iterable[str]) -> list[dict[str, int]]:
    """Return the place of each row by each of the figures that it has, from the smallest."""
    places: list[dict[str, int]] = [{} for _ in rows]
    for figure in figures:
        ranks = [rank(row, figure) for row in rows]
        order = sorted(set(ranks) - {-inf})
        for place, value in zip(places, ranks, strict=True):
            if value != -inf:
                place[figure] = order.index(value)
    return places


BEYOND_BOTH, BEYOND_OTHERS, FARTHEST = "beyond both", "beyond others", "TVD beyond"


def find_beyond_both(row: Mapping[str, Any]) -> float | None:
    """Return the figure that a policy bounds: the smaller of DiSCO_beyond_chance and DiSCO_excess."""
    beyond, excess = row.get("DiSCO_beyond_chance"), row.get("DiSCO_excess")
    beyond = row.get("DiSCO_beyond") if beyond is None else beyond
    if beyond is None:
        return None
    return float(beyond if excess is None else min(beyond, excess))


def _find_beyond_others(row: Mapping[str, Any]) -> float | None:
    """Return DiSCO_beyond without what chance explains: a small group often seems the most exposed."""
    beyond = row.get("DiSCO_beyond")
    if beyond is not None or row.get("DiSCO") is None:
        return None if beyond is None else beyond - difference_by_chance(row.get("DiSCO_beyond_se") or 0.0)
    return float(row["DiSCO"] - (row.get("DiSCO_others") or 0.0))


# Figures that rows are ordered by and that are not a column.
_RANKED: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = {
    BEYOND_BOTH: find_beyond_both,
    BEYOND_OTHERS: _find_beyond_others,
    FARTHEST: lambda row: None if row.get("TVD") is None else row["TVD"] - (row.get("TVD_expected") or 0.0),
}


def tabulate(
    caption: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], frame: str
) -> PageTable:
    """Return a table of rows of a dossier's frame, without columns that are empty in all of them."""
    rows = list(rows)
    filled = [name for name in columns if any(row.get(name) is not None for row in rows)]
    return PageTable(
        caption,
        tuple(capitalized(find_heading(name, frame)) for name in filled),
        tuple(
            tuple(
                write_figure(row.get(name), None if name in LABELS else find_words(name, frame))
                for name in filled
            )
            for row in rows
        ),
    )


def join_names(names: Sequence[Any]) -> str:
    """Join names as in a sentence.

    >>> join_names(["sex", "age", "region"])
    'sex, age and region'
    """
    texts = [str(name) for name in names]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


# Widths in pixels. On paper, long names of clauses stand beside a chart, or two charts side by side.
LONG_NAMES, BESIDE_LONG_NAMES, SIDE_BY_SIDE, POWER_WIDTH = 380, 210, 170, 250
FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
_WIDTH, _ROW, _MAP_HEIGHT = 420, 30, 160
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_SVG = "{http://www.w3.org/2000/svg}"
# Charts are laid out for the first font. A browser without any of them uses a wider one, so names get a fifth
# more room.
_ROOM_FOR_NAMES, _ROOM_FOR_LEGEND = 36, 36
_LABEL_LIMIT = 240
_CACHED_CHARTS = 64  # for dossiers that are filed again
_DROPPED = ("role", "class", "pointer-events")
_PADDING = {"left": _ROOM_FOR_NAMES, "top": 5, "right": _ROOM_FOR_NAMES, "bottom": 5}
_CONFIG: Mapping[str, Any] = {
    "font": FONT,
    "background": "#ffffff",
    "padding": _PADDING,
    "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": None},
    "axis": {
        "domainColor": RULE,
        "labelColor": TEXT,
        "labelFontSize": 11,
        "titleColor": TEXT,
        "titleFontWeight": "normal",
    },
    "legend": {
        "orient": "bottom",
        "labelColor": TEXT,
        "labelFontSize": 12,
        "labelLimit": 300,
        "symbolSize": 90,
        "columnPadding": _ROOM_FOR_LEGEND,
    },
}

# Colours of line and inside, and shape: marks never differ by colour alone.
Mark = tuple[str, str, str]
HOLLOW = "transparent"
OWN: Mark = (BLUE, HOLLOW, "circle")
SYNTHETIC: Mark = (TURQUOISE, TURQUOISE, "diamond")
OTHERS: Mark = (PLUM, HOLLOW, "M0,-1.2L0,1.2")
CHANCE: Mark = (ORANGE, HOLLOW, "cross")
DOT: Mark = (BLUE, BLUE, "circle")
SQUARE: Mark = (ORANGE, HOLLOW, "square")
TICK: Mark = OTHERS
RING: Mark = (ORANGE, HOLLOW, "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0")


def draw_rows(
    rows: Sequence[tuple[str, str, float]],
    marks: Mapping[str, Mark],
    axis: str,
    *,
    row_height: int = _ROW,
    width: int = _WIDTH,
    longest_name: int = _LABEL_LIMIT,
    bars: Sequence[tuple[str, float, float]] = (),
) -> str:
    """Draw a row of marks for each name. `rows`: (name of row, name of mark, figure).

    `bars`: (name of row, from, to), the range in which chance leaves other people's records.
    """
    order = list(dict.fromkeys(row for row, _, _ in rows))
    drawn = {mark for _, mark, _ in rows}
    names = [name for name in marks if name in drawn]
    x = {"title": axis, "type": "quantitative", "scale": {"zero": True}}
    y = {
        "field": "row",
        "type": "nominal",
        "title": None,
        "sort": order,
        "axis": {"labelLimit": longest_name},
    }
    figures = {
        row: [figure for other, _, figure in rows if other == row and isfinite(figure)]
        for row in sorted(order)
    }
    ends = [
        {"row": row, "min": min(of_row, default=None), "max": max(of_row, default=None)}
        for row, of_row in figures.items()
    ]
    lines = {
        "data": {"values": ends},
        "mark": {"type": "rule", "color": RULE},
        "encoding": {"x": {"field": "min", **x}, "x2": {"field": "max"}, "y": y},
    }
    points = {
        "data": {
            "values": [
                {"row": row, "mark": mark, "figure": _finite_or_none(figure)} for row, mark, figure in rows
            ]
        },
        "mark": {"type": "point", "opacity": 1, "size": 90, "strokeWidth": 2.5},
        "encoding": {
            "x": {"field": "figure", **x, "axis": {"tickCount": min(6, width // 60)}},
            "y": y,
            **{
                channel: _encode_names("mark", names, [marks[name][place] for name in names])
                for place, channel in enumerate(("stroke", "fill", "shape"))
            },
        },
    }
    errors = {
        "data": {"values": [{"row": row, "low": low, "high": high} for row, low, high in bars]},
        "mark": {"type": "rule", "color": PLUM, "strokeWidth": 6, "opacity": 0.35},
        "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}, "y": y},
    }
    layers = [lines, *([errors] if bars else []), points]
    room = _ROOM_FOR_NAMES if longest_name == _LABEL_LIMIT else longest_name // 5
    padding = {**_PADDING, "left": room}
    chart = {"layer": layers, "width": width, "height": row_height * len(order), "padding": padding}
    return _draw(json.dumps(chart))


def draw_frame(
    title: str,
    rows: Iterable[Mapping[str, Any]],
    label: str,
    marks: Mapping[str, Mark],
    frame: str,
    axis: str,
    description: str,
    table: PageTable,
    **sizes: Any,
) -> Chart:
    """Draw the columns in `marks` of a frame, a row per `label`; `sizes` as in `draw_rows`."""
    points = [
        (str(row[label]), find_heading(column, frame), row[column])
        for row in rows
        for column in marks
        if row.get(column) is not None
    ]
    named = {find_heading(column, frame): mark for column, mark in marks.items()}
    return Chart(title, draw_rows(points, named, axis, **sizes), description, table)


def _finite_or_none(figure: float) -> float | None:
    return figure if isfinite(figure) else None  # JSON has no other numbers


def _encode_names(field: str, names: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    scale = {"domain": list(names), "range": list(values)}
    return {"field": field, "type": "nominal", "title": None, "scale": scale}


def draw_map(points: Sequence[tuple[float, float, str]], x_title: str, y_title: str) -> str:
    """Draw candidates by utility and risk. `points`: (x, y, kind of candidate)."""
    kinds = {"this candidate": (PLUM, "diamond"), "another candidate": (BLUE, "circle")}
    drawn = {kind for _, _, kind in points}
    names = [kind for kind in kinds if kind in drawn]
    quantity = {
        "type": "quantitative",
        "scale": {"zero": True, "nice": True},
        "axis": {"tickCount": 3, "format": ".3~r"},
    }
    chart = {
        "data": {
            "values": [
                {"x": _finite_or_none(x), "y": _finite_or_none(y), "kind": kind} for x, y, kind in points
            ]
        },
        "mark": {"type": "point", "filled": True, "opacity": 1, "size": 110, "strokeWidth": 2.5},
        "encoding": {
            "x": {"field": "x", "title": x_title, **quantity},
            "y": {"field": "y", "title": y_title, **quantity},
            "color": _encode_names("kind", names, [kinds[name][0] for name in names]),
            "shape": _encode_names("kind", names, [kinds[name][1] for name in names]),
        },
        "width": SIDE_BY_SIDE,
        "height": _MAP_HEIGHT,
    }
    return _draw(json.dumps(chart))


def draw_power(power: GatePower) -> str:
    """Draw the share of refused tries by the share of copied people."""
    config = {**_CONFIG, "legend": {**_CONFIG["legend"], "columns": 1}}
    size = {"width": POWER_WIDTH, "height": _MAP_HEIGHT}
    return _draw(json.dumps({**specify_power(power), **size, "config": config}))


@lru_cache(maxsize=_CACHED_CHARTS)
def _draw(chart: str) -> str:
    """Return a Vega-Lite chart, given as JSON, as an SVG element; the page describes it."""
    try:
        root = ET.fromstring(convert({"$schema": _SCHEMA, "config": _CONFIG, **json.loads(chart)}))
    except (DrawingError, ET.ParseError):
        return "<p>This chart could not be drawn. Its figures are in the table.</p>"
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
