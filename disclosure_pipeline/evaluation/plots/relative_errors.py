"""The picture of a `PredictionRisk` of numbers: relative errors of the same records, from GT and from SD."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.plots.style import (
    BLUE,
    PALE_BLUE,
    RULE,
    heading,
    legible,
    number_on,
    percent_range,
)

if TYPE_CHECKING:
    import altair as alt

    from disclosure_pipeline.evaluation.prediction_result import PredictionRisk

# In percent of the true value; closed on the left.
_EDGES = (1, 2, 5, 10, 20, 50, 100, 200)
_NAMES = (
    f"under {_EDGES[0]}",
    *(f"{low} to {high}" for low, high in pairwise(_EDGES)),
    f"from {_EDGES[-1]}",
)
_CELL = 46


def plot_relative_errors(risk: PredictionRisk) -> alt.ConcatChart:
    """The GT records scored, by the relative error of the guess from other GT records and from SD.

    A panel for each synthesis. Below the framed diagonal SD guesses a record better than other GT records.
    InputError where levels were predicted, which have no relative error.

    Source: Hu, "Statistical Data Privacy", methods for risk evaluation part 3.
    """
    import altair as alt  # only a plot needs it

    if risk.task != "regression":
        raise InputError(
            f"{risk.target} was predicted as levels, which have no relative errors: "
            "plot() is for a target of numbers (task='regression')."
        )
    counts = [_count_errors(records) for records in risk.records]
    largest = max(1, *(int(of_panel["records"].max()) for of_panel in counts))  # one scale for all panels
    panels = [
        _panel(of_panel, largest).properties(
            title=alt.Title(f"Synthesis {i}" if len(counts) > 1 else "", anchor="start", fontSize=12)
        )
        for i, of_panel in enumerate(counts, start=1)
    ]
    worse = percent_range(risk.measures["worse_from_SD"])
    title = heading(
        f"{risk.target}: the guess from SD is worse than from other GT records for {worse}",
        "About half is what other people's records tell; much less is copying.",
        f"Numbers of GT records, of the {risk.N_scored:,} scored, by relative error in percent.",
    )
    chart: alt.ConcatChart = legible(alt.concat(*panels, columns=2, title=title))
    return chart


def _count_errors(records: pd.DataFrame) -> pd.DataFrame:
    """GT records of each pair of bins that occurs, and every pair of equal bins."""
    scored = records.dropna(subset=["relative_error_GT", "relative_error_SD"])
    size = len(_NAMES)
    from_GT, from_SD = (_bin_of(scored[f"relative_error_{table}"]) for table in ("GT", "SD"))
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


def _bin_of(errors: Sequence[float]) -> np.ndarray:
    return np.searchsorted(_EDGES, np.asarray(errors, dtype=np.float64), side="right")


def _panel(counts: pd.DataFrame, largest: int) -> alt.LayerChart:
    import altair as alt

    base = alt.Chart(counts).encode(
        x=alt.X("from_GT:N", title="error from other GT records (%)", sort=_NAMES, axis=_axis()),
        y=alt.Y("from_SD:N", title="error from SD (%)", sort=_NAMES[::-1], axis=_axis(0)),
        tooltip=["from_GT:N", "from_SD:N", alt.Tooltip("records:Q", format=",")],
    )
    squares = base.mark_rect().encode(
        color=alt.Color(
            "records:Q", title="GT records", scale=alt.Scale(domain=[0, largest], range=[PALE_BLUE, BLUE])
        )
    )
    frames = base.transform_filter("datum.equal").mark_rect(filled=False, stroke=RULE, strokeWidth=2)
    numbers = base.mark_text(fontSize=10).encode(
        text=alt.Text("records:Q", format=","), color=number_on("records", 0.55 * largest)
    )
    side = _CELL * len(_NAMES)
    return alt.layer(squares, frames, numbers).properties(width=side, height=side)


def _axis(angle: float = -45) -> alt.Axis:
    import altair as alt

    return alt.Axis(labelAngle=angle, ticks=False, domain=False)
