"""A Dagster project of somebody else, that has a gate of this package."""

from __future__ import annotations

import shutil
from pathlib import Path

from support.paths import PACKAGE


def write_project(folder: Path, definition: str) -> None:
    """The project `custodian` with one gate, `survey`, of this definition."""
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "custodian"\nversion = "0"\n'
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "custodian"\n'
    )
    package = folder / "custodian"
    (package / "defs" / "survey").mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(PACKAGE / "definitions.py", package)
    (package / "defs" / "survey" / "defs.yaml").write_text(definition)
