"""The compiled loops, with and without a cache, beside what they stand for; all engines compare them, too."""

import itertools
import math
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.figures import assert_same
from support.processes import run_program
from support.same_counts import assert_same_counts
from support.sampling import on_some_days, only_in_ci
from support.surveys import TARGETS, survey

import disclosure_pipeline as dp
from disclosure_pipeline.counting.counts import CountRequest
from disclosure_pipeline.counting.memory import engine as memory
from disclosure_pipeline.counting.memory import partial_records, radix
from disclosure_pipeline.counting.memory.box_sets import BoxCounter, BoxSet
from disclosure_pipeline.counting.memory.boxes import BoxColumn, Boxes
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.opening import read_shared_columns
from disclosure_pipeline.measures.exact import add_up
from disclosure_pipeline.measures.totals import count_hits_apart
from disclosure_pipeline.tables.levels import count_codes

pytest.importorskip("numba")
from disclosure_pipeline.counting.memory import loops, scanning

pytestmark = [pytest.mark.usefixtures("no_guards"), on_some_days]

KEY_BIT = np.uint64(5)  # above a table's bit and four bits of a level


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=300), st.integers(0, 30))
def test_records_are_sorted_by_key_and_keep_their_order(records: list[int], key_bit: int) -> None:
    of_keys = np.array(records, dtype=np.uint64)
    actual = loops.sort_by_key(of_keys, np.empty_like(of_keys), np.uint64(key_bit))
    assert actual.tolist() == sorted(records, key=lambda record: record >> key_bit)


@pytest.mark.parametrize("lowest", [0, -128, 200, -(2**63), 2**63 - 3, 2**64 - 9])
@given(st.lists(st.integers(0, 7), min_size=1))
def test_stored_values_are_counted_as_in_numpy(lowest: int, offsets: list[int]) -> None:
    """The lowest and the highest of each type; from 0 on, -1 is missing."""
    values = [lowest + offset - (lowest == 0) for offset in offsets]
    types = (np.int8, np.uint8, np.int64, np.uint64)
    fitting = [of for of in types if np.iinfo(of).min <= min(values) and max(values) <= np.iinfo(of).max]
    for dtype in fitting:
        stored = np.array(values, dtype=dtype)
        expected = count_codes(stored, lowest, 9).tolist()
        assert loops.count_codes(stored, lowest, 9).tolist() == expected
        packed = np.zeros(len(stored), dtype=np.uint64)
        loops.add_levels(packed, stored, dtype(lowest), np.arange(9, dtype=np.uint64))
        assert np.bincount(packed.astype(np.intp), minlength=9).tolist() == expected


@given(st.permutations(range(4)), st.lists(st.integers(1, 9), min_size=4, max_size=4), st.data())
def test_hits_of_keys_drawn_apart_are_counted_from_codes(
    order: list[int], sizes: list[int], data: st.DataObject
) -> None:
    """Shares are multiplied in the order of the keys' names, whatever the order of the digits."""
    codes = np.array(sorted(data.draw(st.sets(st.integers(0, math.prod(sizes) - 1)))), dtype=np.uint64)
    levels = np.array(np.unravel_index(codes.astype(np.int64), sizes))
    random = np.random.default_rng(len(codes))
    shares = {key: random.random(sizes[key]) for key in order}
    columns: Any = tuple(SimpleNamespace(size=size) for size in sizes)
    request: Any = SimpleNamespace(shares_apart=[shares])
    counted = scanning._count_apart(radix.Radix(columns), codes, request)
    assert [number for _, number in counted.counts] == [count_hits_apart(levels, shares)]


@pytest.mark.parametrize("keys", [["sex"], ["age", "sex"], ["age", "postcode", "income"]])
def test_classes_are_measured_in_parts(monkeypatch: pytest.MonkeyPatch, keys: list[str]) -> None:
    """Records that are alone, and DiSCO cells to list, count once.

    With one key nothing fits a class, with many almost all records are alone.
    """
    gt, sd = survey(3000, 1), survey(3000, 2, ages=30)
    plain = dp.disclosure(gt, sd, keys, "work")
    monkeypatch.setattr(memory, "Limits", lambda: Limits(table=0, compiled=0))
    monkeypatch.setattr(scanning, "_CELLS", 3)
    assert_same(dp.disclosure(gt, sd, keys, "work"), plain)


@pytest.mark.parametrize("records", [(1 << 15) - 1, 1 << 15, 1 << 17])
@pytest.mark.parametrize("most_in", ["ground truth", "synthetic table"])
def test_cells_whose_size_has_more_digits_than_a_code_says(
    monkeypatch: pytest.MonkeyPatch, records: int, most_in: str
) -> None:
    """A key combination of a single level may have any number of records, as where nothing is known."""
    few, many = pd.DataFrame({"k": [0, 0, 1, 2, 2], "t": [0, 0, 1, 2, 0]}), {"k": [0], "t": [0]}
    more = pd.concat([few, pd.DataFrame(many).loc[[0] * records]], ignore_index=True)
    gt, sd = (more, few) if most_in == "ground truth" else (few, more)
    plain = dp.disclosure(gt, sd, ["k"], "t")
    monkeypatch.setattr(memory, "Limits", lambda: Limits(table=0, compiled=0))
    assert_same(dp.disclosure(gt, sd, ["k"], "t"), plain)


@pytest.mark.parametrize("kind", ["read-only", "every other entry", "of another processor"])
def test_columns_however_they_are_stored(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """As Arrow, a frame of one array, and old files give them."""
    gt, sd = (survey(300, seed)[["age", "income"]].astype(np.int32) for seed in (1, 2))
    plain = dp.disclosure(gt, sd, ["age"], "income")
    for frame in (gt, sd):
        stored = frame["age"].to_numpy()
        if kind == "every other entry":
            stored = stored.repeat(2)[::2]
        elif kind == "of another processor":
            stored = stored.astype(stored.dtype.newbyteorder())
        else:
            stored.flags.writeable = False
        frame["age"] = pd.Series(stored, copy=False)
    monkeypatch.setattr(memory, "gains_by_loops", lambda _: True)
    monkeypatch.setattr(memory, "Limits", lambda: Limits(table=0, compiled=0))
    assert_same(dp.disclosure(gt, sd, ["age"], "income"), plain)


@pytest.mark.parametrize("largest", [partial_records.LARGEST, 1 << 20])
@pytest.mark.parametrize("part", [7, 1 << 20])
@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=6),
    st.lists(st.integers(1, 60), min_size=1, max_size=3).map(lambda of: [30, *of]),
    st.integers(0, 2**32),
)
def test_loops_count_records_without_a_column_as_sorting_does(
    part: int, largest: int, levels: list[int], records: list[int], seed: int
) -> None:
    """Of frequent and rare combinations, in few ranges and many; more than fit a number are numbered."""
    rng = np.random.default_rng(seed)
    frames = [
        pd.DataFrame({k: rng.geometric(0.4, n) % size for k, size in enumerate(levels)}) for n in records
    ]
    tables = read_shared_columns(frames[0], frames[1:])
    columns = tables.code(tables.keys)
    request = CountRequest(columns, without_each=True)

    def count(order: int | None, limits: Limits) -> dict[tuple[Any, ...], Any]:
        """By place; the counts of several parts add up."""
        sums: dict[tuple[Any, ...], Any] = {}
        for some in partial_records.find_records(columns, range(1, len(frames)), limits, order):
            for _, cells in itertools.chain.from_iterable(part() for part in some.parts):
                for place, counts in cells.count(request):
                    sums[place] = add_up([sums[place], counts]) if place in sums else counts
        return sums

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_records, "LARGEST", largest)
        for order in (None, *range(len(partial_records.deal_columns(columns)))):
            expected = count(order, Limits(compiled=sys.maxsize))
            actual = count(order, Limits(compiled=0, part=part))
            assert actual.keys() == expected.keys()
            for place, counts in actual.items():
                assert_same_counts(counts, expected[place], str(place))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1), st.integers(0, 15)), min_size=1, max_size=400),
    st.sampled_from([(1 << 14, 1 << 20), (3, 1 << 20), (1 << 14, 40)]),
    st.booleans(),
)
def test_classes_and_single_keys_are_all_keys(
    records: list[tuple[int, int, int]], room: tuple[int, int], with_small: bool
) -> None:
    """However many find room in classes: as many keys look alike, with as many cells of each level."""
    packed = np.array(sorted(q << 5 | table << 4 | t for q, table, t in records), dtype=np.uint64)
    space = scanning.Room.of(len(packed))
    loops.find_keys(packed, KEY_BIT, space.keys)
    classes, single = scanning._make_classes(*room, np.uint32), space.single
    scan = scanning.Scan(0, 16, 15, 10**9, 2.0)
    field, small = scan.field(int(KEY_BIT) - 1), [np.zeros((n + 1) * 16**n, np.uint32) for n in (1, 2, 3)]
    *few, more = (row[:used] for row, used in zip(space.keys.begins, space.keys.used, strict=True))
    loops.add_keys(packed, more, space.keys.ends, field, 10**9, 2.0, classes, single, space.large)
    for size, (begins, counts) in enumerate(zip(few, small, strict=True), start=1):
        if with_small:
            loops.count_small(packed, begins, size, field, counts)
        else:
            loops.add_keys(packed, begins, begins + size, field, 10**9, 2.0, classes, single, space.large)

    _check_keys(space.keys, [(q, table) for q, table, _ in records])
    _, t_of_class, d, s, n, alike = scanning._merge([scanning.Counting(classes, small)], scan)
    if not with_small:
        assert len(alike) == classes.used[0]
    assert alike.sum() + single.used[0] == len({q for q, *_ in records})
    assert int(d @ n + s @ n) + int(
        single.d[: single.used[1]].sum() + single.s[: single.used[1]].sum()
    ) == len(records)
    expected: Counter[tuple[int, int, int]] = Counter()
    looks: Counter[tuple[tuple[int, int, bool], ...]] = Counter()
    for _, of_key in itertools.groupby(sorted(records), key=lambda record: record[0]):
        cells = Counter((t, table) for _, table, t in of_key)
        levels = sorted({t for t, _ in cells})
        expected.update((t, cells[t, 0], cells[t, 1]) for t in levels)
        looks[tuple(sorted((cells[t, 0], cells[t, 1], t == 15) for t in levels))] += 1
    counted: Counter[tuple[int, int, int]] = Counter()
    for *cell, number in zip(*(column.tolist() for column in (t_of_class, d, s, n)), strict=True):
        counted[cell[0], cell[1], cell[2]] += number
    of_single = [column[: single.used[1]].tolist() for column in (single.t, single.d, single.s)]
    counted.update(zip(*of_single, strict=True))
    assert +counted == expected
    if room == (1 << 14, 1 << 20) and not single.used[0]:
        assert sorted(alike.tolist()) == sorted(looks.values())


def _check_keys(keys: loops.FoundKeys, records: list[tuple[int, int]]) -> None:
    """As many key combinations have d and s records, and those with one GT record are listed."""
    of_GT, of_SD = (Counter(q for q, table in records if table == one) for one in (0, 1))
    (d, s), n = scanning.list_combinations(keys.looks, [keys.large[: keys.listed[0]]])
    counted = Counter[tuple[int, int]]()
    for cell, number in zip(zip(d.tolist(), s.tolist(), strict=True), n.tolist(), strict=True):
        counted[cell] += number
    assert counted == Counter((of_GT[q], of_SD[q]) for q in {q for q, _ in records})
    assert keys.lone[: keys.listed[1]].tolist() == sorted(q for q, number in of_GT.items() if number == 1)


@pytest.mark.parametrize(("keys", "fewest"), [(["age", "postcode"], 6000), (["sex"], 1500)])
def test_the_loops_are_said_and_taken_for_many_records_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keys: list[str], fewest: int
) -> None:
    """And without Numba never; the figures are the same. In tables of all cells, for more records."""
    gt, sd = survey(3000, 1), survey(3000, 2)

    def ask(limits: Limits) -> tuple[dp.Disclosure, str]:
        monkeypatch.delitem(sys.modules, radix._LOOPS, raising=False)
        monkeypatch.setattr(memory, "Limits", lambda: limits)
        result = dp.disclosure(gt, sd, keys, TARGETS, progress=True)
        return result, capsys.readouterr().err

    plain, plain_steps = ask(Limits(compiled=fewest + 1))
    fast, steps = ask(Limits(compiled=fewest, threads=2))
    assert_same(fast, plain)
    assert "Loading or compiling the loops" in steps
    assert "Loading or compiling the loops" not in plain_steps
    monkeypatch.setattr(radix, "has_numba", lambda: False)
    assert "Loading or compiling the loops" not in ask(Limits(compiled=fewest))[1]


def test_loops_that_are_loaded_are_taken_for_fewer_records(monkeypatch: pytest.MonkeyPatch) -> None:
    assert radix.gains_by_loops(Limits().compiled)
    monkeypatch.delitem(sys.modules, radix._LOOPS)
    assert not radix.gains_by_loops(Limits().compiled)


def test_more_records_than_the_loops_can_count_are_left_to_numpy() -> None:
    assert radix.is_compiled(2**31 - 1)
    assert radix.gains_by_loops(2**31 - 1)
    assert not radix.is_compiled(2**31)
    assert not radix.gains_by_loops(2**31)


def test_loops_are_compiled_where_nothing_can_be_cached() -> None:
    """Code without a file has no place for a cache, as an installation that nobody may write to."""
    code: dict[str, object] = {}
    exec("def double(x):\n    return 2 * x", code)
    assert loops.compiled(code["double"])(21) == 42  # type: ignore[type-var, operator]


@only_in_ci("a process that compiles everything")
def test_an_empty_cache_is_filled(tmp_path: Path) -> None:
    code = f"""
import os
os.environ["NUMBA_CACHE_DIR"] = {str(tmp_path)!r}
import numpy as np
from disclosure_pipeline.counting.memory import loops
counts = np.zeros(3, dtype=np.int64)
loops.count(np.array([2, 0, 2], dtype=np.uint64), counts)
print(counts.tolist())
"""
    assert run_program([sys.executable, "-c", code]).stdout.strip() == "[1, 0, 2]"
    assert list(tmp_path.rglob("*.nbi"))


@only_in_ci("two processes that import Numba")
def test_a_cache_of_other_classes_is_not_read(tmp_path: Path) -> None:
    code = """
from typing import NamedTuple
from disclosure_pipeline.counting.memory.loops import compiled
class Pair(NamedTuple):
    first: int
    second: int
@compiled
def add(pair):
    return pair.first + pair.second
"""
    for name in ("Pair", "Both"):
        (tmp_path / "adding.py").write_text(code.replace("Pair", name))
        program = f"import adding; print(adding.add(adding.{name}(1, 2)))"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        assert run_program([sys.executable, "-c", program], env=environment).stdout.strip() == "3"
    assert len(list(tmp_path.rglob("*.nbi"))) == 2


def test_records_in_boxes_are_counted_as_without_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, size, 1_000) for size in (3, 40, 200)]
    columns = [
        BoxColumn(name, (of_column, of_column[::-1]), of_column.max() + 1, None, 0.0, 0.0, True)
        for name, of_column in enumerate(codes)
    ]
    columns[1:] = [replace(column, values=np.arange(column.size - 1.0), unit=1.0) for column in columns[1:]]
    boxes = Boxes.around(columns, np.arange(0, 1_000, 7))
    sets: list[BoxSet] = [[(0, 0), (1, 3)], [(0, 0), (1, 3), (2, 2)], [(1, 1)], [(1, 1), (2, 1)], [(2, 3)]]
    monkeypatch.delitem(sys.modules, loops.__name__)
    without = [BoxCounter(boxes, table) for table in (0, 1)]
    expected = [(counter.count(sets, 100), counter.find_shown(sets)) for counter in without]
    monkeypatch.setitem(sys.modules, loops.__name__, loops)
    monkeypatch.setattr("disclosure_pipeline.counting.memory.box_sets._MANY_WORDS", 1)
    counters = [BoxCounter(boxes, table) for table in (0, 1)]
    actual = [(counter.count(sets, 100), counter.find_shown(sets)) for counter in counters]
    np.testing.assert_equal(actual, expected)
    for counts, _ in expected:
        assert len({tuple(of_set) for of_set in counts}) == len(sets)
