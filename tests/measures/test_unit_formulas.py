"""Test the formulas for people with several records against loops over records, also after exclusions."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import baselines as baselines_reference
from reference import units as reference
from reference.cap import Record
from support.small_tables import NO_GUESS, QUASI_IDENTIFIERS, TARGET_LEVELS, cells, tables

from disclosure_pipeline.measures.contributions import BESIDE_OTHERS, Contributions, name_estimates
from disclosure_pipeline.measures.copies import (
    Combinations,
    CopyCounts,
    copies,
    unique_hits,
)
from disclosure_pipeline.measures.densest_bands import AMOUNTS
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import (
    Rows,
    beside_other_units,
    combine_keys,
    find_lone_combinations,
    frequency_tables,
)
from disclosure_pipeline.measures.people import people_copied
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.survey import household_risk
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.grouping import Within, band_of

UNITS = st.lists(st.integers(0, 4), min_size=40, max_size=40)
"""At least one unit per record; surplus units are ignored."""


def combinations_of(records: Sequence[Record]) -> IntArray:
    return np.array([QUASI_IDENTIFIERS.index(q) for q, _ in records])


def place_in_cells(
    gt: Sequence[Record], sd: Sequence[Record], units: Sequence[int], excluded: Sequence[int]
) -> Rows:
    """Return GT's records by unit in the cells of `cells`, of which some target levels are excluded."""
    f = cells(gt, sd)
    kept = ~np.isin(f.t, excluded)
    keys = combine_keys([[combinations_of(gt), combinations_of(sd)]], [len(QUASI_IDENTIFIERS)])
    t = np.array([TARGET_LEVELS.index(level) for _, level in gt])
    return Rows(f, f.find_cell(keys.q[0], t), np.array(units), f.d * kept, f.s * kept, NO_GUESS)


@given(tables(), tables(most=20), UNITS, st.lists(st.sampled_from(range(4)), max_size=2))
def test_the_figures_are_those_of_loops_over_records(
    gt: list[Record], sd: list[Record], units: list[int], excluded: list[int]
) -> None:
    units = units[: len(gt)]
    rows = place_in_cells(gt, sd, units, excluded)
    estimates = name_estimates(Contributions(rows).estimate(BESIDE_OTHERS))
    actual = {
        name: figure for name, figure in estimates.items() if not name.endswith(("_n_se", "_others_se"))
    }
    kept_of = [[TARGET_LEVELS.index(level) not in excluded for _, level in table] for table in (gt, sd)]
    expected = baselines_reference.figures(gt, sd, (None,), kept_of[0], kept_of[1], units)
    assert set(actual) == set(expected) - {"guessed"}
    assert actual == pytest.approx({name: expected[name] for name in actual}, abs=2e-7)


@given(tables(), tables(), UNITS)
def test_copies_are_those_of_loops_over_records(gt: list[Record], sd: list[Record], units: list[int]) -> None:
    units, (of_gt, of_sd) = units[: len(gt)], (combinations_of(gt), combinations_of(sd))
    rows = [[q for q, _ in table] for table in (gt, sd)]
    expected = reference.copies(rows[0], units, rows[1])
    combinations = Combinations.of_units(of_gt, np.array(units), len(QUASI_IDENTIFIERS))
    d, s = (np.bincount(codes, minlength=len(QUASI_IDENTIFIERS)) for codes in (of_gt, of_sd))
    sizes = Sizes(len(gt), len(sd))
    hits = unique_hits(combinations.count_hits(s), sizes, 0.0)
    found = combinations.count_people(s)
    people = people_copied(found, sizes)
    actual = {
        "unique_hits": hits.unique_hits,
        "unique_hits_others": hits.unique_hits_others,
        "copies_others": copies(CopyCounts(0, combinations.count_hits(s), found), sizes, 0.0).copies_others,
        "people_copied": people.people_copied,
        "people_copied_expected": people.people_copied_expected,
    }
    assert actual == pytest.approx(expected)
    alone = [i for i, (q, _) in enumerate(gt) if len(reference.owners(q, rows[0], units)) == 1]
    first, number = find_lone_combinations([of_gt], [len(QUASI_IDENTIFIERS)], np.array(units))
    lone = dict(zip(of_gt[first].tolist(), number.tolist(), strict=True))
    assert lone == Counter(of_gt[alone].tolist())
    risk = household_risk(of_gt, d, s, np.array(units))
    assert (risk.individual_risk, risk.household_risk) == pytest.approx(
        reference.household_risk(rows[0], units, rows[1])
    )
    assert risk.units == len(set(units))


@given(tables(), tables(), st.permutations(range(40)))
def test_records_are_units_of_one_record(gt: list[Record], sd: list[Record], units: list[int]) -> None:
    """The counts of copies are the same integers, of which an engine adds up some at a time."""
    of_gt, of_sd = combinations_of(gt), combinations_of(sd)
    d, s = (np.bincount(codes, minlength=len(QUASI_IDENTIFIERS)) for codes in (of_gt, of_sd))
    of_units = Combinations.of_units(of_gt, np.array(units[: len(gt)]), len(QUASI_IDENTIFIERS))
    assert of_units.count_copies(s) == Combinations.of_records(d).count_copies(s)
    alike, keys = np.unique(np.stack((d, s)), axis=1, return_counts=True)
    assert of_units.count_copies(s) == Combinations.of_records(alike[0], keys).count_copies(alike[1])


@given(st.integers(0, 2**32), st.sampled_from(["0", "0.02", "0.3", "5"]))
def test_the_densest_band_beside_a_unit_is_that_of_the_table_without_it(seed: int, within: str) -> None:
    """Few cells are looked at where the densest bands hold records of the unit, none where one does not."""
    rng = np.random.default_rng(seed)
    records, values = int(rng.integers(2, 60)), int(rng.integers(1, 30))
    keys, unit = rng.integers(0, 3, records), rng.integers(0, int(rng.integers(1, 9)), records)
    levels, t = np.unique(rng.integers(0, values, records) * 10, return_inverse=True)
    column = code_column("amount", [pd.Series(levels)], ["GT"])
    band = band_of(column, Within.from_argument("amount", float(within)), ())
    combined = combine_keys([[keys, keys[:1]]], [3])
    [f] = frequency_tables(combined, [t, t[:1]], len(levels) + 1)
    rows = Rows(f, f.find_cell(combined.q[0], t), unit, band=band)
    for by_key, table in ((True, f), (False, rows.by_level)):
        own = rows.own_records(by_key=by_key)
        named, matched = AMOUNTS.name_beside(rows, table, table.d, own.cell, own.pair, own.records)
        for entries, without, at in beside_other_units(table, own, np.arange(len(own.cell))):
            wanted = np.ones(len(without.q), dtype=bool)
            expected = AMOUNTS.name(rows, without, without.d, wanted, None, True)
            for actual, of_cells in zip((named, matched), expected, strict=True):
                assert actual[entries] == pytest.approx(of_cells[at], abs=1e-8)
