"""Test the formulas of the guards against their definitions, record by record."""

import math
from collections import Counter
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from disguises import tables
from disguises.cases import mirrored, moved_in_ranks
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples, some_of
from support.small_tables import sd2011

import disclosure_pipeline as dp
from disclosure_pipeline.counting.counts import count_keys
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.evaluation.resemblance import find_renumbered
from disclosure_pipeline.measures.catalogue import DEFAULTS
from disclosure_pipeline.measures.chance import (
    beyond_chance,
    distance_by_chance,
    guesses_by_chance,
    hits_by_chance,
)
from disclosure_pipeline.measures.copies import (
    Combinations,
    HitCounts,
    chances_of_independent_columns,
    has_equal_content,
    hits_of_independent_columns,
    unique_hits,
)
from disclosure_pipeline.measures.people import (
    ONCE_IN,
    PeopleCopied,
    PeopleCounts,
    found_by_independent_columns,
    people_copied,
)
from disclosure_pipeline.measures.resemblance import (
    RANK_GROUPS,
    JointTables,
    RankGroups,
    find_heaps,
    looks_renumbered,
    relabelling,
    resemblance,
)
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.grouping import grouping_of

RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30)


@examples(50)
@given(RECORDS)
def test_independently_drawn_columns(records: list[tuple[int, int]]) -> None:
    columns = [np.array(column) for column in zip(*records, strict=True)]
    unit = np.arange(len(records))
    (chances, _), of_second = chances_of_independent_columns(columns, [4, 5], [[0, 1], [1]], unit)
    [alone] = chances_of_independent_columns(columns[1:], [5], [[0]], unit)
    np.testing.assert_array_equal(of_second, alone)
    often = Counter(records)
    shares = [Counter(column) for column in zip(*records, strict=True)]
    expected = [
        math.prod(shares[i][level] / len(records) for i, level in enumerate(record))
        for record, number in often.items()
        if number == 1
    ]
    assert hits_of_independent_columns(chances) == pytest.approx(100 * sum(expected))
    found = sum(1 - math.exp(-7 * chance) for chance in expected)
    assert found_by_independent_columns(chances, 7, len(records)) == pytest.approx(100 * found / len(records))


def test_renamed_levels() -> None:
    """The distance is large before matching and small afterwards; missing is matched with missing only."""
    renamed = relabelling(np.array([700, 200, 100, 0]), np.array([100, 700, 200, 0]))
    assert pytest.approx(0.6) == renamed.TVD
    assert renamed.TVD_relabelled == 0
    assert renamed.looks_renamed == renamed.TVD - renamed.TVD_expected
    assert relabelling(np.array([700, 200, 100, 0]), np.array([300, 350, 350, 0])).looks_renamed == 0
    assert relabelling(np.array([700, 0, 300]), np.array([300, 0, 700])).looks_renamed == 0
    assert relabelling(np.array([70, 30, 0]), np.array([70, 30, 0])).looks_renamed == 0


@pytest.mark.parametrize(
    ("d", "s", "equal"),
    [
        ([1] * 50, [1] * 50, True),
        ([1] * 50, [1] * 20 + [0] * 30, True),
        ([1] * 50, [1] * 5 + [0] * 45, False),  # a fresh sample of five could do that
        ([1] * 50 + [0] * 50, [1] * 100, True),
        ([1] * 50, [1] * 49 + [0], True),
        ([1] * 50 + [0], [1] * 49 + [0, 1], False),
        ([25, 25], [20, 30], False),  # few columns: everybody has these values
    ],
)
def test_equal_content(d: list[int], s: list[int], equal: bool) -> None:
    counts = Combinations.of_records(np.array(d)).count_copies(np.array(s))
    GT_in_SD = sum(records for records, of_SD in zip(d, s, strict=True) if of_SD)
    assert has_equal_content(counts, GT_in_SD, Sizes(sum(d), sum(s))) is equal


@pytest.mark.parametrize(("cells", "N", "N_s"), [(170, 731, 731), (170, 731, 2000), (2500, 17600, 17600)])
def test_a_fresh_sample_of_a_population_of_whom_gt_lacks_nobody(cells: int, N: int, N_s: int) -> None:
    """One GT in ten has all combinations that there are, and then every synthetic record is one of its."""
    rng = np.random.default_rng(cells)
    shares = np.full(cells, 1 / cells)
    for d, s in zip(*(rng.multinomial(records, shares, size=100) for records in (N, N_s)), strict=True):
        counts = Combinations.of_records(d).count_copies(s)
        assert not has_equal_content(counts, int(d[s > 0].sum()), Sizes(N, N_s))


# Chance in the figures of the guards: formulas, limits, and how often honest samples exceed them


Z = NormalDist().inv_cdf(1 - 1 / ONCE_IN)


def test_a_figure_within_chance_is_cut_to_its_expectation() -> None:
    assert beyond_chance(3.0, 3.0) == 0
    assert beyond_chance(3.0, 2.9) == 3
    assert beyond_chance(-1.0, 5.0) == -1
    assert beyond_chance(60.0, 65.0, 50) == 50
    assert beyond_chance(40.0, 65.0, 50) == 40


@pytest.mark.parametrize(("figure", "by_chance"), [(math.nan, 3.0), (3.0, math.nan), (math.nan, math.nan)])
def test_no_figure_is_no_chance(figure: float, by_chance: float) -> None:
    """NaN as a figure stays NaN; with NaN as its limit by chance, the whole figure is bounded."""
    assert beyond_chance(figure, by_chance) is figure


def test_hits_by_hand() -> None:
    """The arcsines of the roots of both shares differ by z standard errors; 3/8 and 3/4 are Anscombe's."""
    actual = hits_by_chance(HitCounts(0, pairs=4, triples=2), Sizes(1000, 500), independent=0)
    expected = math.asin(math.sqrt(8.75 / 1000))
    error = math.sqrt(1 / (4 * 500 + 2) + (1 + 1.5 * 2 / 4) / (2 * 1000))
    share = math.sin(expected + Z * error) ** 2
    assert actual == pytest.approx(100 * (share * 500.75 - 0.375) / 500)
    apart = math.asin(math.sqrt(0.2)) + Z * math.sqrt(1 / (4 * 500 + 2))
    of_apart = hits_by_chance(HitCounts(0, pairs=4, triples=2), Sizes(1000, 500), independent=20)
    assert of_apart == pytest.approx(100 * (math.sin(apart) ** 2 * 500.75 - 0.375) / 500)


@examples(50)
@given(
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(0, 400),
    st.integers(0, 200),
    st.floats(0, 100),
    st.integers(1, 30),
)
def test_limits_of_hits(N_d: int, N_s: int, pairs: int, triples: int, apart: float, sets: int) -> None:
    """The limit is at least the expected share and at most 100; more sets or fewer records increase it."""
    pairs, triples = min(pairs, N_d // 4), min(triples, N_d // 6)
    counts, sizes = HitCounts(0, pairs, triples), Sizes(N_d, N_s)
    actual = hits_by_chance(counts, sizes, apart, sets)
    assert max(apart, 200 * pairs / N_d) <= actual + 1e-9
    assert actual <= 100 + 1e-9
    assert actual <= hits_by_chance(counts, sizes, apart, sets + 1) + 1e-9
    assert hits_by_chance(counts, Sizes(N_d, 4 * N_s), apart, sets) <= actual + 1e-9


@pytest.mark.parametrize("records", [3, 20, 200])
def test_a_few_verbatim_records_are_beyond_chance(records: int) -> None:
    """Other people's records hardly ever equal a unique one here."""
    assert hits_by_chance(HitCounts(records, 5, 0), Sizes(2000, records), independent=0.1) < 100


@pytest.mark.parametrize(
    ("N", "cells", "skewed"), [(100, 400, 0.0), (100, 100, 1.0), (300, 2000, 1.0), (300, 90, 0.0)]
)
def test_fresh_samples_are_hardly_ever_beyond_chance(N: int, cells: int, skewed: float) -> None:
    """Once in 10,000, so at most once in 2,000, whether or not the combinations are equally frequent."""
    rng = np.random.default_rng([N, cells])
    shares = np.arange(1.0, cells + 1) ** -skewed
    beyond, sizes = 0, Sizes(N, N)
    for d, s in rng.multinomial(N, shares / shares.sum(), size=(2_000, 2)):
        counts = Combinations.of_records(d).count_hits(s)
        beyond += unique_hits(counts, sizes, 0.0).unique_hits > hits_by_chance(counts, sizes, independent=0)
    assert beyond <= 1


def test_the_variance_of_what_other_people_show() -> None:
    """(4 f2 + 6 f3) / N² is the mean square of 2 f2 / N minus the true chance of a hit."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.full(300, 0.5))
    d = rng.multinomial(400, shares, size=4_000)
    true = (shares * (d == 1)).sum(axis=1)
    pairs, triples = (d == 2).sum(axis=1), (d == 3).sum(axis=1)
    squares = (2 * pairs / 400 - true) ** 2
    assert squares.mean() == pytest.approx(((4 * pairs + 6 * triples) / 400**2).mean(), rel=0.1)


def test_guesses() -> None:
    """The limit has the error of independent guesses, plus the lead of the most frequent level."""
    error = 100 * Z * math.sqrt((0.3 * 0.75 + 0.25 * 0.7) / 400)
    assert guesses_by_chance(30, 25, 20, Sizes(1000, 400)) == pytest.approx(error)
    assert guesses_by_chance(30, 25, 45, Sizes(1000, 400)) == pytest.approx(20 + error)
    assert guesses_by_chance(30, 25, 20, Sizes(1000, 4000)) < error
    assert guesses_by_chance(30, 25, 20, Sizes(1000, 400), comparisons=5) > error


@pytest.mark.parametrize(("N_d", "N_s"), [(100, 10), (300, 300)])
def test_distances_of_fresh_samples_are_within_chance(N_d: int, N_s: int) -> None:
    rng = np.random.default_rng(5)
    shares = [0.4, 0.3, 0.2, 0.1]
    limit = distance_by_chance(Sizes(N_d, N_s))
    assert limit == pytest.approx(math.sqrt(math.log(ONCE_IN) / 2 * (1 / N_d + 1 / N_s)))
    for _ in range(500):
        distances = resemblance(rng.multinomial(N_d, shares), rng.multinomial(N_s, shares))
        assert distances.TVD - distances.TVD_expected <= limit


# People found in SD: counts, bounds for a fresh table, and limits by chance


Codes = npt.NDArray[np.int64]
Draw = Callable[[np.random.Generator, int], Codes]

COUNTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@examples(100)
@given(COUNTS)
def test_counts(numbers: list[tuple[int, int]]) -> None:
    """Combinations of a single record may be listed or only counted, as the engines do."""
    listed = [(d, s) for d, s in numbers if d + s]
    d, s = (np.array([pair[k] for pair in listed], dtype=np.int64) for k in range(2))
    expected = PeopleCounts(
        alone=sum(d == 1 for d, _ in listed),
        pairs=sum(d == 2 for d, _ in listed),
        found=sum(d == 1 and s > 0 for d, s in listed),
        alone_in_SD=sum(s == 1 for _, s in listed),
    )
    assert Combinations.of_records(d).count_people(s) == expected
    assert count_keys(d, s).people == expected
    several = d + s > 1
    single = (int(((d == 1) & ~several).sum()), int(((s == 1) & ~several).sum()))
    assert Combinations.of_records(d[several]).count_copies(s[several], single).people == expected


def test_bounds_by_hand() -> None:
    """The smaller bound of a fresh table is expected, or what independently drawn columns find if more."""
    counts, sizes = PeopleCounts(alone=800, pairs=50, found=200, alone_in_SD=1500), Sizes(1000, 2000)
    by_GT = 80 * (1 - np.exp(-2000 * 100 / (1000 * 800)))
    by_SD = 80 * (1 - 1500 / 2000)
    figures = people_copied(counts, sizes)
    assert figures.people_copied == 20
    assert figures.people_copied_expected == pytest.approx(min(by_GT, by_SD))
    assert figures.people_copied_beyond == pytest.approx(20 - min(by_GT, by_SD))
    doubled = people_copied(PeopleCounts(800, 50, 200, alone_in_SD=100), sizes)
    assert doubled.people_copied_expected == pytest.approx(by_GT)
    apart = people_copied(counts, sizes, independent=30)
    assert apart.people_copied_expected == 30
    assert apart.people_copied_by_chance >= 0
    assert (
        people_copied(counts, sizes, comparisons=9).people_copied_by_chance > figures.people_copied_by_chance
    )


def test_nobody_is_alone() -> None:
    figures = people_copied(PeopleCounts(alone=0, pairs=5, found=0, alone_in_SD=3), Sizes(10, 10))
    assert figures == PeopleCopied(0, 0, 0, 10, 0)  # the error of one record


def independent(sizes: list[int]) -> Draw:
    def draw(random: np.random.Generator, n: int) -> Codes:
        codes = [random.choice(k, n, p=np.arange(1.0, k + 1) / (k * (k + 1) / 2)) for k in sizes]
        return np.ravel_multi_index(codes, sizes).astype(np.int64)

    return draw


def dependent(random: np.random.Generator, n: int) -> Codes:
    first = random.integers(0, 40, n)
    second = (first // 4 + random.integers(0, 3, n)) % 12
    return ((first * 12 + second) * 40 + (first + random.integers(0, 6, n)) % 40) * 50 + random.integers(
        0, 50, n
    )


POPULATIONS: dict[str, Draw] = {
    "few columns": independent([6, 5, 4, 4]),
    "some columns": independent([20, 10, 10, 8, 6]),
    "many columns": independent([60, 50, 40, 30, 20, 10]),
    "dependent columns": dependent,
    "nearly all different": lambda random, n: random.integers(0, 10**9, n),
}


def figures_of(draw: Draw, seed: list[int], N: int, times: int, share: float) -> PeopleCopied:
    """Compute the figures of N people in a table of N · `times` fresh records that copies a share of them."""
    random = np.random.default_rng(seed)
    people, table = draw(random, N), draw(random, times * N)
    copied = int(share * N)
    table[:copied] = random.permutation(people)[:copied]
    combinations, numbers = np.unique(np.concatenate([people, table]), return_inverse=True)
    d, s = (np.bincount(part, minlength=len(combinations)) for part in np.split(numbers, [N]))
    return people_copied(Combinations.of_records(d).count_people(s), Sizes(N, len(table)))


def is_refused(figures: PeopleCopied) -> bool:
    return figures.people_copied_beyond > max(2.5, figures.people_copied_by_chance)


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize(("N", "times"), some_of([(200, 1), (200, 60), (2000, 1), (2000, 10), (20_000, 1)]))
def test_fresh_tables_are_not_refused(population: str, N: int, times: int) -> None:
    runs = 40 if N * times <= 20_000 else 8
    figures = [figures_of(POPULATIONS[population], [k, N, times], N, times, 0) for k in range(runs)]
    assert not any(map(is_refused, figures))


@pytest.mark.parametrize("times", [1, 10, 60])
@pytest.mark.parametrize("share", [0.03, 0.1, 0.3])
def test_the_figure_is_the_share_of_people_copied(times: int, share: float) -> None:
    """Honest records do not dilute it, however many there are."""
    figures = figures_of(POPULATIONS["nearly all different"], [times], 4000, times, share)
    assert figures.people_copied_beyond == pytest.approx(100 * share, abs=0.2)
    assert is_refused(figures)


@pytest.mark.parametrize("population", ["many columns", "some columns", "dependent columns"])
def test_copies_among_sixty_times_as_many_records(population: str) -> None:
    """They are refused unless a fresh table of that size would find nearly everybody, too."""
    figures = figures_of(POPULATIONS[population], [7], 1000, 60, 0.95)
    assert figures.people_copied > 94
    assert is_refused(figures) or figures.people_copied_expected > 80


def test_repeated_decoys_hide_nobody() -> None:
    random = np.random.default_rng(3)
    people = pd.DataFrame({f"x{k}": random.integers(0, 90, 1000) for k in range(6)})
    decoys = pd.DataFrame({f"x{k}": random.integers(0, 90, 24_000) for k in range(6)})
    published = pd.concat([people.head(980), decoys, decoys], ignore_index=True)
    copies = dp.copies(people, published).iloc[0]
    assert copies["unique_copies_beyond"] < 2.5
    assert copies["people_copied_beyond"] > 60
    assert copies["people_copied_beyond"] > copies["people_copied_by_chance"]


# Numbers that look renumbered: by hand, in the demo's survey, but not in honest or bad tables


HONEST = DEFAULTS["relabelled"] / 2


def renumbered(ground_truth: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, float]:
    opened = FramesInMemory((ground_truth, synthetic), "memory")
    columns = opened.code(list(ground_truth.columns), grouping_of())
    return {name: figure for (name, _), figure in find_renumbered(columns).items()}


@examples(50)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=60).filter(any))
def test_groups_hold_as_many_records_each(counts: list[int]) -> None:
    """The records of a number that spans several groups are divided, so that all groups have equal size."""
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
    """Each half of the numbers has its own level; reversing the numbers swaps the halves."""
    d = np.repeat([[30.0, 0.0], [0.0, 30.0]], RANK_GROUPS // 2, axis=0)
    turned = d[::-1]
    assert looks_renumbered([JointTables(d, turned, turned)]) > 0.85
    assert looks_renumbered([JointTables(d, d, d)]) == 0
    flat = np.full_like(d, 15)
    assert looks_renumbered([JointTables(d, flat, flat)]) == 0  # far, and no map brings it near
    assert looks_renumbered([JointTables(flat, turned, turned)]) == 0  # GT has nothing to agree with
    assert looks_renumbered([]) == 0


@pytest.mark.parametrize(
    ("column", "share"), [("age", 0.1), ("age", 0.25), ("age", 0.5), ("income", 0.25), ("income", 0.75)]
)
def test_numbers_that_are_shifted_in_their_ranks(column: str, share: float) -> None:
    figures = renumbered(tables.survey(), moved_in_ranks(column, share))
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
    """Their numbers differ from the example's, but not by renumbering."""
    ground_truth = sd2011("ground_truth")
    assert max(renumbered(ground_truth, sd2011(name)).values()) < HONEST
