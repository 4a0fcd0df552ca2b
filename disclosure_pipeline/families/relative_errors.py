"""The picture of a prediction of numbers: relative errors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.plots.drawing import (
    BLUE,
    CELL,
    PALE_BLUE,
    RULE,
    choose_number_colour,
    format_percent_range,
    heading,
    style_legibly,
)

if TYPE_CHECKING:
    import altair as alt

    from disclosure_pipeline.families.prediction import PredictionRisk


def plot_relative_errors(risk: PredictionRisk, target: Any) -> alt.ConcatChart:
    """Draw the scored GT records by the relative errors of the guesses from other GT records and from SD.

    There is a panel for each synthesis. Below the framed diagonal, SD guesses better than other GT records.
    InputError if levels were predicted, which have no relative error.

    Source: Hu, "Statistical Data Privacy", methods for risk evaluation part 3.
    """
    import altair as alt  # only a plot needs it

    fits = risk.fits.xs(target, level="target")
    if (fits["task"] != "regression").any():
        raise InputError(
            f"{target} was predicted as levels, which have no relative errors: "
            "plot() needs a numeric target (task='regression')."
        )
    counts = [_count_errors(risk.records[target, synthesis]) for synthesis in fits.index]
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
    side = CELL * len(_NAMES)
    return alt.layer(squares, frames, numbers).properties(width=side, height=side)


def _make_axis(angle: float = -45) -> alt.Axis:
    import altair as alt

    return alt.Axis(labelAngle=angle, ticks=False, domain=False)


# In percent of the true value; closed on the left.
_EDGES = (1, 2, 5, 10, 20, 50, 100, 200)
_NAMES = (
    f"under {_EDGES[0]}",
    *(f"{low} to {high}" for low, high in pairwise(_EDGES)),
    f"from {_EDGES[-1]}",
)
