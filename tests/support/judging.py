"""Judgements of figures that are given, as rows of the long table."""

from collections.abc import Sequence

from disclosure_pipeline.evaluation.long_table import ALL_FILES, WITH_RELEASES, FigureRow, Part
from disclosure_pipeline.measures.found import WAYS
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.verdict import Judgement, judge_rows


def rows_of(clause: Clause, figures: Sequence[float], owns: Sequence[float] = ()) -> list[FigureRow]:
    """The rows of a clause with the figures of files; of all of them together it has that of the first."""
    parts: list[Part] = list(range(1, len(figures) + 1))
    values = dict(zip(parts, figures, strict=True))
    if is_stacked(clause) and len(figures) > 1:
        values[ALL_FILES] = figures[0]
    if clause.column in WAYS and figures:
        values[WITH_RELEASES] = figures[0]
    own = dict(zip(parts, owns, strict=False))
    return [
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


def is_stacked(clause: Clause) -> bool:
    return clause.entry is not None and clause.entry.is_stacked and clause.over == "worst"


def judge_values(
    clause: Clause, figures: Sequence[float], files: int | None = None, owns: Sequence[float] = ()
) -> Judgement:
    """Judge a clause by its figures; `files`: of a candidate, by default as many as there are figures for."""
    if files is None:
        files = max(len(figures), 1)
    [judgement] = judge_rows([clause], rows_of(clause, figures, owns), files)
    return judgement
