"""The results of one run of the benchmarks, and the machine that it ran on."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

from gate_run import GateCost
from measuring import Measured
from starting import Start

READ, OURS, ONE_CORE, GATE = (
    "Parquet read (pyarrow)",
    "`dp.disclosure`",
    "`dp.disclosure`, on one core",
    "`dp.disclosure`, from Parquet in canonical form",
)
PEERS = ("Polars by hand", "DuckDB by hand", "pandas by hand")
SDMETRICS, PROTECTION, ALL = "SDMetrics", "`dp.disclosure_protection`", "`dp.disclosure`, 5 targets"

_LIBRARIES = ("numpy", "pandas", "pyarrow", "polars", "duckdb", "sdmetrics")


@dataclass(frozen=True)
class Comparison:
    """Works that were measured in turn, on GT and SD of so many records each.

    `unique`: percent of the GT records whose key no other has; `unique_keys`: of the keys that are in GT.
    """

    case: str
    records: int
    works: Mapping[str, Measured]
    unique: float = 0.0
    unique_keys: float = 0.0

    def ratio(self, work: str) -> float:
        """Seconds of a work, in seconds of the read."""
        return self.works[work].seconds / self.works[READ].seconds

    def cpu_ratio(self, work: str) -> float:
        """CPU seconds of a work, in CPU seconds of the read: the same on one core as on many."""
        return self.works[work].cpu / self.works[READ].cpu

    @property
    def efficiency(self) -> float:
        """Seconds of `OURS` on one core, in percent of its seconds on all cores times their number."""
        return 100 * self.works[ONE_CORE].seconds / (self.works[OURS].seconds * len(os.sched_getaffinity(0)))


@dataclass(frozen=True)
class Results:
    """`cases`: the smaller sizes first.

    `gate_runs`: runs of the gate against one measurement; `small_gate_run`: one over the demo's records;
    `starts`: programs that only start, and runs that a shell launches.
    """

    day: str
    machine: Mapping[str, str]
    cases: Sequence[Comparison]
    protection: Sequence[Comparison]
    gate_runs: Sequence[GateCost] = ()
    small_gate_run: Measured | None = None
    starts: Sequence[Start] = ()

    @property
    def largest(self) -> list[Comparison]:
        most = max(case.records for case in self.cases)
        return [case for case in self.cases if case.records == most]


def today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def machine() -> dict[str, str]:
    """Nothing that names it or its users."""
    model = [
        line.split(":", 1)[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "Cores": f"{len(os.sched_getaffinity(0))}" + (f" ({model[0]})" if model else ""),
        "Memory": f"{memory:.0f} GiB",
        "Python": f"{platform.python_version()}, {platform.system()}",
        "Libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
    }
