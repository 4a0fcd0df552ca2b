"""Test that fresh samples have a `beyond` of 0 on average, and that larger leaks have a larger one."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from support.sampling import on_some_days, some_of
from support.small_tables import measure_cells

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.errors import UnitWarning
from disclosure_pipeline.measures.catalogue import OF_TARGETS
from disclosure_pipeline.measures.copies import Combinations, unique_hits
from disclosure_pipeline.measures.frequency import combine_keys, frequency_tables
from disclosure_pipeline.measures.samples import Sizes

pytestmark = pytest.mark.usefixtures("no_guards")

SAMPLES = 40
RECORDS = 2_000
KEYS = ["sex", "age", "region", "household"]


def mixture(records: int, seed: int) -> pd.DataFrame:
    """Draw from a population of a few hidden classes with different frequencies in every column."""
    rng = np.random.default_rng([seed, 1])
    frequencies = np.random.default_rng(0).dirichlet(np.full(12, 0.3), size=(5, 8))
    of_class = rng.choice(8, records, p=np.random.default_rng(2).dirichlet(np.ones(8)))
    draws = rng.random((5, records))
    levels = [
        (np.cumsum(of_column, axis=1)[of_class] < draw[:, None]).sum(axis=1)
        for of_column, draw in zip(frequencies, draws, strict=True)
    ]
    return pd.DataFrame(dict(zip(["sex", "age", "region", "household", "work"], levels, strict=True)))


def uniform(records: int, seed: int) -> pd.DataFrame:
    """Draw independent columns with equally frequent levels."""
    rng = np.random.default_rng([seed, 5])
    return pd.DataFrame({name: rng.integers(0, 8, records) for name in [*KEYS, "work"]})


def skewed(records: int, seed: int) -> pd.DataFrame:
    """Draw independent columns with a few frequent and many rare levels."""
    rng = np.random.default_rng([seed, 6])
    columns = {name: np.minimum(rng.geometric(0.3, records), 12) for name in KEYS}
    return pd.DataFrame(columns).assign(work=rng.geometric(0.6, records))


def dependent(records: int, seed: int) -> pd.DataFrame:
    """Draw columns that one of them almost determines."""
    rng = np.random.default_rng([seed, 7])
    age = rng.integers(0, 300, records)
    columns = {
        "sex": age % 2,
        "age": age,
        "region": (age * 7 + rng.integers(0, 2, records)) % 9,
        "household": rng.integers(0, 4, records),
        "work": (age // 30 + rng.integers(0, 2, records)) % 6,
    }
    return pd.DataFrame(columns)


def figures_of(gt: pd.DataFrame, sd: pd.DataFrame, target: str) -> dict[str, float]:
    """Compute every figure and its `beyond` for two tables."""
    coded = {}
    for name in [*KEYS, target]:
        codes, levels = pd.factorize(pd.concat([gt[name], sd[name]]))
        coded[name] = (np.split(np.where(codes < 0, len(levels), codes), [len(gt)]), len(levels) + 1)
    q = combine_keys([coded[name][0] for name in KEYS], [coded[name][1] for name in KEYS])
    t, levels_of_t = coded[target]
    [f] = frequency_tables(q, t, levels_of_t)
    no_guess = np.arange(levels_of_t) == levels_of_t - 1
    hits = Combinations.of_records(f.d_q[f.first]).count_hits(f.s_q[f.first])
    measured = measure_cells(f, OF_TARGETS, no_guess)
    return measured | asdict(unique_hits(hits, Sizes(f.N_d, f.N_s), 0.0))


def copies_of(gt: pd.DataFrame, sd: pd.DataFrame) -> dict[str, float]:
    """Compute copies of a few columns, in which some records repeat."""
    columns = [*KEYS, "work"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitWarning)  # they repeat by chance
        figures = dp.copies(gt[columns], sd[columns]).iloc[0]
    return {str(name): float(figure) for name, figure in figures.items()}


@cache
def simulated(make: Callable[[int, int], pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each pair of samples, GT and SD."""
    rows = []
    for seed in range(SAMPLES):
        gt, sd = make(RECORDS, 2 * seed), make(RECORDS, 2 * seed + 1)
        # Few columns, so that some records are not unique.
        rows.append(figures_of(gt, sd, "work") | copies_of(gt, sd))
    return pd.DataFrame(rows)


@cache
def beside_holdouts(make: Callable[[int, int], pd.DataFrame]) -> pd.DataFrame:
    """Return the holdout's differences for each triple of samples: GT, SD, and a holdout of half the size."""
    rows = []
    for seed in range(SAMPLES):
        gt, sd, holdout = (make(records, 1_000 + 3 * seed + i) for i, records in enumerate((900, 900, 450)))
        result = dp.disclosure(gt, sd, KEYS, "work", certainty=(0.8,), holdout=holdout)
        rows.append(result.holdout["difference"].droplevel(["target", "synthesis"]))
    return pd.DataFrame(rows)


@on_some_days
@pytest.mark.parametrize("make", [population, mixture])
def test_a_holdout_differs_from_gt_in_nothing_on_average(make: Callable[[int, int], pd.DataFrame]) -> None:
    """Neither took part in making SD. Figures that depend on the number of records do not differ either."""
    differences = beside_holdouts(make)
    assert {"iS", "DiSCO", "DCAP", "guessed", "DiSCO at 0.8", "repU", "unique_hits"} <= set(differences)
    assert (differences.std() > 0).all()
    assert (differences.mean().abs() <= 3 * differences.std() / SAMPLES**0.5).all()


@on_some_days
@pytest.mark.parametrize("make", [population, mixture])
@pytest.mark.parametrize("figure", ["iS", "DiSCO", "DCAP", "unique_hits", "copies", "unique_copies"])
def test_fresh_samples_have_nothing_beyond_on_average(
    make: Callable[[int, int], pd.DataFrame], figure: str
) -> None:
    beyond = simulated(make)[f"{figure}_beyond"]
    assert beyond.std() > 0
    assert abs(beyond.mean()) <= 3 * beyond.std() / SAMPLES**0.5


@pytest.mark.parametrize("make", [population, mixture])
def test_the_guess_of_fresh_samples_is_no_better_than_that_of_others(
    make: Callable[[int, int], pd.DataFrame],
) -> None:
    """The baseline is the larger of two, so the difference may be negative."""
    beyond = simulated(make)["guessed_beyond"]
    assert beyond.mean() <= 3 * beyond.std() / SAMPLES**0.5


def assert_error_is_the_deviation(beyond: pd.Series, error: pd.Series, one_record: float) -> None:
    """In the mean square: where a single guess decides, it is nothing in most tables and much in a few."""
    assert (beyond.abs() <= 2 * error).mean() >= 0.9
    if beyond.any():
        assert 0.8 <= error.pow(2).mean() ** 0.5 / beyond.std() <= 1.3
    else:  # everybody is guessed to have the most frequent level
        assert error.tolist() == pytest.approx([one_record] * len(error))


in_tables_of_any_size = pytest.mark.parametrize(
    ("make", "times"),
    some_of(product([population, mixture, uniform, skewed, dependent], [1 / 3, 1, 3]), 5, part_in_ci=3),
)


@on_some_days
@in_tables_of_any_size
def test_honest_tables_lie_within_two_standard_errors(
    make: Callable[[int, int], pd.DataFrame], times: float
) -> None:
    """About 19 of 20 do, with a third as many SD records, equally many, and three times as many."""
    pairs = [(make(900, 2 * seed), make(round(900 * times), 2 * seed + 1)) for seed in range(250, 310)]
    actual = pd.DataFrame([figures_of(gt, sd, "work") | copies_of(gt, sd) for gt, sd in pairs])
    for figure in ("iS", "DiSCO", "DCAP", "unique_hits", "copies", "unique_copies"):
        beyond, error = actual[f"{figure}_beyond"], actual[f"{figure}_beyond_se"]
        assert (beyond.abs() <= 2 * error).mean() >= 0.9, figure
        # Beyond the larger of two expectations: where columns are independent, that is seldom the others'.
        apart = figure.startswith("unique_")
        deviation = actual[figure] - actual[f"{figure}_others"] if apart else beyond
        assert 0.7 <= deviation.std() / error.mean() <= 1.25, figure
    assert_error_is_the_deviation(actual["guessed_beyond"], actual["guessed_beyond_se"], 100 / 900)
    # This error is rather too large: the expected number of people found is an upper bound.
    people, error = actual["people_copied_beyond"], actual["people_copied_beyond_se"]
    assert (people <= 2 * error).mean() >= 0.9
    assert people.std() <= 1.25 * error.mean()


@in_tables_of_any_size
def test_honest_distances_lie_within_two_standard_errors(
    make: Callable[[int, int], pd.DataFrame], times: float
) -> None:
    """The error of distances is rather too large, because the largest differences have random signs."""
    within = []
    for seed in range(400, 430):
        gt, sd = make(600, 2 * seed), make(round(600 * times), 2 * seed + 1)
        apart = dp.resemblance(gt[KEYS], sd[KEYS])
        for distances in (apart.columns, apart.pairs):
            beyond = distances["TVD"] - distances["TVD_expected"]
            within += (beyond.abs() <= 2 * distances["TVD_se"]).tolist()
    assert np.mean(within) >= 0.9


@pytest.mark.parametrize("make", [population, mixture])
def test_larger_leaks_show_more(make: Callable[[int, int], pd.DataFrame]) -> None:
    """Copy 1, 3, 10 and 30 percent of the records from GT."""
    gt, fresh = make(RECORDS, 1), make(RECORDS, 2)
    guesses, copies = [], []
    for leaked in (0, 1, 3, 10, 30):
        number = RECORDS * leaked // 100
        sd = pd.concat([gt.head(number), fresh.iloc[number:]], ignore_index=True)
        guesses.append(figures_of(gt, sd, "work")["guessed_beyond"])
        copies.append(dp.copies(gt, sd)["unique_copies_beyond"].iloc[0])
    assert copies == sorted(copies)
    assert copies[-1] > copies[0] + 3
    assert guesses == sorted(guesses)
    assert guesses[-1] > 3


def households(number: int, seed: int, alike: Sequence[str]) -> pd.DataFrame:
    """Draw households of one to three records, which share some columns, and weights."""
    rng = np.random.default_rng([seed, 11])
    sizes = rng.integers(1, 4, number)
    people = mixture(int(sizes.sum()), seed)
    of_household = np.repeat(np.arange(number), sizes)
    first = (np.cumsum(sizes) - sizes)[of_household]
    people[list(alike)] = people[list(alike)].to_numpy()[first]
    return people.assign(unit=of_household.astype(str), weight=rng.choice([1.0, 2.0, 5.0], len(people)))


@on_some_days
@pytest.mark.parametrize("alike", [[], ["region", "household"], [*KEYS, "work"]])
def test_honest_households_and_weights_lie_within_two_standard_errors(alike: Sequence[str]) -> None:
    """Where households share all keys, the records of one are guessed alike."""
    rows = []
    for seed in range(60):
        gt, sd = households(300, 2 * seed, alike), households(300, 2 * seed + 1, alike)
        result = dp.disclosure(gt, sd[[*KEYS, "work"]], KEYS, "work", unit="unit", weights="weight")
        frames = (result.attribute, result.cap, result.population_targets)
        rows.append(pd.concat([frame.iloc[0] for frame in frames]))
    actual = pd.DataFrame(rows).astype(float)
    for figure in ("DiSCO_beyond", "guessed_beyond", "DiSCO_beyond_weighted", "guessed_beyond_weighted"):
        assert_error_is_the_deviation(actual[figure], actual[f"{figure}_se"], 0.0)
