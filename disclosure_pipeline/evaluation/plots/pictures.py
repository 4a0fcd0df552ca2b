"""Pictures of a disclosure, a resemblance, a prediction of numbers, and the power of a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.frames import find_heading
from disclosure_pipeline.evaluation.plots.drawing import (
    BLUE,
    CELL,
    LEGEND_GAP,
    ORANGE,
    PALE_BLUE,
    PLUM,
    RULE,
    TEXT,
    TURQUOISE,
    choose_number_colour,
    format_percent_range,
    heading,
    style_legibly,
)
from disclosure_pipeline.measures.chance import errors_of_largest

if TYPE_CHECKING:
    import altair as alt

    from disclosure_pipeline.evaluation.power import GatePower
    from disclosure_pipeline.evaluation.result import Disclosure

# Measure -> colour, fill and shape.
_MARKS = {
    "Dorig": (BLUE, "transparent", "circle"),
    "DiSCO": (TURQUOISE, TURQUOISE, "diamond"),
    "DiSCO_others": (PLUM, "transparent", "M0,-1.2L0,1.2"),
}
# If SD has more records than GT, DiSCO at GT's size is the one to compare with the others'.
_LARGER_MARKS = {
    "Dorig": _MARKS["Dorig"],
    "DiSCO": (ORANGE, "transparent", "square"),
    "DiSCO_at_n": _MARKS["DiSCO"],
    "DiSCO_others": _MARKS["DiSCO_others"],
}
_ROW = 34
_WIDTH = 460
_POWER_HEIGHT = 200


def plot_disclosure(result: Disclosure) -> alt.LayerChart:
    """Draw a row for each target, in percent of GT records, with a point for each synthesis.

    A bar shows where DiSCO of a fresh sample would lie: the others' figure, plus and minus as many standard
    errors as the largest of all targets may deviate by chance. The title states the finding, copies first,
    followed by keys and identity figures; beside each row stand the levels and pairs that the checks flag.

    Source of the picture: Raab, Nowok & Dibben 2024, figure 1; the others' mark is this project's own.
    """
    import altair as alt  # only a plot needs it

    summary = result.summary()
    order = [str(target) for target in summary.index]
    marks = _LARGER_MARKS if result.is_larger else _MARKS
    points = result.attribute.reset_index()[["target", "synthesis", *marks]]
    points["target"] = points["target"].map(str)
    long = points.melt(["target", "synthesis"], var_name="column", value_name="percent")
    legend = {name: f"{find_heading(name, 'attribute')} ({name})" for name in marks}
    long["measure"] = [legend[name] for name in long["column"]]
    x = alt.X("percent:Q", title="% of GT records")
    y = alt.Y("target:N", title=None, sort=order, axis=alt.Axis(labelLimit=220))

    ends = (
        long[long["column"] != "DiSCO_others"].groupby(["target", "column"], as_index=False)["percent"].mean()
    )
    lines = alt.Chart(ends).mark_line(color=RULE, strokeWidth=1).encode(x=x, y=y, detail="target:N")
    bars = (
        alt.Chart(_find_bars(result.attribute))
        .mark_rule(color=PLUM, strokeWidth=6, opacity=0.35)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=y)
    )
    names = list(legend.values())
    colours, fills, shapes = ([mark[part] for mark in marks.values()] for part in range(3))
    dots = (
        alt.Chart(long)
        .mark_point(size=90, strokeWidth=2.5, opacity=1)
        .encode(
            x=x,
            y=y,
            stroke=alt.Stroke("measure:N", title=None, scale=alt.Scale(domain=names, range=colours)),
            fill=alt.Fill("measure:N", title=None, scale=alt.Scale(domain=names, range=fills)),
            shape=alt.Shape("measure:N", title=None, scale=alt.Scale(domain=names, range=shapes)),
            tooltip=["target:N", "synthesis:Q", "measure:N", alt.Tooltip("percent:Q", format=".2f")],
        )
    )
    flags = pd.DataFrame({"target": order, "flags": [_describe_flags(row) for _, row in summary.iterrows()]})
    labels = (
        alt.Chart(flags)
        .mark_text(align="left", dx=10, color=TEXT, fontSize=11, limit=300)
        .encode(x=alt.value(_WIDTH), y=y, text="flags:N")
    )
    chart: alt.LayerChart = style_legibly(
        alt.layer(lines, bars, dots, labels).properties(
            title=heading(result.copies.headline or _state_finding(result.attribute), *_explain(result)),
            width=_WIDTH,
            height=_ROW * len(order),
        )
    ).configure_legend(
        orient="bottom", labelColor=TEXT, labelLimit=260, symbolSize=90, columnPadding=LEGEND_GAP
    )
    return chart


def _state_finding(attribute: pd.DataFrame) -> str:
    errors = attribute["DiSCO_beyond"] / attribute["DiSCO_beyond_se"]
    means = errors.groupby(level="target", sort=False).mean()
    target = means.idxmax()
    beyond = attribute["DiSCO_beyond"].xs(target, level="target").mean()
    if not means.max() > _count_errors_by_chance(attribute):
        return "Beyond chance, SD tells no more about any target than other people's records would"
    return f"{target} stands out: SD tells {beyond:.1f} points more than other people's records would"


def _count_errors_by_chance(attribute: pd.DataFrame) -> float:
    return errors_of_largest(attribute.index.unique("target").size)


def _find_bars(attribute: pd.DataFrame) -> pd.DataFrame:
    """Return the range of DiSCO in fresh samples: target, low, high, in percent."""
    means = attribute[["DiSCO_others", "DiSCO_beyond_se"]].groupby(level="target", sort=False).mean()
    reach = _count_errors_by_chance(attribute) * means["DiSCO_beyond_se"]
    return pd.DataFrame(
        {
            "target": [str(target) for target in means.index],
            "low": (means["DiSCO_others"] - reach).clip(lower=0).tolist(),
            "high": (means["DiSCO_others"] + reach).clip(upper=100).tolist(),
        }
    )


def _explain(result: Disclosure) -> list[str]:
    identity = result.identity
    bases = " of all records; DiSCO of those not excluded" if result.excludes_records else ""
    return [
        f"Keys: {', '.join(map(str, result.keys))}",
        f"repU {format_percent_range(identity['repU'])}, UiO {format_percent_range(identity['UiO'])}{bases}",
        "Bars: the range of fresh samples of other people",
    ]


def _describe_flags(row: pd.Series[Any]) -> str:
    """Describe the flags, such as "one-way: NO; two-way: 3 pairs"; empty without flags."""
    flags = [f"one-way: {row['one_way']}"] if row["one_way"] else []
    if row["two_way"]:
        flags.append(f"two-way: {write_count(row['two_way'], 'pair')}")
    return "; ".join(flags)


_HIGH = 10  # S_pMSE: synthpop advises to stay below this, or better below 3


def plot_resemblance(columns: pd.Series[float], pairs: pd.Series[float] | None) -> alt.LayerChart:
    """Draw a heat map of the S_pMSE of each column and pair; the title names the least similar."""
    import altair as alt  # only a plot needs it

    diagonal = columns.index.get_level_values("column")
    order = [str(name) for name in dict.fromkeys(diagonal)]
    parts = [pd.DataFrame({"column_1": diagonal, "column_2": diagonal, "S_pMSE": columns.to_numpy()})]
    if pairs is not None:
        parts.append(pairs.reset_index()[["column_1", "column_2", "S_pMSE"]])
    frame = pd.concat(parts, ignore_index=True).astype({"column_1": str, "column_2": str})
    frame = frame.groupby(["column_1", "column_2"], as_index=False, sort=False)["S_pMSE"].max()
    worst = frame.loc[frame["S_pMSE"].idxmax()]
    where = worst["column_1"]
    if worst["column_1"] != worst["column_2"]:
        where = f"{worst['column_1']} and {worst['column_2']}"
    frame["shade"] = frame["S_pMSE"].clip(upper=_HIGH)
    base = alt.Chart(frame).encode(
        x=alt.X("column_1:N", title=None, sort=order, axis=alt.Axis(labelAngle=-45)),
        y=alt.Y("column_2:N", title=None, sort=order),
        tooltip=["column_1:N", "column_2:N", alt.Tooltip("S_pMSE:Q", format=".2f")],
    )
    squares = base.mark_rect(stroke="#ffffff").encode(
        color=alt.Color(
            "shade:Q",
            title=f"S_pMSE ({_HIGH} and more: darkest)",
            scale=alt.Scale(domain=[0, _HIGH], range=[PALE_BLUE, BLUE]),
        )
    )
    numbers = base.mark_text(fontSize=11).encode(
        text=alt.Text("S_pMSE:Q", format=".1f"), color=choose_number_colour("shade", 0.55 * _HIGH)
    )
    title = heading(
        f"Least similar: {where}, S_pMSE {worst['S_pMSE']:.1f}",
        "GT and SD by columns (diagonal) and pairs; 1 to 2 is as good as a fresh sample",
    )
    side = CELL * len(order)
    chart: alt.LayerChart = style_legibly(
        (squares + numbers).properties(title=title, width=side, height=side)
    )
    return chart


# Colour, shape and dashes of each kind of copy, in the order of the kinds.
_LINES = ((BLUE, "circle", [1, 0]), (TURQUOISE, "diamond", [6, 3]), (PLUM, "square", [2, 2]))


def plot_power(power: GatePower) -> alt.LayerChart:
    """Draw the percentage of tries refused by the percentage of people copied, with Wilson intervals."""
    import altair as alt  # only a plot needs it

    halves = (
        f"Halves of the ground truth of {write_count(power.records, 'record')}; bars: 95 % Wilson intervals"
    )
    title = heading(power.state_finding(), halves)
    chart: alt.LayerChart = style_legibly(
        alt.LayerChart.from_dict({**specify_power(power), "title": title.to_dict()})
    )
    return chart.configure_legend(orient="bottom", labelColor=TEXT, labelLimit=300, columnPadding=LEGEND_GAP)


def specify_power(power: GatePower) -> dict[str, Any]:
    """Return the picture as a Vega-Lite specification without a title.

    Each kind of copy that was tried often enough has a line.
    """
    frame = power.to_frame().dropna()
    kinds = list(dict.fromkeys(frame["planted"]))

    def by_kind(part: int) -> dict[str, Any]:
        scale = {"domain": kinds, "range": [line[part] for line in _LINES[: len(kinds)]]}
        return {"field": "planted", "type": "nominal", "title": None, "scale": scale}

    place = {
        "x": {
            "field": "share",
            "type": "ordinal",
            "title": "% of the people who are copied",
            "axis": {"labelAngle": 0},
        },
        "xOffset": {"field": "planted", "type": "nominal", "sort": kinds},
        "color": by_kind(0),
    }
    percent = {"type": "quantitative", "title": "% of tries refused", "scale": {"domain": [0, 100]}}
    bars = {
        "mark": {"type": "rule", "strokeWidth": 5, "strokeOpacity": 0.25},
        "encoding": {**place, "y": {"field": "low", **percent}, "y2": {"field": "high"}},
    }
    lines = {
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {**place, "y": {"field": "percent", **percent}, "strokeDash": by_kind(2)},
    }
    points = {
        "mark": {"type": "point", "filled": True, "opacity": 1, "size": 60},
        "encoding": {**place, "y": {"field": "percent", **percent}, "shape": by_kind(1)},
    }
    return {
        "data": {"values": frame.to_dict("records")},
        "layer": [bars, lines, points],
        "width": _WIDTH,
        "height": _POWER_HEIGHT,
    }
