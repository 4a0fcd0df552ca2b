"""Charts drawn by vl-convert: in this process, or beside it where it was forked.

vl-convert draws in a thread of its own, which no forked process has: asked there, it waits for ever.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

_MODULE = "vl_convert"
_DRAW = f"import json, sys, {_MODULE}; print({_MODULE}.vegalite_to_svg(json.load(sys.stdin)))"
_SAVE = (
    "import json, sys, altair; options = json.loads(sys.argv[2]); "
    "altair.Chart.from_dict(json.load(sys.stdin)).save(sys.argv[1], **options)"
)
_PATIENCE = 300  # seconds

_lost_its_thread = False


def _note_fork() -> None:
    global _lost_its_thread  # noqa: PLW0603 (a fork concerns the whole process)
    _lost_its_thread = _lost_its_thread or _MODULE in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def convert(specification: Mapping[str, Any]) -> str:
    """The SVG of a Vega-Lite specification."""
    if _lost_its_thread:
        return _run_beside(_DRAW, specification).rstrip("\n")
    import vl_convert

    return str(vl_convert.vegalite_to_svg(dict(specification)))


def save(chart: alt.TopLevelMixin, path: Path, options: Mapping[str, Any]) -> None:
    """What `chart.save` does with these options."""
    if not _lost_its_thread:
        chart.save(path, **options)
        return
    import altair as alt

    with alt.data_transformers.disable_max_rows():
        specification = chart.to_dict()
    _run_beside(_SAVE, specification, str(path), json.dumps(dict(options)))


def _run_beside(code: str, specification: Mapping[str, Any], *arguments: str) -> str:
    """What another process prints that reads the specification."""
    return subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code, *arguments],
        input=json.dumps(specification),
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=_PATIENCE,
    ).stdout
