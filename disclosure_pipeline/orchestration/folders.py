"""Where a gate's paths lead on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.tables.locations import is_remote
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, Source, source_of


def folders_of(gate: Gate, waivers: Sequence[Waiver] = ()) -> GateFolders:
    """The gate with its folders; relative paths start at DAGSTER_HOME."""
    return GateFolders(
        gate=gate,
        ground_truth=_source(gate.ground_truth),
        incoming=_resolve(gate.incoming),
        store=Store(_resolve(gate.store) / gate.name),
        releases=_resolve(gate.releases) / gate.name,
        waivers=tuple(waivers),
        confidential={name: _source(declared) for name, declared in gate.confidential.items()},
        trusted_keys=_resolve(gate.trusted_keys) if isinstance(gate.trusted_keys, str) else gate.trusted_keys,
    )


def _source(declared: str | Source) -> Source:
    """The source of a confidential table; a relative path of this machine starts at DAGSTER_HOME."""
    source = source_of(declared)
    if isinstance(source, FileSource) and not is_remote(source.path) and not source.path.startswith("${"):
        return source.model_copy(update={"path": str(_resolve(source.path))})
    if isinstance(source, DuckDBSource) and not source.duckdb.startswith("${"):
        return source.model_copy(update={"duckdb": str(_resolve(source.duckdb))})
    return source


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
