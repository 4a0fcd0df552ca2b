"""Numbers that look renumbered: by hand, in the demo's survey, and not in honest or bad tables."""

import numpy as np
import pandas as pd
import pytest
from disguises import tables
from disguises.cases import mirrored
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples
from support.small_tables import sd2011

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.evaluation.resemblance import find_renumbered
from disclosure_pipeline.measures.resemblance import (
    RANK_GROUPS,
    JointTables,
    RankGroups,
    find_heaps,
    looks_renumbered,
)
from disclosure_pipeline.policy.bounds import DEFAULTS
from disclosure_pipeline.tables.grouping import grouping_of

HONEST = DEFAULTS["relabelled"] / 2


def renumbered(ground_truth: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, float]:
    opened = FramesInMemory((ground_truth, synthetic), "memory")
    columns = opened.code(list(ground_truth.columns), grouping_of())
    return {name: figure for (name, _), figure in find_renumbered(columns).items()}


@examples(50)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60).filter(any))
def test_groups_hold_as_many_records_each(counts: list[int]) -> None:
    """Those of a number that reaches over an end are dealt out, so that each is as large as the others."""
    groups = RankGroups.from_counts(np.array(counts))
    rows = np.bincount(groups.row, weights=counts, minlength=groups.shares.shape[1])[:, np.newaxis]
    assert groups.add_up(rows)[:, 0] == pytest.approx([sum(counts) / RANK_GROUPS] * RANK_GROUPS)
    assert groups.shares.sum(axis=0) == pytest.approx(np.ones(groups.shares.shape[1]))
    order = [groups.shares[:, row] @ np.arange(RANK_GROUPS) for row in groups.row]
    occurring = [place for place, records in zip(order, counts, strict=True) if records]
    assert occurring == sorted(occurring)


def test_heaps_and_missing_values_are_left_out() -> None:
    marks = find_heaps(np.array([50, 5, 5, 40]), np.array([1, 30, 3, 0]))
    assert marks.tolist() == [True, True, False, True]


def test_a_turn_by_hand() -> None:
    """A level for each half of the numbers; turned, the halves change places."""
    d = np.repeat([[30.0, 0.0], [0.0, 30.0]], RANK_GROUPS // 2, axis=0)
    turned = d[::-1]
    assert looks_renumbered([JointTables(d, turned, turned)]) > 0.85
    assert looks_renumbered([JointTables(d, d, d)]) == 0
    flat = np.full_like(d, 15)
    assert looks_renumbered([JointTables(d, flat, flat)]) == 0  # far, and no map brings it near
    assert looks_renumbered([JointTables(flat, turned, turned)]) == 0  # GT has nothing to agree with
    assert looks_renumbered([]) == 0


def shifted(table: pd.DataFrame, column: str, share: float) -> pd.DataFrame:
    """The numbers of a column moved up by a share of all ranks, the highest to the lowest places."""
    values = table[column]
    ordinary = values[(values != -8) & values.notna()]
    ranks = ordinary.rank(method="first").astype(int).to_numpy() - 1
    ascending = np.sort(ordinary.to_numpy())
    moved = values.copy()
    moved.loc[ordinary.index] = ascending[(ranks + int(share * len(ranks))) % len(ranks)]
    return table.assign(**{column: moved})


@pytest.mark.parametrize(
    ("column", "share"), [("age", 0.1), ("age", 0.25), ("age", 0.5), ("income", 0.25), ("income", 0.75)]
)
def test_numbers_that_are_shifted_in_their_ranks(column: str, share: float) -> None:
    figures = renumbered(tables.survey(), shifted(tables.survey(), column, share))
    assert figures.pop(column) > DEFAULTS["relabelled"]
    assert set(figures.values()) == {0.0}


def test_numbers_that_are_mirrored_negated_or_scaled() -> None:
    survey = tables.survey()
    both = mirrored(mirrored(survey, "age"), "income")
    assert min(renumbered(survey, both).values()) > 0.5
    assert renumbered(survey, survey.assign(age=-survey["age"]))["age"] > 0.5
    assert renumbered(survey, survey.assign(age=3 * survey["age"]))["age"] > 0.5


@pytest.mark.parametrize("records", [0.1, 1, 5])
def test_honest_tables_do_not_look_so(records: float) -> None:
    survey = tables.survey()
    for table in (tables.several_times(records), tables.fresh(records)):
        assert max(renumbered(survey, table).values()) < HONEST
    assert set(renumbered(survey, tables.apart(survey)).values()) == {0.0}


@pytest.mark.parametrize("name", ["synthetic", "synthesizers/arf_2", "synthesizers/ctgan"])
def test_nor_do_synthesizers(name: str) -> None:
    """However far their numbers are from those of the example."""
    ground_truth = sd2011("ground_truth")
    assert max(renumbered(ground_truth, sd2011(name)).values()) < HONEST
