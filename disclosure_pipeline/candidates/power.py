"""What an approval is worth: how often a gate refuses honest tables, and which share of copies it notices.

All follows from the ground truth alone. One half of it plays the ground truth, the other a fresh table in
which some records are replaced by those of the first, and the gate's own clauses decide. Its full size is
twice that of a half: halves are the harder case.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
import pandas as pd

from disclosure_pipeline.candidates.files import StoreError, read_json, write_json
from disclosure_pipeline.candidates.measuring import measure_without_controls, sample_ground_truth, split
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.intervals import Interval, wilson
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import decide, judge
from disclosure_pipeline.tables.dictionary import CATEGORIES, NUMERIC

SHARES = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
"""Percent of the people of the first half whose records are planted."""

COPIES = "copies"
NEAR_COPIES = "near copies"
DILUTED = "copies among ten times as many records"
KINDS = (COPIES, NEAR_COPIES, DILUTED)

# Records of a half; of one that stands beside a table ten times as large.
_MOST, _MOST_DILUTED = 20_000, 5_000
_TIMES = 10
_HUNDREDTH = 0.01
_OFTEN = 19 / 20
_FEWEST = 40

Plant = Callable[[int], pd.DataFrame]


@dataclass(frozen=True)
class GatePower:
    """The smallest share of planted people that was refused in each try: kind of copy -> percent.

    Infinite where not even all people were noticed, 0 where a table without any was refused. `records`: those
    of a half. Source: this project's own.
    """

    records: int
    noticed: Mapping[str, tuple[float, ...]]

    def refused(self, kind: str, share: float) -> tuple[float, Interval]:
        """Return the share of tries that were refused (0 to 1), and its Wilson interval of 95 %."""
        found = self.noticed[kind]
        part = sum(smallest <= share for smallest in found)
        return part / len(found), wilson(part, len(found))

    def detection_limit(self, kind: str) -> float:
        """Return the smallest percentage of people that is refused in 19 of 20 tries, or infinity."""
        return next((share for share in SHARES if self.refused(kind, share)[0] >= _OFTEN), math.inf)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each kind and share: percent of the tries that were refused, and the interval."""
        rows = []
        for kind in self.noticed:
            for share in SHARES:
                refused, (low, high) = self.refused(kind, share)
                rows.append((kind, share, 100 * refused, 100 * low, 100 * high))
        return pd.DataFrame(rows, columns=["planted", "share", "refused", "low", "high"])

    def describe(self) -> list[str]:
        """Return what a board wants to know, a sentence each."""
        false_refusals, (low, high) = self.refused(COPIES, 0)
        tries = len(self.noticed[COPIES])
        sentences = [
            f"Of honest tables it refuses {_percent(false_refusals)} ({tries} tries; with 95 % certainty "
            f"{_percent(low)} to {_percent(high)})."
        ]
        for kind in self.noticed:
            limit = self.detection_limit(kind)
            if self.refused(kind, 0)[0] >= _OFTEN:
                sentences.append(f"Of {kind} nothing can be said: it refuses such tables without any, too.")
            elif math.isinf(limit):
                sentences.append(f"It does not notice {kind} reliably, whatever their share.")
            else:
                often = round(tries * self.refused(kind, limit)[0])
                sentences.append(f"It refuses {kind} of {limit:g} % of the people: {often} of {tries} tries.")
        return sentences

    @property
    def is_blind(self) -> bool:
        """True if it does not notice that 30 % of the people are copied, 19 of 20 times."""
        return self.detection_limit(COPIES) > SHARES[-3]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def measure_power(
    folders: GateFolders, seconds: float = 60.0, on_try: Callable[[int], None] | None = None
) -> GatePower:
    """Halve GT at random as often as there is time for, once at least, and let the gate decide.

    The answer is kept in the gate's store, for this ground truth and policy: see `read_power`.
    `on_try` is called with the number of each try when it ends. InputError where a database counts and for
    fewer than 40 records; StoreError or ContractError where GT is not there or breaks its contract.
    """
    gate = folders.gate
    if not seconds > 0:
        raise InputError("seconds must be above 0.")
    sampled, digest = sample_ground_truth(folders, 2 * _MOST)
    records = sampled.astype(object).infer_objects()
    if len(records) < _FEWEST:
        raise InputError(f"The ground truth has {len(records)} records: its halves tell nothing.")
    noticed: dict[str, list[float]] = {kind: [] for kind in KINDS}
    began = time.monotonic()
    size = 0
    for number in count(1):
        rng = np.random.default_rng(number)
        ground_truth, fresh = split(records, gate.unit, rng)
        size = len(ground_truth)
        for kind, (known, plant) in _plant(gate, ground_truth, fresh, rng).items():
            noticed[kind].append(_find_smallest(gate, known, plant))
        if on_try is not None:
            on_try(number)
        used = time.monotonic() - began
        if used + used / number > seconds:
            break
    power = GatePower(size, {kind: tuple(found) for kind, found in noticed.items()})
    _keep(folders, digest, power)
    return power


def read_power(folders: GateFolders, ground_truth: str) -> GatePower | None:
    """Return what is kept for the ground truth of this hash and the gate's policy; None where nothing is."""
    try:
        kept = read_json(folders.store.power, "policy power")
        of = (kept["ground_truth"], kept["policy_digest"])
        if of != (ground_truth, folders.gate.policy_digest()):
            return None
        noticed = {
            kind: tuple(math.inf if share is None else float(share) for share in kept["noticed"][kind])
            for kind in KINDS
        }
        return GatePower(int(kept["records"]), noticed) if all(noticed.values()) else None
    except (StoreError, OSError, KeyError, TypeError, ValueError):
        return None  # damaged: as if it was not measured


def _keep(folders: GateFolders, ground_truth: str, power: GatePower) -> None:
    folders.store.root.mkdir(parents=True, exist_ok=True)
    content = {
        "ground_truth": ground_truth,
        "policy_digest": folders.gate.policy_digest(),
        "records": power.records,
        "noticed": {
            kind: [share if math.isfinite(share) else None for share in found]
            for kind, found in power.noticed.items()
        },
    }
    write_json(folders.store.power, content)


def _find_smallest(gate: Gate, ground_truth: pd.DataFrame, plant: Plant) -> float:
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
    clauses = [clause for clause in gate.clauses() if not clause.control]
    return decide(judge(clauses, measure_without_controls(gate, opened))) == "approved"


def _plant(
    gate: Gate, ground_truth: pd.DataFrame, fresh: pd.DataFrame, rng: np.random.Generator
) -> dict[str, tuple[pd.DataFrame, Plant]]:
    """Return for each kind what plays GT, and what gives the synthetic table with a share of it planted."""
    published = ground_truth[list(fresh.columns)]
    near = _move(gate, published, fresh, rng)
    few = ground_truth.iloc[rng.permutation(len(ground_truth))[:_MOST_DILUTED]]
    many = _draw_apart(gate, fresh, _TIMES * len(few), rng)
    return {
        COPIES: (ground_truth, _replace_in(fresh, published, rng)),
        NEAR_COPIES: (ground_truth, _replace_in(fresh, near, rng)),
        DILUTED: (few, _replace_in(many, few[list(fresh.columns)], rng)),
    }


def _replace_in(fresh: pd.DataFrame, planted: pd.DataFrame, rng: np.random.Generator) -> Plant:
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
    """Return records of which each column is drawn from somebody with the same first key: hardly a repeat."""
    first, *_ = gate.keys
    groups = records.groupby(first, dropna=False, sort=False).ngroup().to_numpy()
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    starts = np.cumsum(counts) - counts
    of_group = groups[rng.integers(0, len(records), size)]
    columns = {}
    for name in records.columns:
        drawn = order[starts[of_group] + rng.integers(0, counts[of_group])]
        columns[name] = records[name].iloc[drawn].reset_index(drop=True)
    return pd.DataFrame(columns)
