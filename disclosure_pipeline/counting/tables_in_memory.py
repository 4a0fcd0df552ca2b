"""Tables read into memory wherever they are, for what needs every record at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.opening import is_ibis, open_tables
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.alignment import Tables, check_tables, is_frame
from disclosure_pipeline.tables.events import Joining
from disclosure_pipeline.tables.grouping import Grouping, grouping_of
from disclosure_pipeline.tables.messages import GROUND_TRUTH, listed, name_events, names_in_all, table_names


def read_tables(
    ground_truth: Any, synthetic: Any, keys: Sequence[Any], targets: Any, grouping: Grouping
) -> Tables:
    """Read tables as `read_frames` and check them as `check_tables`; there is a target, at least."""
    frames = read_frames(ground_truth, synthetic, grouping.numeric)
    tables = check_tables(frames[0], frames[1:], keys, targets, grouping)
    if not tables.targets:
        raise InputError("targets is empty: name at least one column, or pass None for all that are no keys.")
    return tables


def read_shared_columns(ground_truth: Any, synthetic: Any) -> Tables:
    """Read tables as `read_frames`; every column that all of them have is a key."""
    return share_columns(read_frames(ground_truth, synthetic))


def share_columns(frames: Sequence[pd.DataFrame]) -> Tables:
    """Return tables in which every column that all have is a key. InputError where there is none."""
    shared = names_in_all([list(frame.columns) for frame in frames])
    if not shared:
        raise InputError("No column is in all tables: there is nothing to compare.")
    return check_tables(frames[0], frames[1:], shared, (), grouping_of())


def read_frames(ground_truth: Any, synthetic: Any, numeric: Collection[Any] = ()) -> tuple[pd.DataFrame, ...]:
    """Return GT and its syntheses as frames; in files the columns of `numeric` hold numbers.

    InputError as `open_tables`.
    """
    several = isinstance(synthetic, Sequence) and not isinstance(synthetic, (str, bytes))
    syntheses = [_fetch(table, "the synthetic data") for table in (synthetic if several else [synthetic])]
    ground_truth = _fetch(ground_truth, GROUND_TRUTH)
    with open_tables(ground_truth, syntheses if several else syntheses[0], "memory", numeric) as opened:
        frames = opened.frames
    assert frames is not None  # as this engine has them
    if all(map(is_frame, (ground_truth, *syntheses))):
        return frames
    return tuple(pd.DataFrame({name: _decode(frame[name]) for name in frame}) for frame in frames)


def link_tables(
    ground_truth: Any, synthetic: Any, unit: Any, events: Mapping[str, Any]
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return GT and its syntheses, of persons, each with what its `events` add: see `events.Joining`.

    The unit stays in GT alone. InputError where the tables do not belong together.
    """
    both, how = {"ground_truth", "synthetic"}, {field.name for field in fields(Joining)} - {"unit"}
    if unit is None:
        raise InputError("events need unit: the column of every table that says whose a record is.")
    if not isinstance(events, Mapping) or not both <= events.keys() <= both | how:
        raise InputError(f"events must have {listed(sorted(both))}, and may have {listed(sorted(how))}.")
    persons = read_frames(ground_truth, synthetic)
    of_events = read_frames(events["ground_truth"], events["synthetic"])
    if len(of_events) != len(persons):
        raise InputError("events must have as many synthetic tables as there are of persons.")
    joining = Joining(unit, **{name: events[name] for name in how & events.keys()})
    linked = []
    for name, table, events_of_table in zip(table_names(len(persons)), persons, of_events, strict=True):
        names = (name, name_events(name))
        joining.check(table, events_of_table, names)
        linked.append(joining.join(table, events_of_table, names)[0])
    return linked[0], [table.drop(columns=unit) for table in linked[1:]]


def _decode(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return plain values where reading a file has numbered them: only frames have categories."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = pd.Series(column.cat.categories).convert_dtypes().array
        values = levels.take(column.cat.codes.to_numpy(), allow_fill=True)
        return pd.Series(values, index=column.index, name=column.name)
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa  # slow, and only columns of Arrow need it

        if pa.types.is_dictionary(column.dtype.pyarrow_dtype):
            return column.astype(pd.ArrowDtype(column.dtype.pyarrow_dtype.value_type))
    return column


def _fetch(table: Any, name: str) -> Any:
    """Return a table of a database as one of Arrow, any other one as it is."""
    if not is_ibis(table):
        return table
    from disclosure_pipeline.counting.relational.transfer import run_query

    return run_query(f"The database did not give {name}", table.to_pyarrow)
