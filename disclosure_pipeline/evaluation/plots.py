"""Two pictures of the individual CAP: before and after synthesis, and from one synthesis to the next.

Both are drawn from the frequency table, in bins: a chart of ten million records is as small as one of ten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.key_combinations import combine_columns
from disclosure_pipeline.measures.exact import IntArray, percent_of_quotients
from disclosure_pipeline.measures.frequency import FrequencyTable, frequency_tables
from disclosure_pipeline.tables.alignment import check_tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of

if TYPE_CHECKING:
    import altair as alt

# A CAP of exactly 0 and one of exactly 1 are the two that matter most: each has a band of its own beside
# the axis from 0 to 1, which is cut into this many bins, closed on the left.
_BINS = 20
_BAND = 0.05
_GAP = 0.02
_DOMAIN = [-_GAP - _BAND, 1 + _GAP + _BAND]
_TICKS = [-_GAP - _BAND / 2, 0.25, 0.5, 0.75, 1 + _GAP + _BAND / 2]
_TICK_LABELS = "datum.value < 0 ? '0' : datum.value > 1 ? '1' : format(datum.value, '.2~f')"
_PERCENT = "datum.label + ' %'"

_BEFORE = "#1f4e79"
_AFTER = "#c8553d"
_QUIET = "#8a8a8a"

# Height of a row of distributions; half of it where there are many.
_HEIGHT = 60
_MANY = 10


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
    """How sure an intruder can be of each GT record before (GT) and after synthesis (SD), one panel each.

    Every GT record stands at its own CAP under GT and under SD; the colour tells how many records share a
    place, on a logarithmic scale, and the bars along the sides add them up. Records on the diagonal are as
    well known from SD as from GT. Arguments and errors as in `disclosure()`, one target; chances from 0 to 1.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> chart = dp.plot_individual_cap(patients, synthetic, ["age"], "illness")
        >>> chart.title.text
        'Chance of a right guess of illness, before and after synthesis'

    Source of the scatter: Baillargeon & Charest 2020.
    """
    import altair as alt  # only a plot needs it

    tables = _frequencies(ground_truth, synthetic, keys, target, groups, special_values, edges)
    bins = [_joint_bins(f) for f in tables]
    several = len(bins) > 1
    panels = [
        _panel(frame, _Largest.of(bins), size=200 if several else 320).properties(
            title=alt.Title(f"Synthesis {i}" if several else "", anchor="start", fontSize=12)
        )
        for i, frame in enumerate(bins, start=1)
    ]
    title = alt.Title(
        f"Chance of a right guess of {target}, before and after synthesis",
        subtitle="Number of GT records. Below the diagonal: harder to guess from SD than from GT.",
        subtitleColor=_QUIET,
        offset=12,
    )
    return alt.concat(*panels, columns=3, title=title)


@dataclass(frozen=True)
class _Largest:
    """The largest number of records at one place, in one bin of GT and in one of SD, over all panels."""

    place: int
    GT: int
    SD: int

    @classmethod
    def of(cls, panels: Sequence[pd.DataFrame]) -> _Largest:
        return cls(
            place=max(int(panel["records"].max()) for panel in panels),
            GT=max(int(panel.groupby("GT")["records"].sum().max()) for panel in panels),
            SD=max(int(panel.groupby("SD")["records"].sum().max()) for panel in panels),
        )


def _panel(bins: pd.DataFrame, largest: _Largest, size: int) -> alt.VConcatChart:
    """Heat map of one synthesis with the two marginal distributions."""
    import altair as alt

    x = alt.X("GT_from:Q", scale=_cap_scale(), axis=_cap_axis("CAP under GT"))
    y = alt.Y("SD_from:Q", scale=_cap_scale(), axis=_cap_axis("CAP under SD"))
    records = alt.Tooltip("records:Q", format=",")
    colour = alt.Color(
        "records:Q",
        scale=alt.Scale(type="log", domain=[1, max(largest.place, 10)], range=["#d9e6f2", _BEFORE]),
        legend=alt.Legend(title="GT records", gradientLength=140, format=",", tickCount=5),
    )
    heat = alt.Chart(bins).mark_rect()
    heat = heat.encode(x=x, x2="GT_to:Q", y=y, y2="SD_to:Q", color=colour, tooltip=["GT:N", "SD:N", records])
    ends = pd.DataFrame({"GT_from": _DOMAIN, "SD_from": _DOMAIN})
    diagonal = alt.Chart(ends).mark_line(color=_QUIET, strokeDash=[4, 4], strokeWidth=1).encode(x=x, y=y)

    per_GT = bins.groupby(["GT", "GT_from", "GT_to"], as_index=False)["records"].sum()
    above = alt.Chart(per_GT, width=size, height=size // 6).mark_rect(color=_BEFORE)
    above = above.encode(
        x=alt.X("GT_from:Q", scale=_cap_scale(), axis=None),
        x2="GT_to:Q",
        y=alt.Y("records:Q", axis=_count_axis(largest.GT), scale=alt.Scale(domain=[0, largest.GT])),
        y2=alt.datum(0),
        tooltip=["GT:N", records],
    )
    per_SD = bins.groupby(["SD", "SD_from", "SD_to"], as_index=False)["records"].sum()
    beside = alt.Chart(per_SD, width=size // 6, height=size).mark_rect(color=_AFTER)
    beside = beside.encode(
        y=alt.Y("SD_from:Q", scale=_cap_scale(), axis=None),
        y2="SD_to:Q",
        x=alt.X("records:Q", axis=_count_axis(largest.SD), scale=alt.Scale(domain=[0, largest.SD])),
        x2=alt.datum(0),
        tooltip=["SD:N", records],
    )
    middle = (heat + diagonal).properties(width=size, height=size)
    return alt.vconcat(above, alt.hconcat(middle, beside, spacing=6), spacing=6)


def _cap_scale() -> alt.Scale:
    import altair as alt

    return alt.Scale(domain=_DOMAIN, nice=False, zero=False)


def _cap_axis(title: str) -> alt.Axis:
    import altair as alt

    return alt.Axis(title=title, values=_TICKS, labelExpr=_TICK_LABELS, grid=False)


def _count_axis(largest: int) -> alt.Axis:
    """An axis that names the largest count only: small panels have no room for more."""
    import altair as alt

    return alt.Axis(title=None, values=[largest], format=",d", grid=False)


def plot_cap_distributions(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    target: Any,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> alt.FacetChart:
    """The individual CAP of all GT records, a row per synthesis, the highest average (DCAP) first.

    Each row shows its own average, and GT's average (CAPd) as a line through all rows. Arguments and errors
    as in `disclosure()`, one target; chances from 0 to 1, shares in percent of all GT records.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> chart = dp.plot_cap_distributions(patients, [synthetic, patients], ["age"], "illness")
        >>> chart.title.text
        'Chance of a right guess of illness from each synthesis'

    Source: Baillargeon & Charest 2020.
    """
    import altair as alt

    tables = _frequencies(ground_truth, synthetic, keys, target, groups, special_values, edges)
    bins = pd.concat([_bins_of_synthesis(f, i) for i, f in enumerate(tables, start=1)], ignore_index=True)
    rows = bins.drop_duplicates("synthesis").sort_values("average", ascending=False, kind="stable")
    x = alt.X("low:Q", scale=_cap_scale(), axis=_cap_axis("CAP under SD"))
    share = alt.Y("share:Q", axis=alt.Axis(title=None, tickCount=2, grid=False, labelExpr=_PERCENT))
    tooltip = ["row:N", "CAP:N", alt.Tooltip("records:Q", format=","), alt.Tooltip("share:Q", format=".2f")]
    bars = alt.Chart().mark_rect(color=_AFTER, opacity=0.5)
    bars = bars.encode(x=x, x2="high:Q", y=share, y2=alt.datum(0), tooltip=tooltip)

    under_SD, under_GT = "under SD", f"under GT: {rows['GT_average'].iloc[0]:.3f}"
    colour = alt.Color(
        "line:N",
        title="Average CAP",
        scale=alt.Scale(domain=[under_SD, under_GT], range=[_AFTER, _BEFORE]),
        legend=alt.Legend(symbolType="stroke", symbolSize=200, symbolStrokeWidth=2),
    )
    averages = [
        alt.Chart()
        .mark_rule(strokeWidth=2, strokeDash=dash)
        .transform_calculate(line=repr(line))
        .encode(x=f"mean({column}):Q", color=colour)
        # The second is dashed and on top, so that of two averages at one place both can be seen.
        for column, line, dash in (("average", under_SD, [1, 0]), ("GT_average", under_GT, [5, 5]))
    ]
    by_row = alt.Row(
        "row:N",
        sort=rows["row"].tolist(),
        header=alt.Header(title=None, labelAngle=0, labelAlign="left", labelExpr="split(datum.label, ': ')"),
    )
    title = alt.Title(
        f"Chance of a right guess of {target} from each synthesis",
        subtitle="Percent of GT records. The synthesis with the highest average comes first.",
        subtitleColor=_QUIET,
    )
    height = _HEIGHT if len(rows) <= _MANY else _HEIGHT // 2
    layers = alt.layer(bars, *averages).properties(width=420, height=height)
    return layers.facet(data=bins, row=by_row, spacing=10).properties(title=title)


def _frequencies(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    target: Any,
    groups: Mapping[Any, int] | None,
    special_values: Mapping[Any, Sequence[float]] | None,
    edges: Edges,
) -> list[FrequencyTable]:
    grouping = grouping_of(groups, special_values, edges)
    tables = check_tables(ground_truth, synthetic, keys, [target], grouping)
    [coded_target] = tables.code(tables.targets)
    q = combine_columns(tables.code(tables.keys))
    return frequency_tables(q, coded_target.codes, coded_target.size)


def _joint_bins(f: FrequencyTable) -> pd.DataFrame:
    """Number of GT records in each pair of bins, of CAP under GT and under SD; pairs that occur."""
    before, after = _bin_of(f.d, f.d_q), _bin_of(f.s, f.s_q)
    records = np.zeros((_BINS + 2) ** 2, dtype=np.int64)
    np.add.at(records, before * (_BINS + 2) + after, f.d)
    pair = np.flatnonzero(records)
    before, after = np.divmod(pair, _BINS + 2)
    frame = pd.DataFrame({"records": records[pair]})
    for name, bins in (("GT", before), ("SD", after)):
        frame[f"{name}_from"], frame[f"{name}_to"] = _place(bins)
        frame[name] = [_label(int(k)) for k in bins]
    return frame


def _bins_of_synthesis(f: FrequencyTable, synthesis: int) -> pd.DataFrame:
    """Number and share of GT records in each bin of CAP under SD, with the averages."""
    records = np.zeros(_BINS + 2, dtype=np.int64)
    np.add.at(records, _bin_of(f.s, f.s_q), f.d)
    bins = np.arange(_BINS + 2)
    low, high = _place(bins)
    average = percent_of_quotients(f.s * f.d, f.s_q, f.N_d) / 100
    return pd.DataFrame(
        {
            "synthesis": synthesis,
            "row": f"Synthesis {synthesis}: average {average:.3f}",
            "CAP": [_label(int(k)) for k in bins],
            "low": low,
            "high": high,
            "records": records,
            "share": 100 * records / f.N_d,
            "average": average,
            "GT_average": percent_of_quotients(f.d * f.d, f.d_q, f.N_d) / 100,
        }
    )


def _bin_of(count: IntArray, of_key: IntArray) -> IntArray:
    """The bin of count / of_key, in integers: 0 for exactly 0, 1 to 20, and 21 for exactly 1."""
    return np.where(count > 0, _BINS * count // np.maximum(of_key, 1) + 1, 0)


def _place(bins: IntArray) -> tuple[Any, Any]:
    """Where each bin lies on the axis: from, to."""
    low, high = (bins - 1) / _BINS, bins / _BINS
    return (
        np.select([bins == 0, bins > _BINS], [_DOMAIN[0], 1 + _GAP], low),
        np.select([bins == 0, bins > _BINS], [-_GAP, _DOMAIN[1]], high),
    )


def _label(k: int) -> str:
    if k in {0, _BINS + 1}:
        return "0" if k == 0 else "1"
    return f"{(k - 1) / _BINS:.2f} to {k / _BINS:.2f}"
