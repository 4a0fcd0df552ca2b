"""Tables that are honest, and ground truth in disguise, with the gate that each is held against."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from support.paths import SD2011

import disclosure_pipeline as dp
from disclosure_pipeline.candidates.measuring import measure_without_controls
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.catalogue import DEFAULTS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, judge

RECORDS = 2_000
SHIPPED = Path(dp.__file__).parent / "defs" / "survey" / "defs.yaml"

Tables = list[pd.DataFrame]


@dataclass(frozen=True)
class Case:
    """A candidate: `make` gives its files. `gate` names the gate, `changes` what it defines otherwise."""

    name: str
    make: Callable[[], pd.DataFrame | Tables]
    gate: str = "survey"
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def tables(self) -> Tables:
        made = self.make()
        return made if isinstance(made, list) else [made]


# Every figure that refuses in every gate; the last one alone has a bound that no policy can change.
GUARDS = {*DEFAULTS, "equal_content"} - {"detection_limit"}


def measure_guards(gate: Gate, ground_truth: pd.DataFrame, tables: Tables) -> Disclosure:
    frames = [table.reset_index(drop=True) for table in (ground_truth, *tables)]
    return measure_without_controls(gate, FramesInMemory(tuple(frames), "memory"))


def judge_guards(gate: Gate, result: Disclosure) -> tuple[Judgement, ...]:
    return judge([clause for clause in gate.clauses() if clause.figure in GUARDS], result)


def list_refusing(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Those that do not let a table pass."""
    return [found for found in judgements if found.outcome != "kept" and not found.clause.warns]


def definition(gate: str) -> dict[str, Any]:
    """The attributes of a gate whose policy bounds nothing by itself: what decides are the guards."""
    own = _of_survey() if gate == "survey" else _OF_SD2011
    return own | {"policy": {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0, "detection_limit": 60}}


def ground_truth(gate: str) -> pd.DataFrame:
    return survey() if gate == "survey" else read_sd2011("ground_truth")


@cache
def _of_survey() -> dict[str, Any]:
    attributes: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())["attributes"]
    return attributes


_OF_SD2011: dict[str, Any] = {
    "name": "example",
    "ground_truth": "ground_truth.csv",
    "incoming": "incoming",
    "store": "store",
    "releases": "releases",
    "power_seconds": 0,
    "remedies": False,
    "trusted_keys": "keys/public-key.pem",
    "columns": {
        **{name: {"type": "category"} for name in ("sex", "region", "placesize", "ls", "marital", "workab")},
        "age": {"type": "integer"},
        "depress": {"type": "integer"},  # a score: synthesizers have values of it that GT has not
        "income": {"type": "integer", "special_values": [-8], "groups": 20},
    },
    "keys": ["sex", "age", "region", "placesize"],
    "targets": ["income", "depress", "ls", "marital", "workab"],
}


@cache
def survey() -> pd.DataFrame:
    """The demo's ground truth, smaller."""
    return population(RECORDS)


@cache
def read_sd2011(name: str) -> pd.DataFrame:
    """A table of the paper's example, in canonical form."""
    dictionary = {**_OF_SD2011["columns"]}
    types = {column: str if of["type"] == "category" else "Int64" for column, of in dictionary.items()}
    return pd.read_csv(SD2011 / f"{name}.csv", dtype=types)


def write_rows(rows: Iterable[tuple[Any, ...]], columns: list[str], path: Path) -> None:
    """Write a table anew with each row, as every one takes long."""
    written = []
    for row in rows:
        written.append(row)
        pd.DataFrame(written, columns=columns).to_csv(path, sep="\t", index=False)


def apart(table: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Every column drawn by itself: nothing is safer."""
    random = np.random.default_rng(seed)
    rows = {name: random.integers(0, len(table), len(table)) for name in table.columns}
    return pd.DataFrame({name: table[name].array.take(rows[name]) for name in table.columns})


def fresh(share: float, seed: int = 7) -> pd.DataFrame:
    """Other people of the same population, so many times the ground truth's size."""
    return population(round(share * RECORDS), seed)


def several_times(share: float, seed: int = 1) -> pd.DataFrame:
    """The demo's honest model asked for so many times the records."""
    whole, part = divmod(share, 1)
    tables = [synthesise(survey(), seed + 100 * i) for i in range(int(whole))]
    if part:
        tables.append(synthesise(survey(), seed).head(round(part * RECORDS)))
    return pd.concat(tables, ignore_index=True)


def shuffled(table: pd.DataFrame, seed: int = 3) -> pd.DataFrame:
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


def moved(table: pd.DataFrame, column: str, by: int) -> pd.DataFrame:
    """Every number of a column moved, but for its special values and the ends of its range."""
    values = table[column]
    changed = values.where(values == -8, values + by)
    return table.assign(**{column: changed.clip(16, 97) if column == "age" else changed})


def jittered(table: pd.DataFrame, seed: int = 9) -> pd.DataFrame:
    """Every age and income moved, each person's by something else."""
    random = np.random.default_rng(seed)
    ages = (table["age"] + random.choice([-1, 1], len(table))).clip(16, 97)
    incomes = table["income"] + random.integers(1, 30, len(table))
    return table.assign(age=ages, income=table["income"].where(table["income"] == -8, incomes))


def renamed(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """The levels of a category, each with the name of another."""
    levels = sorted(table[column].dropna().unique())
    names = dict(zip(levels, [*levels[1:], levels[0]], strict=True))
    return table.assign(**{column: table[column].astype(object).map(names)})


def shifted(table: pd.DataFrame, columns: Sequence[str], rows: int) -> pd.DataFrame:
    """Some columns moved down by so many rows: each belongs to somebody else now."""
    return table.assign(**{name: np.roll(table[name].to_numpy(), rows) for name in columns})


def blank_one_key(table: pd.DataFrame, keys: Sequence[str], seed: int = 5) -> pd.DataFrame:
    """One key of each record is missing."""
    which = np.random.default_rng(seed).integers(0, len(keys), len(table))
    return table.assign(**{name: table[name].where(which != i) for i, name in enumerate(keys)})


def decoyed(table: pd.DataFrame, times: int, seed: int = 5) -> pd.DataFrame:
    """Each record so many times, and once more with the targets of somebody else."""
    targets = ["education", "income", "health", "work", "worked_abroad"]
    other = np.random.default_rng(seed).permutation(len(table))
    decoys = table.assign(**{name: table[name].array.take(other) for name in targets})
    return pd.concat([*[table] * times, decoys], ignore_index=True)
