"""Near copies among many more records than GT has: found at full size, by any order of the records."""

import numpy as np
import pandas as pd
import pytest
from disguises.simulated import POPULATIONS
from support.sampling import some_of

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.tables_in_memory import read_shared_columns
from disclosure_pipeline.evaluation.counts import count_record_sets
from disclosure_pipeline.evaluation.guards import measure_guards
from disclosure_pipeline.evaluation.nearest import find_near_copies, is_diluted
from disclosure_pipeline.measures.nearness import CLOSER, DistancesToParts, near_copies
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

Distances = list[int]


def near_share(near: list[Distances], far: list[Distances], closer: int) -> float:
    """The share of pairs of distances of which the first is so many times smaller: counted one by one."""
    pairs = [pair for both in zip(near, far, strict=True) for pair in zip(*both, strict=True)]
    return sum(a < b and closer * a <= b for a, b in pairs) / len(pairs)


def test_the_figure_is_that_of_a_count_by_hand() -> None:
    rng = np.random.default_rng(1)
    people, records = (rng.integers(0, 200, (3, 40)) for _ in range(2))
    people[0] //= 9
    times = 3.0
    beyond = []
    for closer in CLOSER:
        to_SD, part, other = people.tolist()
        found = near_share([to_SD, to_SD], [part, other], closer)
        of_parts = near_share([other, part], [part, other], closer)
        of_SD = near_share([records[0].tolist()] * 2, [records[1].tolist(), records[2].tolist()], closer)
        beyond.append(100 * (found - min(1 - (1 - of_parts) ** times, of_SD)))
    figure, by_chance = near_copies(DistancesToParts(*people), DistancesToParts(*records), times, 1e9, 1)
    assert figure == pytest.approx(max(beyond))
    assert 0 <= by_chance < 0.1
    assert near_copies(DistancesToParts(*people), DistancesToParts(*records), times, 40, 3)[1] > 10


def near_table(name: str, times: int, share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People, and fresh ones many times as many, among whom a share is copied with every number moved."""
    people = POPULATIONS[name].draw(500, seed)
    table, rng = POPULATIONS[name].draw(500 * times, 1_000 + seed), np.random.default_rng(seed)
    near = people.sample(frac=share, random_state=seed)
    for column in near.columns[[pd.api.types.is_integer_dtype(kind) for kind in near.dtypes]]:
        near[column] += rng.choice([-1, 1], len(near))
    return people, pd.concat([table, near], ignore_index=True)


CASES = [(name, times) for name in ("survey", "census", "measurements") for times in (3, 10, 60)]


@pytest.mark.parametrize(("name", "times"), some_of(CASES, 3))
def test_near_copies_are_found_among_many_records(name: str, times: int) -> None:
    for share in (0.0, 0.95):
        tables = near_table(name, times, share, 1)
        opened = FramesInMemory(tables, "memory")
        columns = opened.code(list(tables[0]), grouping_of(), ignore_progress)
        _, records = count_record_sets(opened, [], columns, [])
        guards = measure_guards(opened, columns, records).guards
        found, by_chance = guards["much_nearer"].item(), guards["much_nearer_by_chance"].item()
        assert (found > max(20, by_chance)) == (share > 0)


def test_neither_order_nor_units_of_one_record_matter() -> None:
    people, table = near_table("census", 4, 0.3, 2)
    tables = read_shared_columns(people, table)
    columns = tables.code(tables.keys)
    assert is_diluted(columns, 1)
    expected = find_near_copies(columns, 1, 5)
    shuffled = read_shared_columns(*(frame.sample(frac=1, random_state=3) for frame in (people, table)))
    assert find_near_copies(shuffled.code(shuffled.keys), 1, 5) == expected
    assert find_near_copies(columns, 1, 6) != expected
    assert find_near_copies(columns, 1, 5, np.arange(len(people)))[0] == pytest.approx(expected[0], abs=10)


def test_equally_large_tables_are_compared_as_they_are() -> None:
    tables = read_shared_columns(*near_table("census", 1, 0.9, 2))
    assert not is_diluted(tables.code(tables.keys), 1)
