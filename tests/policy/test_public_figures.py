"""Figures for readers who may not see exact ones: never finer than a given number of records."""

import math
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.registry import MEASURES, has_public_value, round_figure, round_records
from disclosure_pipeline.policy.verdict import Judgement, judge_figures, round_judgements

STEPS = st.floats(0.01, 100)
VALUES = st.floats(0, 100)
LIMITS = st.lists(st.floats(0, 100), min_size=1, max_size=3)
NOISE = 1e-6


def kept(value: float, limit: float, *, at_least: bool) -> bool:
    return value >= limit if at_least else value <= limit


@given(VALUES, STEPS, LIMITS, st.booleans())
@example(8.0, 2.0, [8.0], False)
@example(0.0, 3.0, [8.0], False)
@example(100.0, 7.0, [0.0], False)
@example(1.0, 1 / 3, [1.5], False)
def test_the_outcome_stays(value: float, step: float, limits: list[float], at_least: bool) -> None:
    """A rounded figure keeps a limit if and only if the exact one does, and is never on the safer side."""
    message = round_figure(value, step, limits, highest=100.0, at_least=at_least)
    for limit in limits:
        assert kept(message, limit, at_least=at_least) == kept(value, limit, at_least=at_least)
    assert message <= value + NOISE if at_least else message >= value - NOISE
    assert -NOISE <= message <= 100 + NOISE
    assert round_figure(message, step, limits, highest=100.0, at_least=at_least) == pytest.approx(
        message, abs=1e-6
    )


@given(st.integers(11, 500), st.integers(1, 20), st.integers(0, 500), st.booleans())
def test_every_figure_told_has_so_many_records_behind_it(
    records: int, few: int, limit: int, at_least: bool
) -> None:
    """At least this many possible figures look alike, unless the limit itself separates them."""
    assume(limit <= records and few <= records)
    message: dict[float, list[int]] = {}
    for number in range(records + 1):
        rounded = round_figure(
            100 * number / records,
            100 * few / records,
            [100 * limit / records],
            highest=100.0,
            at_least=at_least,
        )
        message.setdefault(round(rounded, 6), []).append(number)
    for numbers in message.values():
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        first = limit if at_least else limit + 1  # the first number on the other side of the limit
        side = range(first) if numbers[0] < first else range(first, records + 1)
        assert len(numbers) >= min(few, len(side))


@given(VALUES, st.floats(0, 1), STEPS, LIMITS, st.booleans())
def test_tables_that_differ_in_few_records_differ_by_one_step_at_most(
    value: float, share: float, step: float, limits: list[float], at_least: bool
) -> None:
    """The figures of two tables that differ in fewer records lie in one interval, or in two neighbours."""
    other = min(100.0, value + share * step * 0.999)
    assume(not any(value <= limit <= other for limit in limits))  # a limit parts whatever is told
    one, two = (
        round_figure(figure, step, limits, highest=100.0, at_least=at_least) for figure in (value, other)
    )
    assert 0 <= two - one <= 2 * step * (1 + 1e-6) + NOISE


@given(st.integers(1, 10**7), st.integers(1, 1000))
def test_numbers_of_records(records: int, few: int) -> None:
    message = round_records(records, few)
    assert message % few == 0 and message >= few
    assert message == few if records < few else records - few < message <= records


@pytest.mark.parametrize(
    ("value", "step", "limits", "at_least", "rounded"),
    [
        (7.9, 3.0, [8.0], False, 8.0),
        (4.9, 3.0, [8.0], False, 5.0),
        (1.0, 3.0, [8.0], False, 5.0),  # below 2 would be an interval of two points
        (8.01, 3.0, [8.0], False, 11.0),
        (99.0, 3.0, [8.0], False, 100.0),
        (0.5, 30.0, [8.0], False, 8.0),
        (6.0, 3.0, [5.0, 8.0], False, 8.0),
        (4.0, 3.0, [5.0, 8.0], False, 5.0),
        (-4.0, 3.0, [8.0], False, 5.0),
        (92.0, 5.0, [80.0], True, 90.0),
        (99.0, 5.0, [80.0], True, 95.0),
        (79.0, 5.0, [80.0], True, 75.0),
        (3.0, 5.0, [80.0], True, 0.0),
    ],
)
def test_figures_as_they_are_told(
    value: float, step: float, limits: list[float], at_least: bool, rounded: float
) -> None:
    assert round_figure(value, step, limits, highest=100.0, at_least=at_least) == rounded


def test_counts_have_no_highest() -> None:
    assert round_figure(123, 10, [20]) == 130


def judged(clause: Clause, value: float, original: float | None = None) -> Judgement:
    return judge_figures(clause, [value], 1, None if original is None else [original])


def test_a_relative_bound_tells_nothing_of_the_ground_truth() -> None:
    relative = judged(Clause("repU", None, 0.6, share_of="UiO"), 3.21, 41.7)
    absolute = judged(Clause("repU", None, 8.0), 3.21)
    published = round_judgements([relative, absolute], [300, 298], 10)
    assert (published[0].value, published[0].limit, published[0].outcome) == (None, None, "kept")
    assert str(published[0]) == "repU / UiO keeps its bound; the limit is 0.6 of UiO"
    assert published[1].limit == 8.0 and published[1].value == pytest.approx(8 - 100 * 10 / 298)
    assert not any(
        figure in str(judgement) for judgement in published for figure in ("3.21", "25.02", "41.7")
    )


def test_the_step_tells_no_number_of_records() -> None:
    """Ground truths of 300 and of 309 records are told alike."""
    judgement = judged(Clause("DiSCO", "work", 12.0), 2.0)
    assert round_judgements([judgement], [300, 1000], 10) == round_judgements([judgement], [309, 1000], 10)
    assert round_judgements([judgement], [300, 1000], 10) != round_judgements([judgement], [310, 1000], 10)


def test_several_limits_of_one_figure_are_told_together() -> None:
    """Or two roundings of the same figure would tell more than each."""
    mean, worst = Clause("DiSCO", "work", 5.0, over="mean"), Clause("DiSCO", "work", 8.0)
    for value in (0.3, 2.0, 4.9, 5.1, 7.9, 8.1, 30.0):
        one, two = round_judgements([judged(mean, value), judged(worst, value)], [300, 298], 10)
        assert one.value == two.value


@pytest.mark.parametrize("measure", ["TCAP", "mean_denom", "relabelled", "warnings", "copy_difference"])
def test_what_is_no_share_of_all_records_is_told_by_its_outcome(measure: str) -> None:
    assert not has_public_value(measure, None)
    [message] = round_judgements([judged(Clause(measure, None, 50.0), 12.345)], [300, 300], 10)
    assert (
        message.value is None
        and "12.3" not in str(message)
        and "keeps its bound; the limit is 50" in str(message)
    )


def test_what_could_not_be_determined_is_said_so() -> None:
    [message] = round_judgements([judged(Clause("repU", None, 5.0), math.nan)], [300, 300], 10)
    assert str(message) == "repU could not be determined" and message.value is None


def test_every_public_measure_is_a_percentage_or_a_count() -> None:
    for name, measure in MEASURES.items():
        if has_public_value(name, None):
            assert measure.largest == 100 or name in {"max_denom", "n_predicted_correctly"}
            assert not measure.high_is_safe


def test_in_words() -> None:
    judgement = judged(Clause("DiSCO", "work", 12.0), 13.21)
    message = replace(judgement, value=15.33, rounded_to=10)
    assert str(message) == ("DiSCO[work] is at most 15.3 (rounded up to 10 records); the limit is 12")
