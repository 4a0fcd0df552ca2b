"""Opened tables in, figures out: the one way from counts to a result, for library, command line and gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.engines import OpenedTables
from disclosure_pipeline.evaluation.copies import copies_frame
from disclosure_pipeline.evaluation.counts import (
    Counts,
    MeasuringPlan,
    code_shared_columns,
    count_record_sets,
    count_request,
    counts_for,
    plan_measures,
)
from disclosure_pipeline.evaluation.figures import figures, key_overlap
from disclosure_pipeline.evaluation.guards import bound_guesses, measure_guards
from disclosure_pipeline.evaluation.holdout import PreparedHoldout, add_holdout
from disclosure_pipeline.evaluation.over_releases import add_first_release
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evaluation.subgroups import measure_worst_groups
from disclosure_pipeline.evaluation.survey import (
    check_weights,
    list_unshared_columns,
    measure_population,
    read_weights,
    weigh_people_copied,
)
from disclosure_pipeline.evaluation.units import count_sets_by_unit, measure_by_units, read_units
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn

_GUESSED = ["guessed", "guessed_at_n", "guessed_others", "guessed_beyond", "guessed_beyond_se"]


def measure(
    opened: OpenedTables,
    plan: MeasuringPlan,
    on_progress: OnProgress = ignore_progress,
    holdout: PreparedHoldout | None = None,
) -> Disclosure:
    """Measure what is planned of each synthesis, and of several `together` all stacked as one table, too.

    As a gate's first release: `evaluation.over_releases` adds those that are out.

    InputError where the columns cannot be compared, or it is not known whose a record is.
    """
    if plan.weights is not None:
        check_weights(opened, plan.weights, on_progress)

    @cache
    def widen(*names: Any) -> OpenedTables:
        return opened.with_columns(names)

    several = plan.together and len(opened.columns[1:]) > 1
    result, counts = _measure_tables(opened, replace(plan, together=several), widen, on_progress)
    if several:
        whole_records = plan.whole_records and replace(plan.whole_records, group_columns=())
        of_all = replace(plan, together=False, whole_records=whole_records)
        stacked, _ = _measure_tables(
            opened.stacked(), of_all, lambda *names: widen(*names).stacked(), on_progress
        )
        result = replace(result, stacked=stacked)
    if plan.whole_records is not None:
        result = add_first_release(result)
    return result if holdout is None else add_holdout(result, holdout, counts, on_progress)


def measure_key_overlap(
    opened: OpenedTables, keys: Sequence[Any], grouping: Grouping, on_progress: OnProgress = ignore_progress
) -> pd.DataFrame:
    """Return the frame `key_overlap` alone, for tables of which nothing else can be measured."""
    plan = plan_measures(opened, keys, (), grouping)
    coded = opened.code(plan.columns, grouping, on_progress)
    request = count_request(plan, {column.name: column for column in coded})
    [counted] = opened.count([request], on_progress)
    return key_overlap(counts_for(opened, request, counted, coded))


def _measure_tables(
    opened: OpenedTables,
    plan: MeasuringPlan,
    widen: Callable[..., OpenedTables],
    on_progress: OnProgress,
) -> tuple[Disclosure, Counts]:
    """Measure tables in one pass over their records; `widen` opens them with columns of GT alone."""
    whole, units, weighted = plan.whole_records, None, None
    if whole is None:
        coded = opened.code(plan.columns, plan.grouping, on_progress)
    else:
        coded = code_shared_columns(opened, plan.grouping, on_progress)
    columns = {column.name: column for column in coded}
    request = count_request(plan, columns)
    if whole is None:
        [counted] = opened.count([request], on_progress)
    else:
        [counted], records = count_record_sets(opened, [request], coded, plan.targets, on_progress)
    counts = counts_for(opened, request, counted, coded)
    result = figures(counts, plan)
    if plan.unit is not None:
        units = read_units(widen(plan.unit), plan, on_progress, list(columns))
        result = measure_by_units(result, units, plan)
    if plan.is_of_sample:
        weighted = read_weights(widen(*list_unshared_columns(plan)), plan, on_progress, list(columns))
        result = measure_population(result, weighted, plan)
    if whole is None:
        return result, counts
    if units is not None:
        records = count_sets_by_unit(records, units)
    guards = measure_guards(opened, coded, records, units, whole.seed, whole.smallest_count)
    groups = pd.DataFrame()
    if whole.group_columns:
        groups = measure_worst_groups(
            opened,
            columns,
            whole.group_columns,
            result,
            plan.grouping,
            whole.special_values,
            whole.smallest_count,
            units,
            weighted if plan.weights is not None else None,
        )
    per_unit = units.records_per_unit if units else 1
    sizes = [Sizes(result.N_d, N_s).divide(per_unit) for N_s in result.N_s]
    copied = [keys.shared.SD_in_GT for keys in records.whole]
    grouped = [column for column in request.columns if plan.grouping.grouped(column.name)]
    result = replace(
        result,
        # Guesses are a guard's, so they are there whether the family that they stand with is on or not.
        guessed=bound_guesses(result.cap[_GUESSED], counts.targets, sizes),
        cap=result.cap if plan.attribution else result.cap.head(0),
        doubts=_find_excluded(result),
        warning_counts=_count_warnings(result),
        exact_copies=copies_frame(len(columns), copied, result.N_s),
        groups=_count_groups(grouped),
        subgroups=groups,
        guards=guards.guards,
        partial_copies=guards.partial_copies,
        columns_apart=guards.columns_apart,
    )
    if weighted is not None and plan.weights is not None:
        result = replace(result, population=weigh_people_copied(result, weighted))
    return result, counts


def _find_excluded(result: Disclosure) -> pd.DataFrame:
    """Index (target, synthesis); `excluded`: percent of the GT records that the exclusions take."""
    of_GT = result.excluded.xs("original", level="table")
    return pd.DataFrame({"excluded": 100 * (1 - of_GT["remaining"] / result.N_d)})


def _count_warnings(result: Disclosure) -> pd.DataFrame:
    """Return the number of warnings about the tables, beside each synthesis: not every warning names one."""
    syntheses = pd.RangeIndex(1, len(result.N_s) + 1, name="synthesis")
    return pd.DataFrame({"warnings": len(result.warnings)}, index=syntheses)


def _count_groups(columns: Sequence[CodedColumn]) -> pd.DataFrame:
    """Return the levels of every grouped column and the records in each: column, level, GT, SD."""
    rows = [
        {
            "column": column.name,
            "level": column.label(code),
            "GT": int(column.counts[0][code]),
            "SD": int(of_code),
        }
        for column in columns
        for code, of_code in enumerate(np.sum(column.counts[1:], axis=0))
    ]
    return pd.DataFrame(rows, columns=["column", "level", "GT", "SD"])
