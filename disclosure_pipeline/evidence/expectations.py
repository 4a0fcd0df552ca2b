"""Expectations that fail closed, for the metric tables of a gate and for anybody's own suites.

Importing this module imports Great Expectations, which then knows them by name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
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
from disclosure_pipeline.evaluation.disclosure import disclosure
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.policy.bounds import Over
from disclosure_pipeline.policy.clauses import Clause, words_of
from disclosure_pipeline.policy.registry import values
from disclosure_pipeline.tables.messages import capitalized

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration


class NoFigureError(Exception):
    """Why a table has no figure: names that the expectation was given, and counts; no cell of the table."""


def select_rows(table: pd.DataFrame, where: Mapping[str, str | None], syntheses: int) -> pd.DataFrame:
    """Select the rows where each column of `where` has its value (None: missing), one for each synthesis.

    NoFigureError where there are others.
    """
    if table.empty:
        raise NoFigureError("the table is empty")
    selected = np.ones(len(table), dtype=bool)
    for name, value in where.items():
        column = _read_column(table, name)
        matches = column.isna() if value is None else column == value
        selected &= matches.to_numpy(dtype=bool, na_value=False)
    rows = table[selected]
    numbers = _read_column(rows, "synthesis")
    if not pd.api.types.is_integer_dtype(numbers):
        raise NoFigureError(f"column 'synthesis' is of type {numbers.dtype}: expected whole numbers")
    if sorted(numbers) != list(range(1, syntheses + 1)):
        raise NoFigureError(
            f"there are {len(rows)} rows{_describe_condition(where)}: expected one each for 1 to {syntheses}"
        )
    return rows


def _describe_condition(where: Mapping[str, str | None]) -> str:
    conditions = [f"{name} {'missing' if value is None else repr(value)}" for name, value in where.items()]
    return f" with {' and '.join(conditions)}" if conditions else ""


def _read_column(table: pd.DataFrame, name: str) -> pd.Series[Any]:
    columns = table.columns.tolist()
    positions = [i for i, column in enumerate(columns) if column == name and isinstance(column, str)]
    if len(positions) != 1:
        raise NoFigureError(f"the table has {len(positions)} columns {name!r}: expected 1")
    return table.iloc[:, positions[0]]


def read_figures(rows: pd.DataFrame, measure: str) -> list[float]:
    """Return a measure's figures. NoFigureError if they are no numbers, or one is missing or infinite."""
    column = _read_column(rows, measure)
    if not (pd.api.types.is_float_dtype(column) or pd.api.types.is_integer_dtype(column)):
        raise NoFigureError(f"column {measure!r} is of type {column.dtype}: expected numbers")
    figures = [float(figure) for figure in column.to_numpy(dtype=float, na_value=math.nan)]
    doubtful = sum(not math.isfinite(figure) for figure in figures)
    if doubtful:
        raise NoFigureError(f"{doubtful} of {len(figures)} figures of {measure} are missing or infinite")
    return figures


def measure_stacked(
    table: pd.DataFrame, source_column: str, sources: tuple[str, str], keys: Sequence[str], target: str | None
) -> Disclosure:
    """Return what `disclosure()` finds of GT and SD, stacked in one table.

    `sources`: the values of `source_column` for GT and for SD; without a `target` only identity is measured.
    NoFigureError where a record is of neither or both, or the two tables look incomparable.
    """
    source = _read_column(table, source_column)
    is_ground_truth, is_synthetic = (
        (source == value).to_numpy(dtype=bool, na_value=False) for value in sources
    )
    unassigned = int((is_ground_truth == is_synthetic).sum())
    if unassigned:
        raise NoFigureError(f"{unassigned} records are not of exactly one of GT and SD")
    if target is None:  # a constant stands for the target that is not looked at
        target, table = source_column, table.assign(**{source_column: ""})
    table = table.loc[:, table.columns.isin([*keys, target])]
    result = disclosure(table[is_ground_truth], table[is_synthetic], keys, target)
    if result.warnings:
        raise NoFigureError(
            "GT and SD share too little or look differently coded, and a risk would read too low: "
            "disclosure() tells what is doubtful"
        )
    return result


# The types of the fields of an expectation.
Text = StrictStr
Count = StrictInt
Number = StrictInt | StrictFloat


class ClauseExpectation(BatchExpectation, ABC):
    """One clause, held against the figures of a table by a comparison of its own.

    It does not ask `policy.verdict`: where one of both has a fault, suite and verdict disagree. The result
    has `observed_value` (None where there is no figure), `bound` in the measure's own unit and, where there
    is no figure, `reason`.
    """

    bound: Number

    at_least: ClassVar[bool] = False

    @abstractmethod
    def _build_clause(self) -> Clause:
        """Return the clause that the expectation states."""

    @abstractmethod
    def _read(self, table: pd.DataFrame) -> tuple[Sequence[float], Sequence[float] | None]:
        """Read the figure of each synthesis, and what the bound is a share of. NoFigureError without any."""

    def _combine(self, figures: Sequence[float]) -> float:
        """Return the figure that has to keep the bound: the worst."""
        return min(figures) if self.at_least else max(figures)

    def _compare(self, figures: Sequence[float], references: Sequence[float] | None) -> dict[str, Any]:
        """Compare the figures with the bound. Only a finite one within a finite bound succeeds."""
        value, limit = self._combine(figures), self.bound
        if references is not None:
            limit = self.bound * self._combine(references)
        if not (math.isfinite(value) and math.isfinite(limit)):
            return _fail("there is no figure, or no finite bound")
        success = value >= limit if self.at_least else value <= limit
        return {"success": success, "result": {"observed_value": value, "bound": limit}}

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
                raise NoFigureError("the batch is no pandas DataFrame")
            return self._compare(*self._read(table))
        except (NoFigureError, DisclosurePipelineError) as error:
            return _fail(str(error))
        except Exception as error:  # its message could hold a value of the table
            return _fail(f"it could not be computed ({type(error).__name__})")

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    def _prescriptive_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> list[RenderedStringTemplateContent]:
        return [_render_text("" if configuration is None else _describe_safely(configuration))]

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.OBSERVED_VALUE)
    def _diagnostic_observed_value_renderer(  # type: ignore[override]  # a string would not be escaped
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> RenderedStringTemplateContent:
        content = result.result if result is not None and result.result else {}
        if content.get("observed_value") is None:
            return _render_text(str(content.get("reason", "--")))
        return _render_text(f"{content['observed_value']:.6g} (bound {content['bound']:.6g})")


def _fail(reason: str) -> dict[str, Any]:
    return {"success": False, "result": {"observed_value": None, "reason": reason}}


def _describe_safely(configuration: ExpectationConfiguration) -> str:
    """Describe the clause. Great Expectations prints an error with its message, so that is withheld."""
    try:
        return _describe(configuration)
    except Exception as error:
        kind = type(error).__name__
    raise NoFigureError(f"a clause cannot be described ({kind}, its message withheld)")


def _describe(configuration: ExpectationConfiguration) -> str:
    expectation = configuration.to_domain_obj()
    assert isinstance(expectation, ClauseExpectation)
    consequence = "; it only warns" if expectation.severity == "warning" else ""
    clause = expectation._build_clause()
    try:
        title = words_of(clause.measure).title
    except KeyError:  # whoever bounds a measure of their own has no words for it here
        return f"{clause}{consequence}"
    return f"{capitalized(title)}: {clause}{consequence}"


def _render_text(text: str) -> RenderedStringTemplateContent:
    """Return a text in Data Docs: as a parameter, since only those are escaped."""
    return RenderedStringTemplateContent(
        content_block_type="string_template",
        string_template={"template": "$text", "params": {"text": text}},
    )


class _MetricTableExpectation(ClauseExpectation, ABC):
    """A clause on a measure of a metric table: a row per synthesis, numbered from 1 in `synthesis`."""

    measure: Text
    where: dict[Text, Text | None] = {}  # noqa: RUF012  # each expectation gets its own
    over: Over = "worst"
    syntheses: Count = 1

    @abstractmethod
    def _reference_measure(self) -> str | None:
        """Return the column that the bound is a share of; None where the bound is absolute."""

    def _build_clause(self) -> Clause:
        # `table` tells files from all of them together; it is no part of what is measured.
        named = [value for name, value in self.where.items() if value is not None and name != "table"]
        column = ", ".join(named) or None
        return Clause(self.measure, column, self.bound, self.over, self._reference_measure(), self.at_least)

    def _read(self, table: pd.DataFrame) -> tuple[Sequence[float], Sequence[float] | None]:
        reference = self._reference_measure()
        rows = select_rows(table, self.where, self.syntheses)
        references = None if reference is None else read_figures(rows, reference)
        return read_figures(rows, self.measure), references

    def _combine(self, figures: Sequence[float]) -> float:
        return math.fsum(figures) / len(figures) if self.over == "mean" else super()._combine(figures)


class ExpectMeasureToBeAtMost(_MetricTableExpectation):
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

    def _reference_measure(self) -> None:
        return None


class ExpectMeasureToBeAtLeast(ExpectMeasureToBeAtMost):
    """A measure of a metric table whose high values are safe is at least a bound. Args as there."""

    at_least: ClassVar[bool] = True


class ExpectMeasureRatioToBeAtMost(_MetricTableExpectation):
    """A measure of a metric table is at most a share of another, over all syntheses.

    Args:
        share_of: The column that the bound is a share of, such as "UiO" for "repU".
        bound: The largest share that is allowed, such as 0.5.

    The other args are those of ExpectMeasureToBeAtMost. Both columns are taken over the syntheses first. No
    risk is at most any share of no risk.
    """

    share_of: Text

    def _reference_measure(self) -> str:
        return self.share_of


class ExpectMeasureRatioToBeAtLeast(ExpectMeasureRatioToBeAtMost):
    """A measure of a metric table is at least a share of another. Args as there."""

    at_least: ClassVar[bool] = True


class _StackedTableExpectation(ClauseExpectation, ABC):
    """A clause on a measure of GT and SD, whose records stand in one table."""

    source_column: Text
    ground_truth: Text
    synthetic: Text
    keys: list[Text]

    def _measure(self, table: pd.DataFrame, target: str | None) -> Disclosure:
        sources = (self.ground_truth, self.synthetic)
        return measure_stacked(table, self.source_column, sources, self.keys, target)

    def _read(self, table: pd.DataFrame) -> tuple[Sequence[float], None]:
        clause = self._build_clause()
        [figure] = values(self._measure(table, clause.column), clause.measure, clause.column)
        return [figure], None


class ExpectReplicatedUniquesToBeAtMost(_StackedTableExpectation):
    """repU, of a table in which GT and SD are stacked, is at most a bound.

    Args:
        source_column: The column that tells GT from SD.
        ground_truth, synthetic: Its value for the GT records, and for the synthetic ones.
        keys: The columns that an intruder knows.
        bound: The largest repU that is allowed, in percent of the GT records.

    The result holds the figure and nothing else of the table, whatever the result format. Tables that
    `disclosure()` warns of fail.
    """

    def _build_clause(self) -> Clause:
        return Clause("repU", None, self.bound)


class ExpectDiscoToBeAtMost(_StackedTableExpectation):
    """DiSCO of a target, of a table in which GT and SD are stacked, is at most a bound.

    Args:
        target: The column that an intruder wants to learn.
        bound: The largest DiSCO that is allowed, in percent of the GT records.

    The other args, and what is in the result, are those of ExpectReplicatedUniquesToBeAtMost.
    """

    target: Text

    def _build_clause(self) -> Clause:
        return Clause("DiSCO", self.target, self.bound)
