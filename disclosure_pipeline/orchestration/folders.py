"""Where a gate's paths lead on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.release.approval import GateFolders
from disclosure_pipeline.release.store import Store


def folders_of(gate: Gate) -> GateFolders:
    """The gate with its folders; relative paths start at DAGSTER_HOME."""
    return GateFolders(
        gate=gate,
        ground_truth=_resolve(gate.ground_truth),
        incoming=_resolve(gate.incoming),
        store=Store(_resolve(gate.store) / gate.name),
        releases=_resolve(gate.releases) / gate.name,
    )


def _resolve(path: str) -> Path:
    if Path(path).is_absolute():
        return Path(path)
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        raise DisclosurePipelineError(
            f"The path {path!r} is relative and DAGSTER_HOME, where it starts, is not set: set it or give "
            "an absolute path."
        )
    return Path(home) / path
