"""Membership measured with a holdout: planted copies, fresh tables, and every engine."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from reference import membership as reference
from reference.cap import Record
from support.sampling import examples, on_some_days
from support.small_tables import KEYS, frame, tables

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.long_table import tabulate_figures
from disclosure_pipeline.measures.holdout import MembershipClaims, find_rate_of_members
from disclosure_pipeline.measures.samples import clopper_pearson
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import find_bounded

pytestmark = [
    pytest.mark.filterwarnings("ignore::disclosure_pipeline.errors.HoldoutWarning"),
    pytest.mark.usefixtures("no_guards"),
    on_some_days,
]
LEVELS = {"a": 60, "b": 80, "c": 12, "d": 40, "e": 90}


def planted(share: float, records: int = 4000) -> list[pd.DataFrame]:
    """GT, SD of which a share is copied from it, and a holdout."""
    rng = np.random.default_rng(1)
    gt, fresh, others = (
        pd.DataFrame({name: rng.integers(0, levels, records) for name, levels in LEVELS.items()})
        for _ in range(3)
    )
    copied = round(share * records)
    return [gt, pd.concat([gt.head(copied), fresh.head(records - copied)], ignore_index=True), others]


def measured(gt: Any, sd: Any, holdout: Any, **options: Any) -> pd.DataFrame:
    return dp.disclosure(gt, sd, ["a", "b", "c"], "e", holdout=holdout, **options).membership


@examples(20)
@given(tables(), tables(), tables())
def test_advantages_are_those_of_the_reference(
    gt: list[Record], sd: list[Record], holdout: list[Record]
) -> None:
    row = dp.disclosure(frame(gt), frame(sd), KEYS, "t", holdout=frame(holdout)).membership.loc[1]
    by_records = reference.advantage(gt, holdout, sd)
    by_keys = reference.advantage(*([q for q, _ in table] for table in (gt, holdout, sd)))
    assert row["advantage_records"] == pytest.approx(float(100 * by_records))
    assert row["advantage_keys"] == pytest.approx(float(100 * by_keys))
    for name in ("advantage_records", "advantage_keys"):
        assert row[f"{name}_chance"] in (row[name], min(row[name], 0))
        assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    assert list(row.index) == list(COLUMNS["membership"])


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3])
def test_planted_shares_are_found(share: float) -> None:
    row = measured(*planted(share)).loc[1]
    assert row["advantage_records"] == pytest.approx(100 * share, abs=0.1)
    assert row["advantage_keys"] == pytest.approx(100 * share * 0.94, abs=1.5)
    # A share is copied; of the others as many are near as of the holdout.
    assert row["TPR_at_1"] == pytest.approx(100 * share + 1 - share, abs=0.6)
    assert row["AUC"] == pytest.approx(50 + 50 * share, abs=3 * row["AUC_se"])
    assert row["TPR_at_1_low"] < row["TPR_at_1"] < row["TPR_at_1_high"]
    # Four attackers share what may go wrong once in a thousand times.
    (low, _), (_, high) = (clopper_pearson(found, 4000, 1 - 0.001 / 4) for found in (4000 * share, 0))
    assert row["epsilon_ruled_out"] == pytest.approx(math.log(low / high), abs=0.1)


def test_a_rate_needs_ten_records_of_the_holdout() -> None:
    gt, sd, holdout = planted(0.1, 10_000)
    of_all = measured(gt, sd, holdout).loc[1]
    assert of_all["TPR_at_0_1"] == pytest.approx(10.1, abs=0.4)
    assert of_all["TPR_at_0_1_low"] < of_all["TPR_at_0_1"] < of_all["TPR_at_0_1_high"]
    for records, known in ((9_999, ["TPR_at_1"]), (1000, ["TPR_at_1"]), (999, [])):
        row = measured(gt.head(300), sd.head(300), holdout.head(records)).loc[1]
        assert [name for name in ("TPR_at_1", "TPR_at_0_1") if np.isfinite(row[name])] == known
        for name in {"TPR_at_1", "TPR_at_0_1"} - {*known}:
            assert np.isnan([row[name], row[f"{name}_low"], row[f"{name}_high"]]).all()


@pytest.mark.parametrize(("members", "others"), [(20_000, 2000), (2000, 1000)])
def test_the_interval_of_a_rate_covers_the_rate(members: int, others: int) -> None:
    """Distances of members and others are alike, so that exactly 1 % of the members are nearer."""
    rng = np.random.default_rng(3)
    ends = [
        find_rate_of_members(rng.integers(0, 10**9, members), rng.integers(0, 10**9, others), 0.01)
        for _ in range(300)
    ]
    assert 0.92 <= np.mean([low <= 0.01 <= high for _, low, high in ends]) <= 0.995


@pytest.mark.parametrize(("members", "others", "share"), [(2000, 500, 0.3), (1000, 100, 0.02)])
def test_an_honest_advantage_is_within_chance(members: int, others: int, share: float) -> None:
    """It often exceeds 2 points, and once in `ONCE_IN` tables what chance explains."""
    rng = np.random.default_rng(4)
    claims = [
        MembershipClaims(rng.binomial(members, share), members, rng.binomial(others, share), others)
        for _ in range(2000)
    ]
    advantages = [
        attacker.claimed_members / members - attacker.claimed_others / others for attacker in claims
    ]
    assert np.mean([advantage > 0.02 for advantage in advantages]) > 0.01
    beyond = [attacker.find_advantage_beyond_chance() for attacker in claims]
    assert np.mean([advantage > 0 for advantage in beyond]) <= 0.001
    assert min(beyond) == min(advantages)
    assert MembershipClaims(600, 2000, 100, 1000).find_advantage_beyond_chance() == pytest.approx(0.2)


def test_a_clause_on_an_advantage_allows_for_chance() -> None:
    gt, holdout = (pd.DataFrame({"a": np.arange(n) % 10, "e": 0}) for n in (200, 15))
    result = dp.disclosure(gt, gt[gt["a"] > 4], ["a"], "e", holdout=holdout)
    row = result.membership.loc[1]
    assert row["advantage_keys"] == pytest.approx(50 - 100 / 3)
    assert row["advantage_keys_chance"] == 0
    [of_records] = [row for row in tabulate_figures(result) if row.figure == "advantage_records"]
    clause = Clause("advantage_records", "at_most", 1)
    assert find_bounded(clause, of_records) == of_records.beyond_chance == row["advantage_records_chance"]
    assert find_bounded(replace(clause, chance=False), of_records) == row["advantage_records"]
    assert row["advantage_records"] > row["advantage_records_chance"]


def test_a_fresh_table_rules_nothing_out() -> None:
    row = measured(*planted(0)).loc[1]
    assert row["epsilon_ruled_out"] == 0
    assert row["advantage_records"] == 0
    assert row["AUC"] == pytest.approx(50, abs=3 * row["AUC_se"])
    assert np.isnan(row["epsilon_claimed"]) and row["epsilon_beyond_claim"] == 0


def test_near_copies_are_found_by_distance() -> None:
    gt, sd, holdout = planted(0.2)
    moved = sd.assign(e=sd["e"] + 1)
    row = measured(gt, moved, holdout).loc[1]
    assert abs(row["advantage_records"]) < 0.5
    assert row["TPR_at_1"] > 15


def test_several_files_are_attacked_together() -> None:
    """Each holds other copies; an attacker has them all, as one table of all has them."""
    gt, sd, holdout = planted(0.1)
    halves = [sd.iloc[:200], sd.iloc[200:]]
    keys, options = ["a", "b", "c"], {"groups": {"a": 5, "b": 5}}
    result = dp.disclosure(gt, halves, keys, "e", holdout=holdout, **options)  # type: ignore[arg-type]
    assert result.membership["advantage_records"].round(1).tolist() == [5.0, 5.0]
    assert result.stacked is not None
    together = dp.disclosure(gt, sd, keys, "e", holdout=holdout, **options)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(result.stacked.membership, together.membership)
    assert together.membership["advantage_keys"].item() < 10


def test_columns_that_cannot_be_compared_leave_nothing_measured() -> None:
    gt, sd, holdout = planted(0.1, 200)
    result = dp.disclosure(gt, sd, ["a"], "e", holdout=holdout.assign(d="text"))
    assert result.membership.empty
    assert not result.holdout.empty
    without = dp.disclosure(gt, sd, ["a"], "e")
    assert without.membership.empty
