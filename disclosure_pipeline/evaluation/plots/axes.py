"""The axis of a CAP: from 0 to 100 percent, with bands of their own for what has no place between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from disclosure_pipeline.evaluation.plots.cap_bins import BAND, GAP

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
    """An axis that names the largest count only: small panels have no room for more."""
    import altair as alt

    return alt.Axis(title=None, values=[largest], format=",d", grid=False)
