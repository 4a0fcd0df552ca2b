"""Judgements of figures that are given, as rows of the long table."""

from collections.abc import Sequence

import pandas as pd

from disclosure_pipeline.candidates.measuring import measure_without_guards
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.evaluation.long_table import ALL_FILES, WITH_RELEASES, FigureRow, Part
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.found import WAYS
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, judge_rows
from disclosure_pipeline.tables.alignment import as_frames


def measured_alone(of: Gate, ground_truth: pd.DataFrame, syntheses: Sequence[pd.DataFrame]) -> Disclosure:
    """The figures of keys and targets alone: guards and controls take most of the time."""
    return measure_without_guards(of, FramesInMemory(as_frames(ground_truth, syntheses), "memory"))


def judge_values(
    clause: Clause, figures: Sequence[float], files: int | None = None, owns: Sequence[float] = ()
) -> Judgement:
    """Judge a clause by its figures; all files together have that of the first.

    `files`: of a candidate, by default as many as there are figures for.
    """
    values: dict[Part, float] = dict(enumerate(figures, start=1))
    own = dict(zip(values, owns, strict=False))
    is_stacked = clause.entry is not None and clause.entry.is_stacked and clause.over == "worst"
    if is_stacked and len(figures) > 1:
        values[ALL_FILES] = figures[0]
    if clause.column in WAYS and figures:
        values[WITH_RELEASES] = figures[0]
    rows = [
        FigureRow(
            clause.figure,
            about,
            part,
            value=figure,
            beyond=figure,
            beyond_chance=figure,
            permuted=0.0,
            own=own.get(part, float("nan")),
        )
        for about in clause.about or (None,)
        for part, figure in values.items()
    ]
    [judgement] = judge_rows([clause], rows, max(len(figures), 1) if files is None else files)
    return judgement
