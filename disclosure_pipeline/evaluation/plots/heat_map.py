"""The heat map of `resemblance()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from disclosure_pipeline.evaluation.plots.style import BLUE, PALE_BLUE, heading, legible, number_on

if TYPE_CHECKING:
    import altair as alt

_CELL = 46
_HIGH = 10  # S_pMSE: synthpop advises to stay below, better below 3


def heat_map(of_columns: pd.Series[float], of_pairs: pd.Series[float] | None) -> alt.LayerChart:
    """S_pMSE of each column and pair, as colour and as number; the title names what is least alike."""
    import altair as alt  # only a plot needs it

    order = [str(name) for name in dict.fromkeys(of_columns.index.get_level_values("column"))]
    diagonal = of_columns.index.get_level_values("column")
    parts = [pd.DataFrame({"column_1": diagonal, "column_2": diagonal, "S_pMSE": of_columns.to_numpy()})]
    if of_pairs is not None:
        parts.append(of_pairs.reset_index()[["column_1", "column_2", "S_pMSE"]])
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
            title=f"S_pMSE, {_HIGH} and more dark",
            scale=alt.Scale(domain=[0, _HIGH], range=[PALE_BLUE, BLUE]),
        )
    )
    numbers = base.mark_text(fontSize=11).encode(
        text=alt.Text("S_pMSE:Q", format=".1f"), color=number_on("shade", 0.55 * _HIGH)
    )
    title = heading(
        f"Least alike: {where}, S_pMSE {worst['S_pMSE']:.1f}",
        "GT and SD by columns (diagonal) and pairs; 1 to 2 is as good as a fresh sample",
    )
    side = _CELL * len(order)
    chart: alt.LayerChart = legible((squares + numbers).properties(title=title, width=side, height=side))
    return chart
