"""Figures for readers who may not see exact ones: never finer than a given number of records."""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.judging import judge_values

from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.rounding import round_figure, round_records
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import has_public_value, round_judgements

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
def test_rounding_does_not_change_the_outcome(
    value: float, step: float, limits: list[float], at_least: bool
) -> None:
    """A rounded figure keeps a limit exactly if the unrounded one does, and never looks safer."""
    rounded = round_figure(value, step, limits, highest=100.0, at_least=at_least)
    for limit in limits:
        assert kept(rounded, limit, at_least=at_least) == kept(value, limit, at_least=at_least)
    assert rounded <= value + NOISE if at_least else rounded >= value - NOISE
    assert -NOISE <= rounded <= 100 + NOISE
    again = round_figure(rounded, step, limits, highest=100.0, at_least=at_least)
    assert again == pytest.approx(rounded, abs=1e-6)


@given(st.integers(11, 500), st.integers(1, 20), st.integers(0, 500), st.booleans())
def test_every_published_figure_stands_for_enough_records(
    records: int, few: int, limit: int, at_least: bool
) -> None:
    """At least this many possible figures look alike, unless the limit itself separates them."""
    assume(limit <= records and few <= records)
    numbers_by_figure: dict[float, list[int]] = {}
    for number in range(records + 1):
        value, step, bound = (100 * count / records for count in (number, few, limit))
        rounded = round_figure(value, step, [bound], highest=100.0, at_least=at_least)
        numbers_by_figure.setdefault(round(rounded, 6), []).append(number)
    for numbers in numbers_by_figure.values():
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        first = limit if at_least else limit + 1  # the first number on the other side of the limit
        side = range(first) if numbers[0] < first else range(first, records + 1)
        assert len(numbers) >= min(few, len(side))


@given(VALUES, st.floats(0, 1), STEPS, LIMITS, st.booleans())
def test_tables_that_differ_in_few_records_lie_in_one_interval_or_two_neighbours(
    value: float, share: float, step: float, limits: list[float], at_least: bool
) -> None:
    other = min(100.0, value + share * step * 0.999)
    assume(not any(value <= limit <= other for limit in limits))  # a limit separates any two figures
    one, two = (
        round_figure(figure, step, limits, highest=100.0, at_least=at_least) for figure in (value, other)
    )
    assert 0 <= two - one <= 2 * step * (1 + 1e-6) + NOISE


@given(st.integers(1, 10**7), st.integers(1, 1000))
def test_rounds_numbers_of_records_down_to_a_multiple(records: int, few: int) -> None:
    rounded = round_records(records, few)
    assert rounded % few == 0 and rounded >= few
    assert rounded == few if records < few else records - few < rounded <= records


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
def test_rounds_a_figure_away_from_safety(
    value: float, step: float, limits: list[float], at_least: bool, rounded: float
) -> None:
    assert round_figure(value, step, limits, highest=100.0, at_least=at_least) == rounded


def test_a_count_is_rounded_without_a_highest_value() -> None:
    assert round_figure(123, 10, [20]) == 130


def test_a_relative_bound_reveals_nothing_about_the_ground_truth() -> None:
    relative = judge_values(Clause("repU", "at_most_share", 0.6), [3.21], owns=[41.7])
    absolute = judge_values(Clause("repU", "at_most", 8.0), [3.21])
    published = round_judgements([relative, absolute], [300, 298], 10)
    assert (published[0].value, published[0].limit, published[0].outcome) == (None, None, "kept")
    assert write_sentence(published[0]) == (
        "People singled out in both tables: no more than allowed (at most 0.6 of what the confidential table "
        "itself shows)."
    )
    assert published[1].limit == 8.0 and published[1].value == pytest.approx(8 - 100 * 10 / 298)
    assert not any(
        figure in write_sentence(judgement) for judgement in published for figure in ("3.21", "25.02", "41.7")
    )


def test_the_step_does_not_reveal_the_number_of_records() -> None:
    """Ground truths of 300 and of 309 records give the same published figure."""
    judgement = judge_values(Clause("DiSCO", "at_most", 12.0, ("work",)), [2.0])
    assert round_judgements([judgement], [300, 1000], 10) == round_judgements([judgement], [309, 1000], 10)
    assert round_judgements([judgement], [300, 1000], 10) != round_judgements([judgement], [310, 1000], 10)


def test_one_figure_is_rounded_once_for_all_its_limits() -> None:
    """Two roundings of the same figure would reveal more than either."""
    mean = Clause("DiSCO", "at_most", 5.0, ("work",), over="mean")
    worst = replace(mean, bound=8.0, over="worst")
    for value in (0.3, 2.0, 4.9, 5.1, 7.9, 8.1, 30.0):
        judgements = [judge_values(clause, [value]) for clause in (mean, worst)]
        one, two = round_judgements(judgements, [300, 298], 10)
        assert one.value == two.value


@pytest.mark.parametrize("figure", ["relabelled", "warnings", "controls", "repeats"])
def test_publishes_only_the_outcome_of_a_figure_that_is_no_share_of_all_records(figure: str) -> None:
    clause = Clause(figure, "at_most", 50.0)
    assert not has_public_value(clause)
    [published] = round_judgements([judge_values(clause, [12.345])], [300, 300], 10)
    assert published.value is None
    sentence = write_sentence(published)
    assert "12.3" not in sentence and ": no more than allowed (at most 50" in sentence


def test_every_public_figure_is_a_percentage() -> None:
    public = [
        figure
        for figure in FIGURES.values()
        if any(figure.find_published(statistic) == "share" for statistic in figure.statistics)
    ]
    assert public
    for figure in public:
        assert figure.largest == 100 and not figure.high_is_safe
