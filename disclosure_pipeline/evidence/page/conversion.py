"""A chart's specification as SVG, by vl-convert: in this process, or beside it where it was forked.

vl-convert draws in a thread of its own, which no forked process has: asked there, it waits for ever.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

_MODULE = "vl_convert"
_CODE = f"import json, sys, {_MODULE}; print({_MODULE}.vegalite_to_svg(json.load(sys.stdin)))"
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
        return subprocess.run(
            [sys.executable, "-X", "utf8", "-c", _CODE],
            input=json.dumps(specification),
            capture_output=True,
            check=True,
            encoding="utf-8",
            timeout=_PATIENCE,
        ).stdout.rstrip("\n")
    import vl_convert

    return str(vl_convert.vegalite_to_svg(dict(specification)))
