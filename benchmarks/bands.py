"""The cost of a band: amounts told to within 2 %, beside the same amounts in groups.

Run with `python benchmarks/bands.py`. Each figure is the quickest of three runs in one process, on two
cores, from tables in memory; CPU seconds add up all threads.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import Any

from data import KEY_SETS
from measuring import run
from scale import CORES, in_fresh_process

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import NO_OWN_INCOME, population
from disclosure_pipeline.demo.syntheses import synthesise

SIZES = (1_000_000, 10_000_000)
SPECIAL = {"special_values": {"income": [NO_OWN_INCOME]}}
WAYS: dict[str, dict[str, Any]] = {
    "20 groups": {"groups": {"income": 20}, **SPECIAL},
    "within 2 %": {"within": {"income": 0.02}, **SPECIAL},
    "as they are": {},
}


def measure(records: int) -> None:
    """Print a row for each set of keys and each way: seconds, CPU seconds, times the groups, gigabytes."""
    gt = population(records, 0, postcodes=True)
    sd = synthesise(gt, 0)
    for case, keys in KEY_SETS.items():
        of_groups = 0.0
        for way, options in WAYS.items():
            work = partial(dp.disclosure, gt, sd, keys, "income", **options)
            cost = min((run(work) for _ in range(3)), key=lambda cost: cost.cpu)
            of_groups = of_groups or cost.cpu
            times = f"{cost.cpu / of_groups:.2f}"
            shown = (f"{cost.seconds:.3g}", f"{cost.cpu:.3g}", times, f"{cost.peak / 1e9:.2f}")
            print(f"{records:,}", case, way, *shown, sep=" | ", flush=True)


def main() -> None:
    """Print a row a size, set of keys and way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=SIZES, help="of GT and of SD")
    sizes = parser.parse_args().records
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    for records in sizes:
        outcome = in_fresh_process(measure, records)
        if isinstance(outcome, Exception):
            print(records, outcome)


if __name__ == "__main__":
    main()
