"""Events that are joined to their people: against the slow reference, in any order, and what is refused."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from reference import events as reference
from support.figures import assert_same_frame

import disclosure_pipeline as dp
from disclosure_pipeline.tables.events import Joining

pytestmark = pytest.mark.usefixtures("no_guards")

SUMMARIES = ["first", "last", "most_frequent"]
ALL: dict[str, Any] = {"why": SUMMARIES, "days": SUMMARIES}
HOW: dict[str, Any] = {"order": "day", "summaries": ALL, "multiset": ["why"]}
EVENTS = "the events of the ground truth"


def tables(seed: int, people: int = 30, events: int = 120) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Many ties, and values that are missing; some people without an event, text that JSON has to escape."""
    rng = np.random.default_rng(seed)
    persons = pd.DataFrame({"id": rng.permutation(people), "sex": rng.choice(["f", "m"], people)})
    why = rng.choice(np.array(["flu", 'a "b"', "ą, [c]", None], dtype=object), events)
    return persons, pd.DataFrame(
        {
            "id": rng.integers(0, people - 3, events),
            "day": pd.Series(rng.integers(1, 5, events), dtype="Int64").mask(rng.random(events) < 0.2),
            "why": why,
            "days": pd.Series(rng.integers(1, 4, events), dtype="Int64").mask(rng.random(events) < 0.2),
        }
    )


def join(persons: pd.DataFrame, events: pd.DataFrame, **how: Any) -> pd.DataFrame:
    return Joining("id", **how).join(persons, events, ("persons", "events"))[0]


def as_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.astype(object)
    return plain.where(plain.notna(), None).to_dict("records")


@pytest.mark.parametrize("length", [None, 1, 3])
@pytest.mark.parametrize("listed", [["why"], ["days", "why"]])
@pytest.mark.parametrize("seed", range(4))
def test_every_person_has_what_the_reference_says(seed: int, listed: list[str], length: int | None) -> None:
    persons, events = tables(seed)
    joined = join(persons, events, **HOW | {"multiset": listed, "length": length})
    slow = reference.joined(as_rows(persons), as_rows(events), "id", "day", [*ALL], listed, length)
    assert as_rows(joined[[*slow[0]]]) == slow


def test_the_order_of_the_events_and_how_they_are_held_do_not_matter() -> None:
    persons, events = tables(1)
    expected = join(persons, events, **HOW)
    shuffled = events.sample(frac=1, random_state=3).astype({"why": "category", "days": "Int32"})
    again = join(persons, shuffled, **HOW)
    pd.testing.assert_frame_equal(expected.astype(str), again.astype(str))


def test_rounding_noise_makes_no_other_history() -> None:
    persons = pd.DataFrame({"id": [1, 2]})
    for pair, same in (([0.3, 0.1 + 0.2], True), ([7.0, 7], True), ([12345678901.0, 12345678902.0], False)):
        events = pd.DataFrame({"id": [1, 2], "dose": pair})
        assert join(persons, events, multiset=["dose"])["events.multiset"].nunique() == 2 - same


@pytest.mark.parametrize(
    "values", [[True, False], [*pd.to_datetime(["2024-05-01", "2024-01-31"])], ["b", "a"], [None, None]]
)
def test_values_of_every_kind_are_joined(values: list[Any]) -> None:
    events = pd.DataFrame({"id": [1, 1], "at": values})
    joined = join(pd.DataFrame({"id": [1]}), events, order="at", summaries={"at": SUMMARIES}, multiset=["at"])
    [row] = as_rows(joined)
    assert [row[f"events.at.{summary}"] for summary in SUMMARIES] == [values[1], values[0], values[1]]


@pytest.mark.parametrize("days", [[1, 2, 15, None], [1, 2.5, 1.5, None]])
def test_a_number_is_written_alike_whatever_holds_it(days: list[Any]) -> None:
    persons, events = pd.DataFrame({"id": [1]}), pd.DataFrame({"id": [1] * len(days)})
    decimals = [None if day is None else Decimal(str(day)) for day in days]
    held = [pd.Series(days), pd.Series(decimals, dtype=object), pa.array(decimals, pa.decimal128(9, 3))]
    written = {
        join(persons, events.assign(days=column), multiset=["days"])["events.multiset"].item()
        for column in (*held[:2], pd.arrays.ArrowExtensionArray(held[2]))
    }
    assert len(written) == 1


def test_a_duration_is_written_alike_whatever_its_unit() -> None:
    persons, events = pd.DataFrame({"id": [1]}), pd.DataFrame({"id": [1, 1]})
    held = [pa.array([90, 86400], pa.duration("s")).cast(pa.duration(unit)) for unit in ("s", "us", "ns")]
    columns = [events.assign(wait=pd.arrays.ArrowExtensionArray(array)) for array in held]
    assert len({join(persons, table, multiset=["wait"])["events.multiset"].item() for table in columns}) == 1


def test_ids_are_joined_though_those_of_some_files_need_not_be_text(tmp_path: Path) -> None:
    """None of the events is of somebody whose code begins with 0."""
    persons = pd.DataFrame({"id": ["007", "010", "100", "101"], "sex": ["f", "f", "m", "m"]})
    events = pd.DataFrame({"id": ["100", "101", "101"], "why": ["flu", "flu", "fall"]})
    for name, table in (("persons", persons), ("events", events)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)

    def ask(people: Any, of_people: Any) -> dp.Disclosure:
        told: Any = {"ground_truth": of_people, "synthetic": of_people, "multiset": ["why"]}
        return dp.disclosure(people, people, ["sex"], ["events.multiset"], unit="id", events=told)

    actual = ask(tmp_path / "persons.csv", tmp_path / "events.csv")
    assert_same_frame(actual.attribute, ask(persons, events).attribute)


def test_ordered_levels_keep_their_order() -> None:
    persons, events = tables(1)
    events["why"] = pd.Categorical(events["why"], ["flu", "ą, [c]", 'a "b"'], ordered=True)
    first = join(persons, events, **HOW)["events.why.first"]
    assert first.cat.ordered and [*first.cat.categories] == [*events["why"].cat.categories]


def test_nobody_has_an_event() -> None:
    persons, events = tables(1)
    joined = join(persons, events.head(0), **HOW)
    assert joined["events.multiset"].eq("[]").all() and joined["events.count"].eq(0).all()
    assert joined.filter(regex="first|last|frequent").isna().all(axis=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"persons": lambda p: pd.concat([p, p.head(1)])}, "the ground truth, column 'id': names a person"),
        (
            {"persons": lambda p: p[p["id"] != 7]},
            f"{EVENTS}, column 'id': names somebody who is not in the table",
        ),
        ({"persons": lambda p: p.assign(id=p["id"].astype(str))}, f"{EVENTS}, column 'id': names somebody"),
        ({"persons": lambda p: p.assign(id=p["id"].mask(p["id"] == 7))}, "ground truth, column 'id': lacks"),
        ({"events": lambda e: e.assign(id=e["id"].mask(e["id"] == 7))}, f"{EVENTS}, column 'id': lacks"),
        ({"persons": lambda p: p.drop(columns="id")}, "'id', which is not a column of the ground truth"),
        ({"events": lambda e: e.drop(columns="id")}, f"unit names 'id', which is not a column of {EVENTS}"),
        ({"events": lambda e: e.drop(columns="day")}, f"order names 'day', not a column of {EVENTS}"),
        ({"events": lambda e: e.head(0)}, "no records"),
        ({"persons": lambda p: p.rename(columns={"sex": "events.sex"})}, "'events.sex' of the ground truth"),
        ({"summaries": {"ward": ["first"]}}, f"summaries names 'ward', not a column of {EVENTS}"),
        ({"multiset": ["ward"]}, f"multiset names 'ward', not a column of {EVENTS}"),
        ({"summaries": {"why": ["median"]}}, "summaries of 'why' must be some of 'first'"),
        ({"summaries": {"why": "first"}}, "summaries of 'why' must be some of 'first'"),
        ({"summaries": {"why": ["last", "last"]}}, "summaries of 'why' names one more than once"),
        ({"order": None}, "summaries asks for the first or last 'why'"),
        ({"multiset": ["why", "why"]}, "multiset names a column more than once"),
        ({"length": 0}, "length needs a multiset, and must be at least 1"),
        ({"multiset": (), "length": 3}, "length needs a multiset"),
        ({"wards": 3}, "events must have 'ground_truth', 'synthetic', and may have"),
        ({"unit": None}, "events need unit"),
        ({"synthetic": [tables(2)[1]] * 2}, "as many synthetic tables"),
    ],
)
def test_what_cannot_be_joined_is_refused_without_a_value(change: dict[str, Any], message: str) -> None:
    persons, events = tables(1)
    change = dict(change)
    persons = change.pop("persons", lambda frame: frame)(persons)
    events = change.pop("events", lambda frame: frame)(events)
    unit, (others, their_events) = change.pop("unit", "id"), tables(2)
    given: Any = {"ground_truth": events, "synthetic": their_events, **HOW, **change}
    with pytest.raises(dp.InputError) as refused:
        dp.copies(persons, others, unit=unit, events=given)
    assert message in str(refused.value)
    assert "flu" not in str(refused.value) and "7" not in str(refused.value)


def test_the_library_measures_two_tables_as_one(tmp_path: Path) -> None:
    """From frames and from files, of one synthesis and of two, beside a holdout with its own events."""
    (persons, events), (others, their_events) = tables(1), tables(2)
    given: Any = {"ground_truth": events, "synthetic": [events, their_events], **HOW}
    targets = ["events.multiset", "events.count"]
    found = dp.copies(persons, [others, others], targets, unit="id", events=given)
    alone = found["people_copied"].xs("targets alone", level="columns")
    assert alone[1] > 30 > alone[2]
    result = dp.disclosure(persons, [others, others], ["sex"], targets, unit="id", events=given)
    joined = join(persons, events, **HOW)
    by_hand = [join(others, table, **HOW).drop(columns="id") for table in (events, their_events)]
    expected = dp.disclosure(joined, by_hand, ["sex"], targets, unit="id")
    pd.testing.assert_frame_equal(result.attribute, expected.attribute)
    paths = [tmp_path / f"{name}.parquet" for name in ("persons", "events", "others", "theirs")]
    for path, table in zip(paths, (persons, events, others, their_events), strict=True):
        table.to_parquet(path)
    in_files: Any = {"ground_truth": paths[1], "synthetic": paths[3], **HOW}
    of_files = dp.copies(paths[0], paths[2], targets, unit="id", events=in_files)
    assert as_rows(of_files) == as_rows(found.iloc[len(of_files) :])
    of_holdout, its_events = (table.assign(id=table["id"] + 1_000_000) for table in tables(3))
    given["holdout"] = its_events
    with_holdout = dp.disclosure(
        persons, [others, others], ["sex"], targets, unit="id", events=given, holdout=of_holdout
    )
    beside = join(of_holdout, its_events, **HOW)
    expected = dp.disclosure(joined, by_hand, ["sex"], targets, unit="id", holdout=beside)
    assert len(with_holdout.holdout)
    pd.testing.assert_frame_equal(with_holdout.holdout, expected.holdout)
    pd.testing.assert_frame_equal(with_holdout.attribute, result.attribute)
    with pytest.raises(dp.InputError, match="events must have 'ground_truth', 'holdout', 'synthetic'"):
        dp.disclosure(persons, others, ["sex"], unit="id", events=in_files, holdout=of_holdout)
