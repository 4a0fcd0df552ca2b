"""`plot_cap_distributions()`: the individual CAP of all GT records, from one synthesis to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.evaluation.plots.axes import cap_axis, cap_scale
from disclosure_pipeline.evaluation.plots.cap_bins import bins_of_synthesis, count_frequencies
from disclosure_pipeline.evaluation.plots.style import BLUE, TURQUOISE, heading, legible
from disclosure_pipeline.tables.grouping import Edges

if TYPE_CHECKING:
    import altair as alt

# Height of a row; half of it where there are many.
_HEIGHT = 60
_MANY = 10

_PERCENT = "datum.label + ' %'"


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
    """Draw the individual CAP of all GT records, a row for each synthesis, the highest average (DCAP) first.

    Each row shows its own average, and GT's average (CAPd) as a line through all rows. A key that is not in
    SD stands apart from one that is there, but never with the record's own level (0). Arguments and errors
    as in `disclosure()`, one target; CAP in percent, bars in percent of all GT records.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> chart = dp.plot_cap_distributions(patients, [synthetic, patients], ["age"], "illness")
        >>> chart.title.text
        'Synthesis 2 tells most about illness: 75.0 % of guesses right on average, from GT 75.0 %'

    Source: Baillargeon & Charest 2020.
    """
    import altair as alt  # only a plot needs it

    tables = count_frequencies(ground_truth, synthetic, keys, target, groups, special_values, edges)
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
