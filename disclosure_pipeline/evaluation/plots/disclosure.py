"""The picture of a `Disclosure`: what GT holds, what SD tells of it, and what others' records would tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.evaluation.glossary import find_heading
from disclosure_pipeline.evaluation.plots.style import (
    BLUE,
    LEGEND_GAP,
    PLUM,
    RULE,
    TEXT,
    TURQUOISE,
    heading,
    legible,
    percent_range,
)

if TYPE_CHECKING:
    import altair as alt

    from disclosure_pipeline.evaluation.result import Disclosure

# Measure -> colour, fill and shape; what is not measured is left out.
_MARKS = {
    "Dorig": (BLUE, "transparent", "circle"),
    "DiSCO": (TURQUOISE, TURQUOISE, "diamond"),
    "DiSCO_others": (PLUM, "transparent", "M0,-1.2L0,1.2"),
}
_STANDARD_ERRORS = 2
_ROW = 34
_WIDTH = 460


def plot_disclosure(result: Disclosure) -> alt.LayerChart:
    """A row for each target, from 0 to 100 percent of GT records; several syntheses are so many points.

    The title is the finding; under it stand the keys and the identity figures, beside each row the levels
    and pairs that the checks flag.

    Source of the picture: Raab, Nowok & Dibben 2024, figure 1; the others' mark is this project's own.
    """
    import altair as alt  # only a plot needs it

    summary = result.summary()
    order = [str(target) for target in summary.index]
    measured = [name for name in _MARKS if name in result.attribute.columns]
    points = result.attribute.reset_index()[["target", "synthesis", *measured]]
    points["target"] = points["target"].map(str)
    long = points.melt(["target", "synthesis"], var_name="column", value_name="percent")
    legend = {name: f"{find_heading(name, 'attribute')} ({name})" for name in measured}
    long["measure"] = [legend[name] for name in long["column"]]
    x = alt.X("percent:Q", title="% of GT records", scale=alt.Scale(domain=[0, 100]))
    y = alt.Y("target:N", title=None, sort=order, axis=alt.Axis(labelLimit=220))

    ends = (
        long[long["column"] != "DiSCO_others"].groupby(["target", "column"], as_index=False)["percent"].mean()
    )
    lines = alt.Chart(ends).mark_line(color=RULE, strokeWidth=1).encode(x=x, y=y, detail="target:N")
    marks = [_MARKS[name] for name in measured]
    names = list(legend.values())
    colours, fills, shapes = ([mark[part] for mark in marks] for part in range(3))
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
    flags = pd.DataFrame({"target": order, "flags": [_flags(row) for _, row in summary.iterrows()]})
    labels = (
        alt.Chart(flags)
        .mark_text(align="left", dx=10, color=TEXT, fontSize=11, limit=300)
        .encode(x=alt.value(_WIDTH), y=y, text="flags:N")
    )
    chart: alt.LayerChart = legible(
        alt.layer(lines, dots, labels).properties(
            title=heading(_finding(result.attribute), *_explanation(result)),
            width=_WIDTH,
            height=_ROW * len(order),
        )
    ).configure_legend(
        orient="bottom", labelColor=TEXT, labelLimit=260, symbolSize=90, columnPadding=LEGEND_GAP
    )
    return chart


def _finding(attribute: pd.DataFrame) -> str:
    """What stands out most: against others' records where they are measured."""
    if "DiSCO_beyond" not in attribute.columns:
        target, disclosed = _largest(attribute["DiSCO"])
        return f"SD tells most about {target}: DiSCO {disclosed:.1f} % of GT records"
    target, beyond = _largest(attribute["DiSCO_beyond"])
    error = attribute["DiSCO_beyond_se"].xs(target, level="target").max()
    if not beyond > _STANDARD_ERRORS * error:
        return "SD tells no more about any target than other people's records would, but for chance"
    return f"{target} stands out: SD tells {beyond:.1f} points more than other people's records would"


def _largest(figures: pd.Series[float]) -> tuple[Any, float]:
    means = figures.groupby(level="target", sort=False).mean()
    return means.idxmax(), float(means.max())


def _explanation(result: Disclosure) -> list[str]:
    identity = result.identity
    of_all = " of all records; DiSCO of those not excluded" if result.excludes_records else ""
    return [
        f"Keys: {', '.join(map(str, result.keys))}",
        f"repU {percent_range(identity['repU'])}, UiO {percent_range(identity['UiO'])}{of_all}",
    ]


def _flags(row: pd.Series[Any]) -> str:
    """Such as "one-way: NO; two-way: 3 pairs"; empty where the checks flag nothing."""
    flags = [f"one-way: {row['one_way']}"] if row["one_way"] else []
    if row["two_way"]:
        flags.append(f"two-way: {row['two_way']} pair{'' if row['two_way'] == 1 else 's'}")
    return "; ".join(flags)
