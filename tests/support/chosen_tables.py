"""Tables that an engine may count wrongly, and what is to be counted of them."""

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa

import disclosure_pipeline as dp
from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, Target
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.arguments import code_exclusions
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import Grouping, grouping_of
from support.surveys import survey

FEW_IN_A_CELL = dp.Exclusions(count_over=5)
UNGROUPED = grouping_of()


@dataclass(frozen=True)
class Chosen:
    """Tables, what is counted of them, and what shows that they are as the case says."""

    frames: Sequence[pd.DataFrame]
    keys: Sequence[str]
    targets: Sequence[str]
    shows: Callable[[DisclosureCounts], bool]
    exclusions: dp.Exclusions = FEW_IN_A_CELL
    list_cells_above: float = 0
    grouping: Grouping = UNGROUPED
    with_others: bool = False

    def count(self, opened: OpenedTables) -> list[DisclosureCounts]:
        """Count keys and targets, with exclusions and without them; and whole records and other keys."""
        names = list(self.frames[0].columns)
        raw = dict(zip(names, opened.code(names, self.grouping, ignore_progress), strict=True))
        grouped = {name: self.grouping.apply(column) for name, column in raw.items()}
        keys = [grouped[key] for key in self.keys]
        targets = [
            Target(grouped[name], code_exclusions(excluded, grouped[name], keys), self.list_cells_above)
            for excluded in (dp.Exclusions(), self.exclusions)
            for name in self.targets
        ]
        requests = [CountRequest(keys, targets, together=True, apart=True)]
        if self.with_others:
            requests += [
                CountRequest(list(raw.values())),
                CountRequest(keys[:1]),
                CountRequest(keys, apart=True),
                CountRequest([grouped[self.targets[0]]], targets[1 : len(self.targets)]),
            ]
        return count_tables(opened, requests)


def small_survey(records: int, seed: int, *, postcodes: int = 0) -> pd.DataFrame:
    """Two keys with missing values, a third that makes most of them unique; targets with missing values."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 30, records)
    frame = pd.DataFrame(
        {
            "age": pd.array(np.where(age == 7, -1, age), dtype="Int64"),
            "sex": rng.choice(np.array(["f", "m", None], dtype=object), records),
            "work": np.array(list("abcde"))[(age // 7 + (rng.random(records) < 0.1)) % 5],
            "income": np.where(rng.random(records) < 0.1, math.nan, rng.integers(0, 40, records) * 0.5),
        }
    )
    frame.loc[age == 7, "age"] = pd.NA
    return frame.assign(postcode=rng.integers(10_000, 10_000 + postcodes, records)) if postcodes else frame


def large_cells() -> Chosen:
    """And their pairs, with every kind of exclusion."""
    exclusions = dp.Exclusions(
        target_levels={"work": ["b"]},
        missing_targets=["income"],
        missing_keys=["sex"],
        pairs=[dp.Pair(key="age", key_level=3, target="work", target_level="a")],
        count_over=12,
    )

    def shows(counts: DisclosureCounts) -> bool:
        excluded = counts.targets[2][0].excluded
        assert counts.targets[0][0].excluded is None and excluded is not None
        assert (excluded.taken_out[0] > 0).tolist() == [True, False, True, True, True]
        assert all(counts.targets[target][0].large_pairs[0].sums.sum() > 10 for target in (0, 2))
        return all(len(of_key.groups) for target in (0, 2) for of_key in counts.pairs_of_key[target])

    return Chosen(
        [small_survey(records, seed) for seed, records in enumerate((900, 1000, 150))],
        ["age", "sex"],
        ["work", "income"],
        shows,
        exclusions,
        list_cells_above=3,
        grouping=Grouping({"income": 4}, {}, "pooled"),
        with_others=True,
    )


def most_keys_of_one_record() -> Chosen:
    frames = [small_survey(n, seed, postcodes=400) for seed, n in enumerate((900, 1000, 150))]

    def shows(counts: DisclosureCounts) -> bool:
        return counts.keys[0].count("UiO") > 800 and counts.targets[0][0].has_large_cells

    return Chosen(frames, ["postcode", "age"], ["work", "income"], shows)


def no_key_twice() -> Chosen:
    frames = [
        pd.DataFrame({"k": range(5), "t": [*"aabba"]}),
        pd.DataFrame({"k": range(5, 9), "t": [*"abab"]}),
    ]
    return Chosen(frames, ["k"], ["t"], lambda counts: counts.keys[0].count("repU") == 0)


def keys_beyond_a_number() -> Chosen:
    """Nine keys of about 200 levels: their product is beyond 64 bits."""
    rng = np.random.default_rng(1)
    names = list("abcdefghi")
    gt = pd.DataFrame(rng.integers(0, 300, (300, 9)), columns=names).assign(t=rng.integers(0, 3, 300))
    sd = gt.iloc[:200].assign(t=rng.integers(0, 3, 200))
    return Chosen([gt, sd, gt], names, ["t"], lambda counts: counts.keys[0].count("repU") == 200)


def unique_in_both() -> Chosen:
    """No key combination is of one record in all, though each table has one of it."""
    gt = pd.DataFrame({"k": list("abc"), "t": list("xyx")})
    return Chosen([gt, gt], ["k"], ["t"], lambda counts: counts.keys[0].count("repU") == 3)


def one_level_everywhere() -> Chosen:
    """The smallest d and d / d_q are not 0."""
    gt = pd.DataFrame({"k": list("aaabbcccc"), "t": list("xyxxyxyyy")})

    def shows(counts: DisclosureCounts) -> bool:
        cells = counts.targets[0][0].cells
        return cells.smallest_d == 1 and cells.smallest_share == Fraction(1, 4)

    return Chosen([gt, gt, gt.iloc[:5]], ["k"], ["t"], shows, list_cells_above=math.inf)


def missing_in_every_form() -> Chosen:
    """NULL, and NaN where the engine has it, are one level, in keys and in targets."""
    numbers = [1.5, None, math.nan, 2.5, math.nan, None]
    gt, sd = (
        pa.table({"k": pa.array(k, pa.float64(), from_pandas=False), "t": pa.array(t, pa.string())})
        for k, t in ((numbers, ["a", None, "a", None, "a", "b"]), ([None, None, 2.5], ["a", "a", None]))
    )
    frames = [table.to_pandas(types_mapper=pd.ArrowDtype) for table in (gt, sd)]
    # The GT records (missing, a) and (2.5, missing).
    return Chosen(frames, ["k"], ["t"], lambda counts: counts.targets[0][0].records["DiSCO"] == 1 + 2)


def a_level_for_every_record() -> Chosen:
    gt = pd.DataFrame({"k": np.arange(300) % 7, "t": np.arange(300)})
    return Chosen([gt, gt], ["k"], ["t"], lambda counts: counts.targets[0][0].records["DiSCO"] == 0)


def as_many_codes_as_a_byte_has(levels: int) -> Chosen:
    """Missing has a code of its own after the levels: a column of 255 to 258 codes, which tells another."""

    def table(seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        values = pd.array([*range(levels), *rng.integers(0, levels, 400), *[None] * 20], dtype="Int64")
        few = np.where(rng.random(len(values)) < 0.9, values.to_numpy(na_value=1) % 3, 1)
        return pd.DataFrame({"many": values, "few": few}).sample(frac=1, random_state=seed)

    frames = [table(1), table(2)]
    return Chosen(frames, ["many"], ["few"], lambda counts: counts.targets[0][0].records["DiSCO"] > 10)


def one_key_of_half_the_records() -> Chosen:
    """A part that is much larger than the others."""
    gt = survey(1500, 1)
    gt.loc[:750, ["age", "postcode"]] = [1, 10_000]
    sd = gt.sample(frac=1, random_state=1).reset_index(drop=True).assign(work=gt["work"])
    shows: Callable[[DisclosureCounts], bool] = lambda counts: counts.keys[0].count("UiO") < 750  # noqa: E731
    return Chosen([gt, sd], ["age", "postcode"], ["work", "income"], shows)


def keys_of_few_records(levels: int, list_cells_above: int) -> Chosen:
    """Up to ten, mostly of few levels; with large cells, and with a level in every key."""
    rng = np.random.default_rng(levels)

    def table(records: int) -> pd.DataFrame:
        k = rng.integers(0, 220, records)
        t = np.where(rng.random(records) < 0.8, k % levels, rng.integers(0, levels, records))
        return pd.DataFrame({"k": k, "t": t, "u": np.where(rng.random(records) < 0.1, np.nan, t)})

    def shows(counts: DisclosureCounts) -> bool:
        return list_cells_above > 4 or counts.targets[0][0].has_large_cells

    frames = [table(600), table(600), table(40)]
    return Chosen(frames, ["k"], ["t", "u"], shows, dp.Exclusions(), list_cells_above)


CASES: dict[str, Callable[[], Chosen]] = {
    make.__name__: make
    for make in (
        *(large_cells, most_keys_of_one_record, no_key_twice, keys_beyond_a_number, unique_in_both),
        *(one_level_everywhere, missing_in_every_form, a_level_for_every_record, one_key_of_half_the_records),
    )
}
SIZES: dict[str, Callable[[], Chosen]] = {
    **{f"{levels} levels": partial(as_many_codes_as_a_byte_has, levels) for levels in (254, 255, 256, 257)},
    **{
        f"rare keys {levels} {above}": partial(keys_of_few_records, levels, above)
        for levels, above in product((1, 2, 5, 300), (0, 1, 3, 4, 7))
    },
}


TYPES = {
    "int8": pa.array([1, -1, None, 1], pa.int8()),
    "int64": pa.array([2**53, 2**53 + 1, None, -(2**62)]),
    "float32": pa.array([0.1, math.inf, None, -0.0], pa.float32()),
    "float64": pa.array([0.1 + 0.2, 0.3, None, -math.inf]),
    "zeros": pa.array([0.0, -0.0, None, 1e300]),
    "boolean": pa.array([True, False, None, True]),
    "text": pa.array(["é", "e\u0301", None, " a "]),
    "decimal": pa.array([Decimal("0.10"), Decimal("12.34"), None, Decimal("0.10")], pa.decimal128(10, 2)),
    "date": pa.array(
        [datetime.date(2020, 2, 29), datetime.date(1700, 1, 1), None, datetime.date(2020, 2, 29)]
    ),
    "time": pa.array(
        [datetime.datetime(2020, 2, 29, 1, 2, 3, 456789), None, None, datetime.datetime(1700, 1, 1)],
        pa.timestamp("us"),
    ),
    "zoned": pa.array(
        [datetime.datetime(2020, 2, 29, 1, 2, 3), None, None, datetime.datetime(1970, 1, 1)]
    ).cast(pa.timestamp("us", "UTC")),
    "nothing": pa.array([None] * 4, pa.string()),
    "duration": pa.array(np.array([1, 5, 5, 7]).astype("m8[s]")),
}
