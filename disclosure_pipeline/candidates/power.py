"""The power of a gate: how often it refuses honest tables, and what share of copies it detects.

Only the ground truth is needed. One random half plays the ground truth, the other a fresh table in which some
records are replaced by records of the first half, and the gate's own clauses decide. Halves are harder to
judge than the full table.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from disclosure_pipeline.candidates.measuring import (
    WITHOUT_POPULATION,
    measure_without_controls,
    measure_without_guards,
    sample_ground_truth,
    split_records,
)
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.errors import InputError, StoreError, write_count
from disclosure_pipeline.evaluation.power import (
    COPIES,
    DILUTED,
    KINDS,
    MOST,
    NEAR_COPIES,
    SHARES,
    GatePower,
)
from disclosure_pipeline.measures.found import LIMITS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_template import describe_table, list_problems, read_gate
from disclosure_pipeline.policy.verdict import decide, judge
from disclosure_pipeline.runtime.files import make_private, read_json, to_json, write_json
from disclosure_pipeline.runtime.progress import ignore_progress, listen, report_progress, show_progress
from disclosure_pipeline.tables.alignment import as_frame, is_frame
from disclosure_pipeline.tables.contract import canonical_table
from disclosure_pipeline.tables.dictionary import CATEGORIES, NUMERIC, Contract
from disclosure_pipeline.tables.messages import GROUND_TRUTH
from disclosure_pipeline.tables.sources import TableSource, read_raw

_MOST_DILUTED = 5_000  # records of the half that is compared with a table ten times as large
_MOST_TRIES = 200  # per kind of copies: with 95 % confidence, 0 of 200 is at most 2 %
_DILUTION = 10
_FEWEST_ALIKE = 100
_PERTURBATION = 0.01
_FEWEST = 40
SECONDS = 60.0

_Plant = Callable[[int], pd.DataFrame]


def power(
    ground_truth: TableSource,
    policy: str | Path | Mapping[str, object],
    keys: Sequence[str] = (),
    targets: Sequence[str] = (),
    *,
    groups: Mapping[str, int] | None = None,
    special_values: Mapping[str, Sequence[float]] | None = None,
    unit: str | None = None,
    seconds: float = SECONDS,
    progress: bool = False,
) -> GatePower:
    """Measure how often a policy refuses honest tables, and what share of copies it detects.

    In each try one random half of GT, of at most 20,000 records, plays the ground truth, and the other half a
    fresh table into which records of a share of the first half's people are planted: as exact copies; as near
    copies (numbers moved by a hundredth of their range, one category taken from somebody else); or diluted in
    ten times as many records, generated from the fresh half. Clauses and guards decide as in a gate; further
    confidential tables, the contract and waivers do not apply. Halves are harder to judge than the full
    table.

    Args:
        ground_truth: The confidential table, one record per row: a data frame, a path or another source.
        policy: The file of a gate, or its folder; or the content of `policy:` as a mapping. All arguments up
            to `unit` are for a mapping only, since a gate's file has its own.
        keys: Columns that an intruder knows.
        targets: Columns to protect; by default all other columns except identifiers.
        groups: The number of groups of numeric columns; by default as in a new gate (`init`).
        special_values: Codes of numeric columns that are levels of their own.
        unit: The column that identifies whose record it is.
        seconds: The time to spend; each kind of copies is tried at least once.
        progress: Whether to show progress on the standard error stream.

    Returns:
        The number of refused tries by kind of copies and share of the people (percent).

    Raises:
        InputError: The table breaks the dictionary or has fewer than 40 records, or arguments contradict each
            other.
        DefinitionError: A gate's file cannot be read.

    Example:
        >>> import disclosure_pipeline as dp
        >>> from disclosure_pipeline.demo.population import population
        >>> policy = {"unique_hits": {"beyond": 3}, "DiSCO": {"beyond": 3}}
        >>> power = dp.power(population(1000), policy, ["sex", "age"], ["work", "health"], seconds=0.1)
        >>> power.records
        500
        >>> power.unknown
        ('copies', 'near copies', 'copies among ten times as many records')

    Source: this project's own.
    """
    read = as_frame if is_frame(ground_truth) else read_raw
    raw = read(ground_truth, GROUND_TRUTH)
    if isinstance(policy, Mapping):
        gate = _write_gate(raw, policy, keys, targets, groups, special_values, unit)
    elif keys or targets or groups or special_values or unit:
        raise InputError(
            "keys, targets, groups, special_values and unit are for a policy given as a mapping: a gate's "
            "file has its own."
        )
    else:
        gate = read_gate(Path(policy))
    needed, described = (*gate.published_columns, *gate.unit_columns), {**gate.columns, **gate.unit_columns}
    table = canonical_table(raw, Contract(described, GROUND_TRUTH, needed, only_known=False))
    for name in gate.unit_columns:
        if table.frame[name].isna().any():
            raise InputError(f"Column {name!r} of the ground truth has missing values: it is the unit.")
    [records] = FramesInMemory((table.frame[list(needed)],), "memory").sample(2 * MOST, 0)
    with show_progress() if progress else nullcontext():
        return measure_gate_power(gate, records, seconds)


def _write_gate(
    raw: pd.DataFrame,
    policy: Mapping[str, Any],
    keys: Sequence[str],
    targets: Sequence[str],
    groups: Mapping[str, int] | None,
    special_values: Mapping[str, Sequence[float]] | None,
    unit: str | None,
) -> Gate:
    """Return a gate without folders. Raise InputError if the columns do not fit the policy."""
    if not keys:
        raise InputError("A policy given as a mapping needs keys, the columns that an intruder knows.")
    if unit is not None and unit not in raw.columns:
        raise InputError(f"There is no column {unit!r}, which unit names.")
    described = raw if unit is None else raw.drop(columns=unit)
    schema = describe_table(described, keys, targets, groups, special_values)
    nowhere = dict.fromkeys(("ground_truth", "incoming", "store", "releases", "trusted_keys"), "nowhere")
    definition = {"name": "policy", "columns": schema.columns, "keys": schema.keys, "targets": schema.targets}
    attributes = {**nowhere, **definition, "unit": unit, "policy": dict(policy)}
    try:
        return Gate.model_validate(attributes)
    except ValidationError as error:
        problems = "; ".join(
            problem.removeprefix("policy: ") for _, problem in list_problems(error, attributes)
        )
    end = "" if problems.endswith((".", "?")) else "."
    raise InputError(f"This policy cannot be measured: {problems}{end}")


def measure_power(folders: GateFolders, seconds: float) -> tuple[GatePower, str]:
    """Measure the power of a gate and return it with GT's sha256. Errors: `measure_baselines`."""
    records, digest = sample_ground_truth(folders, 2 * MOST)
    return measure_gate_power(folders.gate, records, seconds), digest


def measure_gate_power(gate: Gate, records: pd.DataFrame, seconds: float) -> GatePower:
    """Measure the power of a gate from canonical records of GT with the gate's unit (`sample_ground_truth`).

    The kinds of copies share the time equally; each is tried at least once and at most 200 times. Raise
    InputError for fewer than 40 records.
    """
    if not seconds > 0:
        raise InputError("seconds must be above 0.")
    if len(records) < _FEWEST:
        raise InputError(
            f"The ground truth has {write_count(len(records), 'record')}: at least {_FEWEST} are needed "
            "to draw halves."
        )
    records = records.astype(object).infer_objects()
    gate = gate.model_copy(update={"confidential": {}, "holdout": None, **WITHOUT_POPULATION})
    smallest: dict[str, list[float]] = {kind: [] for kind in KINDS}
    spent = dict.fromkeys(KINDS, 0.0)
    size = 0
    while True:
        kind = min(KINDS, key=lambda kind: (len(smallest[kind]) >= _MOST_TRIES, spent[kind]))
        tries, used = len(smallest[kind]), sum(spent.values())
        report_progress("Halving the ground truth", int(min(used, seconds)), math.ceil(seconds))
        if tries >= _MOST_TRIES or (tries and used + spent[kind] / tries > seconds):
            return GatePower(size, {kind: tuple(shares) for kind, shares in smallest.items()})
        began = time.monotonic()
        rng = np.random.default_rng((KINDS.index(kind), tries))
        ground_truth, fresh = split_records(records, gate.unit, rng)
        size = len(ground_truth)
        with listen(ignore_progress):
            known, plant = _prepare_try(gate, kind, ground_truth, fresh, rng)
            smallest[kind].append(_find_smallest_refused(gate, known, plant))
        spent[kind] += time.monotonic() - began


def _find_smallest_refused(gate: Gate, ground_truth: pd.DataFrame, plant: _Plant) -> float:
    """Return the smallest refused share by bisection: a larger share plants the same records and more."""
    low, high = -1, len(SHARES)  # the largest approved, the smallest refused
    middle = 0
    while high - low > 1:
        if _is_approved(gate, ground_truth, plant(SHARES[middle])):
            low = middle
        else:
            high = middle
        middle = (low + high) // 2
    return float(SHARES[high]) if high < len(SHARES) else math.inf


def _is_approved(gate: Gate, ground_truth: pd.DataFrame, synthetic: pd.DataFrame) -> bool:
    opened = FramesInMemory((ground_truth, synthetic), "memory")
    clauses = [
        clause
        for clause in gate.clauses()
        if clause.entry is not None
        and not clause.control
        and clause.entry.family not in {"population", "membership"}
        and clause.figure not in LIMITS  # halves hide more
    ]
    # A refusal without guards is final: guards cannot turn it into an approval.
    if decide(judge(clauses, measure_without_guards(gate, opened))) == "refused":
        return False
    return decide(judge(clauses, measure_without_controls(gate, opened))) == "approved"


def _prepare_try(
    gate: Gate, kind: str, ground_truth: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator
) -> tuple[pd.DataFrame, _Plant]:
    """Return the table that plays GT, and a function that plants a share of its people in a fresh table."""
    columns = list(fresh.columns)
    if kind == COPIES:
        return ground_truth, _make_planter(fresh, ground_truth[columns], rng)
    if kind == NEAR_COPIES:
        return ground_truth, _make_planter(fresh, _perturb(gate, ground_truth[columns], fresh, rng), rng)
    assert kind == DILUTED
    few = ground_truth.iloc[rng.permutation(len(ground_truth))[:_MOST_DILUTED]]
    return few, _make_planter(_recombine(gate, fresh, _DILUTION * len(few), rng), few[columns], rng)


def _make_planter(fresh: pd.DataFrame, planted: pd.DataFrame, rng: np.random.Generator) -> _Plant:
    """Return a function that replaces records of `fresh` by a share (percent) of the planted ones."""
    order, places = rng.permutation(len(planted)), rng.permutation(len(fresh))

    def plant(share: int) -> pd.DataFrame:
        number = min(round(len(planted) * share / 100), len(fresh))
        kept = fresh.iloc[np.sort(places[number:])]
        return pd.concat([kept, planted.iloc[order[:number]]], ignore_index=True)

    return plant


def _perturb(
    gate: Gate, records: pd.DataFrame, others: pd.DataFrame, rng: np.random.Generator
) -> pd.DataFrame:
    """Return near copies: numbers moved by a hundredth of their range, one category from somebody else."""
    perturbed = records.copy()
    for name in records.columns:
        column = gate.columns[name]
        if column.type not in NUMERIC:
            continue
        numbers = pd.to_numeric(records[name], errors="coerce").to_numpy(dtype=float, na_value=math.nan)
        is_amount = np.isfinite(numbers) & ~np.isin(numbers, [float(code) for code in column.special_values])
        if not is_amount.any():
            continue
        low, high = numbers[is_amount].min(), numbers[is_amount].max()
        step = (high - low) * _PERTURBATION
        step = max(1.0, round(step)) if column.type == "integer" else step
        signs = rng.choice([-1, 1], len(records))
        shifted = np.clip(numbers + signs * step, low, high)
        perturbed[name] = records[name].mask(is_amount, shifted).astype(records[name].dtype)
    categories = [name for name in records.columns if gate.columns[name].type in CATEGORIES]
    if categories:
        chosen = rng.integers(0, len(categories), len(records))
        for place, name in enumerate(categories):
            is_chosen = chosen == place
            drawn = rng.integers(0, len(others), int(is_chosen.sum()))
            perturbed.loc[is_chosen, name] = others[name].iloc[drawn].to_numpy()
    return perturbed


def _recombine(gate: Gate, records: pd.DataFrame, size: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return `size` records whose columns are each drawn from another person with the same leading keys.

    As many leading keys are used as more than 100 people agree on: with fewer people the same records would
    reappear, and fewer people would be unique on the keys than in a real table of this size.
    """
    deepest = np.zeros(len(records), dtype=np.int64)
    groups_at = [deepest]
    for number in range(1, len(gate.keys) + 1):
        groups = records.groupby(list(gate.keys[:number]), dropna=False, sort=False).ngroup().to_numpy()
        deepest = np.where(np.bincount(groups)[groups] > _FEWEST_ALIKE, number, deepest)
        groups_at.append(groups)
    alike = rng.integers(0, len(records), size)
    donors = np.empty((len(records.columns), size), dtype=np.int64)
    for number, groups in enumerate(groups_at):
        rows = np.flatnonzero(deepest[alike] == number)
        order, counts = np.argsort(groups, kind="stable"), np.bincount(groups)
        starts, row_groups = np.cumsum(counts) - counts, groups[alike[rows]]
        for column_donors in donors:
            column_donors[rows] = order[starts[row_groups] + rng.integers(0, counts[row_groups])]
    return pd.DataFrame(
        {
            name: records[name].array[column_donors]
            for name, column_donors in zip(records, donors, strict=True)
        }
    )


def record_power(
    folders: GateFolders, ground_truth: str, power: GatePower, make_seal: Callable[[bytes], str]
) -> None:
    """Record the power for the ground truth with this sha256 in the gate's store, with a seal."""
    make_private(folders.store.root)
    content = {**_identify_inputs(folders, ground_truth), **power.to_record()}
    write_json(folders.store.power, {"content": content, "seal": make_seal(to_json(content))})


def read_power(
    folders: GateFolders, ground_truth: str, is_sealed: Callable[[bytes, str], bool] = lambda *_: True
) -> GatePower | None:
    """Return the power recorded for this GT and policy, or None; `is_sealed` verifies the seal."""
    try:
        record = read_json(folders.store.power, "policy power")
        content = record["content"]
        expected = _identify_inputs(folders, ground_truth)
        if {name: content.get(name) for name in expected} != expected:
            return None
        return GatePower.from_record(content) if is_sealed(to_json(content), record["seal"]) else None
    except (StoreError, OSError, KeyError, TypeError, ValueError, AttributeError):
        return None  # treat a damaged record as missing


def _identify_inputs(folders: GateFolders, ground_truth: str) -> dict[str, str]:
    return {
        "ground_truth": ground_truth,
        "policy_digest": folders.gate.policy_digest(),
        "measured_by": version("disclosure-pipeline"),
    }
