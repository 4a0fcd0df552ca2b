"""The pieces of the engine in memory, each against what plain Python says of the same values."""

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.same_counts import assert_same_counts

from disclosure_pipeline.counting.cells import Cells
from disclosure_pipeline.counting.counts import CountRequest, Target, TargetCounts, sample_positions
from disclosure_pipeline.counting.memory import cell_tables, radix, sorting
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.measures.exact import Grouped, add_to, add_up
from disclosure_pipeline.measures.frequency import combine_keys, first_of_run, frequency_tables
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.levels import look_up


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", "iu")
def test_entries_are_looked_up_by_integers_of_every_type(kind: str, size: int) -> None:
    """Missing, -1, is the last entry, whether or not its integers have a sign."""
    positions = np.array([0, 2, -1, 1]).astype(f"{kind}{size}")
    assert look_up(np.array([10, 20, 30, 40]), positions).tolist() == [10, 30, 40, 20]


def test_integers_of_eight_bytes_far_from_zero_are_coded() -> None:
    """Their distances from the lowest are looked up, without a sign."""
    numbers = pd.Series(np.arange(300) % 7 + 2**40)
    column = code_column("a", [numbers, numbers[::-1]], ["GT", "SD"])
    assert column.levels.tolist() == [2**40 + level for level in range(7)]
    assert column.codes[0].tolist() == [record % 7 for record in range(300)] == column.codes[1].tolist()[::-1]


@given(st.lists(st.integers(0, 30), max_size=60).map(sorted), st.integers(0, 3), st.integers(1, 20))
def test_parts_have_all_records_of_their_keys(numbers: list[int], key_bit: int, most: int) -> None:
    parts = sorting.split_by_unit(np.array(numbers, dtype=np.uint64), 1 << key_bit, most)
    assert [number for part in parts for number in numbers[part]] == numbers
    keys = [{number >> key_bit for number in numbers[part]} for part in parts]
    assert all(keys) and all(not below & above for below, above in pairwise(keys))
    largest = max(Counter(number >> key_bit for number in numbers).values(), default=0)
    assert all(part.stop - part.start < most + largest for part in parts)


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=5, max_size=5), min_size=2, max_size=30),
    st.sampled_from([4, 10, 63]),
    st.sampled_from([8, 64]),
)
def test_a_code_for_every_combination(rows: list[list[int]], bits: int, sorted_together: int) -> None:
    """Equal where all columns are equal, and nowhere else; and the levels can be told from it.

    Columns are numbered together where the limit is low, by sorting numbers or their places.
    """
    frame = np.array(rows)
    tables = [frame, frame[: len(frame) // 2 + 1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(radix, "_BITS", sorted_together)
        columns = [
            code_column(name, [pd.Series(table[:, name]) for table in tables], ["GT", "SD"])
            for name in range(frame.shape[1])
        ]
        code = radix.build_radix(columns, [len(table) for table in tables], 1 << bits)
    assert code.size <= max(1 << bits, sum(map(len, tables)))
    for i, table in enumerate(tables):
        codes = np.empty(len(table), dtype=np.uint64)
        radix.sum_readers(code.readers(i, 1, np.uint64), slice(0, len(table)), codes)
        np.testing.assert_array_equal(code.levels_of(codes), [column.codes[i] for column in columns])
        assert int(codes.max()) < code.size


@given(
    st.integers(0, 2**32),
    st.integers(1, 9),
    st.integers(1, 30),
    st.integers(1, 20),
    st.sampled_from([0, 2, 9]),
    st.integers(1, 3),
)
def test_key_combinations_that_look_the_same_are_counted_as_one(
    seed: int, n: int, keys: int, levels: int, above: int, parts: int
) -> None:
    """Every integer is that of the cells one by one, however many records a q has, and in any parts."""
    random = np.random.default_rng(seed)
    q = np.sort(np.append(random.integers(0, keys, n * keys), [0, 0]))
    is_synthetic = np.append([False, True], random.random(n * keys) < 0.5)
    t = random.integers(0, levels + 1, len(q)) % random.integers(1, levels + 2)
    frames = [pd.Series(np.where(t == levels, np.nan, t)[is_synthetic == table]) for table in (0, 1)]
    column = code_column("t", [*frames], ["GT", "SD"])
    target = Target(column, CodedExclusions(), above, (Fraction(1, 2), Fraction(9, 10)))
    combined = combine_keys([[q[is_synthetic == table] for table in (0, 1)]], [keys])
    [f] = frequency_tables(combined, column.codes, column.size)

    key = code_column("q", [pd.Series(q[is_synthetic == table]) for table in (0, 1)], ["GT", "SD"])
    request = CountRequest([key], [target])

    def count(cells: Cells) -> TargetCounts:
        [(_, counts)] = cells.count(request)
        return counts

    whole = Cells(0, [1], f.q, f.t, [f.d, f.s], lambda some: some[None], is_joined=True)
    counts = []
    for of_part in np.array_split(np.arange(f.keys), parts):
        rows = np.flatnonzero(np.isin(f.q, of_part))
        d, s, q_of = f.d[rows], f.s[rows], f.q[rows]
        is_alone = f.d_q[rows] + f.s_q[rows] == 1
        alone = np.array([int(table[is_alone].sum()) for table in (d, s)])
        several = np.flatnonzero(~is_alone)
        number = np.cumsum(first_of_run(q_of[several])) - 1
        levels_of = partial(np.take, np.unique(q_of[several])[None], axis=1)
        of_several = (number, f.t[rows][several], [d[several], s[several]])
        if len(rows):
            counts.append(count(Cells(0, [1], *of_several, levels_of, alone)))
    assert_same_counts(add_up(counts), count(whole))


PAIR_SIZES = dict(zip("abctu", (40, 3, 2, 20, 1), strict=True))


@given(
    st.integers(0, 2**32),
    st.sampled_from(["t", "u"]),
    st.sampled_from([0, 300, 1 << 20]),  # cells of a table
    st.sampled_from([1, 60, 1 << 20]),  # records at a time
    st.sampled_from([1, 100, 1 << 15]),  # cells of keys that are counted together
)
def test_pairs_of_keys_and_a_target(seed: int, name: str, table: int, at_a_time: int, together: int) -> None:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({name: random.integers(0, size, 200) for name, size in PAIR_SIZES.items()})
    columns = {name: code_column(name, [frame[name]], ["GT"]) for name in PAIR_SIZES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_tables, "_LARGEST", table)
        patch.setattr(cell_tables, "_AT_A_TIME", at_a_time)
        patch.setattr(cell_tables, "_MOST_TOGETHER", min(together, table))
        [pairs] = cell_tables.count_pairs([columns[key] for key in "abc"], [columns[name]])
    for of_key, key in zip(pairs, "abc", strict=True):
        codes = columns[key].codes[0].astype(int) * columns[name].size + columns[name].codes[0]
        assert dict(zip(of_key.groups.tolist(), of_key.sums.tolist(), strict=True)) == Counter(codes.tolist())


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(-5, 5))), st.integers(1, 20))
def test_sums_by_group(pairs: list[tuple[int, int]], parts: int) -> None:
    """However they are cut up, all at once or as they come, and whether groups are few or far apart."""
    expected: dict[int, int] = {}
    for group, value in pairs:
        expected[group] = expected.get(group, 0) + value
    arrays = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    of_parts = [Grouped.sum_by_group(part[:, 0], part[:, 1]) for part in np.array_split(arrays, parts)]
    actual, waiting = add_up(of_parts), list[Grouped]()
    for part in of_parts:
        add_to(waiting, part)
        assert len(waiting) < 8  # they take memory
    assert repr(add_up(waiting)) == repr(actual)
    assert dict(zip(actual.groups.tolist(), actual.sums.tolist(), strict=True)) == {
        group: value for group, value in sorted(expected.items()) if value
    }
    assert (np.diff(actual.groups) > 0).all()


def test_numbers_far_apart_in_a_small_type() -> None:
    """The range of such a column does not fit its own type."""
    values = pd.Series(np.array([-100, 100, 127, -128] + [0] * 400, dtype=np.int8))
    column = code_column("a", [values, values.astype(np.int64)], ["GT", "SD"])
    assert column.levels.tolist() == [-128, -100, 0, 100, 127]
    for codes in column.codes:
        np.testing.assert_array_equal(column.levels[codes], values)
    assert column.counts[0].tolist() == [1, 1, 400, 1, 1, 0]


def test_nobody_changes_what_was_drawn() -> None:
    """The positions are drawn once for several measures of the same tables."""
    [positions] = sample_positions([100], 10, 0)
    assert positions is not None
    with pytest.raises(ValueError, match="read-only"):
        positions[0] = 5
