"""The power of a gate: how often it refuses honest tables, and which share of copies it notices.

All follows from the ground truth alone. One half of it plays the ground truth, the other a fresh table in
which some records are replaced by those of the first, and the gate's own clauses decide. Its full size is
twice that of a half: halves are the harder case.
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
    COUNTED,
    measure_without_controls,
    measure_without_guards,
    sample_ground_truth,
    split,
)
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.errors import InputError, StoreError
from disclosure_pipeline.evaluation.power import (
    COPIES,
    DILUTED,
    KINDS,
    MOST,
    NEAR_COPIES,
    SHARES,
    GatePower,
)
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_template import describe_table, read_gate
from disclosure_pipeline.policy.registry import JUDGED
from disclosure_pipeline.policy.verdict import decide, judge
from disclosure_pipeline.runtime.files import read_json, to_json, write_json
from disclosure_pipeline.runtime.progress import ignore_progress, listen, report_progress, show_progress
from disclosure_pipeline.tables.alignment import as_frame, is_frame
from disclosure_pipeline.tables.contract import canonical_table
from disclosure_pipeline.tables.dictionary import CATEGORIES, NUMERIC, Column, Contract
from disclosure_pipeline.tables.messages import GROUND_TRUTH
from disclosure_pipeline.tables.sources import TableSource, read_raw

_MOST_DILUTED = 5_000  # records of a half that stands beside a table ten times as large
_MOST_TRIES = 200  # of a kind of copies: 0 of them are at most 2 % with 95 % certainty
_TIMES = 10
_FEWEST_ALIKE = 100
_HUNDREDTH = 0.01
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
    """Measure what a policy would notice: how often it refuses honest tables, and which share of copies.

    In each try one random half of GT, of at most 20,000 records, plays the ground truth, and the other a
    fresh table in which the records of a share of the people of the first are planted: as they are; nearly
    (numbers moved by a hundredth of their range, one category from somebody else); or among ten times as
    many records, drawn apart from the fresh half. Clauses and guards decide as in a run of a gate; further
    confidential tables, the contract and waivers take no part. Halves are the harder case.

    Args:
        ground_truth: The confidential records, one a row: a data frame, a path or another source.
        policy: The file of a gate, or its folder; or what stands under `policy:` in one, as a mapping.
        keys: Columns that an intruder knows. With a mapping alone: a gate's file names its own.
        targets: Columns to protect, likewise; none for every other column but identifiers.
        groups: Numeric column -> number of groups, likewise. By default as `init` writes them.
        special_values: Column -> codes that stay levels of their own, likewise.
        unit: The column that says whose record each is, likewise.
        seconds: How long to try: as many tries as there is time for, one of each kind at least.
        progress: Whether to show on the standard error stream how far the work is.

    Returns:
        How many of the tries were refused, by kind of copy and share of the people (percent).

    Raises:
        InputError: The table breaks the dictionary, has fewer than 40 records, or the arguments contradict
            each other; DefinitionError where a gate's file cannot be read.

    Example:
        >>> import disclosure_pipeline as dp
        >>> from disclosure_pipeline.demo.population import population
        >>> policy = {"unique_hits_beyond": 3, "DiSCO": {"beyond": 3}}
        >>> found = dp.power(population(1000), policy, ["sex", "age"], ["work", "health"], seconds=0.1)
        >>> found.records
        500
        >>> found.count_refused("copies", 100).percent
        100.0

    Source: this project's own.
    """
    raw = as_frame(ground_truth, GROUND_TRUTH) if is_frame(ground_truth) else None
    raw = read_raw(ground_truth, GROUND_TRUTH) if raw is None else raw
    if isinstance(policy, Mapping):
        gate = _write_gate(raw, policy, keys, targets, groups, special_values, unit)
    elif keys or targets or groups or special_values or unit:
        raise InputError("The file of a gate names its own keys, targets, groups, codes and unit.")
    else:
        gate = read_gate(Path(policy))
    units = {} if gate.unit is None else {gate.unit: Column(type="category")}
    needed = (*gate.published, *units)
    table = canonical_table(raw, Contract({**gate.columns, **units}, GROUND_TRUTH, needed, only_known=False))
    if units and table.frame[gate.unit].isna().any():
        raise InputError(f"Column {gate.unit!r} of the ground truth must say of each record whose it is.")
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
    """Return a gate without folders. InputError where there is none of these columns with this policy."""
    if not keys:
        raise InputError("keys are needed beside a policy: the columns that an intruder knows.")
    if unit is not None and unit not in raw.columns:
        raise InputError(f"There is no column {unit!r} that says whose each record is.")
    described = raw if unit is None else raw.drop(columns=unit)
    schema = describe_table(described, keys, targets, groups, special_values)
    nowhere = dict.fromkeys(("ground_truth", "incoming", "store", "releases", "trusted_keys"), "nowhere")
    definition = {"name": "policy", "columns": schema.columns, "keys": schema.keys, "targets": schema.targets}
    try:
        return Gate.model_validate({**nowhere, **definition, "unit": unit, "policy": dict(policy)})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'policy'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        )
    raise InputError(f"This policy cannot be measured: {problems}.")


def measure_power(folders: GateFolders, seconds: float = SECONDS) -> tuple[GatePower, str]:
    """Measure what the policy of a gate would notice; return it and GT's sha256. See `measure_baselines`."""
    records, digest = sample_ground_truth(folders, 2 * MOST)
    return measure_gate_power(folders.gate, records, seconds), digest


def measure_gate_power(gate: Gate, records: pd.DataFrame, seconds: float = SECONDS) -> GatePower:
    """Halve records of GT as often as there is time for, and let the policy of a gate decide.

    `records`: in canonical form, with the gate's unit (see `sample_ground_truth`). Time goes to the kinds of
    copies alike; each is tried once at least, and 200 times at most. InputError for fewer than 40 records.
    """
    if not seconds > 0:
        raise InputError("seconds must be above 0.")
    if len(records) < _FEWEST:
        raise InputError(f"The ground truth has {len(records)} records: its halves tell nothing.")
    records = records.astype(object).infer_objects()
    # Further confidential tables are not among the halves, which are other samples of a population.
    gate = gate.model_copy(update={"confidential": {}, "holdout": None, **COUNTED})
    noticed: dict[str, list[float]] = {kind: [] for kind in KINDS}
    spent = dict.fromkeys(KINDS, 0.0)
    size = 0
    while True:
        kind = min(KINDS, key=lambda kind: (len(noticed[kind]) >= _MOST_TRIES, spent[kind]))
        tries, used = len(noticed[kind]), sum(spent.values())
        report_progress("Halving the ground truth", int(min(used, seconds)), math.ceil(seconds))
        if tries >= _MOST_TRIES or (tries and used + spent[kind] / tries > seconds):
            return GatePower(size, {kind: tuple(smallest) for kind, smallest in noticed.items()})
        began = time.monotonic()
        rng = np.random.default_rng((KINDS.index(kind), tries))
        ground_truth, fresh = split(records, gate.unit, rng)
        size = len(ground_truth)
        with listen(ignore_progress):
            noticed[kind].append(_find_smallest(gate, *_prepare(gate, kind, ground_truth, fresh, rng)))
        spent[kind] += time.monotonic() - began


def _find_smallest(gate: Gate, ground_truth: pd.DataFrame, plant: _Plant) -> float:
    """Return the smallest share that is refused: what is planted at one is so at all larger ones."""
    low, high = -1, len(SHARES)  # refused at none, at all
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
        if not clause.control and JUDGED[clause.measure].family not in {"population", "membership"}
    ]
    # Nothing that the guards find approves what is refused without them.
    if decide(judge(clauses, measure_without_guards(gate, opened))) == "refused":
        return False
    return decide(judge(clauses, measure_without_controls(gate, opened))) == "approved"


def _prepare(
    gate: Gate, kind: str, ground_truth: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator
) -> tuple[pd.DataFrame, _Plant]:
    """Return what plays GT, and what gives the synthetic table with a share of its people planted."""
    columns = list(fresh.columns)
    if kind == COPIES:
        return ground_truth, _replace_in(fresh, ground_truth[columns], rng)
    if kind == NEAR_COPIES:
        return ground_truth, _replace_in(fresh, _move(gate, ground_truth[columns], fresh, rng), rng)
    assert kind == DILUTED
    few = ground_truth.iloc[rng.permutation(len(ground_truth))[:_MOST_DILUTED]]
    return few, _replace_in(_draw_apart(gate, fresh, _TIMES * len(few), rng), few[columns], rng)


def _replace_in(fresh: pd.DataFrame, planted: pd.DataFrame, rng: np.random.Generator) -> _Plant:
    """Return what replaces records of the fresh table by a share of the planted ones, each share by more."""
    order, places = rng.permutation(len(planted)), rng.permutation(len(fresh))

    def plant(share: int) -> pd.DataFrame:
        number = min(round(len(planted) * share / 100), len(fresh))
        kept = fresh.iloc[np.sort(places[number:])]
        return pd.concat([kept, planted.iloc[order[:number]]], ignore_index=True)

    return plant


def _move(gate: Gate, records: pd.DataFrame, others: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return near copies: numbers moved by a hundredth of their range, one category from somebody else."""
    moved = records.copy()
    for name in records.columns:
        column = gate.columns[name]
        if column.type not in NUMERIC:
            continue
        numbers = pd.to_numeric(records[name], errors="coerce").to_numpy(dtype=float, na_value=math.nan)
        is_amount = np.isfinite(numbers) & ~np.isin(numbers, [float(code) for code in column.special_values])
        if not is_amount.any():
            continue
        low, high = numbers[is_amount].min(), numbers[is_amount].max()
        step = (high - low) * _HUNDREDTH
        step = max(1.0, round(step)) if column.type == "integer" else step
        signs = rng.choice([-1, 1], len(records))
        shifted = np.clip(numbers + signs * step, low, high)
        moved[name] = records[name].mask(is_amount, shifted).astype(records[name].dtype)
    categories = [name for name in records.columns if gate.columns[name].type in CATEGORIES]
    if categories:
        chosen = rng.integers(0, len(categories), len(records))
        for place, name in enumerate(categories):
            is_chosen = chosen == place
            drawn = rng.integers(0, len(others), int(is_chosen.sum()))
            moved.loc[is_chosen, name] = others[name].iloc[drawn].to_numpy()
    return moved


def _draw_apart(gate: Gate, records: pd.DataFrame, size: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return records of which each column is drawn from somebody with the same keys.

    With as many of them, from the first on, as a hundred people agree in: among fewer the same records would
    come out again, and fewer people be unique by the keys than in a table of so many people.
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
        starts, of_row = np.cumsum(counts) - counts, groups[alike[rows]]
        for of_column in donors:
            of_column[rows] = order[starts[of_row] + rng.integers(0, counts[of_row])]
    return pd.DataFrame(
        {name: records[name].array[of_column] for name, of_column in zip(records, donors, strict=True)}
    )


def record_power(
    folders: GateFolders, ground_truth: str, power: GatePower, make_seal: Callable[[bytes], str]
) -> None:
    """Keep what was measured of the ground truth of this sha256 in the gate's store, with a seal."""
    folders.store.root.mkdir(parents=True, exist_ok=True)
    content = {**_identify_inputs(folders, ground_truth), **power.to_record()}
    write_json(folders.store.power, {"content": content, "seal": make_seal(to_json(content))})


def read_power(
    folders: GateFolders, ground_truth: str, is_sealed: Callable[[bytes, str], bool] = lambda *_: True
) -> GatePower | None:
    """Return what is kept for this GT and policy, if any; only what `is_sealed` can be believed."""
    try:
        kept = read_json(folders.store.power, "policy power")
        content = kept["content"]
        expected = _identify_inputs(folders, ground_truth)
        if {name: content.get(name) for name in expected} != expected:
            return None
        return GatePower.from_record(content) if is_sealed(to_json(content), kept["seal"]) else None
    except (StoreError, OSError, KeyError, TypeError, ValueError, AttributeError):
        return None  # damaged: as if it was not measured


def _identify_inputs(folders: GateFolders, ground_truth: str) -> dict[str, str]:
    return {
        "ground_truth": ground_truth,
        "policy_digest": folders.gate.policy_digest(),
        "measured_by": version("disclosure-pipeline"),
    }
