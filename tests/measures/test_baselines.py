"""Test the baselines against fractions computed person by person, every draw, and the example data."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import baselines as reference
from reference.cap import Record
from support.small_tables import (
    NO_GUESS,
    QUASI_IDENTIFIERS,
    TARGET_LEVELS,
    cells,
    measure_counts,
    tables,
)

from disclosure_pipeline.measures.catalogue import OF_TARGETS
from disclosure_pipeline.measures.checks import CodedExclusions, exclude
from disclosure_pipeline.measures.copies import Combinations, unique_hits
from disclosure_pipeline.measures.drawn_guesses import Draw, chances_to_be_named
from disclosure_pipeline.measures.exact import Mask, add_up
from disclosure_pipeline.measures.frequency import FrequencyTable, Rows, tabulate_levels
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.totals import (
    APART_SCALE,
    AnySums,
    count_figures,
    count_hits_apart,
    share_of_levels,
)


def some_keys(f: FrequencyTable, where: Mask) -> FrequencyTable:
    """Return the cells of some q; `where` marks all or none of the cells of a q."""
    columns = {name: getattr(f, name)[where] for name in ("q", "t", "d", "s", "d_q", "s_q")}
    return replace(f, **columns)


COLUMNS = ["guessed", *(column for figure in OF_TARGETS for column in figure.comparisons)]


def place(f: FrequencyTable, no_guess: Mask = NO_GUESS, whole: FrequencyTable | None = None) -> Rows:
    """Return the rows of cells; `whole`: the table of which `f` is a part."""
    g = whole or f
    levels = tabulate_levels(g.per_target(g.d), g.per_target(g.s))
    return Rows(f, np.arange(len(f.q)), no_guess=no_guess, of_levels=levels)


def count(rows: Rows) -> tuple[AnySums, ...]:
    [sums] = count_figures(rows, OF_TARGETS)
    return sums


def figures_of(rows: Rows, counts: tuple[AnySums, ...]) -> dict[str, float]:
    """Return the figures that compare with other people's records, from the counts of all cells."""
    f = rows.f
    people_t = f.per_target(f.d if rows.d_left is None else rows.d_left)
    measured = measure_counts(rows, OF_TARGETS, counts, people_t)
    return {name: measured[name] for name in COLUMNS}


def figures(f: FrequencyTable, no_guess: Mask = NO_GUESS) -> dict[str, float]:
    """Return the figures without exclusions."""
    rows = place(f, no_guess)
    return figures_of(rows, count(rows))


@given(tables(), tables(most=20))
def test_the_figures_are_those_of_the_reference(gt: list[Record], sd: list[Record]) -> None:
    actual = figures(cells(gt, sd))
    expected = reference.figures(gt, sd)
    assert set(expected) == set(actual)
    for name in expected:
        assert actual[name] == pytest.approx(expected[name], abs=2e-7), name


@given(tables(), tables(), st.lists(st.sampled_from(range(4)), max_size=2))
def test_records_that_exclusions_leave(gt: list[Record], sd: list[Record], excluded: list[int]) -> None:
    """Whole target levels are excluded, after it is decided which cells are disclosive."""
    sd = (sd * len(gt))[: len(gt)]
    f = cells(gt, sd)
    exclusions = CodedExclusions(target_levels=excluded)
    left, left_s = exclude(f, exclusions)
    rows = replace(place(f), d_left=left, s_left=left_s)
    actual = figures_of(rows, count(rows))
    kept = [[TARGET_LEVELS.index(t) not in excluded for _, t in table] for table in (gt, sd)]
    expected = reference.figures(gt, sd, (None,), *kept)
    assert actual == pytest.approx(expected, abs=2e-3)
    for name in set(actual):
        if not name.endswith("_se"):
            assert actual[name] == pytest.approx(expected[name], abs=1e-9), name


@given(tables(most=7), tables(most=8), st.data())
def test_the_formulas_are_the_averages_over_every_draw(
    gt: list[Record], sd: list[Record], data: st.DataObject
) -> None:
    """The size n is below, equal to, or above the number of others."""
    i = data.draw(st.integers(0, len(gt) - 1))
    n = reference.size(gt, sd)
    for table in (sd, reference.others(gt, i)):
        person, records = gt[i], len(table)
        averages = reference.over_draws(person, table, n)
        formulas = (
            reference.in_draw(person, table, n),
            reference.disclosed(person, table, n),
            reference.attributed(person, table, records, n),
        )
        assert averages == formulas


@given(tables(), tables(most=20), st.integers(1, 5))
def test_the_counts_add_up_over_keys(gt: list[Record], sd: list[Record], parts: int) -> None:
    """The key combinations can be split into any parts."""
    f = cells(gt, sd)
    in_part = [f.q % parts == part for part in range(parts)]
    of_part = [count(place(some_keys(f, where), whole=f)) for where in in_part if where.any()]
    whole = count(place(f))
    assert repr(add_up(of_part)) == repr(add_up([whole]))
    assert figures_of(place(f), add_up(of_part)) == figures(f)


@given(tables(), tables(most=30), st.permutations(range(4)))
def test_other_names_of_levels_change_nothing(gt: list[Record], sd: list[Record], renamed: list[int]) -> None:
    """The order of levels makes no difference either: equally frequent levels are guessed equally often."""
    f = cells(gt, sd)
    t = np.array(renamed)[f.t]
    order = np.lexsort((t, f.q))
    g = replace(f, t=t[order], d=f.d[order], s=f.s[order])
    no_guess = np.zeros(4, dtype=bool)
    no_guess[renamed[TARGET_LEVELS.index(None)]] = True
    assert figures(g, no_guess) == figures(f)


def test_one_record() -> None:
    """Without other records, every baseline is 0."""
    actual = figures(cells([(("1", "1"), "a")], [(("1", "1"), "a")]))
    expected: dict[str, Any] = {"guessed": 100.0, "guessed_at_n": 100.0, "guessed_beyond": 100.0}
    expected |= {name: 100.0 for name in actual if name.endswith("_se")}  # that of one record
    assert actual == dict.fromkeys(actual, 0.0) | expected


def test_chances_are_exactly_0_and_1_where_they_are() -> None:
    large = Sizes(10_000_000, 9_999_990)
    assert large.p0(np.array([0, 9, 10, 10_000_000 - 1])).tolist()[0] == 1
    assert large.p0(np.array([10, 11])).tolist() == [0, 0]
    assert Sizes(10, 9).p0(np.array([0, 1, 5])).tolist() == [1, 0, 0]
    assert Sizes(10, 10).q0(np.array([0, 1, 2])).tolist() == [1, 0.1, 0]
    assert Sizes(10, 9).q0(np.array([0, 1, 9])).tolist() == [1, 0, 0]
    assert np.isfinite(Sizes(10_000_000, 90_000_000).q0(np.array([0, 1, 7, 500_000, 90_000_000]))).all()


@given(tables(most=30), tables(most=30))
def test_unique_hits(gt: list[Record], sd: list[Record]) -> None:
    f = cells(gt, sd)
    counts = Combinations.of_records(f.d_q[f.first]).count_hits(f.s_q[f.first])
    expected = reference.unique_hits([q for q, _ in gt], [q for q, _ in sd])
    for apart in (0.0, 12.5, 100.0):
        actual = unique_hits(counts, Sizes(f.N_d, f.N_s), apart)
        assert (actual.unique_hits, actual.unique_hits_others) == pytest.approx(expected, rel=1e-15)
        assert actual.unique_hits_apart == apart
        assert actual.unique_hits_beyond == actual.unique_hits - max(actual.unique_hits_others, apart)
        error = 100 * max(math.sqrt(apart / 100 * (1 - apart / 100) / f.N_s), 1 / f.N_s)
        by_others = unique_hits(counts, Sizes(f.N_d, f.N_s), 0.0).unique_hits_beyond_se
        assert actual.unique_hits_beyond_se == pytest.approx(max(error, by_others))


@given(tables(most=30), tables(most=30))
def test_hits_of_keys_drawn_apart(gt: list[Record], sd: list[Record]) -> None:
    """Whatever the order and the parts in which the combinations come."""
    alone = [q for q, number in Counter(q for q, _ in gt).items() if number == 1]
    coded = []
    for k in range(len(gt[0][0])):
        values = [q[k] for q in [*alone, *(q for q, _ in sd)]]
        coded.append(np.array([list(dict.fromkeys(values)).index(value) for value in values]))
    counts = [np.bincount(codes[len(alone) :], minlength=len(codes)) for codes in coded]
    shares = {place: share_of_levels(of_level) for place, of_level in enumerate(counts)}
    levels = [codes[: len(alone)] for codes in coded]
    actual = count_hits_apart(levels, shares)
    assert 100 * actual / APART_SCALE == pytest.approx(reference.hits_apart(alone, [q for q, _ in sd]))
    assert actual == count_hits_apart([codes[::-1] for codes in levels], shares)
    parts = [count_hits_apart([codes[place::2] for codes in levels], shares) for place in (0, 1)]
    assert actual == sum(parts)
    # As are the places of the keys, with shares in an order of their own.
    moved = {len(levels) - 1 - place: of for place, of in shares.items()}
    assert actual == count_hits_apart(levels[::-1], moved)
    assert count_hits_apart(levels[:1], {0: shares[0]}) == 0


# Draws


@pytest.mark.parametrize("size", [40, 3000])
def test_guesses_are_the_averages_over_draws(size: int) -> None:
    """Compare a smaller and a larger synthesis with draws of n records by NumPy."""
    rng = np.random.default_rng(3)
    gt, sd = _population(rng, 400), _population(rng, size)
    actual = figures(cells(gt, sd))
    n = reference.size(gt, sd)
    over_draws = []
    for _ in range(40):
        if size < len(gt):
            over_draws.append(_guessed_from_draw(gt, n, rng))
        else:
            drawn = [sd[i] for i in rng.permutation(len(sd))[:n]]
            over_draws.append(figures(cells(gt, drawn))["guessed"])
    error = np.std(over_draws) / np.sqrt(len(over_draws))
    assert error < 0.5
    expected = actual["guessed_others"] + (0 if size < len(gt) else actual["guessed_beyond"])
    assert expected == pytest.approx(np.mean(over_draws), abs=3 * error)


def _population(rng: np.random.Generator, records: int) -> list[Record]:
    """Draw people with keys of very different frequency and a target that depends on them slightly."""
    people: list[Record] = []
    for _ in range(records):
        q = QUASI_IDENTIFIERS[min(int(rng.exponential(2)), 8)]
        likely = QUASI_IDENTIFIERS.index(q) % 4
        people.append((q, TARGET_LEVELS[likely if rng.random() < 0.4 else int(rng.integers(4))]))
    return people


def _guessed_from_draw(gt: list[Record], n: int, rng: np.random.Generator) -> float:
    """Compute guessed_others from n other records, drawn anew for each person."""
    right = Fraction(0)
    for i, person in enumerate(gt):
        others = reference.others(gt, i)
        table = [others[j] for j in rng.permutation(len(others))[:n]]
        right += reference.guesses(person, table, None, (None,))[0]
    return 100 * float(right) / len(gt)


@pytest.mark.parametrize(
    ("records", "n"),
    [((1, 1), 3), ((5, 5, 5, 2), 4), ((300, 290, 1), 200), ((1,) * 40, 9), ((900, 2, 2), 500)],
)
@pytest.mark.parametrize("without_self", [False, True])
def test_the_chances_of_all_levels_are_those_of_draws(
    records: tuple[int, ...], n: int, without_self: bool
) -> None:
    """Compare the records of one key combination with draws by NumPy."""
    draw = Draw(n, sum(records) + 3, without_self)
    r = np.array(records)
    actual = chances_to_be_named(np.zeros(len(r), dtype=np.int64), r, r > 0, draw)
    rng = np.random.default_rng(1)
    for level in {r.argmax(), r.argmin()}:
        left = r - without_self * (np.arange(len(r)) == level)
        drawn = rng.binomial(left, draw.chance, (40_000, len(r)))
        most = drawn.max(axis=1)
        named = np.where((drawn[:, level] == most) & (most > 0), 1 / (drawn == most[:, None]).sum(axis=1), 0)
        assert actual[level] == pytest.approx(named.mean(), abs=5 * (named.std() + 1e-9) / 200)


def test_with_nobody_left_out_some_level_is_named_if_any_record_is_drawn() -> None:
    """Try many levels with many ties, and very frequent levels."""
    rng = np.random.default_rng(2)
    for r in (np.arange(1, 60) // 7 + 1, rng.integers(1, 5, 300), np.array([4_000_000, 3_999_000, 1])):
        draw = Draw(int(r.sum()) // 3, int(r.sum()), without_self=False)
        actual = chances_to_be_named(np.zeros(len(r), dtype=np.int64), r, r > 0, draw)
        nothing = (1 - draw.chance) ** int(r.sum())
        assert actual.sum() == pytest.approx(1 - nothing, abs=1e-9)
