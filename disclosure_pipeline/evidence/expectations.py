"""Expectations that fail closed, for the metric tables of a gate and for anybody's own suites.

Importing this module imports Great Expectations, which then knows them by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import pandas as pd

from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.batch_tables import measure_stacked, read_figures, select_rows
from disclosure_pipeline.evidence.clause_expectation import ClauseExpectation, Count, Text
from disclosure_pipeline.policy.bounds import Over
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.registry import values
from disclosure_pipeline.policy.verdict import Judgement, hold


class _MetricTableExpectation(ClauseExpectation, ABC):
    """A clause on a measure of a metric table: a row per synthesis, numbered from 1 in `synthesis`."""

    measure: Text
    where: dict[Text, Text | None] = {}  # noqa: RUF012  # each expectation gets its own
    over: Over = "worst"
    syntheses: Count = 1

    at_least: ClassVar[bool] = False

    @abstractmethod
    def _reference_measure(self) -> str | None:
        """The column that the bound is a share of; None where the bound is absolute."""

    def _build_clause(self) -> Clause:
        # `table` tells files from all of them together; it is no part of what is measured.
        named = [value for name, value in self.where.items() if value is not None and name != "table"]
        column = ", ".join(named) or None
        return Clause(self.measure, column, self.bound, self.over, self._reference_measure(), self.at_least)

    def _judge(self, table: pd.DataFrame) -> Judgement:
        reference = self._reference_measure()
        rows = select_rows(table, self.where, self.syntheses)
        references = None if reference is None else read_figures(rows, reference)
        return hold(self._build_clause(), read_figures(rows, self.measure), self.syntheses, references)


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

    def _judge(self, table: pd.DataFrame) -> Judgement:
        result = self._measure(table, None)
        return hold(self._build_clause(), values(result, "repU", None), 1)


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

    def _judge(self, table: pd.DataFrame) -> Judgement:
        result = self._measure(table, self.target)
        return hold(self._build_clause(), values(result, "DiSCO", self.target), 1)
