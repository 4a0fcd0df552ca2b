"""`plot_individual_cap()`: how sure an intruder can be of each GT record, before and after synthesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.evaluation.plots.axes import (
    cap_axis,
    cap_scale,
    count_axis,
)
from disclosure_pipeline.evaluation.plots.cap_bins import compare_chances, count_frequencies, joint_bins
from disclosure_pipeline.evaluation.plots.style import (
    BLUE,
    PALE_BLUE,
    RULE,
    TURQUOISE,
    heading,
    legible,
    percent_range,
)
from disclosure_pipeline.tables.grouping import Edges

if TYPE_CHECKING:
    import altair as alt


def plot_individual_cap(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    target: Any,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> alt.ConcatChart:
    """Draw how sure an intruder can be of each GT record from GT and from SD, a panel for each synthesis.

    Every GT record stands at its own CAP under GT and under SD; the colour tells how many records share a
    place, on a logarithmic scale, and the bars along the sides add them up. Above the diagonal a record is
    easier to guess from SD than from GT. A key that is not in SD stands apart from one that is there, but
    never with the record's own level (0). Arguments and errors as in `disclosure()`, one target; percent.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> chart = dp.plot_individual_cap(patients, synthetic, ["age"], "illness")
        >>> chart.title.text
        'illness is easier to guess from SD than from GT for 25.0 % of GT records'

    Source of the scatter: Baillargeon & Charest 2020.
    """
    import altair as alt  # only a plot needs it

    tables = count_frequencies(ground_truth, synthetic, keys, target, groups, special_values, edges)
    bins, moves = [joint_bins(f) for f in tables], [compare_chances(f) for f in tables]
    several = len(bins) > 1
    largest = _Largest.from_panels(bins)
    panels = [
        _panel(frame, largest, size=220 if several else 340).properties(
            title=alt.Title(f"Synthesis {i}" if several else "", anchor="start", fontSize=12)
        )
        for i, frame in enumerate(bins, start=1)
    ]
    easier, harder, not_in_SD = (
        percent_range([getattr(moved, name) for moved in moves]) for name in ("easier", "harder", "not_in_SD")
    )
    title = heading(
        f"{target} is easier to guess from SD than from GT for {easier} of GT records",
        f"Above the diagonal. Harder for {harder}, the key not in SD for {not_in_SD}.",
        "Number of GT records by their chance of a right guess (CAP), in percent.",
    )
    chart: alt.ConcatChart = legible(alt.concat(*panels, columns=3, title=title))
    return chart


@dataclass(frozen=True)
class _Largest:
    """The largest number of records at one place, in one bin of GT and in one of SD, over all panels."""

    place: int
    GT: int
    SD: int

    @classmethod
    def from_panels(cls, panels: Sequence[pd.DataFrame]) -> _Largest:
        return cls(
            place=max(int(panel["records"].max()) for panel in panels),
            GT=max(int(panel.groupby("GT")["records"].sum().max()) for panel in panels),
            SD=max(int(panel.groupby("SD")["records"].sum().max()) for panel in panels),
        )


def _panel(bins: pd.DataFrame, largest: _Largest, size: int) -> alt.VConcatChart:
    """Heat map of one synthesis with the two marginal distributions."""
    import altair as alt

    x = alt.X("GT_from:Q", scale=cap_scale("GT"), axis=cap_axis("GT"))
    y = alt.Y("SD_from:Q", scale=cap_scale("SD"), axis=cap_axis("SD"))
    records = alt.Tooltip("records:Q", format=",")
    colour = alt.Color(
        "records:Q",
        scale=alt.Scale(type="log", domain=[1, max(largest.place, 10)], range=[PALE_BLUE, BLUE]),
        legend=alt.Legend(title="GT records", gradientLength=140, format=",", tickCount=5),
    )
    heat = alt.Chart(bins).mark_rect(stroke=RULE, strokeWidth=0.5)
    heat = heat.encode(x=x, x2="GT_to:Q", y=y, y2="SD_to:Q", color=colour, tooltip=["GT:N", "SD:N", records])
    ends = pd.DataFrame({"GT_from": [0, 100], "SD_from": [0, 100]})
    diagonal = alt.Chart(ends).mark_line(color=RULE, strokeDash=[4, 4], strokeWidth=1).encode(x=x, y=y)

    per_GT = bins.groupby(["GT", "GT_from", "GT_to"], as_index=False)["records"].sum()
    above = alt.Chart(per_GT, width=size, height=size // 6).mark_rect(color=BLUE)
    above = above.encode(
        x=alt.X("GT_from:Q", scale=cap_scale("GT"), axis=None),
        x2="GT_to:Q",
        y=alt.Y("records:Q", axis=count_axis(largest.GT), scale=alt.Scale(domain=[0, largest.GT])),
        y2=alt.datum(0),
        tooltip=["GT:N", records],
    )
    per_SD = bins.groupby(["SD", "SD_from", "SD_to"], as_index=False)["records"].sum()
    beside = alt.Chart(per_SD, width=size // 6, height=size).mark_rect(color=TURQUOISE)
    beside = beside.encode(
        y=alt.Y("SD_from:Q", scale=cap_scale("SD"), axis=None),
        y2="SD_to:Q",
        x=alt.X("records:Q", axis=count_axis(largest.SD), scale=alt.Scale(domain=[0, largest.SD])),
        x2=alt.datum(0),
        tooltip=["SD:N", records],
    )
    middle = (heat + diagonal).properties(width=size, height=size)
    return alt.vconcat(above, alt.hconcat(middle, beside, spacing=6), spacing=6)
