"""`copies()` and `partial_copies()`: SD records that equal a GT record, beside what other people show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.counting.memory.partial_records import count_records
from disclosure_pipeline.counting.memory.whole_records import count_copies
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.frames import row_of
from disclosure_pipeline.measures.copies import CopyCounts
from disclosure_pipeline.measures.copies import copies as copies_of
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.people import people_copied
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.alignment import Tables, check_tables
from disclosure_pipeline.tables.frames import as_frames
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import names_in_all

TARGETS_ALONE = "targets alone"


def copies(ground_truth: Any, synthetic: Any) -> pd.DataFrame:
    """Tell how many synthetic records equal a GT record, beside how many a fresh sample would.

    Args:
        ground_truth: The confidential records, one a row: a table in memory.
        synthetic: The synthetic table, or a sequence of them.

    Returns:
        Index synthesis; a row for each. `columns`: the number of columns compared, which are those that all
        tables have. Percent of the SD records: `copies` equal a GT record in all of them; `unique_copies`
        equal a GT record that no other GT record equals. `copies_others`: percent of the GT records that
        equal another one; `unique_copies_others`: percent of new records of the same population that would
        equal exactly one GT record (Good-Turing). Percent of the GT records, which no honest records beside
        them dilute: `people_copied` equal no other GT record and are in the synthetic table,
        `people_copied_expected` would be in as large a fresh one. `…_beyond`: the differences, in percentage
        points; high is a risk; `people_copied_by_chance`: how far chance takes it. Missing values are equal
        to each other.

    Raises:
        InputError: No column is in all tables, or one has no common kind of value.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": [30, 30, 41, 52], "town": ["a", "a", "b", "c"]})
        >>> sd = pd.DataFrame({"age": [30, 41, 60, 61], "town": ["a", "b", "b", "c"]})
        >>> dp.copies(gt, sd)[["copies", "copies_others", "unique_copies", "unique_copies_others"]]
                   copies  copies_others  unique_copies  unique_copies_others
        synthesis
        1            50.0           50.0           25.0                  50.0

    Source: this project's own; Good 1953, "The population frequencies of species and the estimation of
    population parameters".
    """
    tables = shared_columns(ground_truth, synthetic)
    return copies_of_columns(tables.code(tables.keys))


def copies_of_columns(columns: Sequence[CodedColumn]) -> pd.DataFrame:
    """Return what `copies` returns, of columns that are coded but not grouped."""
    rows = [{"columns": len(columns)} | figures for figures in _copy_figures(columns, count_copies(columns))]
    return pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="synthesis"))


def partial_copies(ground_truth: Any, synthetic: Any, targets: Sequence[Any] | None = None) -> pd.DataFrame:
    """Tell how many synthetic records equal a GT record in all columns but one, or in the targets alone.

    This sees near copies, which keep most of a record: all that are left out of a set may have been changed.

    Args:
        ground_truth: The confidential records, one a row: a table in memory.
        synthetic: The synthetic table, or a sequence of them.
        targets: Columns that are compared by themselves, too.

    Returns:
        Index (synthesis, columns), where `columns` is "all but …" for each column that all tables have, and
        "targets alone"; figures as in `copies()`. The largest `unique_copies_beyond` is the one to look at.

    Raises:
        InputError: Fewer than two columns are in all tables, or a target is not.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": [30, 41, 52], "town": ["a", "b", "c"], "job": ["x", "y", "z"]})
        >>> sd = gt.assign(age=gt["age"] + 1)
        >>> dp.partial_copies(gt, sd)["unique_copies"]
        synthesis  columns
        1          all but age     100.0
                   all but town      0.0
                   all but job       0.0
        Name: unique_copies, dtype: float64

    Source: this project's own.
    """
    tables = shared_columns(ground_truth, synthetic)
    return partial_copies_of_columns(tables.code(tables.keys), targets)


def partial_copies_of_columns(
    columns: Sequence[CodedColumn], targets: Sequence[Any] | None = None
) -> pd.DataFrame:
    """Tell what `partial_copies` returns, of columns that are coded but not grouped. InputError as there."""
    if len(columns) == 1:
        raise InputError("Only one column is in all tables: there is none to leave out. Use copies().")
    names = [column.name for column in columns]
    wanted = [] if targets is None else _check_targets(targets, names)
    without = zip(names, count_records(columns).without, strict=True)
    sets: dict[str, Sequence[CopyCounts]] = {f"all but {name}": counts for name, counts in without}
    if wanted:
        sets[TARGETS_ALONE] = count_copies([columns[names.index(name)] for name in wanted])
    rows = {
        (synthesis, label): figures
        for label, set_counts in sets.items()
        for synthesis, figures in enumerate(_copy_figures(columns, set_counts), start=1)
    }
    labels = sorted(rows, key=lambda label: label[0])  # by synthesis, and by set in their order
    index = pd.MultiIndex.from_tuples(labels, names=["synthesis", "columns"])
    return pd.DataFrame([rows[label] for label in labels], index=index)


def shared_columns(ground_truth: Any, synthetic: Any) -> Tables:
    """Return the tables, with every column that all of them have for a key."""
    frames = as_frames(ground_truth, synthetic)
    return check_tables(frames[0], frames[1:], shared_names(frames), (), grouping_of())


def shared_names(frames: Sequence[pd.DataFrame]) -> list[Any]:
    """Return the columns that all tables have, in GT's order. InputError where there is none."""
    shared = names_in_all([list(frame.columns) for frame in frames])
    if not shared:
        raise InputError("No column is in all tables: there is nothing to compare.")
    return shared


def _check_targets(targets: Sequence[Any], shared: Sequence[Any]) -> list[Any]:
    names = [targets] if isinstance(targets, str) else list(targets)
    for name in names:
        if name not in shared:
            raise InputError(f"Target {name!r} is not in all tables.")
    if not names:
        raise InputError("targets is empty: name at least one column, or leave it out.")
    return names


def _copy_figures(columns: Sequence[CodedColumn], counts: Sequence[CopyCounts]) -> list[dict[str, float]]:
    """Return the figures of each synthesis, from its counts."""
    N_d, *N_s = (len(table.stored) for table in columns[0].tables)
    return [
        row_of(copies_of(synthesis_counts, Sizes(N_d, n)))
        | row_of(people_copied(synthesis_counts.people, Sizes(N_d, n)))
        for synthesis_counts, n in zip(counts, N_s, strict=True)
    ]


def exact_copies(ground_truth: Any, synthetic: Any) -> pd.DataFrame:
    """Return the synthetic records that are exact copies of a GT record in every column that all tables have.

    Returns:
        Index synthesis; `columns`: the number of columns compared; `copies`: SD records; `percent` of all
        SD records. With few columns of few levels copies are no sign of anything: in GT itself most
        records are copies of another.

    Raises:
        InputError: No column is in all tables, or one has no common kind of value.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> dp.exact_copies(patients, synthetic)
                   columns  copies  percent
        synthesis
        1                2       3     75.0
    """
    frames = as_frames(ground_truth, synthetic)
    shared = shared_names(frames)
    opened = FramesInMemory(frames, "memory")
    [counts] = opened.count([CountRequest(opened.code(shared, grouping_of()))])
    copies = [key_counts.shared.SD_in_GT for key_counts in counts.keys]
    return copies_frame(len(shared), copies, opened.records[1:])


def copies_frame(columns: int, copies: Sequence[int], records: Sequence[int]) -> pd.DataFrame:
    """Return the frame of `exact_copies`, from the `copies` in each synthesis of so many `records`."""
    return pd.DataFrame(
        [
            {"columns": columns, "copies": number, "percent": percent(number, total)}
            for number, total in zip(copies, records, strict=True)
        ],
        index=pd.RangeIndex(1, len(copies) + 1, name="synthesis"),
    )
