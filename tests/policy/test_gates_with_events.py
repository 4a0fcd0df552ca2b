"""A gate of persons and events: what its definition makes of both, and what it refuses."""

from typing import Any

import pytest
from pydantic import ValidationError
from support.hospital import EVENTS, hospital_gate

from disclosure_pipeline.policy.gate import Gate

COLUMNS = EVENTS["columns"]


def events(**changes: Any) -> dict[str, Any]:
    return {"events": EVENTS | changes}


def test_columns_are_made_of_the_events() -> None:
    gate = Gate.model_validate(hospital_gate())
    derived = [name for name in gate.columns if name not in gate.of_persons]
    assert derived == [
        "events.count",
        *(f"events.diagnosis.{summary}" for summary in ("first", "last", "most_frequent")),
        "events.month.first",
        "events.days.most_frequent",
        "events.multiset",
    ]
    assert gate.columns["events.month.first"].range == (1, 24)
    assert {*derived, "sex"} < set(gate.published)
    of_events = [f"events.{name}" for name in COLUMNS]
    assert [*gate.as_arrived] == ["sex", "age", "region", "height", *of_events]
    assert gate.only_in_memory == "events"


def test_the_same_gate_is_read_again_and_events_decide() -> None:
    gate = Gate.model_validate(hospital_gate())
    again = Gate.model_validate(gate.model_dump())
    assert (again, again.policy_digest()) == (gate, gate.policy_digest())
    assert (
        Gate.model_validate(hospital_gate(**events(ground_truth="b.csv"))).policy_digest()
        == gate.policy_digest()
    )
    others = (
        events(length=3),
        events(multiset=["diagnosis"]),
        events(columns=COLUMNS | {"days": {"type": "integer"}}),
        events(summaries=EVENTS["summaries"] | {"days": ["last", "most_frequent"]}),
    )
    digests = {Gate.model_validate(hospital_gate(**other)).policy_digest() for other in others}
    assert len(digests | {gate.policy_digest()}) == len(others) + 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"unit": None}, "events needs unit"),
        ({"confidential": {"last_year": "b.csv"}}, "confidential names further tables"),
        ({"engine": "partitioned"}, "engine partitioned cannot do events"),
        ({"keys": ["sex", "events.ward.first"]}, "keys names events.ward.first"),
        (
            events(
                columns=COLUMNS | {"person": {"type": "category"}},
                summaries=EVENTS["summaries"] | {"person": ["first"]},
            ),
            "unit names person, which events.columns",
        ),
        (events(columns=COLUMNS | {"ward": {"type": "category"}}), "describes ward, which is released"),
        (events(columns=COLUMNS | {"ward": {"type": "text identifier"}}), "ward is a text identifier"),
        (events(order="ward"), "order names 'ward'"),
        (events(order="diagnosis"), "order names diagnosis, which must be a number"),
        (events(order=None), "summaries asks for the first or last 'diagnosis'"),
        (
            events(summaries=EVENTS["summaries"] | {"ward": ["first"]}),
            "summaries names 'ward'",
        ),
        (events(summaries=EVENTS["summaries"] | {"days": []}), "summaries of 'days' must be some"),
        (events(multiset=["ward"]), "multiset names 'ward'"),
        (events(multiset=[], length=3), "length is of the multiset"),
        (events(length=0), "greater than or equal to 1"),
        ({"columns": {"events.count": {"type": "category"}}}, "columns describes events.count"),
        ({"columns": {"events.mine": {"type": "category"}}}, "columns describes events.mine"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], problem: str) -> None:
    own = hospital_gate()
    columns = own["columns"] | changes.get("columns", {})
    with pytest.raises(ValidationError, match=problem):
        Gate.model_validate(own | changes | {"columns": columns})
