"""Controls: tables whose figures are known in advance, to test the engine and give its figures a scale.

The known figures are counted here, from samples, by none of the engines. An exact copy of GT discloses all
that GT itself would. In a synthesis with permuted targets the keys tell nothing. One half of GT is a fresh
sample for the other half: it tells what other people's records tell. An engine that finds anything else
misses leaks, or reports some where there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.opening import open_tables
from disclosure_pipeline.evaluation.counts import combine_columns, plan_measures
from disclosure_pipeline.evaluation.disclosure import measure
from disclosure_pipeline.evaluation.frames import build_frame
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.chance import permuted_DCAP, standard_errors
from disclosure_pipeline.measures.exact import IntArray, Mask, percent
from disclosure_pipeline.measures.frequency import FrequencyTable, frequency_tables
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.alignment import check_tables, number_owners
from disclosure_pipeline.tables.grouping import Grouping

SAMPLE = 20_000
"""Records of each table that suffice to test the engine."""

_FEWEST = 4  # records that can be halved so that each record has others in its half


def controls(
    frames: Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Sequence[Any],
    grouping: Grouping,
    engine: str = "memory",
    seed: int = 0,
    unit: Any = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure the controls of a gate's run on `frames`: samples of GT (first) and of each synthesis.

    `unit`: the GT column that says whose each record is, where people have several. Each half of GT then has
    all of a person's records, or none.

    Returns:
        A frame with index synthesis: copy_UiO, copy_repU, percent of the GT records. And one with index
        (target, synthesis): copy_Dorig, copy_DiSCO, percent of the GT records; copy_difference, the largest
        error of a figure of the copy, in percentage points; permuted_DCAP, of SD with the target permuted,
        and permuted_DCAP_expected; permuted_deviation, their difference (`chance.standard_errors`);
        half_DiSCO_beyond, of one half of GT against the other, and half_deviation, the same in standard
        errors (0 if GT has fewer than four records).

    copy_UiO, copy_Dorig and permuted_DCAP_expected are counted here, the others by the engine.
    """
    report_progress("Measuring the controls", 0, 0)
    ground_truth, *syntheses = frames
    rng, tables = np.random.default_rng(seed), _Controls(keys, targets, grouping, engine)
    of_copy = tables.run([ground_truth, ground_truth.copy()])
    of_permuted = tables.run([ground_truth, *_permute_targets(syntheses, targets, rng)])
    of_halves = _compare_halves(ground_truth, tables, rng, unit)
    identity, rows = {}, {}
    for target in targets:
        known, measured = _expect_of_copy(of_copy.cells[target][0]), of_copy.engine_figures(target)
        for synthesis in range(1, len(frames)):
            identity[synthesis] = {"copy_UiO": known["UiO"], "copy_repU": measured["repU"]}
            rows[target, synthesis] = {
                "copy_Dorig": known["Dorig"],
                "copy_DiSCO": measured["DiSCO"],
                "copy_difference": max(abs(known[name] - measured[name]) for name in known),
                **_compare_permuted(of_permuted, target, synthesis),
                **of_halves[target],
            }
    of_syntheses = pd.DataFrame.from_dict(identity, orient="index").rename_axis("synthesis")
    return of_syntheses, build_frame(rows, ["target", "synthesis"])


@dataclass(frozen=True)
class _Controls:
    """The plan of the gate's run, by which the controls are measured."""

    keys: Sequence[Any]
    targets: Sequence[Any]
    grouping: Grouping
    engine: str

    def run(self, frames: Sequence[pd.DataFrame]) -> _Control:
        """Measure the tables with the engine, and count their cells without it."""
        tables = check_tables(frames[0], frames[1:], list(self.keys), list(self.targets), self.grouping)
        q = combine_columns(tables.code(tables.keys))
        columns = tables.code(tables.targets)
        cells = {column.name: frequency_tables(q, column.codes, column.size) for column in columns}
        return _Control(self.measure(frames), cells)

    def measure(self, frames: Sequence[pd.DataFrame], unit: Any = None) -> Disclosure:
        """Measure the tables with the engine."""
        with open_tables(frames[0], frames[1:], self.engine) as opened:
            plan = plan_measures(opened, self.keys, self.targets, self.grouping, unit=unit, chance=False)
            return measure(opened, plan)


@dataclass(frozen=True)
class _Control:
    """The engine's figures of some tables, and their cells by target, counted without it."""

    result: Disclosure
    cells: Mapping[Any, list[FrequencyTable]]

    def engine_figures(self, target: Any, synthesis: int = 1) -> dict[str, float]:
        """Return the engine's figures of a target by name."""
        result = self.result
        row = (target, synthesis)
        return {
            **result.identity.loc[synthesis].to_dict(),
            **result.attribute.loc[row].to_dict(),
            **result.cap.loc[row].to_dict(),
        }


def _expect_of_copy(f: FrequencyTable) -> dict[str, float]:
    """Return the figures of an exact copy of GT, from GT's cells."""
    unique = percent(f.d[f.d_q == 1].sum(), f.N_d)
    disclosed = percent(f.d[f.d == f.d_q].sum(), f.N_d)
    names_of_unique, names_of_disclosed = ("UiO", "UiS", "UiOiS", "repU"), ("Dorig", "DiS", "DiSCO", "DiSDiO")
    return {
        "iS": 100.0,
        **dict.fromkeys(names_of_unique, unique),
        **dict.fromkeys(names_of_disclosed, disclosed),
    }


def _compare_permuted(control: _Control, target: Any, synthesis: int) -> dict[str, float]:
    f = control.cells[target][synthesis - 1]
    expected, measured = permuted_DCAP(f), control.engine_figures(target, synthesis)["DCAP"]
    difference = measured * f.N_d / 100 - expected.mean
    return {
        "permuted_DCAP": measured,
        "permuted_DCAP_expected": 100 * expected.mean / f.N_d,
        "permuted_deviation": standard_errors(difference, expected.variance, expected.largest),
    }


def _compare_halves(
    ground_truth: pd.DataFrame, tables: _Controls, rng: np.random.Generator, unit: Any
) -> dict[Any, dict[str, float]]:
    """Measure one half of GT as the synthesis of the other, by target."""
    owners = number_owners([ground_truth], unit)
    people = int(owners.max(initial=-1)) + 1
    if people < _FEWEST:
        return {target: {"half_DiSCO_beyond": 0.0, "half_deviation": 0.0} for target in tables.targets}
    in_first = draw_half(owners, rng)
    first, second = ground_truth[in_first], ground_truth.loc[~in_first, ground_truth.columns != unit]
    alike = len(first) / (people // 2)  # records that are not independent of each other
    attribute = tables.measure([first, second], unit).attribute
    rows = {}
    for target in tables.targets:
        beyond, error = attribute.loc[(target, 1), ["DiSCO_beyond", "DiSCO_beyond_se"]]
        largest = 100 * alike / len(first)  # one person, in percent
        rows[target] = {
            "half_DiSCO_beyond": float(beyond),
            "half_deviation": standard_errors(float(beyond), float(error) ** 2 * alike, largest),
        }
    return rows


def draw_half(owners: IntArray, rng: np.random.Generator) -> Mask:
    """Return the records of a random half of the people, whose each record is, as a mask."""
    people = int(owners.max(initial=-1)) + 1
    chosen: Mask = np.isin(owners, rng.permutation(people)[: people // 2])
    return chosen


def _permute_targets(
    syntheses: Sequence[pd.DataFrame], targets: Sequence[object], rng: np.random.Generator
) -> list[pd.DataFrame]:
    """Permute the values of each target independently."""
    permuted = []
    for synthetic in syntheses:
        frame = synthetic.copy(deep=False)
        for target in targets:
            frame[target] = _permute(synthetic[target].array, rng)
        permuted.append(frame)
    return permuted


def _permute(values: Any, rng: np.random.Generator) -> Any:
    if isinstance(values, pd.Categorical):  # permuting small codes is faster than `take`
        return pd.Categorical.from_codes(rng.permutation(values.codes), dtype=values.dtype)
    return values.take(rng.permutation(len(values)))
