"""The public names: how many, how their arguments stand, what their annotations say, what they take."""

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pydantic import BaseModel
from support.sampling import on_some_days

import disclosure_pipeline as dp

MOST = 28
VALUES = {name: getattr(dp, name) for name in dp.__all__ if name != "DisclosureGate"}
FUNCTIONS = {name: value for name, value in VALUES.items() if inspect.isfunction(value)}
RESULTS = {name: value for name, value in VALUES.items() if is_dataclass(value)}
# Functions of tables -> what stands third and fourth where it is not keys and targets.
BEGINNINGS = {
    "copies": ["targets"],
    "found": ["keys"],
    "disclosure_of_key_sets": ["key_sets", "targets"],
    "nearest": [],
    "replicated_uniques": ["keys"],
    "resemblance": [],
}


def test_the_public_names_are_few_and_all_that_is_shown() -> None:
    assert len(dp.__all__) <= MOST
    assert sorted(name for name in dir(dp) if not name.startswith("_")) == sorted(dp.__all__)
    assert len({id(value) for value in VALUES.values()}) == len(VALUES)  # no name for another
    assert not [name for name, value in VALUES.items() if inspect.ismodule(value)]


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"save"}))
def test_arguments_stand_in_one_order(name: str) -> None:
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters.values())
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    begins = ["ground_truth", "synthetic", *BEGINNINGS.get(name, ["keys", "targets"])]
    if name == "power":  # of a policy, before there is a synthesis
        begins = ["ground_truth", "policy", "keys", "targets"]
    assert positional[: len(begins)] == begins
    assert not {p.name for p in parameters} & {"target", "sensitive", "columns"}


def annotations_of(value: Any) -> dict[str, str]:
    """Return the annotations of a public name and of its methods."""
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        found = {name: str(p.annotation) for name, p in signature.parameters.items() if name != "self"}
        return found | {"return": str(signature.return_annotation)}
    if not inspect.isclass(value):
        return {}
    of_methods = {
        f"{name}.{argument}": text
        for name, method in vars(value).items()
        if not name.startswith("_")
        for argument, text in annotations_of(getattr(method, "__func__", method)).items()
    }
    if not is_dataclass(value):
        return of_methods
    return of_methods | {f.name: str(f.type) for f in fields(value) if not f.name.startswith("_")}


# The name of a column, or a level, may be anything: as the key of a mapping, in a tuple of names, in
# `Exclusions` and in a `Pair`.
OF_ANYTHING = {"Exclusions", "Pair"}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_annotations_say_what_may_be_given(name: str) -> None:
    annotations = annotations_of(VALUES[name])
    assert annotations or not (name in FUNCTIONS or name in RESULTS)
    named = {
        name: re.sub(r"Mapping\[Any, |tuple\[Any, \.\.\.\]", "", text) for name, text in annotations.items()
    }
    vague = {argument for argument, text in named.items() if "Any" in text}
    assert not vague or name in OF_ANYTHING


# The same figures, whatever holds the tables


RECORDS = 60
KEYS = ["sex", "age"]
TARGETS = ["work", "income"]


def people(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], RECORDS),
            "age": random.integers(20, 26, RECORDS),
            "work": random.choice(["office", "field"], RECORDS),
            "income": random.integers(1, 6, RECORDS) * 100,
        }
    )


def write(table: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return path


def in_database(table: pd.DataFrame, folder: Path) -> Any:
    ibis = pytest.importorskip("ibis")
    return ibis.duckdb.connect().create_table(f"t{folder.name}", table)


FORMS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "polars": lambda table, _: pl.from_pandas(table),
    "arrow": lambda table, _: pa.Table.from_pandas(table),
    "csv": lambda table, folder: write(table, folder / "table.csv"),
    "parquet": lambda table, folder: str(write(table, folder / "table.parquet")),
    "source": lambda table, folder: dp.FileSource(path=str(write(table, folder / "table.parquet"))),
    "ibis": in_database,
}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "compare_remedies": lambda gt, sd: dp.compare_remedies(
        gt, sd, KEYS, TARGETS, [dp.Remedy.remove_replicated_uniques(), dp.Remedy.top_code("age", at=23)]
    ),
    "copies": lambda gt, sd: dp.copies(gt, sd, TARGETS),
    "disclosure": lambda gt, sd: dp.disclosure(gt, sd, KEYS, TARGETS, engine="memory"),
    "disclosure_of_key_sets": lambda gt, sd: dp.disclosure_of_key_sets(gt, sd, [KEYS, ["sex"]], TARGETS),
    "disclosure_protection": lambda gt, sd: dp.disclosure_protection(
        gt, sd, KEYS, TARGETS, continuous=["income"], bins=3
    ),
    "individual_attribution": lambda gt, sd: dp.individual_attribution(
        gt, sd, KEYS, TARGETS, groups={"income": 3}
    ),
    "found": lambda gt, sd: dp.found(gt, sd, KEYS),
    "nearest": dp.nearest,
    "prediction_risk": lambda gt, sd: dp.prediction_risk(gt, sd, KEYS, TARGETS),
    "replicated_uniques": lambda gt, sd: dp.replicated_uniques(gt, sd, KEYS),
    "resemblance": dp.resemblance,
    "subgroups": lambda gt, sd: dp.subgroups(gt, sd, KEYS, TARGETS, by="sex"),
}


def frames_of(result: Any) -> dict[str, pd.DataFrame]:
    if isinstance(result, pd.DataFrame):
        return {"": result}
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return {name: value for name, value in values.items() if isinstance(value, pd.DataFrame)}


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return {name: call(people(1), [people(2), people(1)]) for name, call in CALLS.items()}


def test_every_function_of_tables_is_called() -> None:
    assert set(CALLS) == set(FUNCTIONS) - {"save", "power"}  # power has tests of its own


@on_some_days
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_figures_whatever_holds_the_tables(
    name: str, form: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    if name == "disclosure" and form == "ibis":
        pytest.skip("a database counts there: tests/counting has it")
    tables = []
    for i, table in enumerate((people(1), people(2), people(1))):
        folder = tmp_path / str(i)
        folder.mkdir()
        tables.append(FORMS[form](table, folder))
    actual = CALLS[name](tables[0], tables[1:])
    assert type(actual) is type(expected[name])
    frames = frames_of(actual)
    assert frames
    for label, frame in frames_of(expected[name]).items():
        pd.testing.assert_frame_equal(frames[label], frame, check_dtype=False)


@pytest.mark.parametrize("name", CALLS)
def test_one_table_and_a_list_of_one_give_the_same_type(name: str, expected: dict[str, Any]) -> None:
    alone, listed = (CALLS[name](people(1), sd) for sd in (people(2), [people(2)]))
    assert type(alone) is type(listed) is type(expected[name])
    for one, other in zip(frames_of(alone).values(), frames_of(listed).values(), strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("name", CALLS)
def test_results_print_without_a_gap(name: str, expected: dict[str, Any]) -> None:
    """No column is left out in the middle, and 80 columns are enough for all but a warning."""
    if isinstance(expected[name], pd.DataFrame):
        return  # printed by pandas
    with pd.option_context("display.width", 80, "display.max_columns", 4):
        text = str(expected[name])
    assert "..." not in text and "…" not in text
    too_wide = [line for line in text.splitlines() if len(line) > 80 and not line.startswith("Warning")]
    assert not too_wide or name == "disclosure"


def test_sources_are_models() -> None:
    assert all(issubclass(VALUES[name], BaseModel) for name in ("FileSource", "SqlSource", "DuckDBSource"))
