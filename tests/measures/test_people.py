"""People found in SD: counts, bounds of what a fresh table finds, and what chance adds."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples, some_of

import disclosure_pipeline as dp
from disclosure_pipeline.counting.counts import count_keys
from disclosure_pipeline.measures.people import PeopleCopied, PeopleCounts, people_copied
from disclosure_pipeline.measures.samples import Sizes

Codes = npt.NDArray[np.int64]
Draw = Callable[[np.random.Generator, int], Codes]

COUNTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@examples(100)
@given(COUNTS)
def test_counts(numbers: list[tuple[int, int]]) -> None:
    """As the engines count them, whether combinations of a single record are listed or only counted."""
    listed = [(d, s) for d, s in numbers if d + s]
    d, s = (np.array([pair[k] for pair in listed], dtype=np.int64) for k in range(2))
    expected = PeopleCounts(
        alone=sum(d == 1 for d, _ in listed),
        pairs=sum(d == 2 for d, _ in listed),
        found=sum(d == 1 and s > 0 for d, s in listed),
        alone_in_SD=sum(s == 1 for _, s in listed),
    )
    assert PeopleCounts.from_combinations(d, s) == expected
    assert count_keys(d, s).people == expected
    several = d + s > 1
    single = (int(((d == 1) & ~several).sum()), int(((s == 1) & ~several).sum()))
    assert PeopleCounts.from_combinations(d[several], s[several], single) == expected


def test_bounds_by_hand() -> None:
    """The smaller of both bounds of a fresh table, or what columns drawn apart find where that is more."""
    counts, sizes = PeopleCounts(alone=800, pairs=50, found=200, alone_in_SD=1500), Sizes(1000, 2000)
    by_GT = 80 * (1 - np.exp(-2000 * 100 / (1000 * 800)))
    by_SD = 80 * (1 - 1500 / 2000)
    figures = people_copied(counts, sizes)
    assert figures.people_copied == 20
    assert figures.people_copied_expected == pytest.approx(min(by_GT, by_SD))
    assert figures.people_copied_beyond == pytest.approx(20 - min(by_GT, by_SD))
    doubled = people_copied(PeopleCounts(800, 50, 200, alone_in_SD=100), sizes)
    assert doubled.people_copied_expected == pytest.approx(by_GT)
    apart = people_copied(counts, sizes, apart=30)
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
    """The figures of N people and a table of `times` as many fresh records, which repeats a share of them."""
    random = np.random.default_rng(seed)
    people, table = draw(random, N), draw(random, times * N)
    copied = int(share * N)
    table[:copied] = random.permutation(people)[:copied]
    combinations, numbers = np.unique(np.concatenate([people, table]), return_inverse=True)
    d, s = (np.bincount(part, minlength=len(combinations)) for part in np.split(numbers, [N]))
    return people_copied(PeopleCounts.from_combinations(d, s), Sizes(N, len(table)))


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
    """However many honest records stand beside them; as the share of SD's records it would be diluted."""
    figures = figures_of(POPULATIONS["nearly all different"], [times], 4000, times, share)
    assert figures.people_copied_beyond == pytest.approx(100 * share, abs=0.2)
    assert is_refused(figures)


@pytest.mark.parametrize("population", ["many columns", "some columns", "dependent columns"])
def test_copies_among_sixty_times_as_many_records(population: str) -> None:
    """Where a fresh table of that size would find nearly everybody, little is told by finding them."""
    figures = figures_of(POPULATIONS[population], [7], 1000, 60, 0.95)
    assert figures.people_copied > 94
    assert is_refused(figures) or figures.people_copied_expected > 80


def test_decoys_that_stand_twice_hide_nobody() -> None:
    random = np.random.default_rng(3)
    people = pd.DataFrame({f"x{k}": random.integers(0, 90, 1000) for k in range(6)})
    decoys = pd.DataFrame({f"x{k}": random.integers(0, 90, 24_000) for k in range(6)})
    published = pd.concat([people.head(980), decoys, decoys], ignore_index=True)
    copies = dp.copies(people, published).iloc[0]
    assert copies["unique_copies_beyond"] < 2.5
    assert copies["people_copied_beyond"] > 60
    assert copies["people_copied_beyond"] > copies["people_copied_by_chance"]
