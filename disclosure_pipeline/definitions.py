"""The code location: every gate in `defs/`."""

from functools import cache
from pathlib import Path

import dagster as dg


# Cached: Dagster asks six times for one run, and would describe all kinds of components each time.
@dg.definitions
@cache
def defs() -> dg.Definitions:
    """Return all gates; their steps share one process, where each takes less than a second."""
    gates = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(gates, dg.Definitions(executor=dg.in_process_executor))
