"""Pictures of a disclosure, a resemblance, a prediction of numbers, and the power of a policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError, choose_form, write_count
from disclosure_pipeline.evaluation.frames import find_heading
from disclosure_pipeline.evaluation.plots.drawing import (
    BLUE,
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
from disclosure_pipeline.evaluation.power import LARGEST_UNNOTICED, UNKNOWN
from disclosure_pipeline.measures.chance import errors_of_largest

if TYPE_CHECKING:
    import altair as alt

    from disclosure_pipeline.evaluation.power import GatePower
    from disclosure_pipeline.evaluation.result import Disclosure
    from disclosure_pipeline.families.prediction import PredictionRisk

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


_CELL = 46
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
    side = _CELL * len(order)
    chart: alt.LayerChart = style_legibly(
        (squares + numbers).properties(title=title, width=side, height=side)
    )
    return chart


# In percent of the true value; closed on the left.
_EDGES = (1, 2, 5, 10, 20, 50, 100, 200)
_NAMES = (
    f"under {_EDGES[0]}",
    *(f"{low} to {high}" for low, high in pairwise(_EDGES)),
    f"from {_EDGES[-1]}",
)


def plot_relative_errors(risk: PredictionRisk, target: Any) -> alt.ConcatChart:
    """Draw the scored GT records by the relative errors of the guesses from other GT records and from SD.

    There is a panel for each synthesis. Below the framed diagonal, SD guesses better than other GT records.
    InputError if levels were predicted, which have no relative error.

    Source: Hu, "Statistical Data Privacy", methods for risk evaluation part 3.
    """
    import altair as alt  # only a plot needs it

    fits, records = risk.fits.xs(target, level="target"), risk.records[target]
    if (fits["task"] != "regression").any():
        raise InputError(
            f"{target} was predicted as levels, which have no relative errors: "
            "plot() needs a numeric target (task='regression')."
        )
    counts = [_count_errors(records[synthesis]) for synthesis in fits.index]
    largest = max(1, *(int(panel["records"].max()) for panel in counts))  # one scale for all panels
    panels = [
        _draw_panel(panel, largest).properties(
            title=alt.Title(f"Synthesis {i}" if len(counts) > 1 else "", anchor="start", fontSize=12)
        )
        for i, panel in enumerate(counts, start=1)
    ]
    worse = format_percent_range(risk.figures["worse_from_SD"].xs(target, level="target"))
    title = heading(
        f"{target}: the guess from SD is worse than from other GT records for {worse}",
        "About half is normal for other people's records; much less indicates copying.",
        f"Numbers of the {fits['N_scored'].iloc[0]:,} scored GT records by relative error in percent.",
    )
    chart: alt.ConcatChart = style_legibly(alt.concat(*panels, columns=2, title=title))
    return chart


def _count_errors(records: pd.DataFrame) -> pd.DataFrame:
    """Count the GT records in each pair of bins; return pairs that occur and pairs of equal bins."""
    scored = records.dropna(subset=["relative_error_GT", "relative_error_SD"])
    size = len(_NAMES)
    from_GT, from_SD = (_find_bins(scored[f"relative_error_{table}"]) for table in ("GT", "SD"))
    counts = np.bincount(from_GT * size + from_SD, minlength=size**2)
    equal = np.arange(size) * (size + 1)
    pair = np.union1d(np.flatnonzero(counts), equal)
    return pd.DataFrame(
        {
            "from_GT": [_NAMES[i] for i in pair // size],
            "from_SD": [_NAMES[i] for i in pair % size],
            "records": counts[pair],
            "equal": np.isin(pair, equal),
        }
    )


def _find_bins(errors: Sequence[float]) -> np.ndarray:
    return np.searchsorted(_EDGES, np.asarray(errors, dtype=np.float64), side="right")


def _draw_panel(counts: pd.DataFrame, largest: int) -> alt.LayerChart:
    import altair as alt

    base = alt.Chart(counts).encode(
        x=alt.X("from_GT:N", title="error from other GT records (%)", sort=_NAMES, axis=_make_axis()),
        y=alt.Y("from_SD:N", title="error from SD (%)", sort=_NAMES[::-1], axis=_make_axis(0)),
        tooltip=["from_GT:N", "from_SD:N", alt.Tooltip("records:Q", format=",")],
    )
    squares = base.mark_rect().encode(
        color=alt.Color(
            "records:Q", title="GT records", scale=alt.Scale(domain=[0, largest], range=[PALE_BLUE, BLUE])
        )
    )
    frames = base.transform_filter("datum.equal").mark_rect(filled=False, stroke=RULE, strokeWidth=2)
    numbers = base.mark_text(fontSize=10).encode(
        text=alt.Text("records:Q", format=","), color=choose_number_colour("records", 0.55 * largest)
    )
    side = _CELL * len(_NAMES)
    return alt.layer(squares, frames, numbers).properties(width=side, height=side)


def _make_axis(angle: float = -45) -> alt.Axis:
    import altair as alt

    return alt.Axis(labelAngle=angle, ticks=False, domain=False)


# Colour, shape and dashes of each kind of copy, in the order of the kinds.
_LINES = ((BLUE, "circle", [1, 0]), (TURQUOISE, "diamond", [6, 3]), (PLUM, "square", [2, 2]))


def plot_power(power: GatePower) -> alt.LayerChart:
    """Draw the percentage of tries refused by the percentage of people copied, with Wilson intervals."""
    import altair as alt  # only a plot needs it

    halves = (
        f"Halves of the ground truth of {write_count(power.records, 'record')}; bars: 95 % Wilson intervals"
    )
    title = heading(title_power(power), halves)
    chart: alt.LayerChart = style_legibly(
        alt.LayerChart.from_dict({**specify_power(power), "title": title.to_dict()})
    )
    return chart.configure_legend(orient="bottom", labelColor=TEXT, labelLimit=300, columnPadding=LEGEND_GAP)


def title_power(power: GatePower) -> str:
    """Return the title of the picture, which states the finding."""
    limit, honest = power.detection_limit(), power.false_refusals
    if math.isnan(limit):
        finding = f"The copies that would be noticed are {UNKNOWN}"
    elif limit == 0 or limit > LARGEST_UNNOTICED:
        finding = "Copies are not noticed reliably"
    else:
        finding = f"Copies of {limit:g} % of the people are noticed"
    return (
        f"{finding}; {honest} honest tables {choose_form(honest.refused, 'is', 'are')} refused"
        if honest.are_enough
        else finding
    )


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
