"""Judge a candidate by the gate that `init` writes, in memory, with every figure that it decides by."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from disclosure_pipeline.candidates.measuring import measure_tables
from disclosure_pipeline.counting.opening import find_engine
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.long_table import tabulate_figures
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_template import describe_table, write_definition
from disclosure_pipeline.policy.verdict import decide, find_bounded, judge
from disclosure_pipeline.tables.additions import find_additions
from disclosure_pipeline.tables.contract import canonical_table
from disclosure_pipeline.tables.dictionary import Column, Contract, ContractError
from disclosure_pipeline.tables.sources import read_raw
from synthesizers.public_tables import PublicTable

# Levels, and counts of them that the flags say shorter.
_NO_FIGURES = {"one_way", "two_way", "excluded"}
# What is bounded of several columns at once.
_COMBINED = {
    "DiSCO beyond": Clause("DiSCO", "beyond", 0),
    "DiSCO beyond, chance: 0": Clause("DiSCO", "beyond", 0, chance=False),
    "target_overlap": Clause("target_overlap", "at_least", 0),
}
# So many values `init` leaves as they are; more it puts into groups.
_FEW_VALUES = 50
_PLACEHOLDER = "ground_truth.parquet"


def write_gate(of: PublicTable, table: pd.DataFrame) -> Gate:
    """Return the gate that `init` writes for a table, all columns published and every bound as by default.

    The unit is what its custodian adds, where people have several records.
    """
    return write_gate_of(of.without_unit(table), of.keys, unit=of.unit)


def write_gate_of(
    table: pd.DataFrame,
    keys: Sequence[str],
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    policy: Mapping[str, Any] | None = None,
    unit: str | None = None,
) -> Gate:
    """Return the gate that `init` writes for a table, and what its custodian adds to it."""
    with tempfile.TemporaryDirectory() as folder:
        table.to_parquet(path := Path(folder) / "table.parquet", index=False)
        schema = describe_table(read_raw(path, "the table"), keys, ())
    attributes = yaml.safe_load(write_definition("study", _PLACEHOLDER, schema))["attributes"]
    for name, added in (columns or {}).items():
        attributes["columns"][name] |= added
    attributes |= {"policy": attributes["policy"] | (policy or {}), "unit": unit}
    return Gate.model_validate({name: attributes[name] for name in attributes if name in Gate.model_fields})


@dataclass(frozen=True)
class Verdict:
    """A decision, the clauses that were not kept, the rules of the contract that were broken, all figures.

    A figure that a table has for several targets, columns or groups is the largest of them.
    """

    decision: str
    broken: tuple[str, ...]
    contract: tuple[str, ...]
    figures: Mapping[str, float]

    def to_row(self) -> dict[str, Any]:
        """Return it as one row of a table."""
        broken, contract = "; ".join(self.broken), "; ".join(self.contract)
        return {"decision": self.decision, "broken": broken, "contract": contract, **self.figures}


class Judge:
    """A gate and its ground truth, which judges candidates."""

    def __init__(self, gate: Gate, ground_truth: pd.DataFrame) -> None:
        self.gate = gate
        unit = {} if gate.unit is None else {gate.unit: Column(type="category")}
        self._known = canonical_table(
            ground_truth,
            Contract(
                {**gate.columns, **unit},
                "the ground truth",
                (*gate.published_columns, *unit),
                only_known=False,
            ),
        ).keep_columns((*gate.published_columns, *unit))

    def decide(self, synthetic: pd.DataFrame) -> Verdict:
        """Return the verdict. Figures are empty where a value cannot be read at all."""
        gate = self.gate
        try:
            read = canonical_table(
                synthetic, Contract(gate.columns, "the table", gate.published_columns, only_known=True)
            )
        except ContractError as error:
            return Verdict("refused", (), _name_rules(error.violations), {})
        added = find_additions(
            self._known.values, {"the table": read.values}, gate.columns, refuse_formulas=True
        )
        with find_engine("memory").open_read(
            [self._known, read.keep_columns(gate.published_columns)]
        ) as opened:
            result = measure_tables(gate, opened, "memory")
        judgements = judge(gate.clauses(), result)
        broken = tuple(
            judgement.clause.name
            for judgement in judgements
            if judgement.outcome != "kept" and not judgement.clause.warns
        )
        return Verdict(
            "refused" if added else decide(judgements), broken, _name_rules(added), collect(result)
        )


def _name_rules(violations: Any) -> tuple[str, ...]:
    """Return each broken rule with its column; no values."""
    return tuple(f"{violation.column}: {violation.rule}"[:80] for violation in violations)


def collect(result: Disclosure) -> dict[str, float]:
    """Return every figure of the result by frame and column, then what the clauses of two figures bound."""
    figures = {}
    for frame, words in COLUMNS.items():
        if frame in _NO_FIGURES or frame not in result.frames:
            continue
        of_frame = result.frame(frame)
        for column in words:
            found: Any = of_frame[column] if column in of_frame.columns else []
            figures[f"{frame}.{column}"] = _find_worst(found, is_safe=words[column].high_is == "safe")
    for way, of_way in result.found["found"].groupby(level="way"):
        figures[f"found[{way}]"] = _find_worst(of_way, is_safe=False)
    rows = tabulate_figures(result)
    for name, clause in _COMBINED.items():
        found = [find_bounded(clause, row) for row in rows if row.figure == clause.figure]
        figures[name] = _find_worst(found, is_safe=FIGURES[clause.figure].high_is_safe)
    return {name: figure for name, figure in figures.items() if not np.isnan(figure)}


def _find_worst(found: Any, *, is_safe: bool) -> float:
    numbers = pd.to_numeric(pd.Series(found, dtype=object), errors="coerce").dropna().to_numpy(float)
    if not len(numbers):
        return np.nan
    return float(numbers.min() if is_safe else numbers.max())


def finish(made: pd.DataFrame, ground_truth: pd.DataFrame) -> pd.DataFrame:
    """Return a made table as its custodian hands it in: GT's columns and types, numbers as coarse as GT's."""
    columns: dict[str, Any] = {}
    for name in ground_truth.columns:
        known, column = ground_truth[name], made[name].reset_index(drop=True)
        if not pd.api.types.is_numeric_dtype(known):
            columns[name] = column.astype(object).where(column.notna(), None)
            continue
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
        rounded = _round_as(known.to_numpy(dtype=float, na_value=np.nan), numbers)
        is_whole = pd.api.types.is_integer_dtype(known) and not np.isnan(rounded).any()
        columns[name] = rounded.astype(np.int64) if is_whole else rounded
    return pd.DataFrame(columns)


def take_known_values(made: pd.DataFrame, ground_truth: pd.DataFrame) -> pd.DataFrame:
    """Return a made table in which each number of few values is the nearest one of GT, as if it were a level.

    Synthesizers that draw numbers from a curve are used so: what is told in steps of five stays so.
    """
    columns = {}
    for name in ground_truth.columns:
        column = columns[name] = made[name].reset_index(drop=True)
        known = ground_truth[name].dropna().unique()
        if not pd.api.types.is_numeric_dtype(ground_truth[name]) or len(known) > _FEW_VALUES:
            continue
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        known = np.sort(known.astype(float))
        middles = (known[1:] + known[:-1]) / 2
        columns[name] = pd.Series(
            np.where(np.isfinite(numbers), known[np.searchsorted(middles, numbers)], np.nan)
        )
    return pd.DataFrame(columns)


def _round_as(known: Any, numbers: Any) -> Any:
    """Return numbers rounded to the last decimal, or the last zero, that the known ones have."""
    present = known[~np.isnan(known)]
    decimals = next(
        d for d in range(-12, 16) if np.allclose(present, np.round(present, d), rtol=0, atol=1e-9)
    )
    return np.round(numbers, decimals) + 0.0
