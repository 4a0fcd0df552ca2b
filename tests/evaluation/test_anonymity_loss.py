"""Certainty, and the anonymity loss coefficient made of it: against the reference, and what shows a leak."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import certainty as reference
from reference.cap import Record
from support.sampling import examples
from support.small_tables import KEYS, NO_GUESS, cells, frame, sd2011, tables

import disclosure_pipeline as dp
from disclosure_pipeline.analyses.guesses import CERTAINTIES
from disclosure_pipeline.measures.certainty import (
    certainty_counts,
    certainty_counts_of_others,
    precision_recall_coefficient,
)


@given(tables(), tables(), st.fractions(Fraction(1, 20), 1, max_denominator=20))
def test_counts_are_those_of_the_reference(gt: list[Record], sd: list[Record], c: Fraction) -> None:
    """Also at a half and below, where several levels can have the share; exact ties are enough."""
    f = cells(gt, sd)
    from_SD = certainty_counts(f, f.d, c, NO_GUESS)
    from_others = certainty_counts_of_others(f, f.d, c, NO_GUESS)
    assert [from_SD.claimed, from_SD.right] == [*reference.counts(gt, sd, c)]
    assert [from_others.claimed, from_others.right] == [*reference.counts(gt, None, c)]


@examples(40)
@given(tables(8), tables(8))
# Eight of nine people are told rightly by others: PRC_others is 0.999998.
@example([(("1", "1"), "a")] * 3 + [(("1", "1"), None), (("1", "1"), "b")], [(("1", "1"), "a")])
@example([(("1", "1"), "a")] * 2, [(("1", "1"), "a")] * 5 + [(("1", "1"), "b")] * 2)
def test_averages_over_all_draws_if_sizes_differ(gt: list[Record], sd: list[Record]) -> None:
    result = dp.anonymity_loss(frame(gt), frame(sd), KEYS, "t").iloc[0]
    expected = reference.anonymity_loss(gt, sd, CERTAINTIES)
    assert result["ALC"] == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_the_coefficient_of_precision_and_recall() -> None:
    assert precision_recall_coefficient(0.7, 1) == 0.7
    assert precision_recall_coefficient(1, 0.01) == pytest.approx(1 - 0.5**3)
    assert precision_recall_coefficient(1, 1e-5) == 1e-5
    assert precision_recall_coefficient(0.0, 0.5) == 0


def test_a_copy_loses_what_others_do_not_tell_and_a_table_of_one_level_nothing() -> None:
    gt = sd2011("ground_truth")
    keys = ["sex", "age", "region", "placesize"]
    most = gt.assign(depress=gt["depress"].mode()[0])
    actual = dp.anonymity_loss(gt, [gt, sd2011("synthetic"), most, gt.head(1000)], keys, "depress")["ALC"]
    copy, honest, constant, part = actual.tolist()
    assert copy > 0.8
    assert part > 0.5
    assert honest < copy / 2
    assert constant < 0.25
