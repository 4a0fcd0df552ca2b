"""A definition whose parts do not fit together is refused before anything is read."""

from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError
from support import gates
from support.hospital import EVENTS, hospital_gate
from support.sampling import on_some_days, some_of
from support.surveys import TABLES, gate_of, leaked

from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import judge

NAME = "last_year"

OWN = {"engine": "duckdb:///own.duckdb", "ground_truth": {"duckdb": "own.duckdb", "table": "people"}}
SERVER = {"url": "postgresql+psycopg://own/db", "table": "t"}
PREDICTED = {"ground_truth": "gt.parquet", "measures": {"prediction": True}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # A database cannot count it
        ({"engine": "postgres://me:secret-77@db/x"}, "a password does not belong here"),
        ({"engine": "spark"}, "pattern"),
        (OWN | {"engine": "duckdb:///other.duckdb"}, "must be the database of ground_truth"),
        ({"engine": "postgres://other/db", "ground_truth": SERVER}, "must be the database of ground_truth"),
        (OWN | {"ground_truth": {"duckdb": "own.duckdb", "query": "SELECT 1"}}, "create a view"),
        ({"engine": "postgres://db/x"}, "cannot read ground_truth in place"),  # it would be copied
        ({"engine": "duckdb://"}, "cannot read ground_truth in place"),  # it is CSV
        (PREDICTED | {"engine": "duckdb://"}, "measures.prediction: use memory or auto"),
        (
            {"confidential": {NAME: "a.csv"}, "engine": "duckdb:///x.db", "ground_truth": "gt.parquet"},
            f"cannot read confidential.{NAME} in place",
        ),
        (
            OWN | {"confidential": {NAME: {"duckdb": "other.duckdb", "table": "last"}}},
            f"the database of confidential.{NAME}",
        ),
        # The confidential table is none
        ({"confidential": {"income": "a.csv"}}, "like a column"),
        ({"confidential": {"Last year": "a.csv"}}, "lower-case letters"),
        ({"confidential": {"": "a.csv"}}, "lower-case letters"),
        ({"confidential": ["a.csv"]}, "valid dictionary"),
        ({"confidential": {NAME: "a.csv"}, "holdout": "others"}, "not a confidential table"),
        ({"holdout": NAME}, "not a confidential table"),
    ],
)
def test_refuses_tables_that_cannot_be_counted_or_compared(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        gates.gate(**changes)
    assert "secret-77" not in str(caught.value).split("[type=")[0]


LOOSE = {"repU": 100, "DiSCO": 100}
NO_BANDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "negative": (-0.1, {}, "greater than or equal to 0"),
    "not a number": (float("nan"), {}, "finite"),
    "true": (True, {}, "valid number"),
    "a share of all": ({"share": 1}, {}, "below 1"),
    "share and amount": ({"share": 0.1, "amount": 2}, {}, "below 1"),
    "text": ("0.02", {}, "valid number"),
    "of no bound": (0.02, {"policy": LOOSE}, "set a bound on DiSCO_within of income"),
    "of a key": (0.02, {"keys": ["sex", "income"], "targets": ["work"], "policy": LOOSE}, "is not a target"),
    "with edges": (0.02, {"edges": {"income": [0, 1, 2]}}, "groups or edges"),
    "of text": (None, {"columns": {"work": {"type": "category", "within": 2}}}, "within is for numbers"),
    "of none": (None, {}, "only targets with within have"),
}


@pytest.mark.parametrize(("within", "changes", "message"), NO_BANDS.values(), ids=NO_BANDS)
def test_refuses_an_invalid_band(within: Any, changes: dict[str, Any], message: str) -> None:
    columns = gates.definition()["columns"] | {"income": {"type": "integer", "within": within}}
    columns |= changes.get("columns", {})
    bounded = {"policy": LOOSE | {"DiSCO_within": 5}} | changes | {"columns": columns}
    with pytest.raises(ValidationError, match=message):
        gates.gate(**bounded)


@pytest.mark.parametrize(
    "changes",
    [
        OWN,
        {"engine": "postgres://own/db", "ground_truth": SERVER},
        {"engine": "duckdb://", "ground_truth": "gt.parquet"},
    ],
)
def test_a_database_counts_its_own_tables_and_parquet_in_place(changes: dict[str, Any]) -> None:
    gate = gates.gate(**changes)
    assert gate.counts_in_database and not gate.memory_only_features


# A gate of persons and events: what its definition makes of both, and what it refuses


COLUMNS = EVENTS["columns"]


def events(**changes: Any) -> dict[str, Any]:
    return {"events": EVENTS | changes}


def test_derives_columns_from_the_events() -> None:
    gate = Gate.model_validate(hospital_gate())
    derived = [name for name in gate.columns if name not in gate.person_columns]
    assert derived == [
        "events.count",
        *(f"events.diagnosis.{summary}" for summary in ("first", "last", "most_frequent")),
        "events.month.first",
        "events.days.most_frequent",
        "events.multiset",
    ]
    assert gate.columns["events.month.first"].range == (1, 24)
    assert {*derived, "sex"} < set(gate.published_columns)
    of_events = [f"events.{name}" for name in COLUMNS]
    assert [*gate.arriving_columns] == ["sex", "age", "region", "height", *of_events]
    assert gate.memory_only_features == "events"


def test_the_same_gate_is_read_again_and_events_decide() -> None:
    gate = Gate.model_validate(hospital_gate())
    assert Gate.model_validate(gate.model_dump()) == gate
    others: list[dict[str, Any]] = [
        {"ground_truth": "b.csv"},  # which decides nothing
        {"length": 3},
        {"multiset": ["diagnosis"]},
        {"columns": COLUMNS | {"days": {"type": "integer"}}},
        {"summaries": EVENTS["summaries"] | {"days": ["last", "most_frequent"]}},
    ]
    digests = [Gate.model_validate(hospital_gate(**events(**other))).policy_digest() for other in others]
    assert digests[0] == gate.policy_digest() == Gate.model_validate(gate.model_dump()).policy_digest()
    assert len(set(digests)) == len(others)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"unit": None}, "events needs unit"),
        ({"confidential": {"last_year": "b.csv"}}, "confidential tables have no events"),
        ({"engine": "partitioned"}, "engine partitioned does not support events"),
        ({"keys": ["sex", "events.ward.first"]}, "'events.ward.first' is not described"),
        (
            events(
                columns=COLUMNS | {"person": {"type": "category"}},
                summaries=EVENTS["summaries"] | {"person": ["first"]},
            ),
            "unit names person, which events.columns",
        ),
        (events(columns=COLUMNS | {"ward": {"type": "category"}}), "describes ward, which would be released"),
        (events(columns=COLUMNS | {"ward": {"type": "text identifier"}}), "ward is a text identifier"),
        (events(order="ward"), "order names 'ward'"),
        (events(order="diagnosis"), "order names diagnosis, which is not a number"),
        (events(order=None), "summaries asks for the first or last 'diagnosis'"),
        (events(summaries=EVENTS["summaries"] | {"ward": ["first"]}), "summaries names 'ward'"),
        (events(summaries=EVENTS["summaries"] | {"days": []}), "summaries of 'days' must be some"),
        (events(multiset=["ward"]), "multiset names 'ward'"),
        (events(multiset=[], length=3), "length needs a multiset"),
        (events(length=0), "greater than or equal to 1"),
        ({"columns": {"events.count": {"type": "category"}}}, "columns describes events.count"),
        ({"columns": {"events.mine": {"type": "category"}}}, "columns describes events.mine"),
    ],
)
def test_refuses_settings_that_do_not_fit_together(changes: dict[str, Any], problem: str) -> None:
    own = hospital_gate()
    columns = own["columns"] | changes.get("columns", {})
    with pytest.raises(ValidationError, match=problem):
        Gate.model_validate(own | changes | {"columns": columns})


# A gate whose ground truth has several records of one person: what decides counts people


def broken(name: str, sd: pd.DataFrame, *, with_unit: bool = True) -> set[str]:
    gate = Gate.model_validate(gate_of(name, with_unit=with_unit))
    make, unit, _, _ = TABLES[name]
    gt = make(1) if with_unit else make(1).drop(columns=unit)
    judgements = judge(gate.clauses(), gates.measured(gate, gt, [sd]))
    return {
        str(judgement.clause.figure)
        for judgement in judgements
        if judgement.outcome != "kept" and not judgement.clause.warns
    }


@on_some_days
@pytest.mark.parametrize("name", some_of(TABLES, 4, part_in_ci=1))
def test_fresh_people_pass_and_copied_ones_do_not(name: str) -> None:
    make, unit, _, _ = TABLES[name]
    assert broken(name, make(2).drop(columns=unit)) == set()
    assert "found" in broken(name, leaked(name, 0.1))
    found = broken(name, leaked(name, 0.9))
    assert {"found", "guessed"} <= found


@on_some_days
@pytest.mark.parametrize("name", TABLES)
def test_a_near_copy_is_counted_no_more_often_than_it_stands(name: str) -> None:
    """One synthetic record that equals several records of one person is one copy."""
    candidate = leaked(name, 0.9).drop_duplicates()
    result = gates.measured(Gate.model_validate(gate_of(name)), TABLES[name][0](1), [candidate])
    by_records = result.frame("partial_copies")[["unique_copies_beyond", "people_copied_beyond"]]
    assert result.found["found"]["all but one", 1] <= by_records.to_numpy().max()


def test_without_a_unit_records_that_stand_twice_hide_their_people() -> None:
    assert broken("twice", leaked("twice", 0.3), with_unit=False) == {"alike"}
    assert "found" in broken("twice", leaked("twice", 0.3))


def test_several_files_are_counted_together() -> None:
    sd = leaked("couples", 0.3)
    gate = Gate.model_validate(gate_of("couples"))
    result = gates.measured(gate, TABLES["couples"][0](1), [sd.iloc[::2], sd.iloc[1::2]])
    assert result.stacked is not None
    assert result.stacked.frame("guards")["people_copied_beyond"].item() > 15
    assert list(result.units.index) == [1, 2]
    assert len(result.stacked.units) == 1


def test_a_unit_is_no_column_of_the_dictionary() -> None:
    columns = gate_of("couples")["columns"] | {"household": {"type": "integer"}}
    with pytest.raises(ValidationError, match="remove it from columns"):
        Gate.model_validate(gate_of("couples", columns=columns))


@pytest.mark.parametrize("name", ["ground_truth", "incoming", "store", "releases", "trusted_keys"])
@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_a_path_that_no_file_can_have_is_refused(name: str, path: str) -> None:
    with pytest.raises(ValidationError, match="a path"):
        Gate.model_validate(gates.definition(**{name: path}))


def test_the_grouping_of_the_keys_leaves_out_the_targets() -> None:
    columns = gates.definition()["columns"]
    assert not gates.gate(columns=columns).key_grouping.groups  # those of the income
    columns["income"].pop("groups")
    of_gate = gates.gate(columns=columns, edges={"age": [0, 40, 120], "income": [0, 2000, 90000]})
    assert {*of_gate.grouping.explicit} == {"age", "income"}
    assert {*of_gate.key_grouping.explicit} == {"age"}
