"""The own expectations: what is not a finite figure within its bound fails, and no record is told of."""

from __future__ import annotations

import datetime
import decimal
import json
import logging
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import pytest
from support import gates

import disclosure_pipeline as dp

if TYPE_CHECKING:
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.expectations.expectation import BatchExpectation

Format = Literal["BOOLEAN_ONLY", "BASIC", "SUMMARY", "COMPLETE"]
FORMATS: tuple[Format, ...] = ("BOOLEAN_ONLY", "BASIC", "SUMMARY", "COMPLETE")
NAN = math.nan

# Expectation -> arguments with which METRICS meets it.
MET = {
    "ExpectMeasureToBeAtMost": {"measure": "repU", "bound": 5},
    "ExpectMeasureToBeAtLeast": {"measure": "repU", "bound": 3},
    "ExpectMeasureRatioToBeAtMost": {"measure": "repU", "bound": 0.5, "share_of": "UiO"},
    "ExpectMeasureRatioToBeAtLeast": {"measure": "repU", "bound": 0.3, "share_of": "UiO"},
}
METRICS = pd.DataFrame({"synthesis": [1, 2], "target": ["a", "a"], "repU": [3.0, 5.0], "UiO": [10.0, 10.0]})
OURS = {"where": {"target": "a"}, "syntheses": 2}


@pytest.fixture(scope="module")
def ours() -> ModuleType:
    from disclosure_pipeline.evidence import expectations

    return expectations


def batch(table: pd.DataFrame) -> Batch:
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context.data_sources.pandas_default.read_dataframe(table)


def validated(
    table: pd.DataFrame, expectation: BatchExpectation, form: Format = "COMPLETE"
) -> dict[str, Any]:
    result: dict[str, Any] = batch(table).validate(expectation, result_format=form).to_json_dict()
    assert result["exception_info"]["raised_exception"] is False
    assert isinstance(result["success"], bool)
    return result


@pytest.mark.parametrize("name", MET)
@pytest.mark.parametrize("form", FORMATS)
def test_a_measure_within_its_bound(ours: ModuleType, name: str, form: Format) -> None:
    result = validated(METRICS, getattr(ours, name)(**OURS, **MET[name]), form)
    assert result["success"] is True
    value, bound = (3.0, 3.0) if "AtLeast" in name else (5.0, 5.0)
    assert result["result"] == ({} if form == "BOOLEAN_ONLY" else {"observed_value": value, "bound": bound})


@pytest.mark.parametrize("name", MET)
def test_a_measure_beyond_its_bound(ours: ModuleType, name: str) -> None:
    """By the smallest amount that a float can be."""
    towards = math.inf if "AtLeast" in name else -math.inf
    bound = math.nextafter(float(MET[name]["bound"]), towards)  # type: ignore[arg-type]
    assert validated(METRICS, getattr(ours, name)(**OURS, **MET[name] | {"bound": bound}))["success"] is False


def test_the_mean_of_the_syntheses(ours: ModuleType) -> None:
    at_most = ours.ExpectMeasureToBeAtMost
    assert validated(METRICS, at_most(measure="repU", bound=4, over="mean", **OURS))["success"] is True
    assert validated(METRICS, at_most(measure="repU", bound=4, **OURS))["success"] is False


def changed(**columns: Any) -> pd.DataFrame:
    return METRICS.assign(**columns)


BROKEN: dict[str, pd.DataFrame] = {
    "NaN": changed(repU=[3.0, NAN]),
    "all NaN": changed(repU=[NAN, NAN]),
    "infinite": changed(repU=[3.0, math.inf]),
    "infinitely low": changed(repU=[-math.inf, 3.0]),
    "None": changed(repU=[3.0, None]),
    "None among objects": changed(repU=pd.Series([3.0, None], dtype=object)),
    "NA": changed(repU=pd.Series([3.0, None], dtype="Float64")),
    "objects": changed(repU=pd.Series([3.0, 5.0], dtype=object)),
    "strings": changed(repU=["3.0", "5.0"]),
    "booleans": changed(repU=[True, True]),
    "nullable booleans": changed(repU=pd.Series([True, True], dtype="boolean")),
    "complex numbers": changed(repU=[3 + 0j, 5 + 0j]),
    "categories": changed(repU=pd.Categorical([3.0, 5.0])),
    "decimals": changed(repU=[decimal.Decimal(3), decimal.Decimal(5)]),
    "dates": changed(repU=[datetime.datetime(1970, 1, 1)] * 2),
    "periods of time": changed(repU=pd.to_timedelta([3, 5], unit="ns")),
    "lists": changed(repU=[[3.0], [5.0]]),
    "missing row": METRICS.iloc[:1],
    "row of another target": changed(target=["a", "b"]),
    "row without a target": changed(target=["a", None]),
    "doubled row": METRICS.iloc[[0, 1, 1]],
    "doubled instead of missing": METRICS.iloc[[1, 1]],
    "one row too many": pd.concat([METRICS, METRICS.iloc[:1].assign(synthesis=3)]),
    "numbered from 0": changed(synthesis=[0, 1]),
    "numbers as text": changed(synthesis=["1", "2"]),
    "numbers as floats": changed(synthesis=[1.0, 2.0]),
    "booleans for numbers": changed(synthesis=[True, False]),
    "empty": METRICS.iloc[:0],
    "without columns": pd.DataFrame(),
    "without columns, with rows": pd.DataFrame(index=[0, 1]),
    "without the measure": METRICS.drop(columns="repU"),
    "without synthesis": METRICS.drop(columns="synthesis"),
    "without target": METRICS.drop(columns="target"),
    "doubled measure": pd.concat([METRICS, METRICS["repU"]], axis=1),
    "doubled synthesis": pd.concat([METRICS, METRICS["synthesis"]], axis=1),
    "doubled target": pd.concat([METRICS, METRICS["target"]], axis=1),
    "columns of two levels": pd.concat([METRICS], axis=1, keys=["all"]),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_no_figure_fails(ours: ModuleType, broken: str) -> None:
    """With a plain reason, and nothing raised."""
    import great_expectations as gx

    suite = gx.ExpectationSuite("all", [getattr(ours, name)(**OURS, **given) for name, given in MET.items()])
    assert batch(METRICS).validate(suite).success is True
    results = batch(BROKEN[broken]).validate(suite).results
    assert len(results) == len(MET)
    for result in results:
        assert result.success is False
        assert result.exception_info["raised_exception"] is False
        assert result.result["observed_value"] is None
        assert len(result.result["reason"]) > 10
        assert "could not be computed" not in result.result["reason"]


@pytest.mark.parametrize("name", [name for name in MET if "Ratio" in name])
@pytest.mark.parametrize(
    "original", [[10.0, NAN], [10.0, math.inf], ["10", "10"], [True, True], None], ids=str
)
def test_a_share_of_no_figure_fails(ours: ModuleType, name: str, original: Any) -> None:
    table = METRICS.drop(columns="UiO") if original is None else changed(UiO=original)
    assert validated(table, getattr(ours, name)(**OURS, **MET[name]))["success"] is False


@pytest.mark.parametrize("bound", [NAN, math.inf, -math.inf])
@pytest.mark.parametrize("name", MET)
def test_a_bound_that_bounds_nothing_fails(ours: ModuleType, name: str, bound: float) -> None:
    expectation = getattr(ours, name)(**OURS, **MET[name] | {"bound": bound})
    assert validated(METRICS, expectation)["success"] is False
    nothing_bounded = getattr(ours, name)(where={"target": "nobody"}, syntheses=0, **MET[name])
    assert validated(METRICS, nothing_bounded)["success"] is False


@pytest.mark.parametrize(
    "wrong", [{"bound": True}, {"bound": "5"}, {"bound": None}, {"over": "best"}, {"at_least": True},
              {"syntheses": 2.0}, {"measure": 1}, {"where": {"target": 1}}], ids=str
)  # fmt: skip
def test_arguments_of_another_kind_are_refused(ours: ModuleType, wrong: dict[str, Any]) -> None:
    from great_expectations.compatibility.pydantic import ValidationError

    with pytest.raises(ValidationError):
        ours.ExpectMeasureToBeAtMost(**OURS | MET["ExpectMeasureToBeAtMost"] | wrong)


@pytest.mark.parametrize("dtype", ["float32", "int8", "Int64", "Float64", "double[pyarrow]", "uint64"])
def test_numbers_of_any_size(ours: ModuleType, dtype: str) -> None:
    expectation = ours.ExpectMeasureToBeAtMost(measure="repU", bound=5, **OURS)
    assert validated(changed(repU=METRICS["repU"].astype(dtype)), expectation)["success"] is True


def test_rows_without_a_target(ours: ModuleType) -> None:
    expectation = ours.ExpectMeasureToBeAtMost(measure="repU", bound=3, where={"target": None})
    table = changed(target=[None, "a"])
    assert validated(table, expectation)["success"] is True
    assert validated(METRICS, expectation)["success"] is False


@pytest.mark.parametrize("name", MET)
def test_an_exception_fails(ours: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its message is withheld: it could be a value."""

    def broken(*_: Any) -> None:
        raise ArithmeticError(gates.CANARIES[0])

    monkeypatch.setattr(ours.ClauseExpectation, "_compare", broken)
    result = validated(METRICS, getattr(ours, name)(**OURS, **MET[name]))
    assert result["success"] is False
    assert result["result"]["reason"] == "it could not be computed (ArithmeticError)"
    assert gates.CANARIES[0] not in json.dumps(result)


def test_only_pandas_is_understood(ours: ModuleType, tmp_path: Path) -> None:
    import great_expectations as gx
    import sqlalchemy

    address = f"sqlite:///{tmp_path / 'metrics.db'}"
    engine = sqlalchemy.create_engine(address)
    METRICS.to_sql("metrics", engine, index=False)
    source = gx.get_context(mode="ephemeral").data_sources.add_sqlite("here", connection_string=address)
    actual = source.add_table_asset("metrics").add_batch_definition_whole_table("all").get_batch()
    result = actual.validate(ours.ExpectMeasureToBeAtMost(measure="repU", bound=5, **OURS))
    engine.dispose()
    assert result.success is False
    assert result.result["reason"] == "the batch is not a pandas DataFrame"


def test_figures_of_the_library(ours: ModuleType) -> None:
    """The frames of `disclosure()` are metric tables, but for their index."""
    tables = [gates.honest(1), gates.honest(2)]
    actual = dp.disclosure(gates.ground_truth(), tables, ["sex", "age"], ["work"])
    largest = float(actual.attribute["DiSCO"].max())
    suite = {"measure": "DiSCO", "where": {"target": "work"}, "syntheses": 2}
    table = actual.attribute.reset_index()
    assert validated(table, ours.ExpectMeasureToBeAtMost(bound=largest, **suite))["success"] is True
    result = validated(table, ours.ExpectMeasureToBeAtMost(bound=math.nextafter(largest, 0), **suite))
    assert result["success"] is False
    assert result["result"]["observed_value"] == largest


KEYS = ["sex", "age"]
SOURCES = {"source_column": "source", "ground_truth": "GT", "synthetic": "SD", "keys": KEYS}


def stacked(GT: pd.DataFrame | None = None, SD: pd.DataFrame | None = None) -> pd.DataFrame:
    """GT, which holds the canaries, and SD in one table."""
    GT = gates.ground_truth() if GT is None else GT
    SD = gates.honest() if SD is None else SD
    return pd.concat([GT.assign(source="GT"), SD.assign(source="SD")], ignore_index=True)


def both(ours: ModuleType, bound: float = 100, **changes: Any) -> list[BatchExpectation]:
    arguments = SOURCES | changes
    return [
        ours.ExpectReplicatedUniquesToBeAtMost(bound=bound, **arguments),
        ours.ExpectDiscoToBeAtMost(bound=bound, target="work", **arguments),
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_a_copy_is_doubtful_whatever_the_bound(ours: ModuleType, form: Format) -> None:
    _, DiSCO = both(ours)
    assert validated(stacked(SD=gates.ground_truth()), DiSCO, form)["success"] is False


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("form", FORMATS)
def test_the_figure_is_that_of_disclosure(ours: ModuleType, seed: int, form: Format) -> None:
    SD = gates.honest(seed)
    actual = dp.disclosure(gates.ground_truth(), SD, KEYS, "work")
    for expectation, figure in zip(
        both(ours), (actual.identity["repU"], actual.attribute["DiSCO"]), strict=True
    ):
        value = float(figure.iloc[0])
        message = {} if form == "BOOLEAN_ONLY" else {"observed_value": value, "bound": 100}
        result = validated(stacked(SD=SD), expectation, form)
        assert (result["success"], result["result"]) == (True, message)
        expectation.bound = value  # type: ignore[attr-defined]
        assert validated(stacked(SD=SD), expectation, form)["success"] is True
        expectation.bound = math.nextafter(value, 0)  # type: ignore[attr-defined]
        assert validated(stacked(SD=SD), expectation, form)["success"] is False


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
@pytest.mark.parametrize("form", FORMATS)
def test_no_value_is_told(
    ours: ModuleType,
    fault: str,
    form: Format,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not in a result, nor in an exception, log or warning."""
    caplog.set_level(logging.DEBUG)
    make, changes = TABLES_BY_FAULT[fault]
    table = make()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        results = [validated(table, expectation, form) for expectation in both(ours, **changes)]
    is_right = fault == "nothing is wrong"
    assert [result["success"] for result in results] == [is_right, is_right]
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
def test_a_copy_in_disguise_does_not_look_safe(
    ours: ModuleType, disguise: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    """If the tables share no key, every risk reads 0, and that must not pass."""
    SD = disguise(gates.ground_truth())
    actual = dp.disclosure(gates.ground_truth(), SD, KEYS, "work")
    assert actual.identity["repU"].tolist() == [0.0]
    for expectation in both(ours, bound=0):
        result = validated(stacked(SD=SD), expectation)
        assert result["success"] is False
        assert "look differently coded" in result["result"]["reason"]


def test_a_column_that_is_not_asked_for_has_no_say(ours: ModuleType) -> None:
    """Such as a number of the row, which starts again in SD."""
    numbered = stacked(
        *(table.assign(row=range(len(table))) for table in (gates.ground_truth(), gates.honest()))
    )
    assert all(validated(numbered, expectation)["success"] for expectation in both(ours))


def all_kinds(ours: ModuleType) -> list[BatchExpectation]:
    return [getattr(ours, name)(**OURS, **arguments) for name, arguments in MET.items()] + both(ours)


def test_a_suite_can_be_stored(ours: ModuleType) -> None:
    import great_expectations as gx

    suite = gx.ExpectationSuite("policy", all_kinds(ours))
    stored = json.dumps(suite.to_json_dict())
    assert gx.ExpectationSuite(**json.loads(stored)) == suite


def rendered(table: pd.DataFrame, *expectations: BatchExpectation) -> str:
    import great_expectations as gx
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    result = batch(table).validate(gx.ExpectationSuite("suite", list(expectations)))
    page = DefaultJinjaPageView().render(ValidationResultsPageRenderer().render(result))  # type: ignore[no-untyped-call]
    return " ".join(page.split())


def test_data_docs(ours: ModuleType) -> None:
    """It breaks where Great Expectations renders otherwise than with what it is given here."""
    of_metrics = rendered(METRICS, *all_kinds(ours))
    of_records = rendered(stacked(), *both(ours, bound=50))
    for words in (
        "repU of a is at most 5 (worst synthesis)",
        "repU of a is at least 3 (worst synthesis)",
        "repU of a is at most 0.5 of UiO (worst synthesis)",
        "repU of a is at least 0.3 of UiO (worst synthesis)",
        "5 (bound 5)",
        "the table has 0 columns 'source': expected 1",
    ):
        assert words in of_metrics
    result = dp.disclosure(gates.ground_truth(), gates.honest(), KEYS, "work")
    for words in (
        "repU is at most 50 (worst synthesis)",
        "DiSCO of work is at most 50 (worst synthesis)",
        f"{result.identity['repU'].iloc[0]:.6g} (bound 50)",
        f"{result.attribute['DiSCO'].iloc[0]:.6g} (bound 50)",
    ):
        assert words in of_records
    assert "raised an exception" not in of_metrics + of_records
    assert not [canary for canary in gates.CANARIES if canary in of_records]


def test_data_docs_say_what_only_warns(ours: ModuleType) -> None:
    arguments = OURS | {"measure": "repU", "bound": 1, "severity": "warning"}
    assert "(worst synthesis); it only warns" in rendered(METRICS, ours.ExpectMeasureToBeAtMost(**arguments))


def test_a_clause_is_told_in_the_words_of_its_measure(ours: ModuleType) -> None:
    arguments = {"where": {"target": "work"}, "syntheses": 2}
    page = rendered(METRICS, ours.ExpectMeasureToBeAtMost(measure="repU", bound=5, **arguments))
    assert "Replicated uniques: repU of work is at most 5 (worst synthesis)" in page


def test_names_are_no_markup(ours: ModuleType) -> None:
    """Also where they look like it, or like a parameter of a template."""
    name = '<img src="x">$text$$a & b'
    table = METRICS.rename(columns={"repU": name}).assign(target=name)
    arguments = {"measure": name, "where": {"target": name}, "syntheses": 2}
    page = rendered(table, ours.ExpectMeasureToBeAtMost(bound=5, **arguments))
    assert '<img src="x">$' not in page
    escaped = '&lt;img src="x"&gt;$text$$a &amp; b'
    assert f"{escaped} of {escaped} is at most 5 (worst synthesis)" in page
    page = rendered(METRICS, ours.ExpectMeasureToBeAtMost(bound=5, **arguments))
    assert '<img src="x">$' not in page
