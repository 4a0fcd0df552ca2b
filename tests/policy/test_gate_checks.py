"""A definition whose parts do not fit together is refused before anything is read."""

from typing import Any

import pytest
from pydantic import ValidationError
from support import gates

from disclosure_pipeline.policy.gate import Gate

NAME = "last_year"

NOT_IN_A_DATABASE: dict[str, tuple[dict[str, Any], str]] = {
    "a password": ({"engine": "postgres://me:secret-77@db/x"}, "a password does not belong here"),
    "no engine": ({"engine": "spark"}, "pattern"),
    "another database": (
        {"engine": "duckdb:///other.duckdb", "ground_truth": {"duckdb": "own.duckdb", "table": "t"}},
        "must be the database that ground_truth is in",
    ),
    "another server": (
        {
            "engine": "postgres://other/db",
            "ground_truth": {"url": "postgresql+psycopg://own/db", "table": "t"},
        },
        "must be the database that ground_truth is in",
    ),
    "a query": (
        {"engine": "duckdb:///own.duckdb", "ground_truth": {"duckdb": "own.duckdb", "query": "SELECT 1"}},
        "make a view",
    ),
    "a file that would be copied": ({"engine": "postgres://db/x"}, "cannot read ground_truth in place"),
    "CSV": ({"engine": "duckdb://"}, "cannot read ground_truth in place"),
    "prediction": (
        {"engine": "duckdb://", "ground_truth": "gt.parquet", "measures": {"prediction": True}},
        "measures.prediction: use memory or auto",
    ),
}


@pytest.mark.parametrize("refused", NOT_IN_A_DATABASE)
def test_what_a_database_cannot_do(refused: str) -> None:
    changes, message = NOT_IN_A_DATABASE[refused]
    with pytest.raises(ValidationError, match=message) as caught:
        Gate.model_validate(gates.definition(**changes))
    assert "secret-77" not in str(caught.value).split("[type=")[0]


LOOSE = {"repU": 100, "DiSCO": 100}
NO_BANDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "negative": (-0.1, {}, "greater than or equal to 0"),
    "not a number": (float("nan"), {}, "finite"),
    "true": (True, {}, "valid number"),
    "a share of all": ({"share": 1}, {}, "below 1"),
    "share and amount": ({"share": 0.1, "amount": 2}, {}, "below 1"),
    "text": ("0.02", {}, "valid number"),
    "of no bound": (0.02, {"policy": LOOSE}, "no bound on DiSCO_within of income"),
    "of a key": (0.02, {"keys": ["sex", "income"], "targets": ["work"], "policy": LOOSE}, "for targets"),
    "with edges": (0.02, {"edges": {"income": [0, 1, 2]}}, "groups or edges"),
    "with a unit": (0.02, {"unit": "person"}, "cannot be combined with unit"),
    "of text": (None, {"columns": {"work": {"type": "category", "within": 2}}}, "within is for numbers"),
    "of none": (None, {}, "only of a target with within"),
}


@pytest.mark.parametrize("refused", NO_BANDS)
def test_what_is_no_band(refused: str) -> None:
    within, changes, message = NO_BANDS[refused]
    columns = gates.definition()["columns"] | {"income": {"type": "integer", "within": within}}
    columns |= changes.get("columns", {})
    bounded = {"policy": LOOSE | {"DiSCO_within": 5}} | changes | {"columns": columns}
    with pytest.raises(ValidationError, match=message):
        Gate.model_validate(gates.definition(**bounded))


def test_a_band_decides() -> None:
    def gate(within: Any) -> Gate:
        columns = gates.definition()["columns"] | {"income": {"type": "integer", "within": within}}
        policy = LOOSE | ({} if within is None else {"DiSCO_within": 5})
        return Gate.model_validate(gates.definition(columns=columns, policy=policy))

    digests = [gate(within).policy_digest() for within in (None, 0.02, 0.03, {"amount": 0.02})]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(
    ("engine", "ground_truth"),
    [
        ("duckdb:///own.duckdb", {"duckdb": "own.duckdb", "table": "t"}),
        ("postgres://own/db", {"url": "postgresql+psycopg://own/db", "table": "t"}),
        ("duckdb://", "gt.parquet"),
    ],
)
def test_what_a_database_can_do(engine: str, ground_truth: Any) -> None:
    """Count tables that are its own, and Parquet where it lies."""
    gate = Gate.model_validate(gates.definition(engine=engine, ground_truth=ground_truth))
    assert gate.in_database and not gate.only_in_memory


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"confidential": {"income": "a.csv"}}, "as a column is"),
        ({"confidential": {"Last year": "a.csv"}}, "lower-case letters"),
        ({"confidential": {"": "a.csv"}}, "lower-case letters"),
        ({"confidential": ["a.csv"]}, "valid dictionary"),
        (
            {"confidential": {NAME: "a.csv"}, "engine": "duckdb:///x.db", "ground_truth": "gt.parquet"},
            f"cannot read confidential.{NAME} in place",
        ),
        (
            {
                "confidential": {NAME: {"duckdb": "other.duckdb", "table": "last"}},
                "engine": "duckdb:///own.duckdb",
                "ground_truth": {"duckdb": "own.duckdb", "table": "people"},
            },
            f"the database that confidential.{NAME} is in",
        ),
        ({"confidential": {NAME: "a.csv"}, "holdout": "others"}, "none of the confidential tables"),
        ({"holdout": NAME}, "none of the confidential tables"),
    ],
)
def test_what_is_no_confidential_table(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Gate.model_validate(gates.definition(**changes))
