"""Random small tables, options, and data frames of many types that hold the same values."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from reference import disclosure as reference
from reference.disclosure import Edges, Exclusions, Level, Pair, Record, Value

import disclosure_pipeline as dp

# Names that a program might use for columns of its own, and names that are awkward to handle.
NAMES = (
    *("target", "count", "q", "d", "s", "t", "synthesis", "index", "level", "key", "a", "b", "_code"),
    *("two words", " leading", "größe", "年齢", "", "a.b"),
)

TEXT = ("a", "b", "A", "a ", "", "nan", "None", "NA", "<NA>", "18", "18.0", "True", "é", "e\u0301", "🦊")
WHOLE = (-8, -1, 0, 1, 2, 3, 18, 100)
# The first two are one and the same number as floats.
LARGE = (2**53, 2**53 + 1, 2**53 + 2, -(2**62), 7)
# None of them differ by rounding noise alone: such are one level (tests/tables/test_frames.py).
FRACTIONS = (-8.0, -0.0, 0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 18.0, 1e10, math.inf)
TO_GROUP = (-8, -3, 0, 1, 2, 3, 4, 5, 7, 10, 18, 50, 100)
TO_GROUP_FRACTIONS = (-8.0, -0.5, 0.0, 0.1, 0.2, 0.7, 1.0, 1.1, 2.5, 3.3, 7.0, 18.0, 99.9)

POOLS: dict[str, tuple[Value, ...]] = {
    "text": TEXT,
    "integer": WHOLE,
    "large integer": LARGE,
    "float": FRACTIONS,
    "boolean": (True, False),
}
POOLS_TO_GROUP: dict[str, tuple[Value, ...]] = {"integer": TO_GROUP, "float": TO_GROUP_FRACTIONS}

MODES: tuple[Edges, ...] = ("pooled", "ground_truth", "equal_width")
MOST_ROWS = 25
NUMBER_OF_ROWS = st.integers(1, MOST_ROWS)
LARGEST_INT8 = 2**7 - 1

Item = TypeVar("Item")


@dataclass(frozen=True)
class Column:
    """The values of a column of both tables, and which of them occur in which table."""

    name: str
    kind: str
    grouped: bool
    in_ground_truth: list[Value]
    in_synthetic: list[Value]


@dataclass(frozen=True)
class Case:
    """Two or more tables, as records and as data frames, and what to ask of them."""

    columns: list[Column]
    ground_truth: list[Record]
    synthetics: list[list[Record]]
    keys: list[str]
    targets: list[str]
    groups: dict[str, int]
    special_values: dict[str, list[float]]
    edges: Edges
    exclusions: Exclusions
    one_way: tuple[float, float]
    two_way: tuple[float, float]
    ground_truth_frame: pd.DataFrame
    synthetic_frames: list[pd.DataFrame]


# Drawing from what is known only on the way: numbers are drawn many times faster than items one by one

AT_ONCE = 4  # items that one number picks
EVENLY = 1 << 24  # from larger ranges Hypothesis draws small numbers more often


@cache
def below(number: int) -> SearchStrategy[int]:
    """A number from 0 on, less than this one."""
    return st.sampled_from(range(number))


def pick(draw: DrawFn, items: Sequence[Item]) -> Item:
    """One of the items."""
    return items[draw(below(len(items)))] if len(items) > 1 else items[0]


def below_each(draw: DrawFn, sizes: Sequence[int]) -> list[int]:
    """A number from 0 on below each of the sizes, as many as possible from one that is drawn."""
    numbers: list[int] = []
    while len(numbers) < len(sizes):
        product, last = sizes[len(numbers)], len(numbers) + 1
        while last < len(sizes) and product * sizes[last] <= EVENLY:
            product, last = product * sizes[last], last + 1
        drawn = draw(below(product)) if product > 1 else 0
        for size in sizes[len(numbers) : last]:
            drawn, number = divmod(drawn, size)
            numbers.append(number)
    return numbers


def pick_each_once(
    draw: DrawFn, items: Sequence[Item], fewest: int = 0, most: int | None = None
) -> list[Item]:
    """Draw this number of the items in any order, by default any number of them."""
    left, picked = list(items), list[Item]()
    most = len(left) if most is None else min(most, len(left))
    wanted = fewest + (draw(below(most - fewest + 1)) if most > fewest else 0)
    while len(picked) < wanted:
        at_once = min(AT_ONCE, wanted - len(picked))
        number = draw(below(math.perm(len(left), at_once)))
        for _ in range(at_once):
            number, place = divmod(number, len(left))
            picked.append(left.pop(place))
    return picked


# Data frames


def whole(values: Iterable[Value]) -> bool:
    return all(float(value).is_integer() for value in values if value is not None)


def fits(values: Iterable[Value], largest: int) -> bool:
    return all(abs(reference.number(value)) <= largest for value in values if value is not None)


def exact(values: Iterable[Value], dtype: type[np.floating[Any]]) -> bool:
    """Return whether floats of a type hold exactly the values that are there."""
    with np.errstate(over="ignore"):
        return all(float(dtype(value)) == value for value in values if value is not None)


def shortest(values: Iterable[Value], dtype: type[np.floating[Any]]) -> bool:
    """Return whether the values are the shortest decimals of their floats of a type."""
    with np.errstate(over="ignore"):
        return all(float(str(dtype(value))) == value for value in values if value is not None)


def number_dtypes(values: Sequence[Value]) -> list[str]:
    """The types that hold these numbers."""
    missing = any(value is None for value in values)
    fitting = ["object"]
    if whole(values):
        fitting += ["Int64", "arrow int64"]
        if not missing:
            fitting.append("int64")
        if fits(values, LARGEST_INT8):
            fitting += ["Int8", "arrow int8"]
    if exact(values, np.float64):
        fitting += ["float64", "Float64", "arrow double", "arrow double with NaN"]
    if shortest(values, np.float32):
        fitting += ["float32", "Float32", "arrow float"]
    if shortest(values, np.float16):
        fitting += ["float16"]
    return fitting


def dtypes(values: Sequence[Value], kind: str, *, grouped: bool) -> list[str]:
    """The names of the types that hold exactly these values, to be used with `series`."""
    missing = any(value is None for value in values)
    if kind == "text":
        fitting = ["object", "string", "string[pyarrow]", "arrow string", "arrow large_string"]
        fitting += ["category", "arrow dictionary"]
    elif kind == "boolean":
        fitting = ["object", "boolean", "arrow bool", "category"]
        if not missing:
            fitting.append("bool")
    else:
        fitting = number_dtypes(values)
        if not grouped:
            fitting.append("category")
    if all(value is None for value in values):
        # What a reader makes of an empty column, whatever the column is meant to hold.
        fitting += ["float64", "arrow null"]
    return fitting


def series(
    values: Sequence[Value], dtype: str, missing: Sequence[object] = (None,), categories: Sequence[Value] = ()
) -> pd.Series:
    """The values in the named type.

    `missing` are the objects that stand for a missing value in turn where the type allows several, and
    `categories` the levels of a categorical besides those that occur.
    """
    if dtype == "object":
        in_turn = zip(values, cycle(missing))
        return pd.Series([gap if value is None else value for value, gap in in_turn], dtype=object)
    if dtype == "category":
        # 0.0 and -0.0 are one category.
        levels = list(dict.fromkeys([*categories, *(value for value in values if value is not None)]))
        return pd.Series(pd.Categorical(list(values), categories=pd.Index(levels) if levels else None))
    if dtype in ("float64", "float32", "float16"):
        return pd.Series([math.nan if value is None else value for value in values], dtype=dtype)
    if dtype == "arrow dictionary":
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, pa.string()).dictionary_encode()))
    if dtype == "arrow double with NaN":
        with_nan = [math.nan if value is None else float(value) for value in values]
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(with_nan, pa.float64(), from_pandas=False)))
    if dtype.startswith("arrow "):
        arrow = pa.type_for_alias(dtype.removeprefix("arrow "))
        plain: list[Value] = list(values)
        if pa.types.is_integer(arrow):
            plain = [None if value is None else int(value) for value in values]
        elif pa.types.is_floating(arrow):
            plain = [None if value is None else float(value) for value in values]
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(plain, arrow)))
    if dtype in ("int64", "Int64", "Int8"):
        return pd.Series([pd.NA if value is None else int(value) for value in values], dtype=dtype)
    return pd.Series([pd.NA if value is None else value for value in values], dtype=dtype)


MISSING: tuple[tuple[object, ...], ...] = ((None,), (math.nan,), (pd.NA,), (None, math.nan, pd.NA))
INDEX = st.sampled_from(["default", "reversed", "all the same", "text"])


@st.composite
def frames(draw: DrawFn, records: Sequence[Record], columns: Sequence[Column]) -> pd.DataFrame:
    """A data frame of the records: columns in any order, in any fitting type, with any index."""
    drawn = {}
    in_order = pick_each_once(draw, columns, len(columns))
    values_of = [[record[column.name] for record in records] for column in in_order]
    fitting = [
        dtypes(values, column.kind, grouped=column.grouped)
        for column, values in zip(in_order, values_of, strict=True)
    ]
    places = below_each(draw, [len(of_column) for of_column in fitting])
    for column, values, of_column, place in zip(in_order, values_of, fitting, places, strict=True):
        dtype = of_column[place]
        # What makes no difference to a type is not drawn.
        missing = pick(draw, MISSING) if dtype == "object" and None in values else (None,)
        with_unused = dtype == "category" and draw(st.booleans())
        unused = [value for value in column.in_synthetic if with_unused and value is not None]
        drawn[column.name] = series(values, dtype, missing, unused)
    frame = pd.DataFrame(drawn)
    index = draw(INDEX)
    if index == "reversed":
        frame.index = frame.index[::-1]
    elif index == "all the same":
        frame.index = pd.Index([0] * len(frame))
    elif index == "text":
        frame.index = pd.Index([f"row {number}" for number in range(len(frame))], name="synthesis")
    return frame


@st.composite
def converted(draw: DrawFn, case: Case) -> Case:
    """The same case with its frames made anew from the records, in freshly drawn types."""
    return replace(
        case,
        ground_truth_frame=draw(frames(case.ground_truth, case.columns)),
        synthetic_frames=[draw(frames(records, case.columns)) for records in case.synthetics],
    )


# Tables


KIND = st.sampled_from(["text", "integer", "float", "boolean", "text", "integer", "large integer"])


@st.composite
def column(draw: DrawFn, name: str, *, may_be_grouped: bool) -> Column:
    """A column with few levels, some of which may occur in one of the tables only."""
    kind = draw(KIND)
    grouped = may_be_grouped and kind in POOLS_TO_GROUP and draw(st.booleans())
    pool = POOLS_TO_GROUP[kind] if grouped else POOLS[kind]
    levels: list[Value] = pick_each_once(draw, pool, 1, 10 if grouped else 4)
    if draw(st.booleans()):
        levels = [*levels, None]
    return Column(
        name=name,
        kind=kind,
        grouped=grouped,
        in_ground_truth=some_of(draw, levels),
        in_synthetic=some_of(draw, levels),
    )


def some_of(draw: DrawFn, levels: Sequence[Value]) -> list[Value]:
    """All of the levels, mostly, or some."""
    return pick_each_once(draw, levels, 1) if draw(st.booleans()) else list(levels)


@st.composite
def records_of(
    draw: DrawFn, names: Sequence[str], levels: Sequence[Sequence[Value]], others: Sequence[Record] = ()
) -> list[Record]:
    """A table of up to 25 rows, some of which may be copied from another table.

    Each row is drawn as one number or several as one, which is many times faster than value by value.
    """
    combinations = math.prod(map(len, levels))
    numbers = max(combinations, len(others)) * (2 if others else 1)
    rows: list[Record] = []
    for number in below_each(draw, [numbers] * draw(NUMBER_OF_ROWS)):
        drawn = number
        if others:
            drawn, copied = divmod(drawn, 2)
            if copied:
                rows.append(others[drawn % len(others)])
                continue
        row = {}
        for name, of_column in zip(names, levels, strict=True):
            drawn, level = divmod(drawn, len(of_column))
            row[name] = of_column[level]
        rows.append(row)
    return rows


EDGES = (-10.0, -3.0, -1.0, 0.0, 0.1, 0.5, 1.0, 2.0, 2.5, 7.0, 18.0, 1000.0)


@st.composite
def groups_for(draw: DrawFn, columns: Sequence[Column]) -> tuple[dict[str, int], Edges]:
    """A number of groups for every column to group, or for some of them explicit edges."""
    names = [column.name for column in columns if column.grouped]
    groups = {name: draw(st.integers(2, 8)) for name in names}
    if not names or draw(st.integers(0, 3)) > 0:
        return groups, pick(draw, MODES)
    edges = {name: sorted(pick_each_once(draw, EDGES, 3, 5)) for name in pick_each_once(draw, names, 1)}
    return {name: n for name, n in groups.items() if name not in edges}, edges


def levels_in(
    columns: Sequence[Column],
    ground_truth: Sequence[Record],
    synthetics: Sequence[Sequence[Record]],
    groups: dict[str, int],
    special_values: dict[str, list[float]],
    edges: Edges,
) -> dict[str, list[Value]]:
    """By column, every level that occurs, by its value (where it has one) and by its label."""
    names = [column.name for column in columns]
    gt, sds = reference.all_leveled(ground_truth, synthetics, names, groups, special_values, edges)
    by_column: dict[str, list[Value]] = {}
    for column in columns:
        values: dict[str, Value] = {}
        for record, levels in zip(
            [record for table in [ground_truth, *synthetics] for record in table],
            [levels for table in [gt, *sds] for levels in table],
            strict=True,
        ):
            level: Level = levels[column.name]
            values[f"label {level}"] = level
            if reference.label(record[column.name]) == level:
                values[f"value {level}"] = record[column.name]
        by_column[column.name] = list(values.values())
    return by_column


@st.composite
def exclusions_for(
    draw: DrawFn, keys: Sequence[str], targets: Sequence[str], levels: dict[str, list[Value]]
) -> Exclusions:
    """Exclusions of every kind, all of them of levels that occur."""
    target_levels = {
        target: [pick(draw, levels[target]) for _ in range(draw(st.integers(1, 3)))]
        for target in pick_each_once(draw, targets)
    }
    cells = [(key, target) for key in keys for target in targets]
    pairs = [
        Pair(
            key=key, key_level=pick(draw, levels[key]), target=target, target_level=pick(draw, levels[target])
        )
        for key, target in [pick(draw, cells) for _ in range(draw(st.integers(0, 3)))]
    ]
    return Exclusions(
        target_levels=target_levels,
        missing_targets=all_none_or_some(draw, targets),
        missing_keys=all_none_or_some(draw, keys),
        pairs=pairs,
        count_over=pick(draw, (None, None, None, None, 1, 2, 3, 4)),
    )


def all_none_or_some(draw: DrawFn, names: Sequence[str]) -> bool | list[str]:
    """Draw True or False for all columns, or the names of some."""
    choice = pick(draw, (False, True, None, None))
    return pick_each_once(draw, names) if choice is None else choice


# A number of records and a share in percent, low enough, or often met exactly.
THRESHOLDS: SearchStrategy[tuple[float, float]] = st.tuples(
    st.integers(0, 3), st.one_of(st.integers(0, 90), st.sampled_from([25, 37.5, 50, 75, 100]))
)


@st.composite
def cases(
    draw: DrawFn,
    *,
    with_groups: bool = True,
    with_exclusions: bool = True,
    fewest_syntheses: int = 1,
    most_syntheses: int = 2,
) -> Case:
    names = pick_each_once(draw, NAMES, 2, 7)
    most_targets = min(3, len(names) - 1)
    n_targets = draw(st.integers(max(1, len(names) - 4), most_targets))
    columns = [draw(column(name, may_be_grouped=with_groups)) for name in names]
    ground_truth = draw(records_of(names, [column.in_ground_truth for column in columns]))
    synthetics = [
        draw(records_of(names, [column.in_synthetic for column in columns], ground_truth))
        for _ in range(draw(st.integers(fewest_syntheses, most_syntheses)))
    ]
    targets = names[:n_targets]
    keys = names[n_targets:]
    groups, edges = draw(groups_for(columns))
    drawn = {
        column.name: pick_each_once(draw, [*column.in_ground_truth, -999])
        for column in columns
        if column.grouped and draw(st.booleans())
    }
    special_values = {
        name: [value for value in values if isinstance(value, int | float)] for name, values in drawn.items()
    }
    levels = levels_in(columns, ground_truth, synthetics, groups, special_values, edges)
    case = Case(
        columns=columns,
        ground_truth=ground_truth,
        synthetics=synthetics,
        keys=keys,
        targets=targets,
        groups=groups,
        special_values=special_values,
        edges=edges,
        exclusions=draw(exclusions_for(keys, targets, levels)) if with_exclusions else Exclusions(),
        one_way=draw(THRESHOLDS),
        two_way=draw(THRESHOLDS),
        ground_truth_frame=pd.DataFrame(),
        synthetic_frames=[],
    )
    return draw(converted(case))


# What the library makes of a case


def library_exclusions(exclusions: Exclusions) -> dp.Exclusions:
    return dp.Exclusions(**vars(exclusions) | {"pairs": [dp.Pair(**vars(pair)) for pair in exclusions.pairs]})


def measured(case: Case, tables: Sequence[Any] = (), engine: str = "memory", **further: Any) -> dp.Disclosure:
    """All figures of a case, from its frames unless other tables are given that hold the same."""
    ground_truth, *syntheses = tables or (case.ground_truth_frame, *case.synthetic_frames)
    return dp.disclosure(
        ground_truth,
        syntheses,
        keys=case.keys,
        targets=case.targets,
        groups=case.groups,
        special_values=case.special_values,
        edges=case.edges,
        exclude=library_exclusions(case.exclusions),
        flags={"one_way": case.one_way, "two_way": case.two_way},
        engine=engine,
        **further,
    )
