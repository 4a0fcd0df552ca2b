"""The picture of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
from results import PEERS, PROTECTION, READ, SDMETRICS, Comparison, Results

_OURS, _OTHERS, _FLOOR = "#1f4e79", "#c8553d", "#8a8a8a"


def draw(results: Results, path: Path) -> None:
    """Every dot is a median, every line a range."""
    panels = [_panel(comparison) for comparison in results.largest]
    rows: list[Any] = [alt.hconcat(*panels, spacing=30).resolve_scale(x="shared")]
    if results.protection:
        rows.append(_growth(results.protection))
    alt.vconcat(*rows, spacing=30).configure_view(stroke=None).configure_axis(
        labelLimit=260, gridColor="#e8e8e8"
    ).save(path)


def _panel(of: Comparison) -> alt.LayerChart:
    rows: list[dict[str, Any]] = [
        {
            "who": name.replace("`", ""),
            "seconds": measured.seconds,
            "low": min(run.seconds for run in measured.runs),
            "high": max(run.seconds for run in measured.runs),
            "colour": _colour(name),
        }
        for name, measured in of.works.items()
        if measured.runs
    ]
    y = alt.Y("who:N", title=None, sort=[row["who"] for row in rows])
    base = alt.Chart(pd.DataFrame(rows))
    colour = alt.Color("colour:N", scale=None)
    seconds = alt.X("seconds:Q", title="seconds (logarithmic)", scale=alt.Scale(type="log"))
    ranges = base.mark_rule(strokeWidth=3, opacity=0.4).encode(
        x=alt.X("low:Q"), x2="high:Q", y=y, color=colour
    )
    dots = base.mark_circle(size=90, opacity=1).encode(x=seconds, y=y, color=colour)
    text = base.mark_text(dy=-10, fontSize=10).encode(
        x="seconds:Q", y=y, text=alt.Text("seconds:Q", format=".2~f"), color=colour
    )
    title = alt.Title(of.case, subtitle=f"GT and SD of {of.records:,} records, 5 targets", anchor="start")
    return alt.layer(ranges, dots, text).properties(title=title, width=260, height=190)


def _growth(protection: Sequence[Comparison]) -> alt.LayerChart:
    rows: list[dict[str, Any]] = [
        {
            "who": name.replace("`", ""),
            "records": of.records,
            "seconds": measured.seconds,
            "colour": _colour(name),
        }
        for of in protection
        for name, measured in of.works.items()
        if measured.runs and name in {SDMETRICS, PROTECTION}
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X("records:Q", title="records of GT and of SD (logarithmic)", scale=alt.Scale(type="log")),
        y=alt.Y("seconds:Q", title="seconds (logarithmic)", scale=alt.Scale(type="log")),
        color=alt.Color("colour:N", scale=None),
        detail="who:N",
    )
    last = max(row["records"] for row in rows)
    names = (
        base.transform_filter(f"datum.records == {last}").mark_text(align="left", dx=8).encode(text="who:N")
    )
    title = alt.Title("CAP protection of one target, 4 keys", anchor="start")
    return alt.layer(base.mark_line(), base.mark_circle(size=60, opacity=1), names).properties(
        title=title, width=420, height=180
    )


def _colour(name: str) -> str:
    if name == READ:
        return _FLOOR
    return _OTHERS if name in {*PEERS, SDMETRICS} else _OURS
