"""All works over the tables of every case, whose figures have to agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gate_run
from data import CASES, KEYS, TARGETS, write
from figures import Figures, differences
from measuring import Prepare, in_turn
from peers import duckdb_by_hand, ours, pandas_by_hand, polars_by_hand, protection
from results import (
    ALL,
    GATE,
    ONE_CORE,
    OURS,
    PEERS,
    PROTECTION,
    READ,
    SDMETRICS,
    Comparison,
    Results,
    machine,
    today,
)
from starting import measure_starts

_LARGE = 1_000_000  # from more records on a tenth of them is measured, too

_BY_HAND = (polars_by_hand, duckdb_by_hand, pandas_by_hand)
WORKS: Mapping[str, Prepare] = {
    READ: ours.read,
    OURS: ours.from_frames,
    ONE_CORE: ours.on_one_core,
    GATE: ours.through_the_gate,
    **{name: module.prepare for name, module in zip(PEERS, _BY_HAND, strict=True)},
}
_PROTECTED = ("health",)
_PROTECTED_RECORDS = (1_000, 10_000, 20_000)
_LONGEST = 60  # seconds; a size at which SDMetrics would take longer is not run
_GROWTH = 1.5  # its seconds by the number of records, to what power, about: more for many, less for few


def measure(records: int, folder: Path) -> Results:
    """The largest tables and, where they are large, those of a tenth; the files go into the folder."""
    cases = []
    for size in [records // 10, records] if records > _LARGE else [records]:
        written = {draw: write(folder, size, draw) for draw in {case.draw for case in CASES.values()}}
        for name, case in CASES.items():
            cases.append(_case(name, case.keys, size, written[case.draw]))
    protected = list(_protection(records // 10, folder))
    runs = [(case, size) for size in gate_run.SIZES if size <= records for case in gate_run.RUN_CASES]
    costs = [gate_run.cost(case, size, folder) for case, size in runs]
    small = gate_run.small_cost(folder) if costs else None
    starts = list(measure_starts(folder / "home")) if costs else []
    return Results(today(), machine(), cases, protected, costs, small, starts)


def _case(case: str, keys: Sequence[str], records: int, paths: Sequence[Path]) -> Comparison:
    print(f"{case}, {records:,} records", flush=True)
    works = {name: (prepare, (paths, keys, TARGETS)) for name, prepare in WORKS.items()}
    measurements = in_turn(works, same_figures)
    first = measurements[OURS].first
    assert first is not None
    unique = first.result.counts["UiO"]
    return Comparison(
        case, records, measurements, 100 * unique / records, 100 * unique / _keys(paths[0], keys)
    )


def same_figures(results: Mapping[str, Figures | None]) -> None:
    """Nobody is compared with who computes less, or something else."""
    for name, figures in results.items():
        if figures is not None and name != READ:
            expected = results[OURS]
            assert expected is not None
            assert not differences(expected, figures), (name, differences(expected, figures))


def _protection(most: int, folder: Path) -> Iterator[Comparison]:
    expected, before = 0.0, 1
    for records in (size for size in _PROTECTED_RECORDS if size <= most):
        if expected * (records / before) ** _GROWTH > _LONGEST:
            return
        print(f"SDMetrics, {records:,} records", flush=True)
        paths = write(folder, records)
        works: dict[str, tuple[Prepare, Sequence[Any]]] = {
            SDMETRICS: (protection.sdmetrics, (paths, KEYS, _PROTECTED)),
            PROTECTION: (protection.ours, (paths, KEYS, _PROTECTED)),
            ALL: (ours.from_frames, (paths, KEYS, TARGETS)),
        }
        measurements = in_turn(works, _same_protection)
        yield Comparison("4 keys", records, measurements)
        expected, before = (
            measurements[SDMETRICS].seconds if measurements[SDMETRICS].runs else math.inf,
            records,
        )


def _same_protection(results: Mapping[str, Any]) -> None:
    if SDMETRICS in results:
        assert abs(results[SDMETRICS] - results[PROTECTION]) < 1e-9, results


def _keys(path: Path, keys: Sequence[str]) -> int:
    """The number of key combinations in a table."""
    import polars as pl

    return int(
        pl.scan_parquet(path).select(keys).unique().select(pl.len()).collect(engine="streaming").item()
    )
