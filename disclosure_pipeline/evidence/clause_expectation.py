"""An expectation that states one clause, and all that is not public in Great Expectations.

`BatchExpectation`, the types of its fields and what its results are rendered with are no public interface:
they are imported here only, and tests/evidence/test_expectations.py notices when they move. Importing this
module imports Great Expectations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.evidence.batch_tables import NoFigureError
from disclosure_pipeline.policy.clause_words import words_of
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.tables.messages import capitalized

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

# The types of the fields of an expectation.
Text = StrictStr
Count = StrictInt
Number = StrictInt | StrictFloat


class ClauseExpectation(BatchExpectation, ABC):
    """One clause, held by `policy.verdict.hold` against the figures of a table.

    The result has `observed_value` (None where there is no figure), `bound` in the measure's own unit and,
    where there is no figure, `reason`.
    """

    bound: Number

    @abstractmethod
    def _build_clause(self) -> Clause:
        """The clause that the expectation states."""

    @abstractmethod
    def _judge(self, table: pd.DataFrame) -> Judgement:
        """The clause held against the figures of the table. NoFigureError where it has none."""

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
            judgement = self._judge(table)
        except (NoFigureError, DisclosurePipelineError) as error:
            return _fail(str(error))
        except Exception as error:  # its message could hold a value of the table
            return _fail(f"it could not be computed ({type(error).__name__})")
        if judgement.value is None:
            return _fail("there is no figure, or no finite bound")
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
    """The clause in words. Great Expectations prints an error with its message, so that is withheld."""
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
    """A text in Data Docs: as a parameter, since only those are escaped."""
    return RenderedStringTemplateContent(
        content_block_type="string_template",
        string_template={"template": "$text", "params": {"text": text}},
    )
