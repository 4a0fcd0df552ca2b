"""What the ground truth shows by itself: its own risk, and what other people's records would show by chance.

The ground truth as its own synthesis has all that GT itself gives away (UiO, Dorig) and, beside it, what a
fresh sample of other people would show. Two random halves of it are such samples: nobody is in both, so what
one half shows of the other beyond that is chance alone. No candidate is measured, so the ground truth is not
asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.candidates.measuring import measure_tables
from disclosure_pipeline.candidates.reading import choose_engine_for, read_ground_truth
from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.counting.opening import open_canonical
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.result import Disclosure

DRAWS = 5
# Records of which the halves are drawn: of more the chance is smaller, so that a bound is wide enough.
_LARGEST = 50_000
_FEWEST = 20


@dataclass(frozen=True)
class GroundTruthBaselines:
    """`own`: GT as its own synthesis. `halves`: one half of GT as the synthesis of the other, a draw each."""

    own: Disclosure
    halves: tuple[Disclosure, ...]


def measure_baselines(folders: GateFolders) -> GroundTruthBaselines:
    """Measure GT by itself, and halves of it (of at most 50,000 records), drawn by fixed seeds.

    InputError where a database counts, for its records stay there, and for fewer than 20 records;
    StoreError or ContractError where GT is not there or breaks its contract.
    """
    gate = folders.gate
    if gate.in_database:
        raise InputError(
            "Records that a database counts stay there, so no halves of them can be drawn: try a gate with "
            "engine: memory on an extract of the ground truth."
        )
    # What only candidates need is left out: it takes long, and no bound is drafted from it.
    faster_gate = gate.model_copy(
        update={"measures": gate.measures.model_copy(update={"protection": False, "prediction": False})}
    )
    with ExitStack() as stack:
        engine = choose_engine_for(gate, [folders.ground_truth])
        table, _ = read_ground_truth(folders, engine, stack)
        if table.records < _FEWEST:
            raise InputError(f"The ground truth has {table.records} records: too few to draw halves of it.")
        published = table.keep_columns(gate.published)
        opened = stack.enter_context(open_canonical([published, published], engine.name, engine.description))
        own = measure_tables(faster_gate, opened, engine.name).result
        records = opened.sample(_LARGEST, 0)[0]
    halves = tuple(
        measure_tables(faster_gate, FramesInMemory(pair, "memory"), "memory").result
        for pair in _halve(records)
    )
    return GroundTruthBaselines(replace(own, engine=engine.description), halves)


def _halve(records: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Random halves of the records, for each draw."""
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(records))
        middle = len(records) // 2
        yield records.iloc[np.sort(order[:middle])], records.iloc[np.sort(order[middle : 2 * middle])]
