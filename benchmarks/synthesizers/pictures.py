"""The pictures of docs/synthesizers.md, one a finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from synthesizers.candidates import SYNTHESIZERS
from synthesizers.findings import (
    APPROVED,
    BY_BOUNDS,
    BY_CONTRACT,
    BY_GUARDS,
    BY_LIMIT,
    FIRST_LOOKED_AT,
    find_first,
    summarise,
)

_COLOURS = {
    APPROVED: "#12436D",
    BY_LIMIT: "#A9A9A9",
    BY_BOUNDS: "#28A197",
    BY_CONTRACT: "#F46A25",
    BY_GUARDS: "#801650",
}
_OF_COPIES = ("fresh", "copies_3", "copies_10", "copies_30", "near_10", "near_30", "bootstrap")
_LABELS = 260


def draw(table: pd.DataFrame, folder: Path) -> None:
    """Write every picture."""
    summary = summarise(table)
    charts = {
        "study_copies": _draw_outcomes(summary),
        "study_first": _draw_first(table),
        "study_resemblance": _draw_resemblance(summary),
    }
    for name, chart in charts.items():
        _finish(chart).save(folder / f"{name}.svg")


def _finish(chart: Any) -> Any:
    return chart.configure_view(stroke=None).configure_axis(labelLimit=_LABELS, gridColor="#e8e8e8")


def _draw_outcomes(summary: pd.DataFrame) -> alt.Chart:
    rows = summary.melt("title", list(_COLOURS), "decided by", "percent")
    rows["order"] = rows["decided by"].map({name: place for place, name in enumerate(_COLOURS)})
    colour = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    return (
        alt.Chart(rows, width=360)
        .mark_bar(stroke="white")
        .encode(
            x=alt.X("percent:Q", title="percent of its tables", scale=alt.Scale(domain=[0, 100])),
            y=alt.Y("title:N", title=None, sort=list(summary["title"])),
            color=alt.Color(
                "decided by:N", scale=colour, legend=alt.Legend(title="decided by", orient="top")
            ),
            order="order:Q",
        )
    )


def _draw_first(table: pd.DataFrame) -> Any:
    synthesizers = [name for name in SYNTHESIZERS if name.startswith(("trees", "neighbours", "arfpy", "NRG"))]
    shares = find_first(table, (*_OF_COPIES, *synthesizers))
    rows = shares.rename_axis("candidate").reset_index().melt("candidate", None, "guard", "percent")
    base = alt.Chart(rows, width=alt.Step(46)).encode(
        x=alt.X("guard:N", title=None, sort=list(FIRST_LOOKED_AT), axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("candidate:N", title=None, sort=list(shares.index)),
    )
    shades = alt.Scale(domain=[0, 100], range=["#ffffff", "#801650"], interpolate="rgb")
    squares = base.mark_rect(stroke="#e8e8e8").encode(color=alt.Color("percent:Q", scale=shades, legend=None))
    text = base.mark_text().encode(
        text=alt.Text("percent:Q", format=".0f"),
        color=alt.condition("datum.percent > 50", alt.value("white"), alt.value("black")),
    )
    return alt.layer(squares, text)


def _draw_resemblance(summary: pd.DataFrame) -> Any:
    base = alt.Chart(summary.reset_index(names="name"), width=460, height=300).encode(
        x=alt.X(
            "distance:Q",
            title="distance of the worst pair of columns, beyond a fresh sample's (share of 1)",
            axis=alt.Axis(tickCount=6),
        ),
        y=alt.Y("nearly:Q", title="people found nearly, beyond a fresh table (%)"),
    )
    colour = alt.condition(
        f"datum['{BY_GUARDS}'] >= 100 / 3", alt.value(_COLOURS[BY_GUARDS]), alt.value(_COLOURS[APPROVED])
    )
    dots = base.mark_circle(size=60, opacity=1).encode(color=colour)
    names = base.mark_text(align="left", dx=6, fontSize=9).encode(text="name:N", color=colour)
    return alt.layer(dots, names)
