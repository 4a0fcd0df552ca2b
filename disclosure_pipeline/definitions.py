"""The code location: every gate in `defs/`."""

from functools import cache
from pathlib import Path

import dagster as dg


# Dagster asks six times for one run; each time it would describe all kinds of components anew.
@dg.definitions
@cache
def defs() -> dg.Definitions:
    """Return all gates; steps run in one process, where they take less than a second each."""
    gates = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(gates, dg.Definitions(executor=dg.in_process_executor))
