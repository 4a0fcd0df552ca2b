"""The CAP family: the printed values, the theorems, and a reference that goes record by record."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import cap as reference
from reference.cap import Record
from support.doubts import FEW_SHARED_VALUES
from support.sampling import examples
from support.small_tables import KEYS, TARGET_LEVELS, frame, from_counts, measured, tables

import disclosure_pipeline as dp
from disclosure_pipeline.measures.attribute import CAP

pytestmark = FEW_SHARED_VALUES

Counts = Sequence[Sequence[int]]

# Baillargeon & Charest 2020, printed tables: rows T1 to T3, columns K1 to K3.
O3 = [[0, 176, 204], [0, 78, 93], [127, 163, 59]]
S_B = [[24, 36, 15], [226, 113, 213], [216, 54, 3]]
S_G = [[129, 137, 99], [2, 131, 147], [91, 111, 53]]
O4 = [[0, 0, 62], [197, 136, 134], [74, 99, 198]]
S_A = [[114, 118, 77], [104, 44, 134], [105, 86, 118]]
S_E = [[67, 97, 153], [37, 114, 101], [169, 14, 148]]


def same(left: float, right: float) -> bool:
    """Equal without tolerance, NaN to itself."""
    return left == right or (math.isnan(left) and math.isnan(right))


# The printed values


@pytest.mark.parametrize(
    ("original", "synthetic", "average", "predicted"),
    [(O3, S_B, 0.307, None), (O3, S_G, 0.349, None), (O4, S_A, 0.318, 134), (O4, S_E, 0.309, 272)],
    ids=["S_b", "S_g", "S_a", "S_e"],
)
def test_printed_tables(original: Counts, synthetic: Counts, average: float, predicted: int | None) -> None:
    result = measured(from_counts(original), from_counts(synthetic))
    assert result["DCAP"] / 100 == pytest.approx(average, abs=0.0005)
    assert result["CAP_matched"] == result["DCAP"]  # every key is in SD
    if predicted is not None:
        assert result["n_predicted_correctly"] == predicted
        assert result["pct_predicted_correctly"] == 100 * predicted / 900


# Against the reference


@examples(20)
@given(tables(), tables())
def test_every_figure_equals_the_reference(gt: list[Record], sd: list[Record]) -> None:
    result = measured(gt, sd)
    expected = reference.cap_measures(gt, sd, [True] * len(gt), [True] * len(sd))
    wrong = {name: (result[name], value) for name, value in expected.items() if not same(result[name], value)}
    assert not wrong


@examples(20)
@given(
    tables(),
    tables(),
    st.lists(st.sampled_from(TARGET_LEVELS), max_size=2),
    st.booleans(),
    st.none() | st.integers(1, 3),
)
def test_every_figure_after_exclusions_equals_the_reference(
    gt: list[Record], sd: list[Record], levels: list[str | None], missing_keys: bool, limit: int | None
) -> None:
    present = {t for _, t in [*gt, *sd]} | {None}
    levels = [level for level in levels if level in present]
    wanted = dp.Exclusions(target_levels={"t": levels}, missing_keys=missing_keys, count_over=limit)

    def kept(table: list[Record]) -> list[bool]:
        return [
            t not in levels
            and not (missing_keys and None in q)
            and not (limit is not None and table.count((q, t)) > limit)
            for q, t in table
        ]

    result = measured(gt, sd, wanted)
    expected = reference.cap_measures(gt, sd, kept(gt), kept(sd))
    wrong = {name: (result[name], value) for name, value in expected.items() if not same(result[name], value)}
    assert not wrong
    chance = float(100 * reference.disco_chance(gt, sd, kept(gt)))
    assert result["DiSCO_chance"] == pytest.approx(chance, rel=1e-12)
    assert result["DiSCO_excess"] == pytest.approx(result["DiSCO"] - chance, abs=1e-9)


def test_the_reference_names_every_figure() -> None:
    record: Record = (("1", "1"), "a")
    assert list(reference.cap_measures([record], [record], [True], [True])) == list(CAP.__dataclass_fields__)


# The theorems of Baillargeon & Charest


@given(tables(), tables())
def test_theorem_1_the_chances_of_all_levels_of_a_key_sum_to_1(gt: list[Record], sd: list[Record]) -> None:
    """For each key in SD, whatever it is in GT: one GT record of each level stands for all levels."""
    keys = list(dict.fromkeys(q for q, _ in sd))
    levels = list(dict.fromkeys(t for _, t in [*gt, *sd]))
    everyone = [(q, t) for q in keys for t in levels]
    chances = (
        dp.individual_attribution(frame(everyone), frame(sd), KEYS, "t").records["t", 1]["CAP"].to_numpy()
    )
    assert chances.reshape(len(keys), len(levels)).sum(axis=1) == pytest.approx(np.ones(len(keys)), rel=1e-15)


def every_synthesis(keys: int, levels: int, most: int) -> Iterator[list[Record]]:
    """Every table of up to so many records over these levels."""
    cells: list[Record] = [
        ((f"K{k}", ""), f"T{t}") for k, t in product(range(1, keys + 1), range(1, levels + 1))
    ]
    for size in range(1, most + 1):
        yield from (list(records) for records in combinations_with_replacement(cells, size))


@pytest.mark.parametrize(
    "original",
    [[[2, 1], [1, 3]], [[1, 2], [0, 3]], [[5, 2], [4, 1], [3, 2]], [[4, 1, 3], [2, 2, 5]], [[3, 3], [3, 3]]],
    ids=repr,
)
def test_theorems_2_and_3_by_trying_every_synthesis(original: Counts) -> None:
    gt = from_counts(original)
    every = [frame(sd) for sd in every_synthesis(keys=len(original[0]), levels=len(original), most=3)]
    cap = dp.disclosure(frame(gt), every, KEYS, "t").cap
    assert (cap["min_DCAP"] == cap["DCAP"].min()).all()
    assert (cap["min_CAP_matched"] == cap["CAP_matched"].min()).all()


# How the figures relate


# Ties, and what is undefined


def records(*pairs: tuple[str, str | None]) -> list[Record]:
    return [((key, ""), level) for key, level in pairs]


def test_equally_frequent_levels_count_what_a_guess_among_them_gets() -> None:
    sd = records(("x", "b"), ("x", "a"), ("x", None), ("y", "a"), ("y", "b"), ("y", "b"), ("z", None))
    for level, key, expected in [
        ("a", "x", Fraction(1, 3)),
        ("b", "x", Fraction(1, 3)),
        (None, "x", Fraction(1, 3)),
        ("c", "x", Fraction(0)),
        ("b", "y", Fraction(1)),
        ("a", "y", Fraction(0)),
        (None, "z", Fraction(1)),
    ]:
        result = measured(records((key, level)), sd)
        assert result["n_predicted_correctly"] == float(expected), (key, level)
        assert result["pct_predicted_correctly"] == float(100 * expected), (key, level)
    everybody = records(("x", "a"), ("x", "b"), ("x", None))
    assert measured(everybody, sd)["n_predicted_correctly"] == 1


def test_an_excluded_level_is_guessed_all_the_same_but_counts_for_nothing() -> None:
    """The intruder sees it in SD: without it, its runner-up would look like the guess."""
    gt, sd = records(("x", "a"), ("x", "b")), records(("x", "a"), ("x", "a"), ("x", "b"))
    assert measured(gt, sd)["n_predicted_correctly"] == 1
    result = measured(gt, sd, dp.Exclusions(target_levels={"t": ["a"]}))
    assert result["n_predicted_correctly"] == 0


def test_nothing_in_common() -> None:
    result = measured(records(("x", "a"), ("x", "b")), records(("y", "a")))
    for name in ("CAP_matched", "TCAP", "TCAP_disclosive", "TCAP_taub", "TCAP_scaled"):
        assert math.isnan(result[name]), name
    assert result["DCAP"] == 0
    assert result["DCAP_scaled"] == -100
    assert result["n_predicted_correctly"] == 0


def test_a_target_of_one_level_cannot_be_scaled() -> None:
    result = measured(records(("x", "a")), records(("x", "a")))
    assert result["baseCAPd"] == 100
    assert math.isnan(result["DCAP_scaled"])
    assert math.isnan(result["TCAP_scaled"])


def test_a_synthesis_that_tells_nothing_is_scaled_to_exactly_0() -> None:
    """Its quotients are thirds, which no binary number is."""
    gt = records(*[(key, level) for key in "xy" for level in "abc"])
    assert measured(gt, gt)["DCAP_scaled"] == 0


def test_names_are_unique() -> None:
    """A bound names a figure, whatever frame it is in."""
    gt = frame(from_counts(O3))
    result = dp.disclosure(gt, gt, KEYS, "t")
    names = [*result.identity, *result.attribute, *result.cap]
    assert len(set(names)) == len(names)
