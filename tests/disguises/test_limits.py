"""Detection limits are near those of simulation, as is recorded."""

import pandas as pd
import pytest
from support.sampling import on_some_days, some_of

from disguises.limits import COLUMNS, RESULT, list_cases, simulate

pytestmark = on_some_days

# More records take too long every day.
CASES = [case for case in list_cases() if case[1] <= 2_000]


def recorded() -> pd.DataFrame:
    """Read the table that `python -m disguises.limits` has written."""
    return pd.read_csv(RESULT, sep="\t").set_index(COLUMNS[:3])


def test_every_limit_is_near_that_of_simulation() -> None:
    rows = recorded()
    assert list(rows.index) == list_cases()
    nearest = (rows["limit"] / 5).clip(lower=3)
    assert (rows["beyond"].abs() <= nearest).all(), "a fifth or three points: docs/measures/gate.md says so"


@pytest.mark.parametrize(("name", "records", "way"), some_of(CASES, 25, part_in_ci=8))
def test_a_limit_is_that_recorded(name: str, records: int, way: str) -> None:
    row = recorded().loc[(name, records, way), :].tolist()
    near = row[1] - 0.01, row[1] + 0.01
    assert simulate(name, records, way, near) == pytest.approx(row, abs=1e-3)
