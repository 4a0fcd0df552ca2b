"""The own expectations: what is not a finite figure within its bound fails, and no record is told of."""

from __future__ import annotations

import json
import logging
import math
import warnings
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import pytest
from support import gates
from support.figures import without_guards

import disclosure_pipeline as dp

if TYPE_CHECKING:
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.expectations.expectation import BatchExpectation

Format = Literal["BOOLEAN_ONLY", "BASIC", "SUMMARY", "COMPLETE"]
FORMATS: tuple[Format, ...] = ("BOOLEAN_ONLY", "BASIC", "SUMMARY", "COMPLETE")
NAN = math.nan


def batch(table: pd.DataFrame) -> Batch:
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context.data_sources.pandas_default.read_dataframe(table)


def validated(
    table: pd.DataFrame | Batch, expectation: BatchExpectation, form: Format = "COMPLETE"
) -> dict[str, Any]:
    tables = batch(table) if isinstance(table, pd.DataFrame) else table
    result: dict[str, Any] = tables.validate(expectation, result_format=form).to_json_dict()
    assert result["exception_info"]["raised_exception"] is False
    assert isinstance(result["success"], bool)
    return result


KEYS = ["sex", "age"]
SOURCES = {"source_column": "source", "ground_truth": "GT", "synthetic": "SD", "keys": KEYS}


def stacked(GT: pd.DataFrame | None = None, SD: pd.DataFrame | None = None) -> pd.DataFrame:
    """GT, which holds the canaries, and SD in one table."""
    GT = gates.ground_truth() if GT is None else GT
    SD = gates.honest() if SD is None else SD
    return pd.concat([GT.assign(source="GT"), SD.assign(source="SD")], ignore_index=True)


def expect_disco(**changes: Any) -> BatchExpectation:
    from disclosure_pipeline.evidence.expectations import ExpectDiscoToBeAtMost

    return ExpectDiscoToBeAtMost(**{"bound": 100, "target": "work", **SOURCES, **changes})


def both(**changes: Any) -> list[BatchExpectation]:
    from disclosure_pipeline.evidence.expectations import ExpectReplicatedUniquesToBeAtMost

    expect_repU = ExpectReplicatedUniquesToBeAtMost(**{"bound": 100, **SOURCES, **changes})
    return [expect_repU, expect_disco(**changes)]


@pytest.mark.parametrize("form", FORMATS)
def test_a_copy_is_doubtful_whatever_the_bound(form: Format) -> None:
    assert validated(stacked(SD=gates.ground_truth()), expect_disco(), form)["success"] is False


@pytest.mark.parametrize("seed", [1, 2])
def test_the_figure_is_that_of_disclosure(seed: int) -> None:
    SD = gates.honest(seed)
    with without_guards():
        actual = dp.disclosure(gates.ground_truth(), SD, KEYS, "work")
        figures = actual.identity["repU"].item(), actual.attribute["DiSCO"].item()
        tables = batch(stacked(SD=SD))
        for (expectation, value), form in product(zip(both(), figures, strict=True), FORMATS):
            for bound, success in ((100, True), (value, True), (math.nextafter(value, 0), False)):
                expectation.bound = bound
                result = validated(tables, expectation, form)
                assert result["success"] is success
                if success:
                    told = {"observed_value": value, "bound": bound}
                    assert result["result"] == ({} if form == "BOOLEAN_ONLY" else told)


class Unhashable(list[str]):
    """A cell that nothing can be done with, and that tells its content wherever it can."""

    def __repr__(self) -> str:
        raise ValueError(self[0])


TABLES_BY_FAULT: dict[str, tuple[Callable[[], pd.DataFrame], Mapping[str, Any]]] = {
    "nothing is wrong": (stacked, {}),
    "a canary for a source": (lambda: stacked().replace({"source": {"SD": gates.CANARIES[0]}}), {}),
    "missing sources": (
        lambda: stacked().assign(source=lambda table: table["source"].where(table.index > 3)), {}
    ),
    "no GT": (lambda: stacked().iloc[300:], {}),
    "no SD": (lambda: stacked().iloc[:300], {}),
    "empty": (lambda: stacked().iloc[:0], {}),
    "no source": (lambda: stacked().drop(columns="source"), {}),
    "no key": (lambda: stacked().drop(columns="age"), {}),
    "a key twice": (lambda: pd.concat([stacked(), stacked()["age"]], axis=1), {}),
    "a key named twice": (stacked, {"keys": ["age", "age"]}),
    "no keys": (stacked, {"keys": []}),
    "the source as a key": (stacked, {"keys": ["age", "source"]}),
    "one source for both": (stacked, {"synthetic": "GT"}),
    "values of several kinds": (lambda: stacked(SD=gates.honest().astype({"age": str})), {}),
    "canaries as a key": (stacked, {"keys": ["work", "income"]}),
    "unhashable cells": (
        lambda: stacked(GT=gates.ground_truth().assign(age=pd.Series([Unhashable(gates.CANARIES)] * 300))), {}
    ),
    "dates and text": (
        lambda: stacked(
            GT=gates.ground_truth().assign(age=pd.Timestamp("2020-01-01")), SD=gates.ground_truth()
        ), {}
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", TABLES_BY_FAULT)
def test_no_value_is_told(
    fault: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not in a result of any form, nor in an exception, log or warning."""
    caplog.set_level(logging.DEBUG)
    make, changes = TABLES_BY_FAULT[fault]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        tables = batch(make())
        results = [validated(tables, *case) for case in product(both(**changes), FORMATS)]
    assert {result["success"] for result in results} == {fault == "nothing is wrong"}
    message = json.dumps(results) + caplog.text + "".join(capfd.readouterr()) + "".join(map(str, warned))
    assert not [canary for canary in gates.CANARIES if canary in message]


@pytest.mark.parametrize(
    "disguise",
    [
        lambda SD: SD.assign(sex=SD["sex"].str.upper()),
        lambda SD: SD.assign(sex=SD["sex"] + " "),
        lambda SD: SD.assign(age=SD["age"] + 0.25),
    ],
    ids=["upper", "blank", "shifted"],
)
def test_a_copy_in_disguise_does_not_look_safe(disguise: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """If the tables share no key, every risk reads 0, and that must not pass."""
    SD = disguise(gates.ground_truth())
    actual = dp.disclosure(gates.ground_truth(), SD, KEYS, "work")
    assert actual.identity["repU"].tolist() == [0.0]
    for expectation in both(bound=0):
        result = validated(stacked(SD=SD), expectation)
        assert result["success"] is False
        assert "look differently coded" in result["result"]["reason"]


def test_a_column_that_is_not_asked_for_has_no_say() -> None:
    """Such as a number of the row, which starts again in SD."""
    numbered = stacked(
        *(table.assign(row=range(len(table))) for table in (gates.ground_truth(), gates.honest()))
    )
    assert all(validated(numbered, expectation)["success"] for expectation in both())


def test_a_suite_can_be_stored() -> None:
    import great_expectations as gx

    suite = gx.ExpectationSuite("policy", both())
    stored = json.dumps(suite.to_json_dict())
    assert gx.ExpectationSuite(**json.loads(stored)) == suite


def rendered(table: pd.DataFrame, *expectations: BatchExpectation) -> str:
    import great_expectations as gx
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    result = batch(table).validate(gx.ExpectationSuite("suite", list(expectations)))
    page = DefaultJinjaPageView().render(ValidationResultsPageRenderer().render(result))  # type: ignore[no-untyped-call]
    return " ".join(page.split())


def test_data_docs() -> None:
    """It breaks where Great Expectations renders otherwise than with what it is given here."""
    page = rendered(stacked(), *both(bound=50))
    without = rendered(stacked().drop(columns="source"), *both())
    result = dp.disclosure(gates.ground_truth(), gates.honest(), KEYS, "work")
    for words in (
        "Replicated uniques: repU is at most 50 (worst synthesis)",
        "DiSCO of work is at most 50 (worst synthesis)",
        f"{result.identity['repU'].iloc[0]:.6g} (bound 50)",
        f"{result.attribute['DiSCO'].iloc[0]:.6g} (bound 50)",
    ):
        assert words in page
    assert "the table has 0 columns 'source': expected 1" in without
    assert "raised an exception" not in page + without
    assert not [canary for canary in gates.CANARIES if canary in page]


def test_data_docs_say_what_only_warns() -> None:
    assert "(worst synthesis); it only warns" in rendered(stacked(), *both(severity="warning"))


def test_names_are_no_markup() -> None:
    """Also where they look like it, or like a parameter of a template."""
    name = '<img src="x">$text$$a & b'
    table = stacked().rename(columns={"work": name})
    expectation = expect_disco(bound=50, target=name)
    for of in (table, stacked()):
        assert '<img src="x">$' not in rendered(of, expectation)
    escaped = '&lt;img src="x"&gt;$text$$a &amp; b'
    assert f"DiSCO of {escaped} is at most 50 (worst synthesis)" in rendered(table, expectation)


@pytest.mark.parametrize("bound", [NAN, math.inf, -math.inf])
def test_a_bound_that_bounds_nothing_fails(bound: float) -> None:
    for expectation in both(bound=bound):
        assert validated(stacked(), expectation)["success"] is False


@pytest.mark.parametrize(
    "wrong", [{"bound": True}, {"bound": "5"}, {"bound": None}, {"over": "best"}, {"keys": "age"},
              {"source_column": 1}, {"target": 1}], ids=str
)  # fmt: skip
def test_arguments_of_another_kind_are_refused(wrong: dict[str, Any]) -> None:
    from great_expectations.compatibility.pydantic import ValidationError

    with pytest.raises(ValidationError):
        expect_disco(**wrong)


def test_an_exception_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its message is withheld: it could be a value."""

    def broken(*_: Any) -> None:
        raise ArithmeticError(gates.CANARIES[0])

    monkeypatch.setattr("disclosure_pipeline.evidence.expectations.disclosure", broken)
    for expectation in both():
        result = validated(stacked(), expectation)
        assert result["success"] is False
        assert result["result"]["reason"] == "it could not be computed (ArithmeticError)"
        assert gates.CANARIES[0] not in json.dumps(result)


def test_only_pandas_is_understood(tmp_path: Path) -> None:
    import great_expectations as gx
    import sqlalchemy

    address = f"sqlite:///{tmp_path / 'stacked.db'}"
    engine = sqlalchemy.create_engine(address)
    stacked().to_sql("stacked", engine, index=False)
    source = gx.get_context(mode="ephemeral").data_sources.add_sqlite("here", connection_string=address)
    actual = source.add_table_asset("stacked").add_batch_definition_whole_table("all").get_batch()
    result = actual.validate(both()[0])
    engine.dispose()
    assert result.success is False
    assert result.result["reason"] == "the batch is not a pandas DataFrame"
