"""Parquet and Arrow files, and folders of Parquet files, as batches of selected columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.canonical import is_text
from disclosure_pipeline.tables.files import Entry, FileFormat, OpenTable, StoragePath, find_suffix

_ROWS = 1 << 20


def open_arrow(path: StoragePath, _format: FileFormat, _table: str, stack: ExitStack) -> OpenTable:
    """Open an Arrow file or stream until the stack closes."""
    from pyarrow import ipc

    file = stack.enter_context(path.open_file(path.path))
    names = tuple(_open_ipc(file, None).schema.names)

    def batches(columns: list[str]) -> Iterator[Any]:
        file.seek(0)
        options = ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
        reader = _open_ipc(file, options)
        if isinstance(reader, ipc.RecordBatchStreamReader):
            yield from reader
        else:
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)

    return OpenTable(names, batches)


def _open_ipc(file: Any, options: Any) -> Any:
    """Open an Arrow file or an Arrow stream: both have the same suffix."""
    from pyarrow import ipc

    try:
        return ipc.open_file(file, options=options)
    except pa.ArrowInvalid:
        file.seek(0)
    return ipc.open_stream(file, options=options)


def open_parquet(path: StoragePath, _format: FileFormat, table: str, stack: ExitStack) -> OpenTable:
    """Open a Parquet file, or a folder of them, until the stack closes.

    Raise InputError if files of the folder differ, or names of folders do not say what they hold.
    """
    import pyarrow.parquet as pq

    files = path.files()
    partitions = find_partitions(path, files, table)
    others = [file.path for file in files if find_suffix(file.path) != ".parquet"] if len(files) > 1 else []
    if not files or others:
        problem = "files that are not Parquet" if files else "no Parquet file"
        by = f" partitioned by {', '.join(partitions)}" if partitions else ""
        raise InputError(f"{table}: the folder {path.name!r}{by} holds {problem}: expected .parquet files.")
    schema = None
    for file in files:
        with path.open_file(file.path) as opened:
            file_schema = pq.read_schema(opened)
        if schema is not None and not file_schema.equals(schema):
            raise InputError(
                f"{table}: the files of the folder {path.name!r} differ in their columns or types."
            )
        schema = file_schema
    assert schema is not None
    in_both = [name for name in partitions if name in schema.names]
    if in_both:
        raise InputError(
            f"{table}: the folder {path.name!r} is partitioned by {', '.join(in_both)}, also a column of its "
            "files: remove it from either."
        )
    text = [field.name for field in schema if is_text(field.type)]

    def batches(columns: list[str]) -> Iterator[Any]:
        in_files = [name for name in columns if name not in partitions]
        for number, file in enumerate(files):
            opened = stack.enter_context(path.open_file(file.path))
            reader = pq.ParquetFile(opened, read_dictionary=[name for name in text if name in in_files])
            if in_files == columns:
                if columns:
                    yield from reader.iter_batches(batch_size=_ROWS, columns=columns)
                continue
            # Columns of the folders' names alone take no reading, but need the number of records.
            rows = reader.metadata.num_rows
            parts = (
                reader.iter_batches(batch_size=_ROWS, columns=in_files)
                if in_files
                else (pa.nulls(min(_ROWS, rows - start)) for start in range(0, rows, _ROWS))
            )
            for part in parts:
                arrays = [
                    part.column(name)
                    if name in in_files
                    else _repeat(partitions[name].slice(number, 1), len(part))
                    for name in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    return OpenTable((*schema.names, *partitions), batches)


_PARTITION = re.compile(r"([^=]+)=(.*)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def _repeat(value: Any, records: int) -> Any:
    """Return the only entry of an Arrow array, repeated."""
    present = value.drop_null()
    # Dictionaries with a missing entry cannot be joined.
    codes = pa.array(np.zeros(records, dtype=np.int32)) if len(present) else pa.nulls(records, pa.int32())
    return pa.DictionaryArray.from_arrays(codes, present)


def find_partitions(path: StoragePath, files: Sequence[Entry], table: str) -> dict[str, Any]:
    """Return the columns that a folder is partitioned by, from names of folders such as "year=2019".

    They are Arrow arrays with one entry for each file, and hold whole numbers, if all values are written as
    such, else text; a folder without a value means missing. Raise InputError if folders have other names, or
    do not agree in their columns: no column may be left out unnoticed.
    """
    rows: list[dict[str, str]] = []
    for file in files if path.is_folder() else ():
        folders = file.inside.split("/")[:-1]
        matches = [_PARTITION.fullmatch(folder) for folder in folders]
        row = {unquote(match[1]): unquote(match[2]) for match in matches if match is not None}
        if len(row) < len(folders) or (rows and list(row) != list(rows[0])):
            raise InputError(
                f"{table}: the folder {path.name!r} holds folders that are not all partitions by the same "
                "columns: expected files alone, or folders such as year=2019 for each of them."
            )
        rows.append(row)
    return {name: _read_partition([row[name] for row in rows]) for name in (rows or [{}])[0]}


def _read_partition(values: Sequence[str]) -> Any:
    present = [None if value == _NO_VALUE else value for value in values]
    if all(value is None or _WHOLE_NUMBER.fullmatch(value) for value in present) and any(present):
        return pa.array([None if value is None else int(value) for value in present], pa.int64())
    return pa.array(present, pa.string())
