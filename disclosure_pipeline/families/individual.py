"""`individual_attribution()`: the exposure of each GT record, the certainty of each SD record, and plots.

The plots show GT records in bins, the same number for millions as for ten. A CAP of exactly 1, a CAP of
exactly 0 (the key is in SD, but never with the record's own level) and a key that is not in SD matter most:
each has a band of its own beside the axis from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.opening import read_tables
from disclosure_pipeline.errors import write_count
from disclosure_pipeline.evaluation.arguments import choose_target
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.evaluation.frames import build_level, format_frame, join_records
from disclosure_pipeline.evaluation.plots.drawing import (
    BLUE,
    PALE_BLUE,
    RULE,
    TURQUOISE,
    format_percent_range,
    heading,
    style_legibly,
)
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.measures.contributions import FIGURES
from disclosure_pipeline.measures.exact import (
    Floats,
    IntArray,
    percent,
    percent_of_quotients,
    sum_by_position,
)
from disclosure_pipeline.measures.frequency import FrequencyTable, Rows, frequency_tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, repr=False, eq=False)
class IndividualAttribution:
    """The exposure of each GT record, and the attribution probability of each synthetic record.

    `records`: a row per GT record, with GT's index; columns (target, synthesis, figure), so
    `records["ill", 1]` is a frame of plain columns. CAP_GT: the chance of a right guess drawn from the GT
    records with the record's key; CAP: the same for the synthesis, 0 if it does not have the key; DiSCO,
    DiSDiO and repU: True if the record counts towards them. Chances are from 0 to 1. 100 times the mean of a
    column is CAPd, DCAP, DiSCO, DiSDiO or repU of `disclosure()`.

    `weap`: a row per synthetic record, index (synthesis, index of the synthesis), and a column per target:
    the within equivalence class attribution probability, which is the share of the record's own level among
    the synthetic records with its key. 100 times its mean is CAPs; the share of records at 1 is Dsyn.

    Both show how single records can be attacked: they are as confidential as the ground truth.
    """

    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    records: pd.DataFrame
    weap: pd.DataFrame
    _cells: Mapping[Hashable, Sequence[FrequencyTable]]

    def __str__(self) -> str:
        means = (100 * self.records.mean()).unstack("figure", sort=False)
        return (
            f"Individual attribution from the keys {', '.join(map(str, self.keys))}\n"
            f"{write_count(len(self.records), 'GT record')}, {write_count(len(self.weap), 'SD record')}\n"
            "Means over the GT records, in percent\n\n"
            f"{format_frame(means)}"
        )

    __repr__ = __str__

    def plot(self, target: Hashable | None = None) -> alt.ConcatChart:
        """Draw the GT records by their CAP from GT and from SD, a panel per synthesis.

        Colour shows the number of records, on a logarithmic scale, and bars along the sides their sums.
        Above the diagonal a record is easier to guess from SD than from GT. A key that is not in SD is shown
        apart from one that is, but never with the record's own level (0). `target` may be left out if there
        is only one.

        Source of the scatter: Baillargeon & Charest 2020.
        """
        name = choose_target(target, self.targets)
        return draw_individual_cap(name, self._cells[name])

    def plot_distributions(self, target: Hashable | None = None) -> alt.FacetChart:
        """Draw the distribution of CAP over the GT records for each synthesis, the highest mean (DCAP) first.

        Each row shows its own average, and GT's average (CAPd) as a line through all rows. Percent of GT
        records. `target` may be left out if there is only one.

        Source: Baillargeon & Charest 2020.
        """
        name = choose_target(target, self.targets)
        return draw_distributions(name, self._cells[name])


_FIGURE_OF_COLUMN = {"CAP_GT": "CAPd", "CAP": "DCAP", "DiSCO": "DiSCO", "DiSDiO": "DiSDiO", "repU": "repU"}


def individual_attribution(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> IndividualAttribution:
    """Measure the exposure of each record, without exclusions.

    Arguments and errors as in `disclosure()`; the tables are read into memory.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40], "illness": ["flu", "cold", "flu"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40], "illness": ["flu", "flu", "cold"]})
        >>> attribution = dp.individual_attribution(patients, synthetic, ["age"], "illness")
        >>> attribution.records["illness", 1]
        figure  CAP_GT  CAP  DiSCO  DiSDiO   repU
        0          0.5  1.0   True   False  False
        1          0.5  0.0  False   False  False
        2          1.0  0.5  False   False  False
        >>> attribution.weap["illness"].tolist()
        [1.0, 0.5, 0.5]

    Sources: Baillargeon & Charest 2020; Raab, Nowok & Dibben 2024 (arXiv:2406.16826), appendix 1; Taub,
    Elliot, Pampaka & Smith 2018, "Differential correct attribution probability".
    """
    tables = read_tables(ground_truth, synthetic, keys, targets, grouping_of(groups, special_values, edges))
    key_columns, target_columns = tables.code(tables.keys), tables.code(tables.targets)
    warn_of_doubts(find_doubts(tables, [*key_columns, *target_columns]))
    q = combine_columns(key_columns)
    records: dict[tuple[Any, int], pd.DataFrame] = {}
    weap, frequencies = {}, {}
    in_syntheses = _list_indexes(tables.frames[1:])
    for target in target_columns:
        of_target = frequencies[target.name] = tuple(frequency_tables(q, target.codes, target.size))
        by_synthesis = {}
        for i, f in enumerate(of_target, start=1):
            of_GT, of_SD = (Rows(f, f.find_cell(q.q[table], target.codes[table])) for table in (0, i))
            figures = {column: FIGURES[name](of_GT) for column, name in _FIGURE_OF_COLUMN.items()}
            records[target.name, i] = pd.DataFrame(figures)
            by_synthesis[i] = pd.Series(FIGURES["DCAP"](of_SD), index=in_syntheses[i - 1])
        weap[target.name] = pd.concat(by_synthesis, names=["synthesis"])
    return IndividualAttribution(
        keys=tables.keys,
        targets=tables.targets,
        records=join_records(records, tables.frames[0].index),
        weap=pd.concat(list(weap.values()), axis=1).set_axis(build_level(list(weap), "target"), axis=1),
        _cells=frequencies,
    )


def _list_indexes(frames: Sequence[pd.DataFrame]) -> list[pd.Index[Any]]:
    """Return the indexes of frames, with tuples as labels if their numbers of levels differ."""
    indexes = [frame.index for frame in frames]
    if len({index.nlevels for index in indexes}) == 1:
        return indexes
    return [build_level(index.to_list(), None) for index in indexes]


Table = Literal["GT", "SD"]

INNER_BINS = 20
NOT_IN_SD, NEVER, ALWAYS = 0, 1, INNER_BINS + 2
"""Special bins; the bins between `NEVER` and `ALWAYS` are closed on the left."""

BINS = INNER_BINS + 3
BAND, GAP = 0.06, 0.02
NAMES = {NOT_IN_SD: "key not in SD", NEVER: "0", ALWAYS: "1"}

_MIDDLE_OF_0, _MIDDLE_OF_1 = -100 * (GAP + BAND / 2), 100 * (1 + GAP + BAND / 2)
_NOT_IN_SD = _MIDDLE_OF_0 - 100 * (GAP + BAND)
_HIGHEST = 100 * (1 + GAP + BAND)


def _make_cap_scale(table: Table) -> alt.Scale:
    """Return the scale of CAP, which starts at 0 for GT: a record counts itself, so its CAP is positive."""
    import altair as alt

    lowest = 0.0 if table == "GT" else -200 * (GAP + BAND)
    return alt.Scale(domain=[lowest, _HIGHEST], nice=False, zero=False)


def _make_cap_axis(table: Table) -> alt.Axis:
    """Return the axis of CAP, with labels for the bands."""
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


def _make_count_axis(largest: int) -> alt.Axis:
    """Return an axis labelled with the largest count only, as small panels have no room for more."""
    import altair as alt

    return alt.Axis(title=None, values=[largest], format=",d", grid=False)


# Height of a row, which is halved if there are many.
_HEIGHT = 60
_MANY = 10

_PERCENT = "datum.label + ' %'"


def draw_distributions(target: Hashable, tables: Sequence[FrequencyTable]) -> alt.FacetChart:
    """Return the picture of `IndividualAttribution.plot_distributions()`."""
    import altair as alt  # only a plot needs it

    bins = pd.concat([_bin_records(f, i) for i, f in enumerate(tables, start=1)], ignore_index=True)
    rows = bins.drop_duplicates("synthesis").sort_values("average", ascending=False, kind="stable")
    highest = rows.iloc[0]
    x = alt.X("low:Q", scale=_make_cap_scale("SD"), axis=_make_cap_axis("SD"))
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
            # The second line is dashed and on top, so that both are visible if they coincide.
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
        "Percent of GT records by the chance of a right guess (CAP).",
    )
    height = _HEIGHT if len(rows) <= _MANY else _HEIGHT // 2
    layers = alt.layer(bars, *averages).properties(width=420, height=height)
    chart: alt.FacetChart = style_legibly(
        layers.facet(data=bins, row=by_row, spacing=10).properties(title=title)
    )
    return chart


def draw_individual_cap(target: Hashable, tables: Sequence[FrequencyTable]) -> alt.ConcatChart:
    """Return the picture of `IndividualAttribution.plot()`."""
    import altair as alt  # only a plot needs it

    bins, comparisons = [_bin_jointly(f) for f in tables], [_compare_chances(f) for f in tables]
    several = len(bins) > 1
    largest = {"place": max(int(panel["records"].max()) for panel in bins)}
    for table in ("GT", "SD"):
        largest[table] = max(int(panel.groupby(table)["records"].sum().max()) for panel in bins)
    panels = [
        _draw_panel(frame, largest, size=220 if several else 340).properties(
            title=alt.Title(f"Synthesis {i}" if several else "", anchor="start", fontSize=12)
        )
        for i, frame in enumerate(bins, start=1)
    ]
    easier, harder, not_in_SD = map(format_percent_range, zip(*comparisons, strict=True))
    title = heading(
        f"{target} is easier to guess from SD than from GT for {easier} of GT records",
        f"Above the diagonal. Harder for {harder}; the key is not in SD for {not_in_SD}.",
        "Number of GT records by the chance of a right guess (CAP), in percent.",
    )
    chart: alt.ConcatChart = style_legibly(alt.concat(*panels, columns=3, title=title))
    return chart


def _draw_panel(bins: pd.DataFrame, largest: Mapping[str, int], size: int) -> alt.VConcatChart:
    import altair as alt

    x = alt.X("GT_from:Q", scale=_make_cap_scale("GT"), axis=_make_cap_axis("GT"))
    y = alt.Y("SD_from:Q", scale=_make_cap_scale("SD"), axis=_make_cap_axis("SD"))
    records = alt.Tooltip("records:Q", format=",")
    colour = alt.Color(
        "records:Q",
        scale=alt.Scale(type="log", domain=[1, max(largest["place"], 10)], range=[PALE_BLUE, BLUE]),
        legend=alt.Legend(title="GT records", gradientLength=140, format=",", tickCount=5),
    )
    heat = alt.Chart(bins).mark_rect(stroke=RULE, strokeWidth=0.5)
    heat = heat.encode(x=x, x2="GT_to:Q", y=y, y2="SD_to:Q", color=colour, tooltip=["GT:N", "SD:N", records])
    ends = pd.DataFrame({"GT_from": [0, 100], "SD_from": [0, 100]})
    diagonal = alt.Chart(ends).mark_line(color=RULE, strokeDash=[4, 4], strokeWidth=1).encode(x=x, y=y)

    per_GT = bins.groupby(["GT", "GT_from", "GT_to"], as_index=False)["records"].sum()
    above = alt.Chart(per_GT, width=size, height=size // 6).mark_rect(color=BLUE)
    above = above.encode(
        x=alt.X("GT_from:Q", scale=_make_cap_scale("GT"), axis=None),
        x2="GT_to:Q",
        y=alt.Y(
            "records:Q", axis=_make_count_axis(largest["GT"]), scale=alt.Scale(domain=[0, largest["GT"]])
        ),
        y2=alt.datum(0),
        tooltip=["GT:N", records],
    )
    per_SD = bins.groupby(["SD", "SD_from", "SD_to"], as_index=False)["records"].sum()
    beside = alt.Chart(per_SD, width=size // 6, height=size).mark_rect(color=TURQUOISE)
    beside = beside.encode(
        y=alt.Y("SD_from:Q", scale=_make_cap_scale("SD"), axis=None),
        y2="SD_to:Q",
        x=alt.X(
            "records:Q", axis=_make_count_axis(largest["SD"]), scale=alt.Scale(domain=[0, largest["SD"]])
        ),
        x2=alt.datum(0),
        tooltip=["SD:N", records],
    )
    middle = (heat + diagonal).properties(width=size, height=size)
    return alt.vconcat(above, alt.hconcat(middle, beside, spacing=6), spacing=6)


def _bin_jointly(f: FrequencyTable) -> pd.DataFrame:
    """Count the GT records in each pair of bins of CAP under GT and under SD that occurs."""
    under_GT, under_SD = _find_bins(f.d, f.d_q), _find_bins(f.s, f.s_q)
    records = sum_by_position(under_GT * BINS + under_SD, f.d, BINS**2)
    pair = np.flatnonzero(records)
    under_GT, under_SD = np.divmod(pair, BINS)
    frame = pd.DataFrame({"records": records[pair]})
    for name, bins in (("GT", under_GT), ("SD", under_SD)):
        frame[f"{name}_from"], frame[f"{name}_to"] = _place_bins(bins)
        frame[name] = [_name_bin(int(number)) for number in bins]
    return frame


def _bin_records(f: FrequencyTable, synthesis: int) -> pd.DataFrame:
    """Count the GT records in each bin of CAP under SD, with percentages and the averages in percent."""
    records = sum_by_position(_find_bins(f.s, f.s_q), f.d, BINS)
    bins = np.arange(BINS)
    low, high = _place_bins(bins)
    average = percent_of_quotients(f.s * f.d, f.s_q, f.N_d)
    return pd.DataFrame(
        {
            "synthesis": synthesis,
            "row": f"Synthesis {synthesis}: average {average:.1f} %",
            "CAP": [_name_bin(int(number)) for number in bins],
            "low": low,
            "high": high,
            "records": records,
            "percent": 100 * records / f.N_d,
            "average": average,
            "GT_average": percent_of_quotients(f.d * f.d, f.d_q, f.N_d),
        }
    )


def _compare_chances(f: FrequencyTable) -> tuple[float, float, float]:
    """Return the percent of GT records easier, and harder, to guess from SD than from GT, and not in SD."""
    from_SD, from_GT = f.s * f.d_q, f.d * f.s_q
    not_in_SD = f.s_q == 0
    harder = (from_SD < from_GT) | not_in_SD
    easier, harder_records, not_found = (
        percent(f.d[mask].sum(), f.N_d) for mask in (from_SD > from_GT, harder, not_in_SD)
    )
    return easier, harder_records, not_found


def _find_bins(counts: IntArray, key_counts: IntArray) -> IntArray:
    inner = INNER_BINS * counts // np.maximum(key_counts, 1) + NEVER + 1
    return np.select([key_counts == 0, counts == 0], [NOT_IN_SD, NEVER], inner)


def _place_bins(bins: IntArray) -> tuple[Floats, Floats]:
    """Return the ends of each bin on the axis, in percent."""
    low = (bins - NEVER - 1) / INNER_BINS
    high = low + 1 / INNER_BINS
    below = -GAP - BAND
    own = [bins == NOT_IN_SD, bins == NEVER, bins == ALWAYS]
    low = np.select(own, [below - GAP - BAND, below, 1 + GAP], low)
    high = np.select(own, [below - GAP, -GAP, 1 + GAP + BAND], high)
    return 100 * low, 100 * high


def _name_bin(number: int) -> str:
    low = 100 * (number - NEVER - 1) // INNER_BINS
    return NAMES.get(number) or f"{low} to {low + 100 // INNER_BINS}"
