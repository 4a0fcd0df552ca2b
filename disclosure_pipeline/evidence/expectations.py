"""Expectations on tables of records that fail closed, for suites of one's own.

Importing this module imports Great Expectations, which then finds them by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from great_expectations.compatibility.pydantic import StrictFloat, StrictInt, StrictStr
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.render.components import (
    LegacyDiagnosticRendererType,
    LegacyRendererType,
    RenderedStringTemplateContent,
)
from great_expectations.render.renderer.renderer import renderer

from disclosure_pipeline.errors import DisclosurePipelineError, write_count
from disclosure_pipeline.evaluation.disclosure import disclosure
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import judge
from disclosure_pipeline.tables.messages import capitalized

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration


class NoFigureError(Exception):
    """A table has no figure. The message holds arguments and counts, never a cell of the table."""


def _read_column(table: pd.DataFrame, name: str) -> pd.Series[Any]:
    columns = table.columns.tolist()
    positions = [i for i, column in enumerate(columns) if column == name and isinstance(column, str)]
    if len(positions) != 1:
        raise NoFigureError(f"the table has {write_count(len(positions), 'column')} {name!r}: expected 1")
    return table.iloc[:, positions[0]]


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
Number = StrictInt | StrictFloat


class _StackedTableExpectation(BatchExpectation, ABC):
    """A figure of GT and SD that are stacked in one table is at most a bound.

    The result has `observed_value` and `bound` in the figure's own unit or, without a figure,
    `observed_value` None and `reason`.
    """

    bound: Number
    source_column: Text
    ground_truth: Text
    synthetic: Text
    keys: list[Text]

    @abstractmethod
    def _build_clause(self) -> Clause:
        """Return the clause that the expectation states."""

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
            return self._judge(table)
        except (NoFigureError, DisclosurePipelineError) as error:
            return _fail(str(error))
        except Exception as error:  # its message may quote a value of the table
            return _fail(f"it could not be computed ({type(error).__name__})")

    def _judge(self, table: pd.DataFrame) -> dict[str, Any]:
        clause = self._build_clause()
        sources = (self.ground_truth, self.synthetic)
        result = measure_stacked(table, self.source_column, sources, self.keys, clause.column)
        [judgement] = judge([clause], result)
        if judgement.value is None:
            return _fail("the figure or the bound is not finite")
        found = {"observed_value": judgement.value, "bound": judgement.limit}
        return {"success": judgement.outcome == "kept", "result": found}

    @classmethod
    @renderer(renderer_type=LegacyRendererType.PRESCRIPTIVE)
    def _prescriptive_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> list[RenderedStringTemplateContent]:
        return [_render_text("" if configuration is None else _describe(configuration))]

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


def _describe(configuration: ExpectationConfiguration) -> str:
    """Describe the clause; withhold the message of an error, which Great Expectations would print."""
    try:
        expectation = configuration.to_domain_obj()
        assert isinstance(expectation, _StackedTableExpectation)
        consequence = "; it only warns" if expectation.severity == "warning" else ""
        clause = expectation._build_clause()
        return f"{capitalized(clause.words.title)}: {clause}{consequence}"
    except Exception as error:
        kind = type(error).__name__
    raise NoFigureError(f"a clause cannot be described ({kind}, its message withheld)")


def _render_text(text: str) -> RenderedStringTemplateContent:
    """Return a text for Data Docs, as a parameter, since only those are escaped."""
    return RenderedStringTemplateContent(
        content_block_type="string_template",
        string_template={"template": "$text", "params": {"text": text}},
    )


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
        return Clause("repU", "at_most", self.bound)


class ExpectDiscoToBeAtMost(_StackedTableExpectation):
    """DiSCO of a target of GT and SD that are stacked in one table is at most a bound.

    Args:
        target: The column that an intruder wants to learn.
        bound: The largest allowed DiSCO, in percent of the GT records.

    The other args and the result are those of ExpectReplicatedUniquesToBeAtMost.
    """

    target: Text

    def _build_clause(self) -> Clause:
        return Clause("DiSCO", "at_most", self.bound, (self.target,))
