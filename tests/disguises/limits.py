"""The share of copies that 19 of 20 tables are refused with, beside the detection limit of each table.

`python -m disguises.limits`, with `tests` and `benchmarks` on the path, simulates all of them and writes
`limits.tsv`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reference import found as reference
from synthesizers.public_tables import TABLES, PublicTable

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import read_shared_columns
from disclosure_pipeline.evaluation.boxed_people import (
    GT,
    SD,
    BoxedPeople,
    MatchCounter,
    count_nearly_whole,
)
from disclosure_pipeline.evaluation.copies import measure_whole_copies
from disclosure_pipeline.evaluation.found import PEOPLE, prepare_tables, read_equal
from disclosure_pipeline.evaluation.record_sets import draw_records
from disclosure_pipeline.measures.found import (
    USUAL_BOUNDS,
    WHOLE,
    Found,
    detection_limit,
    detection_limit_of_copies,
    found,
)
from disclosure_pipeline.measures.samples import Sizes
from disguises import simulated
from disguises.tables import write_rows

RESULT = Path(__file__).with_name("limits.tsv")
SIZES = (200, 2_000, 20_000)
TRIES = 20
FINEST = 400
"""The share of copies is looked for in as many steps."""

Pair = tuple[pd.DataFrame, pd.DataFrame]
Draw = Callable[[int, int], Pair]
"""A ground truth and a fresh table of so many records each, by a seed."""

_COLUMNS: Mapping[str, Callable[[np.random.Generator, int], dict[str, Any]]] = {
    "coarse": lambda random, n: {f"c{i}": random.choice(4, n, p=[0.5, 0.25, 0.15, 0.1]) for i in range(6)},
    "narrow": lambda random, n: {
        "age": random.integers(18, 90, n),
        "sex": random.choice(["f", "m"], n),
        "education": random.choice(4, n),
        "region": random.choice(10, n),
    },
    "detailed": lambda random, n: {
        "age": random.integers(18, 90, n),
        "region": random.integers(0, 8, n),
        "income": np.round(np.exp(random.normal(8, 0.7, n))),
    },
    "skewed": lambda random, n: {
        "a": random.zipf(1.6, n).clip(max=200),
        "b": random.zipf(1.8, n).clip(max=100),
        "c": random.choice(3, n),
        "d": random.poisson(3, n),
    },
}


def _draw_columns(name: str, records: int, seed: int) -> Pair:
    random = np.random.default_rng([seed, 11])
    first, second = (pd.DataFrame(_COLUMNS[name](random, records)) for _ in range(2))
    return first, second


def _draw_people(people: simulated.Population, records: int, seed: int) -> Pair:
    return people.draw(records, seed), people.draw(records, 1_000_000 + seed)


def _draw_halves(table: PublicTable, records: int, seed: int) -> Pair:
    drawn = table.read().sample(2 * records, random_state=seed)
    return drawn[:records].reset_index(drop=True), drawn[records:].reset_index(drop=True)


DRAWS: Mapping[str, Draw] = {
    **{name: partial(_draw_columns, name) for name in _COLUMNS},
    **{name: partial(_draw_people, people) for name, people in simulated.POPULATIONS.items()},
    **{name: partial(_draw_halves, table) for name, table in TABLES.items() if table.unit is None},
}


def _measure(way: str, pair: Pair) -> tuple[list[Found], Any]:
    """Return the figures that are held against the bound, and the others near each person looked at."""
    coded = read_shared_columns(*pair)
    opened, columns = FramesInMemory(coded.frames, ""), coded.code(coded.keys)
    tables = prepare_tables(draw_records(opened, columns, len(pair[0]), 0), [1])
    people = BoxedPeople(tables, tables.draw_people(PEOPLE, np.random.default_rng(5), tables.halves))
    others = MatchCounter(people.find_matches(GT, people.tables.halves), len(people.people))
    if way == WHOLE:
        [of_whole] = measure_whole_copies(opened, columns)
        alone = int((others.count(0)[0] == 0).sum())
        return list(read_equal(of_whole, alone, len(people.people))), others.count(0)[0]
    counters = [others, MatchCounter(people.find_matches(SD, people.tables.halves), len(people.people))]
    counts = count_nearly_whole(people, 1, counters)[None]
    return [found(counts, tables.sizes)], counts.others


def find_limit(
    way: str, pair: Pair, seed: int, near: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Return the limit of a ground truth, and by how much more people are shown by what is refused.

    Copies of more and more people stand for records of a fresh table, until it is refused. The search ends
    early where the second number cannot lie between those of `near`: what is returned does not either.
    """
    ground_truth, fresh = pair
    records, bound = len(ground_truth), USUAL_BOUNDS[way]
    figures, others = _measure(way, pair)
    limit: Callable[..., float] = detection_limit_of_copies if way == WHOLE else detection_limit
    order = np.random.default_rng(seed).permutation(records)
    can_be_shown = figures[0].alone - 100 * reference.fresh_share(others.tolist(), 1)
    of_table = limit(*figures, others, Sizes(records, records), bound)

    def is_far(low: int, high: int) -> bool:
        beyond_low, beyond_high = (copied / records * can_be_shown - of_table for copied in (low, high))
        return near is not None and (beyond_low > near[1] or beyond_high < near[0])

    low, high = 0, records + 1
    while high - low > max(records / FINEST, 1) and not is_far(low, high):
        copied = (low + high) // 2
        mixed = pd.concat([ground_truth.iloc[order[:copied]], fresh.iloc[copied:]], ignore_index=True)
        measured, _ = _measure(way, (ground_truth, mixed))
        is_refused = any(of.found > max(bound, of.found_by_chance) for of in measured)
        low, high = (low, copied) if is_refused else (copied, high)
    return of_table, high / records * can_be_shown - of_table


def list_cases() -> list[tuple[str, int, str]]:
    """Return population or table, records of the ground truth, and way, of all limits."""
    sizes: dict[str, tuple[int, ...]] = dict.fromkeys(DRAWS, SIZES)
    sizes |= dict.fromkeys(_COLUMNS, SIZES[:2])
    sizes |= {name: (SIZES[0], len(table.read()) // 2) for name, table in TABLES.items() if name in sizes}
    return [(name, records, way) for name in DRAWS for records in sizes[name] for way in USUAL_BOUNDS]


def simulate(
    name: str, records: int, way: str, near: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Return the mean limit, and by how much more people are shown where 19 of 20 tables are refused.

    With `near`, the second number is exact only if it lies between these, and on the same side otherwise.
    """
    tries = [find_limit(way, DRAWS[name](records, seed), seed, near) for seed in range(TRIES)]
    limits, beyond = np.transpose(tries)
    return float(limits.mean()), float(np.sort(beyond)[TRIES * 19 // 20 - 1])


COLUMNS = ["population", "records", "way", "limit", "beyond"]


if __name__ == "__main__":
    rows = ((*case, *(round(of, 3) for of in simulate(*case))) for case in list_cases())
    write_rows(rows, COLUMNS, RESULT)
