"""Expectations that fail closed, for the metric tables of a gate and for anybody's own suites.

Importing this module imports Great Expectations. `BatchExpectation` and what its results are rendered with
are no public interface of it: they are imported here only, and tests/test_expectations.py notices when they
move.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
from great_expectations.compatibility.pydantic import StrictFloat, StrictInt, StrictStr
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.render.components import (
    LegacyDiagnosticRendererType,
    LegacyRendererType,
    RenderedStringTemplateContent,
)
from great_expectations.render.renderer.renderer import renderer

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.evaluation import disclosure
from disclosure_pipeline.policy.measured import values
from disclosure_pipeline.policy.policy import Clause, Over
from disclosure_pipeline.policy.verdict import Judgement, hold
from disclosure_pipeline.result import Disclosure

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration


class _DoubtError(Exception):
    """Why a table has no figure. It names what the expectation was told, and counts; no cell of the table."""


class _Held(BatchExpectation, ABC):
    """One clause, held by `policy.verdict.hold` against the figures of a table.

    The result has `observed_value` (None where there is no figure), `bound` in the measure's own unit and,
    where there is no figure, `reason`.
    """

    bound: StrictInt | StrictFloat

    @abstractmethod
    def _clause(self) -> Clause:
        """The clause that the expectation states."""

    @abstractmethod
    def _judged(self, table: pd.DataFrame) -> Judgement:
        """The clause held against the figures of the table. Raises _DoubtError where it has none."""

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
    ) -> dict[str, Any]:
        try:
            assert execution_engine is not None
            table = execution_engine.get_domain_records(self._get_domain_kwargs())
            if not isinstance(table, pd.DataFrame):
                raise _DoubtError("the batch is no pandas DataFrame")
            judgement = self._judged(table)
        except (_DoubtError, DisclosurePipelineError) as doubt:
            return _failed(str(doubt))
        except Exception as error:  # what it says could be a value of the table
            return _failed(f"it could not be computed ({type(error).__name__})")
        if judgement.value is None:
            return _failed("there is no figure, or no finite bound")
        return {
            "success": judgement.outcome == "kept",
            "result": {"observed_value": judgement.value, "bound": judgement.limit},
        }

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    def _prescriptive_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> list[RenderedStringTemplateContent]:
        return [_text("" if configuration is None else _words(configuration))]

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.OBSERVED_VALUE)
    def _diagnostic_observed_value_renderer(  # type: ignore[override]  # a string would not be escaped
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> RenderedStringTemplateContent:
        found = result.result if result is not None and result.result else {}
        if found.get("observed_value") is None:
            return _text(str(found.get("reason", "--")))
        return _text(f"{found['observed_value']:.6g} (bound {found['bound']:.6g})")


def _failed(reason: str) -> dict[str, Any]:
    return {"success": False, "result": {"observed_value": None, "reason": reason}}


def _words(configuration: ExpectationConfiguration) -> str:
    expectation = configuration.to_domain_obj()
    assert isinstance(expectation, _Held)
    consequence = "; it only warns" if expectation.severity == "warning" else ""
    return f"{expectation._clause()}{consequence}"


def _text(text: str) -> RenderedStringTemplateContent:
    """A text in Data Docs: as a parameter, since only those are escaped."""
    return RenderedStringTemplateContent(
        content_block_type="string_template",
        string_template={"template": "$text", "params": {"text": text}},
    )


class _OfMetricTable(_Held, ABC):
    """A clause on a measure of a metric table: a row per synthesis, numbered from 1 in `synthesis`."""

    measure: StrictStr
    where: dict[StrictStr, StrictStr | None] = {}  # noqa: RUF012  # each expectation gets its own
    over: Over = "worst"
    syntheses: StrictInt = 1

    at_least: ClassVar[bool] = False

    @abstractmethod
    def _original(self) -> str | None:
        """What the bound is a share of."""

    def _clause(self) -> Clause:
        column = ", ".join(value for value in self.where.values() if value is not None) or None
        return Clause(self.measure, column, self.bound, self.over, self._original(), self.at_least)

    def _judged(self, table: pd.DataFrame) -> Judgement:
        original = self._original()
        rows = _rows(table, self.where, self.syntheses)
        originals = None if original is None else _figures(rows, original)
        return hold(self._clause(), _figures(rows, self.measure), self.syntheses, originals)


def _rows(table: pd.DataFrame, where: Mapping[str, str | None], syntheses: int) -> pd.DataFrame:
    """The rows of a measure, if there is exactly one for each synthesis."""
    if table.empty:
        raise _DoubtError("the table is empty")
    rows = table
    for name, value in where.items():
        column = _column(rows, name)
        chosen = column.isna() if value is None else column == value
        rows = rows[chosen.to_numpy(dtype=bool, na_value=False)]
    numbers = _column(rows, "synthesis")
    if not pd.api.types.is_integer_dtype(numbers):
        raise _DoubtError(f"column 'synthesis' is of type {numbers.dtype}: expected whole numbers")
    if sorted(numbers) != list(range(1, syntheses + 1)):
        raise _DoubtError(f"there are {len(rows)} rows{_of(where)}: expected one each for 1 to {syntheses}")
    return rows


def _of(where: Mapping[str, str | None]) -> str:
    told = [f"{name} {'missing' if value is None else repr(value)}" for name, value in where.items()]
    return f" with {' and '.join(told)}" if told else ""


def _column(table: pd.DataFrame, name: str) -> pd.Series[Any]:
    found = [i for i, column in enumerate(table.columns) if isinstance(column, str) and column == name]
    if len(found) != 1:
        raise _DoubtError(f"the table has {len(found)} columns {name!r}: expected 1")
    return table.iloc[:, found[0]]


def _figures(rows: pd.DataFrame, measure: str) -> list[float]:
    column = _column(rows, measure)
    if not (pd.api.types.is_float_dtype(column) or pd.api.types.is_integer_dtype(column)):
        raise _DoubtError(f"column {measure!r} is of type {column.dtype}: expected numbers")
    figures = [float(figure) for figure in column.to_numpy(dtype=float, na_value=math.nan)]
    doubtful = sum(not math.isfinite(figure) for figure in figures)
    if doubtful:
        raise _DoubtError(f"{doubtful} of {len(figures)} figures of {measure} are missing or infinite")
    return figures


class ExpectMeasureToBeAtMost(_OfMetricTable):
    """A measure of a metric table is at most a bound, over all syntheses.

    Args:
        measure: The column with the figures.
        bound: The largest value that is allowed.
        where: Column -> value of the rows with the measure, such as {"target": "income"}; None stands for a
            missing value. By default all rows.
        over: Whether the "worst" of the syntheses or their "mean" must keep the bound.
        syntheses: How many there are: exactly one row each, numbered from 1 in the column `synthesis`.

    Anything else than finite numbers in exactly these rows fails.
    """

    def _original(self) -> None:
        return None


class ExpectMeasureToBeAtLeast(ExpectMeasureToBeAtMost):
    """A measure of a metric table whose high values are safe is at least a bound. Args as there."""

    at_least: ClassVar[bool] = True


class ExpectMeasureRatioToBeAtMost(_OfMetricTable):
    """A measure of a metric table is at most a share of another, over all syntheses.

    Args:
        share_of: The column that the bound is a share of, such as "UiO" for "repU".
        bound: The largest share that is allowed, such as 0.5.

    The other args are those of ExpectMeasureToBeAtMost. Both columns are taken over the syntheses first. No
    risk is at most any share of no risk.
    """

    share_of: StrictStr

    def _original(self) -> str:
        return self.share_of


class ExpectMeasureRatioToBeAtLeast(ExpectMeasureRatioToBeAtMost):
    """A measure of a metric table is at least a share of another. Args as there."""

    at_least: ClassVar[bool] = True


class _OfStackedTable(_Held, ABC):
    """A clause on a measure of GT and SD, whose records stand in one table."""

    source_column: StrictStr
    ground_truth: StrictStr
    synthetic: StrictStr
    keys: list[StrictStr]


def _measured(expectation: _OfStackedTable, table: pd.DataFrame, target: str | None) -> Disclosure:
    """What `disclosure()` finds of the two tables that are stacked in one."""
    name = expectation.source_column
    source = _column(table, name)
    of_each = [
        (source == value).to_numpy(dtype=bool, na_value=False)
        for value in (expectation.ground_truth, expectation.synthetic)
    ]
    strangers = int((of_each[0] == of_each[1]).sum())
    if strangers:
        raise _DoubtError(f"{strangers} records are not of exactly one of GT and SD")
    if target is None:  # a constant stands for the target that is not looked at
        target, table = name, table.assign(**{name: ""})
    table = table.loc[:, table.columns.isin([*expectation.keys, target])]
    found = disclosure(table[of_each[0]], table[of_each[1]], expectation.keys, target)
    if found.warnings:
        raise _DoubtError(
            "GT and SD share too little or look differently coded, and a risk would read too low: "
            "disclosure() tells what is doubtful"
        )
    return found


class ExpectReplicatedUniquesToBeAtMost(_OfStackedTable):
    """repU, of a table in which GT and SD are stacked, is at most a bound.

    Args:
        source_column: The column that tells GT from SD.
        ground_truth, synthetic: Its value for the GT records, and for the synthetic ones.
        keys: The columns that an intruder knows.
        bound: The largest repU that is allowed, in percent of the GT records.

    The result holds the figure and nothing else of the table, whatever the result format. Tables that
    `disclosure()` warns of fail.
    """

    def _clause(self) -> Clause:
        return Clause("repU", None, self.bound)

    def _judged(self, table: pd.DataFrame) -> Judgement:
        found = _measured(self, table, None)
        return hold(self._clause(), values(found, "repU", None), 1)


class ExpectDiscoToBeAtMost(_OfStackedTable):
    """DiSCO of a target, of a table in which GT and SD are stacked, is at most a bound.

    Args:
        target: The column that an intruder wants to learn.
        bound: The largest DiSCO that is allowed, in percent of the GT records.

    The other args, and what is in the result, are those of ExpectReplicatedUniquesToBeAtMost.
    """

    target: StrictStr

    def _clause(self) -> Clause:
        return Clause("DiSCO", self.target, self.bound)

    def _judged(self, table: pd.DataFrame) -> Judgement:
        found = _measured(self, table, self.target)
        return hold(self._clause(), values(found, "DiSCO", self.target), 1)
