"""Expectations that fail closed, for the metric tables of a gate and for other suites.

Importing this module imports Great Expectations, which then finds them by name.
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

from disclosure_pipeline.errors import DisclosurePipelineError, choose_form, write_count
from disclosure_pipeline.evaluation.disclosure import disclosure
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.policy.bounds import Over
from disclosure_pipeline.policy.clauses import Clause, find_measure_words
from disclosure_pipeline.policy.registry import find_figures
from disclosure_pipeline.tables.messages import capitalized

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration


class NoFigureError(Exception):
    """A table has no figure. The message holds arguments and counts, never a cell of the table."""


def select_rows(table: pd.DataFrame, where: Mapping[str, str | None], syntheses: int) -> pd.DataFrame:
    """Select the rows in which each column of `where` has its value (None: missing).

    Raise NoFigureError unless there is exactly one row per synthesis.
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
            f"there {choose_form(len(rows), 'is', 'are')} "
            f"{write_count(len(rows), 'row')}{_describe_condition(where)}: expected one per synthesis, "
            f"numbered 1 to {syntheses}"
        )
    return rows


def _describe_condition(where: Mapping[str, str | None]) -> str:
    conditions = [f"{name} {'missing' if value is None else repr(value)}" for name, value in where.items()]
    return f" with {' and '.join(conditions)}" if conditions else ""


def _read_column(table: pd.DataFrame, name: str) -> pd.Series[Any]:
    columns = table.columns.tolist()
    positions = [i for i, column in enumerate(columns) if column == name and isinstance(column, str)]
    if len(positions) != 1:
        raise NoFigureError(f"the table has {write_count(len(positions), 'column')} {name!r}: expected 1")
    return table.iloc[:, positions[0]]


def read_figures(rows: pd.DataFrame, measure: str) -> list[float]:
    """Return a measure's figures. Raise NoFigureError unless all are finite numbers."""
    column = _read_column(rows, measure)
    if not (pd.api.types.is_float_dtype(column) or pd.api.types.is_integer_dtype(column)):
        raise NoFigureError(f"column {measure!r} is of type {column.dtype}: expected numbers")
    figures = [float(figure) for figure in column.to_numpy(dtype=float, na_value=math.nan)]
    invalid = sum(not math.isfinite(figure) for figure in figures)
    if invalid:
        are = choose_form(invalid, "is", "are")
        raise NoFigureError(
            f"{invalid} of {write_count(len(figures), 'figure')} of {measure} {are} missing or infinite"
        )
    return figures


def measure_stacked(
    table: pd.DataFrame, source_column: str, sources: tuple[str, str], keys: Sequence[str], target: str | None
) -> Disclosure:
    """Measure GT and SD stacked in one table by `disclosure()`.

    `sources`: the values of `source_column` for GT and for SD. Without a `target`, only identity is measured.
    Raise NoFigureError if a record is not from exactly one of them, the tables look differently coded, or
    people were copied.
    """
    source = _read_column(table, source_column)
    is_ground_truth, is_synthetic = (
        (source == value).to_numpy(dtype=bool, na_value=False) for value in sources
    )
    unassigned = int((is_ground_truth == is_synthetic).sum())
    if unassigned:
        raise NoFigureError(
            f"{write_count(unassigned, 'record is', 'records are')} not of exactly one of GT and SD"
        )
    if target is None:  # a constant stands in for the target
        target, table = source_column, table.assign(**{source_column: ""})
    table = table.loc[:, table.columns.isin([*keys, target])]
    result = disclosure(table[is_ground_truth], table[is_synthetic], keys, target)
    if result.warnings:
        raise NoFigureError(
            "GT and SD share too little or look differently coded, so risks would read too low: "
            "disclosure() warns of the reasons"
        )
    if result.copies.findings:
        raise NoFigureError("people were copied: disclosure() says how many, whatever this figure is")
    return result


# The types of the fields of an expectation.
Text = StrictStr
Count = StrictInt
Number = StrictInt | StrictFloat


class ClauseExpectation(BatchExpectation, ABC):
    """One clause, compared with the figures of a table independently of `policy.verdict`.

    So a fault in one of them makes suite and verdict disagree. The result has `observed_value` and `bound` in
    the measure's own unit or, without a figure, `observed_value` None and `reason`.
    """

    bound: Number

    at_least: ClassVar[bool] = False

    @abstractmethod
    def _build_clause(self) -> Clause:
        """Return the clause that the expectation states."""

    @abstractmethod
    def _read(self, table: pd.DataFrame) -> tuple[Sequence[float], Sequence[float] | None]:
        """Return the figure of each synthesis, and the figures that the bound is a share of, if it is one."""

    def _combine(self, figures: Sequence[float]) -> float:
        """Return the worst figure, which must keep the bound."""
        return min(figures) if self.at_least else max(figures)

    def _compare(self, figures: Sequence[float], references: Sequence[float] | None) -> dict[str, Any]:
        """Compare the figures with the bound. Only a finite one within a finite bound succeeds."""
        value, limit = self._combine(figures), self.bound
        if references is not None:
            limit = self.bound * self._combine(references)
        if not (math.isfinite(value) and math.isfinite(limit)):
            return _fail("the figure or the bound is not finite")
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
                raise NoFigureError("the batch is not a pandas DataFrame")
            return self._compare(*self._read(table))
        except (NoFigureError, DisclosurePipelineError) as error:
            return _fail(str(error))
        except Exception as error:  # its message may quote a value of the table
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
    """Describe the clause; withhold the message of an error, which Great Expectations would print."""
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
        title = find_measure_words(clause.measure).title
    except KeyError:  # a measure of another project
        return f"{clause}{consequence}"
    return f"{capitalized(title)}: {clause}{consequence}"


def _render_text(text: str) -> RenderedStringTemplateContent:
    """Return a text for Data Docs, as a parameter, since only those are escaped."""
    return RenderedStringTemplateContent(
        content_block_type="string_template",
        string_template={"template": "$text", "params": {"text": text}},
    )


class _MetricTableExpectation(ClauseExpectation, ABC):
    """A clause on a measure of a metric table: a row per synthesis, numbered from 1 in `synthesis`."""

    measure: Text
    where: dict[Text, Text | None] = {}  # noqa: RUF012  # pydantic copies it
    over: Over = "worst"
    syntheses: Count = 1

    @abstractmethod
    def _reference_measure(self) -> str | None:
        """Return the column that the bound is a share of, or None for an absolute bound."""

    def _build_clause(self) -> Clause:
        # `table` tells single files from all of them together; a clause does not name it.
        names = [value for name, value in self.where.items() if value is not None and name != "table"]
        column = ", ".join(names) or None
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
        bound: The largest allowed value.
        where: Column -> value of the rows to use, such as {"target": "income"}; None is a missing value. By
            default all rows.
        over: Whether the "worst" of the syntheses or their "mean" must keep the bound.
        syntheses: Their number: one row each, numbered from 1 in the column `synthesis`.

    Anything but finite numbers in exactly these rows fails.
    """

    def _reference_measure(self) -> None:
        return None


class ExpectMeasureToBeAtLeast(ExpectMeasureToBeAtMost):
    """A measure whose high values are safe is at least a bound. Args as of ExpectMeasureToBeAtMost."""

    at_least: ClassVar[bool] = True


class ExpectMeasureRatioToBeAtMost(_MetricTableExpectation):
    """A measure of a metric table is at most a share of another, over all syntheses.

    Args:
        share_of: The column that the bound is a share of, such as "UiO" for "repU".
        bound: The largest allowed share, such as 0.5.

    The other args are those of ExpectMeasureToBeAtMost. Each column is combined over the syntheses first. If
    both are 0, the bound is kept.
    """

    share_of: Text

    def _reference_measure(self) -> str:
        return self.share_of


class ExpectMeasureRatioToBeAtLeast(ExpectMeasureRatioToBeAtMost):
    """A measure is at least a share of another. Args as of ExpectMeasureRatioToBeAtMost."""

    at_least: ClassVar[bool] = True


class _StackedTableExpectation(ClauseExpectation, ABC):
    """A clause on a measure of GT and SD that are stacked in one table."""

    source_column: Text
    ground_truth: Text
    synthetic: Text
    keys: list[Text]

    def _measure(self, table: pd.DataFrame, target: str | None) -> Disclosure:
        sources = (self.ground_truth, self.synthetic)
        return measure_stacked(table, self.source_column, sources, self.keys, target)

    def _read(self, table: pd.DataFrame) -> tuple[Sequence[float], None]:
        clause = self._build_clause()
        [figure] = find_figures(self._measure(table, clause.column), clause.measure, clause.column)
        return [figure], None


class ExpectReplicatedUniquesToBeAtMost(_StackedTableExpectation):
    """repU of GT and SD that are stacked in one table is at most a bound.

    Args:
        source_column: The column that tells GT from SD.
        ground_truth, synthetic: Its values for the GT records and for the synthetic ones.
        keys: The columns an intruder knows.
        bound: The largest allowed repU, in percent of the GT records.

    The result holds nothing of the table except the figure, whatever the result format. Tables that
    `disclosure()` warns about fail.
    """

    def _build_clause(self) -> Clause:
        return Clause("repU", None, self.bound)


class ExpectDiscoToBeAtMost(_StackedTableExpectation):
    """DiSCO of a target of GT and SD that are stacked in one table is at most a bound.

    Args:
        target: The column that an intruder wants to learn.
        bound: The largest allowed DiSCO, in percent of the GT records.

    The other args and the result are those of ExpectReplicatedUniquesToBeAtMost.
    """

    target: Text

    def _build_clause(self) -> Clause:
        return Clause("DiSCO", self.target, self.bound)
