"""The pieces of the engine in memory, each against what plain Python says of the same values."""

from collections import Counter
from fractions import Fraction
from itertools import groupby, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.same_counts import assert_same_counts

from disclosure_pipeline.counting.counts import Target, count_target, find_key_levels, sample_positions
from disclosure_pipeline.counting.memory import cell_tables, radix
from disclosure_pipeline.counting.memory.packing import KeyRanges, sort_by_key
from disclosure_pipeline.counting.memory.rare_keys import count_by_pattern, tabulate_patterns
from disclosure_pipeline.counting.memory.sorting import Runs
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.measures.exact import Grouped, add_up
from disclosure_pipeline.measures.frequency import combine_keys, frequency_tables
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


@given(st.lists(st.integers(0, 2**60), max_size=40), st.integers(0, 20))
@example([], 3)
@example([2**60, 0, 2**32, 2**16, 2**48 + 1, 2**48], 0)
@example([2**59 + 7, 2**59 + 1, 2**59 + 7, 2**59], 2)
def test_sorted_by_key(numbers: list[int], key_bit: int) -> None:
    """Records with one key keep their order, however many digits the keys have."""
    records = np.array(numbers, dtype=np.uint64)
    actual = sort_by_key(records, key_bit)
    assert actual.tolist() == sorted(numbers, key=lambda number: number >> key_bit)
    assert actual.dtype == np.uint64


@pytest.mark.parametrize("bits", [9, 16, 30, 60])
@pytest.mark.parametrize("size", [1, 7, 256])
@pytest.mark.parametrize("skewed", [False, True])
def test_ranges_hold_all_records_of_their_keys(bits: int, size: int, skewed: bool) -> None:
    """Also of those keys that the sample does not reach; ranges of even keys have about as many records."""
    rng, key_bit = np.random.default_rng(bits), 3
    records = rng.integers(0, 1 << bits, 20_000, dtype=np.uint64)
    if skewed:
        records[: len(records) * 3 // 4] >>= np.uint64(bits // 2)
    sample = np.sort(records[::2])[:-100]
    ranges = KeyRanges.from_sample(sample, size, key_bit, bits)
    block = ranges.arrange(records)
    assert sorted(block.records.tolist()) == sorted(records.tolist())
    assert len(block.bounds) == size + 1
    assert (block.bounds[0], block.bounds[-1]) == (0, len(records))
    parts = [block.records[start:end] for start, end in pairwise(block.bounds)]
    keys = [part >> np.uint64(key_bit) for part in parts if len(part)]
    assert all(below.max() < above.min() for below, above in pairwise(keys))
    if bits > 12 and not skewed:
        assert max(map(len, parts)) < 2 * len(records) / size + 200


@given(st.lists(st.integers(0, 12), min_size=1, max_size=40).map(sorted), st.sampled_from([1, 5, 7]))
def test_runs_of_every_length(values: list[int], most: int) -> None:
    runs = Runs.from_ascending(np.array(values), most)
    lengths = {value: len(list(run)) for value, run in groupby(values)}
    for n in range(1, most + 1):
        assert runs.of_length(n).tolist() == [values.index(value) for value in lengths if lengths[value] == n]
    for n in range(most + 1):
        longer = [place for place, value in enumerate(values) if lengths[value] > n]
        assert runs.places_of_longer(n).tolist() == longer


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
    st.integers(2, 7),
    st.integers(1, 30),
    st.integers(1, 4),
    st.sampled_from([0, 2, 9]),
)
def test_cells_counted_by_pattern(seed: int, n: int, keys: int, levels: int, above: int) -> None:
    """Every integer is that of the cells one by one, of q that have n records each."""
    random = np.random.default_rng(seed)
    is_synthetic = (np.arange(n)[:, None] >= random.integers(0, n + 1, keys)).astype(np.uint8)
    assume(0 < is_synthetic.sum() < is_synthetic.size)
    t = random.integers(0, levels + 1, (n, keys))
    q = np.broadcast_to(np.arange(keys), t.shape)
    values = np.where(t == levels, np.nan, t)
    frames = [pd.Series(values[is_synthetic == table]) for table in (0, 1)]
    column = code_column("t", [*frames], ["GT", "SD"])
    of_table = [iter(codes.tolist()) for codes in column.codes]
    codes = np.array([[next(of_table[table]) for table in row] for row in is_synthetic.tolist()])
    target = Target(column, CodedExclusions(), above, (Fraction(1, 2), Fraction(9, 10)))
    combined = combine_keys([[q[is_synthetic == table] for table in (0, 1)]], [keys])
    [f] = frequency_tables(combined, column.codes, column.size)

    def levels_of(some: np.ndarray) -> np.ndarray:
        return some[None]

    expected = count_target(*find_key_levels(f, target, levels_of), target, 1)
    counted, large = count_by_pattern(codes, is_synthetic, target, levels_of)
    table = tabulate_patterns({n: counted}, target, target.sizes(1))
    assert_same_counts(count_target(table, large, target, 1), expected)


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
        pairs = cell_tables.count_pairs([columns[key] for key in "abc"], columns[name])
    for of_key, key in zip(pairs, "abc", strict=True):
        codes = columns[key].codes[0].astype(int) * columns[name].size + columns[name].codes[0]
        assert dict(zip(of_key.groups.tolist(), of_key.sums.tolist(), strict=True)) == Counter(codes.tolist())


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(-5, 5))), st.integers(1, 4))
def test_sums_by_group(pairs: list[tuple[int, int]], parts: int) -> None:
    """However they are cut up, and whether groups are few or far apart."""
    expected: dict[int, int] = {}
    for group, value in pairs:
        expected[group] = expected.get(group, 0) + value
    arrays = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    actual = add_up([Grouped.sum_by_group(part[:, 0], part[:, 1]) for part in np.array_split(arrays, parts)])
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
