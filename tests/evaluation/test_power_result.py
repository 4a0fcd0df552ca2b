"""What is said of a policy's power: rates, intervals, limits, sentences, and its picture."""

import json
import math
from typing import Any

import pytest

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.plots.pictures import specify_power, title_power
from disclosure_pipeline.evaluation.power import (
    COPIES,
    DILUTED,
    KINDS,
    NEAR_COPIES,
    SHARES,
    GatePower,
    Refusals,
    summarize_power,
)


def power_of(
    *copies: float, near: tuple[float, ...] = (50.0,), diluted: tuple[float, ...] = (5.0,)
) -> GatePower:
    return GatePower(100, {COPIES: copies, NEAR_COPIES: near, DILUTED: diluted})


def test_rates_and_limits() -> None:
    found = power_of(*(3.0,) * 19, 30.0)
    assert found.detection_limit() == 3
    refusals = found.count_refused(COPIES, 3)
    assert (refusals, refusals.percent) == (Refusals(19, 20), 95)
    assert refusals.interval == pytest.approx((76.39, 99.11), abs=0.01)  # Wilson
    assert found.count_refused(COPIES, 2).refused == 0
    assert power_of(*(3.0,) * 18, *(30.0,) * 2).detection_limit() == 30
    frame = found.to_frame()
    of_copies = frame[frame["planted"] == COPIES]
    assert of_copies["percent"].is_monotonic_increasing
    assert of_copies["share"].tolist() == list(SHARES)
    assert set(of_copies["tries"]) == {20}
    assert set(frame["planted"]) == set(KINDS)


def test_honest_tables_are_those_of_both_kinds_without_a_copy() -> None:
    assert power_of(0.0, 3.0, near=(3.0, 0.0, 5.0), diluted=(0.0,)).false_refusals == Refusals(2, 5)


def test_the_sentence_of_the_first_page() -> None:
    assert power_of(*(3.0,) * 19, 30.0, near=(50.0,) * 80).summarize() == (
        "This gate would have refused a table that repeats 3 % of the people (19 of 20 times); of honest "
        "tables it refuses 0 of 100."
    )
    assert power_of(50.0, 50.0).summarize() == (
        "This gate cannot notice that 30 % of the people are copied: it refuses a table that repeats 50 % "
        "(2 of 2 times); of honest tables it refuses 0 of 3."
    )
    assert "repeats everybody only 1 of 2 times" in power_of(math.inf, 3.0).summarize()
    refusing = power_of(0.0, 0.0)
    assert (
        refusing.summarize() == "This gate refuses honest tables (2 of 3), so what it notices cannot be told."
    )


@pytest.mark.parametrize(
    ("smallest", "is_blind"), [((30.0,), False), ((50.0,), True), ((math.inf, 3.0), True), ((0.0,), False)]
)
def test_a_gate_that_does_not_notice_a_third_is_blind(smallest: tuple[float, ...], is_blind: bool) -> None:
    assert power_of(*smallest).is_blind == is_blind


def test_every_kind_of_copy_has_a_sentence() -> None:
    found = power_of(2.0, 3.0, near=(math.inf, 30.0), diluted=(0.0, 7.0, 7.0))
    assert found.describe() == [
        "Of honest tables it refuses 0 of 4 (with 95 % certainty 0 to 49 %).",
        "It refuses copies of 3 % of the people: 2 of 2 tries.",
        "It does not notice near copies reliably, whatever their share.",
        "It refuses copies among ten times as many records of 7 % of the people: 3 of 3 tries, and 1 of 3 "
        "without any.",
    ]
    assert "nothing can be said" in power_of(0.0).describe()[1]
    assert str(found).splitlines()[0] == found.summarize()
    assert "100 records" in str(found)


def test_a_record_is_read_as_it_was_written() -> None:
    found = power_of(2.0, math.inf, near=(0.0,))
    assert GatePower.from_record(json.loads(json.dumps(found.to_record(), allow_nan=False))) == found
    record = found.to_record()
    damaged: list[Any] = [{}, [], {"records": 1}, record | {"records": None}]
    of_no_try: dict[str, list[float]] = {kind: [] for kind in KINDS}
    damaged += [record | {"noticed": noticed} for noticed in ({}, {COPIES: [1]}, of_no_try)]
    damaged += [record | {"noticed": {kind: [share] for kind in KINDS}} for share in (4, -1, math.nan, "x")]
    for broken in damaged:
        with pytest.raises((KeyError, TypeError, ValueError)):
            GatePower.from_record(broken)


def test_the_picture_has_a_line_and_intervals_for_each_kind() -> None:
    found = power_of(2.0, 3.0, 3.0)
    chart = found.plot().to_dict()
    assert chart["title"]["text"] == title_power(found)
    assert (
        title_power(found) == "Copies of 3 % of the people are noticed; of honest tables 0 of 4 are refused"
    )
    assert title_power(power_of(50.0)).startswith("Copies are not noticed reliably")
    assert title_power(power_of(0.0)).startswith("Copies are not noticed reliably")
    bars, lines, points = specify_power(found)["layer"]
    assert (bars["encoding"]["y"]["field"], bars["encoding"]["y2"]["field"]) == ("low", "high")
    assert lines["encoding"]["strokeDash"]["scale"]["domain"] == list(KINDS)
    assert points["encoding"]["shape"]["scale"]["domain"] == list(KINDS)
    rows = specify_power(found)["data"]["values"]
    assert len(rows) == len(KINDS) * len(SHARES)


def test_the_picture_can_be_saved(tmp_path: Any) -> None:
    dp.save_plot(power_of(2.0, 3.0).plot(), tmp_path / "power.svg")
    assert "who are copied" in (tmp_path / "power.svg").read_text()


def test_limits_are_told_as_they_are() -> None:
    told = summarize_power(1, Refusals(2, 2), Refusals(1, 200))
    assert "repeats 1 % of the people" in told and told.endswith("it refuses 1 of 200.")
