"""Events that are joined to their people: against the slow reference, in any order, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from reference import events as reference

import disclosure_pipeline as dp
from disclosure_pipeline.tables.events import join_events

SUMMARIES = ["first", "last", "most_frequent"]
ALL: dict[str, Any] = {"why": SUMMARIES, "days": SUMMARIES}


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


def as_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.astype(object)
    return plain.where(plain.notna(), None).to_dict("records")


@pytest.mark.parametrize("length", [None, 1, 3])
@pytest.mark.parametrize("listed", [["why"], ["days", "why"]])
@pytest.mark.parametrize("seed", range(4))
def test_every_person_has_what_the_reference_says(seed: int, listed: list[str], length: int | None) -> None:
    persons, events = tables(seed)
    joined = join_events(persons, events, "id", order="day", summaries=ALL, multiset=listed, length=length)
    slow = reference.joined(as_rows(persons), as_rows(events), "id", "day", [*ALL], listed, length)
    assert as_rows(joined[[*slow[0]]]) == slow


def test_the_order_of_the_events_and_how_they_are_held_do_not_matter() -> None:
    persons, events = tables(1)
    expected = join_events(persons, events, "id", order="day", summaries=ALL, multiset=["why"])
    shuffled = events.sample(frac=1, random_state=3).astype({"why": "category", "days": "Int32"})
    again = join_events(persons, shuffled, "id", order="day", summaries=ALL, multiset=["why"])
    pd.testing.assert_frame_equal(expected.astype(str), again.astype(str))


def test_nobody_has_an_event() -> None:
    persons, events = tables(1)
    joined = join_events(persons, events.head(0), "id", order="day", summaries=ALL, multiset=["why"])
    assert joined["events.multiset"].eq("[]").all() and joined["events.count"].eq(0).all()
    assert joined.filter(regex="first|last|frequent").isna().all(axis=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"persons": lambda p: pd.concat([p, p.head(1)])}, "persons, column 'id': names a person in several"),
        ({"persons": lambda p: p[p["id"] != 7]}, "events, column 'id': names somebody whom the table of"),
        ({"persons": lambda p: p.assign(id=p["id"].astype(str))}, "events, column 'id': names somebody"),
        (
            {"persons": lambda p: p.assign(id=p["id"].where(p["id"] != 7))},
            "persons, column 'id': lacks a value",
        ),
        (
            {"events": lambda e: e.assign(id=e["id"].where(e["id"] != 7))},
            "events, column 'id': lacks a value",
        ),
        ({"persons": lambda p: p.drop(columns="id")}, "unit names 'id', which is no column of the persons"),
        ({"events": lambda e: e.drop(columns="id")}, "unit names 'id', which is no column of the events"),
        ({"events": lambda e: e.drop(columns="day")}, "order names 'day', which is no column of the events"),
        ({"summaries": {"ward": ["first"]}}, "summaries names 'ward', which is no column of the events"),
        ({"multiset": ["ward"]}, "multiset names 'ward', which is no column of the events"),
        (
            {"persons": lambda p: p.rename(columns={"sex": "events.sex"})},
            "'events.sex' of the persons begins",
        ),
        ({"summaries": {"why": ["median"]}}, "summaries of 'why' must be some of first"),
        ({"summaries": {"why": "first"}}, "summaries of 'why' must be some of first"),
        ({"summaries": {"why": ["last", "last"]}}, "summaries of 'why' names one more than once"),
        ({"order": None}, "summaries asks for the first or last 'why'"),
        ({"multiset": ["why", "why"]}, "multiset names a column more than once"),
        ({"length": 0}, "length is of the multiset, and at least 1"),
        ({"multiset": (), "length": 3}, "length is of the multiset"),
    ],
)
def test_what_cannot_be_joined_is_refused_without_a_value(change: dict[str, Any], message: str) -> None:
    persons, events = tables(1)
    arguments: dict[str, Any] = {"order": "day", "summaries": ALL, "multiset": ["why"]} | change
    persons = arguments.pop("persons", lambda frame: frame)(persons)
    events = arguments.pop("events", lambda frame: frame)(events)
    with pytest.raises(dp.InputError) as refused:
        join_events(persons, events, "id", **arguments)
    assert message in str(refused.value)
    assert "flu" not in str(refused.value) and "7" not in str(refused.value)
