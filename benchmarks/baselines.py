"""The cost of the baselines in `disclosure()`: CPU seconds with them, and with nothing counted for them.

Run with `python benchmarks/baselines.py [RECORDS]`. Each measurement has a process of its own on two cores;
with and without take turns, and the smallest of each is printed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, nullcontext
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

from data import KEY_SETS, TARGETS, tables

import disclosure_pipeline as dp
from disclosure_pipeline.measures.baselines import BaselineCounts, Baselines
from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exact import Grouped
from disclosure_pipeline.measures.guesses import GuessCounts
from disclosure_pipeline.measures.totals import Sums

RECORDS = (1_000_000, 10_000_000)
REPEATS = 3

_NONE = Grouped.empty()
_NOBODY = GuessCounts(_NONE, _NONE)
_NOTHING = BaselineCounts(0, _NOBODY, _NOBODY, drawn_from_SD=None, drawn_from_GT=None)


def _without_baselines() -> ExitStack:
    """Nothing is counted for them while this is open; what other figures take of them still is."""

    def zeros(*_: Any) -> Baselines:
        return Baselines(**dict.fromkeys(Baselines.__dataclass_fields__, 0.0))

    def nothing(*_: Any) -> BaselineCounts:
        return _NOTHING

    def no_sums(_: Any, figures: Sequence[Figure], *__: Any) -> tuple[Sums, ...]:
        return (Sums(0),) * len(figures)

    patches = ExitStack()
    for name, function in {
        "counting.counts.baseline_counts": nothing,
        "counting.counts.count_figures": no_sums,
        "evaluation.figures.baselines": zeros,
    }.items():
        patches.enter_context(patch(f"disclosure_pipeline.{name}", function))
    return patches


def measure(case: str, records: int, *, baselines: bool) -> float:
    """CPU seconds."""
    ground_truth, synthetic = tables(records)
    keys, targets = list(KEY_SETS[case]), list(TARGETS)
    with nullcontext() if baselines else _without_baselines():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so few records share few postcodes
            dp.disclosure(ground_truth.head(1000), synthetic.head(1000), keys, targets)  # late imports
        began = time.process_time()
        dp.disclosure(ground_truth, synthetic, keys, targets)
        return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, nargs="+", default=RECORDS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    for records in options.records:
        for case in KEY_SETS:
            seconds: dict[bool, list[float]] = {True: [], False: []}
            for _ in range(options.repeats):
                for baselines, of_case in seconds.items():
                    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                        measured = process.submit(measure, case, records, baselines=baselines)
                        of_case.append(measured.result())
            best, without = min(seconds[True]), min(seconds[False])
            print(
                f"{records:>12,} records, {case:24}{best:8.2f} CPU s, without {without:8.2f} CPU s: "
                f"{100 * (best / without - 1):+.0f} %",
                flush=True,
            )


if __name__ == "__main__":
    main()
