"""The style of pictures (colours, text, headings), converting them to SVG, and saving them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.runtime.worker_process import WorkerProcess
from disclosure_pipeline.tables.messages import escape_unseen_in_lines

if TYPE_CHECKING:
    import altair as alt

_MODULE = "vl_convert"
_SAVE = (
    "import json, sys, altair; options = json.loads(sys.argv[2]); "
    "altair.Chart.from_dict(json.load(sys.stdin)).save(sys.argv[1], **options)"
)
_TIMEOUT = 300  # seconds

# A fork does not copy the thread with which vl_convert draws, so a child process cannot use it.
_has_lost_its_thread = False
CELL = 46


def _note_fork() -> None:
    global _has_lost_its_thread  # noqa: PLW0603 (a fork concerns the whole process)
    _has_lost_its_thread = _has_lost_its_thread or _MODULE in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


class DrawingError(DisclosurePipelineError):
    """A chart could not be drawn."""


_drawer = WorkerProcess(_MODULE, "vegalite_to_svg")


def start_drawing() -> None:
    """Start the drawing process in advance, so that the first picture does not wait for it."""
    _drawer.start()


def convert(specification: Mapping[str, Any]) -> str:
    """Return the SVG of a Vega-Lite specification. DrawingError if it cannot be drawn."""
    drawn = _drawer.ask(_escape_unseen(specification))
    if not isinstance(drawn, str):
        raise DrawingError("The chart could not be drawn.")
    return drawn


def save_chart(chart: alt.TopLevelMixin, path: Path) -> None:
    """Save a chart in the one of the `FORMATS` that its path ends in, also after a fork."""
    import altair as alt

    ending = path.suffix.lower().removeprefix(".")
    options = {"format": ending, **_OPTIONS.get(ending, {})}
    with alt.data_transformers.disable_max_rows():
        specification = _escape_unseen(chart.to_dict())
    if not _has_lost_its_thread:
        alt.Chart.from_dict(specification).save(path, **options)
        return
    subprocess.run(
        [sys.executable, "-X", "utf8", "-c", _SAVE, str(path), json.dumps(options)],
        input=json.dumps(specification),
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=_TIMEOUT,
    )


FORMATS = ("png", "svg", "html")

# Vega's "open in editor" would send the picture's data to another host.
_MENU = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "html": {"inline": True, "embed_options": _MENU},
    "png": {"scale_factor": 2},
}


def _escape_unseen(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: _escape_unseen(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_escape_unseen(value) for value in part]
    return escape_unseen_in_lines(part) if isinstance(part, str) else part


# Distinguishable with any colour vision, but never used without a shape, a place or a label.
BLUE, TURQUOISE, PLUM, ORANGE = "#12436D", "#28A197", "#801650", "#F46A25"
PALE_BLUE = "#e8eef4"

TEXT, QUIET_TEXT, RULE = "#0b0c0c", "#505a5f", "#6f777b"
TEXT_ON_DARK = "#ffffff"
LEGEND_GAP = 44


def heading(finding: str, *explanation: str) -> alt.Title:
    """Return a title that states the finding, with lines of explanation below."""
    import altair as alt  # only a plot needs it

    return alt.Title(
        finding,
        subtitle=list(explanation),
        color=TEXT,
        subtitleColor=QUIET_TEXT,
        anchor="start",
        offset=12,
    )


def style_legibly(chart: Any) -> Any:
    """Return the chart on white, with text large and dark enough to read."""
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


def choose_number_colour(shade: str, threshold: float) -> Any:
    """Return the colour of a number on a square: white if the field `shade` exceeds the threshold."""
    import altair as alt

    return alt.condition(f"datum.{shade} > {threshold}", alt.value(TEXT_ON_DARK), alt.value(TEXT))


def format_percent_range(percentages: Iterable[float]) -> str:
    """Format percentages as "12.5 %", or as the range "12.5 to 14.0 %" if they differ."""
    ordered = sorted(percentages)
    low, high = f"{ordered[0]:.1f}", f"{ordered[-1]:.1f}"
    return f"{low} %" if low == high else f"{low} to {high} %"
