"""The argument that names a gate, and the gate with its waivers that it leads to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from disclosure_pipeline.candidates.store import GateFolders

gate_argument = click.argument("gate", type=click.Path(exists=True, path_type=Path))


def load_with_waivers(gate: Path) -> tuple[Path, GateFolders]:
    """The file that defines the gate, and the gate with the waivers beside that file, and its folders."""
    from disclosure_pipeline.orchestration.folders import folders_of
    from disclosure_pipeline.orchestration.gate_file import find_gate_file, load_gate
    from disclosure_pipeline.policy.waivers import read_waivers

    file = (find_gate_file(gate) or gate) if gate.is_dir() else gate
    return file, folders_of(load_gate(file), read_waivers(file.parent / "waivers"))
