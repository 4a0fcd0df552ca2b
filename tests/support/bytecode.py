"""Modules are compiled once for all programs of the tests, also where Python is told to write nothing.

Container images often say so. Each program would then compile all that it imports, which takes longer than
most of them run.
"""

from __future__ import annotations

import os
import sys

from support.paths import ROOT


def keep_compiled_modules() -> None:
    """Keep what this process and those that it starts compile, in a folder that no package knows."""
    if not sys.dont_write_bytecode:
        return
    sys.dont_write_bytecode = False
    sys.pycache_prefix = sys.pycache_prefix or str(ROOT / "build" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
