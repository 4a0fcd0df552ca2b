"""The whole gate refuses at most one in a hundred of a thousand honest candidates, as is recorded."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from support.sampling import on_some_days, some_of

from disguises.simulated import (
    COLUMNS,
    MOST_REFUSED,
    POPULATIONS,
    RESULT,
    Population,
    decide,
    find_refusals,
    list_cases,
    name_reasons,
)

pytestmark = on_some_days

# So many records take seconds each.
CASES = [case for case in list_cases() if case[1] <= 2_000]
# What says of the ground truth that an approval would mean little, whatever the candidate.
OF_GROUND_TRUTH = {"alike", "detection_limit"}


def recorded() -> pd.DataFrame:
    """Read the table that `python -m disguises.simulated` has written."""
    return pd.read_csv(RESULT, sep="\t", keep_default_na=False).set_index(COLUMNS[:3])


def test_hardly_any_honest_candidate_is_refused() -> None:
    rows = recorded()
    assert {case: row["candidates"] for case, row in rows.iterrows()} == list_cases()
    assert rows["candidates"].sum() >= 1_000
    assert rows["refused"].sum() <= MOST_REFUSED * rows["candidates"].sum()


def test_honest_candidates_are_undetermined_where_the_ground_truth_is_too_small_or_coarse() -> None:
    """docs/security.md says so."""
    rows = recorded()
    undetermined = rows[rows["undetermined"] > 0]
    assert set(" ".join(undetermined["reasons"]).split()) <= OF_GROUND_TRUTH


@pytest.mark.parametrize(("name", "records", "maker"), some_of(CASES, 25))
def test_a_candidate_is_judged_as_recorded(name: str, records: int, maker: str) -> None:
    row: Any = recorded().loc[(name, records, maker), :]
    for number in (0, 1):
        verdict = decide(name, records, maker, number)
        assert name_reasons(verdict) <= set(row["reasons"].split())
        assert verdict.decision == "approved" or row[verdict.decision]


def moved(people: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Every number moved by one, up or down."""
    random = np.random.default_rng(seed)
    numbers = people.select_dtypes("integer")
    return people.assign(**{name: numbers[name] + random.choice([-1, 1], len(people)) for name in numbers})


@pytest.mark.parametrize("population", some_of(["survey", "census", "measurements"], 3))
def test_a_population_with_every_number_moved_is_refused(population: str) -> None:
    """The census as in another one: age and hours are moved, and a weight that is everybody's own."""
    people = POPULATIONS[population]
    ground_truth = people.draw(2_000, 1)
    guards = {found.clause.figure for found in find_refusals(people, ground_truth, moved(ground_truth))}
    assert "found" in guards
    category = ground_truth.columns[-1]
    others = ground_truth[category].sample(frac=1, random_state=2).array
    one_from_others = moved(ground_truth).assign(**{category: others})
    assert find_refusals(people, ground_truth, one_from_others)


def guards_that_notice(population: str, copied: int) -> set[str]:
    """Which refuse 2,000 records of which so many are people of the ground truth."""
    people = POPULATIONS[population]
    ground_truth = people.draw(2_000, 1)
    table = pd.concat([ground_truth.head(copied), people.draw(2_000 - copied, 2)], ignore_index=True)
    return {found.clause.figure for found in find_refusals(people, ground_truth, table)}


@pytest.mark.parametrize("population", some_of(sorted(set(POPULATIONS) - {"register"}), 4))
def test_a_tenth_copied_is_noticed_where_people_differ(population: str) -> None:
    assert "found" in guards_that_notice(population, copied=200)


def test_where_hardly_anybody_differs_nearly_all_must_be_copied() -> None:
    """Five categories tell 8 % of the people apart: a tenth of them is within what is allowed."""
    assert guards_that_notice("register", copied=200) == set()
    assert guards_that_notice("register", copied=1_900)


PIXELS = datasets.load_digits(as_frame=True).data.astype(int)
PIXELS.columns = [f"p{number}" for number in range(PIXELS.shape[1])]
KNOWN, OTHERS = PIXELS.iloc[:900], PIXELS.iloc[900:].reset_index(drop=True)
DIGITS = Population(lambda records, seed: KNOWN.head(records), ("p20", "p21"), ("p30", "p31"))


@pytest.mark.parametrize("blanks_are_moved", [True, False])
@pytest.mark.parametrize("steps", [(-1, 0, 1), (-1, 1)])
def test_digits_whose_pixels_are_moved_are_refused(steps: tuple[int, ...], blanks_are_moved: bool) -> None:
    """Noise in pixels that are blank for nearly everybody is as wide as the data there, and hides nothing."""
    near = (KNOWN + np.random.default_rng(1).choice(steps, KNOWN.shape)).clip(0, 16)
    near = near if blanks_are_moved else KNOWN.where(KNOWN == 0, near)
    assert "found" in {found.clause.figure for found in find_refusals(DIGITS, KNOWN, near)}


def test_other_digits_are_not_refused() -> None:
    assert not find_refusals(DIGITS, KNOWN, OTHERS)
