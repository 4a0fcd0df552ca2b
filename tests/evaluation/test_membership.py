"""Membership measured with a holdout: planted copies, fresh tables, and every engine."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from reference import membership as reference
from reference.cap import Record
from support.sampling import examples
from support.small_tables import KEYS, frame, tables

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.catalogue import COLUMNS
from disclosure_pipeline.measures.samples import clopper_pearson

pytestmark = pytest.mark.filterwarnings("ignore::disclosure_pipeline.errors.HoldoutWarning")
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
        assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    assert list(row.index) == list(COLUMNS["membership"])


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3])
def test_planted_shares_are_found(share: float) -> None:
    row = measured(*planted(share)).loc[1]
    assert row["advantage_records"] == pytest.approx(100 * share, abs=0.1)
    assert row["advantage_keys"] == pytest.approx(100 * share * 0.94, abs=1.5)
    # A share is copied; of the others as many are near as of the holdout.
    assert row["TPR_at_1"] == pytest.approx(100 * share + 1 - share, abs=0.6)
    assert row["TPR_at_0_1"] == pytest.approx(100 * share + 0.1, abs=0.4)
    assert row["AUC"] == pytest.approx(50 + 50 * share, abs=3 * row["AUC_se"])
    assert row["TPR_at_1_low"] < row["TPR_at_1"] < row["TPR_at_1_high"]
    # Four attackers share what may go wrong once in a thousand times.
    (low, _), (_, high) = (clopper_pearson(found, 4000, 1 - 0.001 / 4) for found in (4000 * share, 0))
    assert row["epsilon_ruled_out"] == pytest.approx(math.log(low / high), abs=0.1)


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
