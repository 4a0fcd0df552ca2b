"""Files as tables of raw categories. No error of a reader gets out: its message may quote a record."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from disclosure_pipeline.errors import InputError

FORMATS = (".csv", ".parquet")


def read_raw(path: Path, table: str, columns: Collection[str] | None = None) -> pd.DataFrame:
    """A CSV or Parquet file as a frame whose columns are all categories; missing stays missing.

    CSV fields are read as text and an empty one is missing, so that "01" and "NA" stay what they are.
    `columns` limits what is read to those of them that the file has. InputError names the table and what
    is wrong, never a value.
    """
    if path.suffix not in FORMATS:
        raise InputError(f"{table}: {path.name!r} is of no known format; expected {' or '.join(FORMATS)}.")
    if not path.is_file():
        raise InputError(f"{table}: there is no file {str(path)!r}.")
    names = _attempt(path, table, _column_names)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{table}: several columns of {path.name!r} are named {', '.join(twice)}.")
    wanted = [name for name in names if columns is None or name in columns]
    frame: pd.DataFrame = _attempt(path, table, lambda file: _read(file, wanted))
    return frame


def _attempt(path: Path, table: str, read: Any) -> Any:
    import pyarrow as pa

    try:
        return read(path)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        reason = type(error).__name__
    # Outside the except block: the reader's own error, which may quote a record, is not carried along.
    raise InputError(
        f"{table}: {path.name!r} cannot be read as {path.suffix[1:]} ({reason}): it is damaged, cut off, "
        "not UTF-8, or its records differ in their number of fields."
    )


def _column_names(path: Path) -> list[str]:
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".csv":
        with pyarrow.csv.open_csv(path) as reader:
            names: list[str] = list(reader.schema.names)
    else:
        names = list(pyarrow.parquet.read_schema(path).names)
    return names


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".csv":
        text = pa.dictionary(pa.int32(), pa.string())
        options = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, text),
            include_columns=columns,
            null_values=[""],
            strings_can_be_null=True,
        )
        arrow = pyarrow.csv.read_csv(path, convert_options=options)
    else:
        arrow = pyarrow.parquet.read_table(path, columns=columns)
    frame: pd.DataFrame = arrow.to_pandas(date_as_object=True, integer_object_nulls=False)
    return pd.DataFrame({name: frame[name].astype("category") for name in columns})
