"""Plots of the individual CAP: from one synthesis to the next, and before and after synthesis."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pandas as pd

from disclosure_pipeline.analyses.cap_bins import (
    BAND,
    GAP,
    bins_of_synthesis,
    compare_chances,
    joint_bins,
)
from disclosure_pipeline.evaluation.plots.drawing import (
    BLUE,
    PALE_BLUE,
    RULE,
    TURQUOISE,
    heading,
    legible,
    percent_range,
)
from disclosure_pipeline.measures.frequency import FrequencyTable

if TYPE_CHECKING:
    import altair as alt

Table = Literal["GT", "SD"]

_MIDDLE_OF_0, _MIDDLE_OF_1 = -100 * (GAP + BAND / 2), 100 * (1 + GAP + BAND / 2)
_NOT_IN_SD = _MIDDLE_OF_0 - 100 * (GAP + BAND)
_HIGHEST = 100 * (1 + GAP + BAND)


def cap_scale(table: Table) -> alt.Scale:
    """Under GT no record has a CAP of 0: it counts itself."""
    import altair as alt

    lowest = 0.0 if table == "GT" else -200 * (GAP + BAND)
    return alt.Scale(domain=[lowest, _HIGHEST], nice=False, zero=False)


def cap_axis(table: Table) -> alt.Axis:
    """Labelled where the bands are, too."""
    import altair as alt

    lowest = [0.0] if table == "GT" else [_NOT_IN_SD, _MIDDLE_OF_0]
    labels = (
        f"datum.value < {_NOT_IN_SD + 1} ? ['key not', 'in SD'] : datum.value < 0 ? '0' : "
        "datum.value > 100 ? '100' : format(datum.value, 'd')"
    )
    return alt.Axis(
        title=f"CAP under {table} (%)",
        values=[*lowest, 25, 50, 75, _MIDDLE_OF_1],
        labelExpr=labels,
        labelOverlap=False,
        grid=False,
    )


def count_axis(largest: int) -> alt.Axis:
    """Return an axis that names the largest count only: small panels have no room for more."""
    import altair as alt

    return alt.Axis(title=None, values=[largest], format=",d", grid=False)


# Height of a row; half of it where there are many.
_HEIGHT = 60
_MANY = 10

_PERCENT = "datum.label + ' %'"


def draw_distributions(target: Hashable, tables: Sequence[FrequencyTable]) -> alt.FacetChart:
    """Return the picture of `IndividualAttribution.plot_distributions()`."""
    import altair as alt  # only a plot needs it

    bins = pd.concat([bins_of_synthesis(f, i) for i, f in enumerate(tables, start=1)], ignore_index=True)
    rows = bins.drop_duplicates("synthesis").sort_values("average", ascending=False, kind="stable")
    highest = rows.iloc[0]
    x = alt.X("low:Q", scale=cap_scale("SD"), axis=cap_axis("SD"))
    share = alt.Y("percent:Q", axis=alt.Axis(title=None, tickCount=2, grid=False, labelExpr=_PERCENT))
    tooltip = ["row:N", "CAP:N", alt.Tooltip("records:Q", format=","), alt.Tooltip("percent:Q", format=".2f")]
    bars = alt.Chart().mark_rect(color=TURQUOISE, opacity=0.6)
    bars = bars.encode(x=x, x2="high:Q", y=share, y2=alt.datum(0), tooltip=tooltip)

    under_SD, under_GT = "from SD", f"from GT: {highest['GT_average']:.1f} %"
    lines = [under_SD, under_GT]
    averages = [
        alt.Chart()
        .mark_rule(strokeWidth=2)
        .transform_calculate(line=repr(line))
        .encode(
            x=f"mean({column}):Q",
            color=alt.Color(
                "line:N", title="Average", scale=alt.Scale(domain=lines, range=[TURQUOISE, BLUE])
            ),
            # The second is dashed and on top, so that of two averages at one place both can be seen.
            strokeDash=alt.StrokeDash(
                "line:N", title="Average", scale=alt.Scale(domain=lines, range=[[1, 0], [5, 5]])
            ),
        )
        for column, line in (("average", under_SD), ("GT_average", under_GT))
    ]
    by_row = alt.Row(
        "row:N",
        sort=rows["row"].tolist(),
        header=alt.Header(title=None, labelAngle=0, labelAlign="left", labelExpr="split(datum.label, ': ')"),
    )
    best = "SD tells" if len(rows) == 1 else f"Synthesis {highest['synthesis']} tells most"
    title = heading(
        f"{best} about {target}: {highest['average']:.1f} % of guesses right on average, "
        f"from GT {highest['GT_average']:.1f} %",
        "Percent of GT records by their chance of a right guess (CAP).",
    )
    height = _HEIGHT if len(rows) <= _MANY else _HEIGHT // 2
    layers = alt.layer(bars, *averages).properties(width=420, height=height)
    chart: alt.FacetChart = legible(layers.facet(data=bins, row=by_row, spacing=10).properties(title=title))
    return chart


def draw_individual_cap(target: Hashable, tables: Sequence[FrequencyTable]) -> alt.ConcatChart:
    """Return the picture of `IndividualAttribution.plot()`."""
    import altair as alt  # only a plot needs it

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
