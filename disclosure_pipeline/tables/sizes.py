"""How much memory a file's table and its counting need, about: to choose an engine before it is read."""

from __future__ import annotations

from typing import Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.files import format_of
from disclosure_pipeline.tables.locations import StoragePath, locate
from disclosure_pipeline.tables.sources import FileSource, Location, describe_unreadable

COUNTING = 40
"""Bytes that a record needs while it is counted in memory."""

_OF_TEXT, _PACKED = 2, 10  # bytes in memory for a byte of a file; of a compressed one


def bytes_needed(location: Location | Any, table: str) -> int:
    """The bytes of memory for a file, or a folder of Parquet files. InputError where it cannot be read."""
    path_or_location = location.path if isinstance(location, FileSource) else location
    try:
        path = locate(path_or_location, table)
        files = path.files()
        if files and all(file.path.endswith(".parquet") for file in files):
            return sum(_of_parquet(path, file.path) for file in files)
        file_format = format_of(path.name)
        factor = _PACKED if file_format is not None and file_format.codec else _OF_TEXT
        return sum(factor * file.size for file in files)
    except InputError as error:
        message = str(error)
    except Exception as error:  # of whatever file system
        message = describe_unreadable(location, table, type(error).__name__)
    raise InputError(message)


def _of_parquet(folder: StoragePath, path: str) -> int:
    import pyarrow.parquet as pq

    with folder.open_file(path) as file:
        metadata = pq.read_metadata(file)
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    return int(COUNTING * metadata.num_rows + 2 * sum(group.total_byte_size for group in groups))
