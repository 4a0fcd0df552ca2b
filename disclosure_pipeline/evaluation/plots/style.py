"""What all pictures share: colours in their order, how text looks, and headings that state the finding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

# Told apart by everybody who sees colours differently, but never used without a shape, a place or a label.
BLUE, TURQUOISE, PLUM, ORANGE = "#12436D", "#28A197", "#801650", "#F46A25"
PALE_BLUE = "#e8eef4"

TEXT, QUIET_TEXT, RULE = "#0b0c0c", "#505a5f", "#6f777b"
TEXT_ON_DARK = "#ffffff"
LEGEND_GAP = 44


def heading(finding: str, *explanation: str) -> alt.Title:
    """The finding as the title, and what the picture shows under it, a line each."""
    import altair as alt  # only a plot needs it

    return alt.Title(
        finding,
        subtitle=list(explanation),
        color=TEXT,
        subtitleColor=QUIET_TEXT,
        anchor="start",
        offset=12,
    )


def legible(chart: Any) -> Any:
    """The chart with text that is large and dark enough to read, on white.

    There is room around it, and between names of a legend, for browsers that have a wider font only.
    """
    return (
        chart.configure(background="#ffffff", padding={"left": 36, "top": 5, "right": 40, "bottom": 5})
        .configure_axis(
            labelColor=TEXT, titleColor=TEXT, labelFontSize=11, titleFontWeight="normal", domainColor=RULE
        )
        .configure_legend(
            labelColor=TEXT,
            titleColor=TEXT,
            labelFontSize=11,
            titleFontWeight="normal",
            columnPadding=LEGEND_GAP,
        )
        .configure_header(labelColor=TEXT, labelFontSize=11)
        .configure_view(stroke=None)
    )


def number_on(shade: str, threshold: float) -> Any:
    """The colour of a number that is written on a square: white where `shade` is above the threshold."""
    import altair as alt

    return alt.condition(f"datum.{shade} > {threshold}", alt.value(TEXT_ON_DARK), alt.value(TEXT))


def percent_range(percentages: Iterable[float]) -> str:
    """Such as "12.5 %", or "12.5 to 14.0 %" for several that differ."""
    ordered = sorted(percentages)
    low, high = f"{ordered[0]:.1f}", f"{ordered[-1]:.1f}"
    return f"{low} %" if low == high else f"{low} to {high} %"
