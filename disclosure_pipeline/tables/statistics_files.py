"""Files of SPSS, Stata and SAS as batches of selected columns: their codes, not the labels.

Codes that a file of SPSS calls missing stay codes, for the data dictionary to judge; the letters for missing
values of Stata and SAS are missing. Labels and missing codes are returned as descriptions of the columns.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.archives import PASSWORD
from disclosure_pipeline.tables.descriptions import Description
from disclosure_pipeline.tables.dictionary import LONGEST_LABEL, normalize_text
from disclosure_pipeline.tables.encoding import widen_arrow
from disclosure_pipeline.tables.files import FileFormat, OpenTable, StoragePath
from disclosure_pipeline.tables.levels import EXACT_IN_FLOAT

_READERS = {
    "sav": "read_sav",
    "por": "read_por",
    "dta": "read_dta",
    "sas7bdat": "read_sas7bdat",
    "xpt": "read_xport",
}
FORMATS = tuple(_READERS)
"""The formats that are read here."""

_CELLS = 1 << 24  # of a batch; every batch skips those before it
_TEXT = 10  # a text takes as much memory as this many numbers
_PROTECTED = b"ENCRYPTEDSAV"

# By the beginning of a column's format. Formats of times of day and of durations are numbers.
_SPSS_DATES = re.compile("(DATE|ADATE|EDATE|SDATE|JDATE|MOYR|QYR|WKYR)[0-9]*")
_SPSS_TIMES = re.compile("(DATETIME|YMDHMS)")
_SAS_DATES = re.compile(
    "(DATE|JULIAN|MONYY|WEEKDAT[EX]|WORDDAT[EX]|[BE]8601DA|IS8601DA|(DDMMYY|MMDDYY|YYMMDD)[BCDNPS]?)[0-9.]*"
)
_SAS_TIMES = re.compile("(DATETIME|DATEAMPM|MDYAMPM|DTDATE|[BE]8601D[NT]|IS8601DT)")
_STATA_MONTHS = {"%tm": 1, "%tq": 3, "%th": 6}

_SECOND = 1_000_000  # microseconds
_DAY = 86_400 * _SECOND
_1582, _1960, _FIRST, _END = (
    int(np.datetime64(day, "us").astype(np.int64))
    for day in ("1582-10-14", "1960-01-01", "0001-01-01", "+10000-01-01")
)

Floats = npt.NDArray[np.float64]
Read = Callable[..., tuple[Any, Any]]


def open_statistics(path: StoragePath, file_format: FileFormat, table: str, stack: ExitStack) -> OpenTable:
    """Open a file of SPSS, Stata or SAS. Errors of the reader pass through."""
    import pyreadstat

    call: Read = getattr(pyreadstat, _READERS[file_format.format])
    options = {"encoding": file_format.encoding} if file_format.encoding else {}

    def read(**how: Any) -> tuple[Any, Any]:
        with path.open_file(path.path) as file:
            return call(file, disable_datetime_conversion=True, **options, **how)

    with path.open_file(path.path) as file:
        if _PROTECTED in file.read(len(_PROTECTED) * 3):
            raise InputError(f"{table}: {PASSWORD}.")
    # Only files of SPSS hold missing codes as numbers.
    user_missing = {"user_missing": True} if file_format.format == "sav" else {}
    metadata = read(metadataonly=True, **user_missing)[1]
    kinds = metadata.readstat_variable_types
    calendars = {
        name: _find_calendar(file_format.format, written or "")
        for name, written in metadata.original_variable_types.items()
    }

    def read_frames(columns: list[str], rows: int) -> Iterator[Any]:
        start, number = 0, rows
        while number == rows:
            frame = read(usecols=columns, row_offset=start, row_limit=rows, **user_missing)[0]
            start, number = start + len(frame), len(frame)
            if number or not start:
                yield frame

    def batches(columns: list[str]) -> Iterator[Any]:
        cells = sum(_TEXT if kinds[name] == "string" else 1 for name in columns)
        rows = max(1, _CELLS // max(1, cells))
        # Without columns the first one is read, for the number of records.
        wanted = columns or [metadata.column_names[0]]
        with path.open_file(path.path) as file:
            encoding = None
            if file_format.format == "dta" and metadata.number_rows:
                encoding = _find_text_encoding(file.read(_HEAD), file_format.encoding)
                file.seek(0)
            frames = _read_by_pandas(file, wanted, rows, encoding) if encoding else read_frames(wanted, rows)
            for frame in frames:
                arrays = [
                    _to_arrow(frame.pop(name).to_numpy(), kinds[name], calendars[name], name, table)
                    for name in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    words = _describe_in_words(metadata.column_names_to_labels)
    described = {
        name: Description(words[name])
        if calendars[name]
        else _describe(metadata, name, kinds[name], words[name])
        for name in metadata.column_names
    }
    return OpenTable(tuple(metadata.column_names), batches, descriptions=described)


def _describe_in_words(labels: Mapping[str, str | None]) -> dict[str, dict[str, str]]:
    """Return each column's label, as a description if it is too long for one, or another column's, too."""
    texts = {name: normalize_text(label or "") for name, label in labels.items()}
    times = Counter(text.casefold() for text in (*texts.values(), *texts))
    return {
        name: {}
        if text.casefold() in {"", name.casefold()}
        else {"label" if len(text) <= LONGEST_LABEL and times[text.casefold()] == 1 else "description": text}
        for name, text in texts.items()
    }


def _describe(metadata: Any, name: str, kind: str, words: Mapping[str, str]) -> Description:
    """Return the description of a column that holds no dates."""
    labels = metadata.variable_value_labels.get(name, {})
    if kind != "string":  # letters are missing values of Stata and SAS
        labels = {_plain(code): labels[code] for code in sorted(set(labels) - set(map(str, labels)))}
    ranges = [(_plain(entry["lo"]), _plain(entry["hi"])) for entry in metadata.missing_ranges.get(name, ())]
    codes = tuple(low for low, high in ranges if low == high)
    return Description(
        entries={**words, **({"missing_codes": codes} if codes else {})},
        labels=labels,
        is_ordered=metadata.variable_measure.get(name) == "ordinal",
        missing_ranges=[(low, high) for low, high in ranges if low != high],
    )


def _plain(code: Any) -> Any:
    if isinstance(code, str):
        return normalize_text(code)
    return int(code) if float(code).is_integer() and abs(code) < EXACT_IN_FLOAT else float(code)


@dataclass(frozen=True)
class _Calendar:
    """The dates that numbers stand for: `unit` microseconds (or months) since `start`, as days or times."""

    unit: int
    start: int
    is_day: bool = False
    is_months: bool = False

    def read(self, numbers: Floats) -> Floats:
        """Return microseconds since 1970."""
        if self.is_months:
            months = np.where(np.isnan(numbers), 0, numbers).astype(np.int64) * self.unit
            days = (np.datetime64("1960-01") + months).astype("datetime64[us]").astype(np.float64)
            return np.where(np.isnan(numbers), np.nan, days)
        whole = np.floor(numbers)
        # Seconds since 1582 are exact to some millionths, as floats.
        rest = np.round((numbers - whole) * self.unit, -1)
        return whole * self.unit + rest + self.start


def _find_calendar(file_format: str, written: str) -> _Calendar | None:
    """Return how a column with this format holds dates, or None if it holds none."""
    if file_format in {"sav", "por"}:
        if _SPSS_DATES.fullmatch(written.upper()):
            return _Calendar(_SECOND, _1582, is_day=True)
        return _Calendar(_SECOND, _1582) if _SPSS_TIMES.match(written.upper()) else None
    if file_format == "dta":
        if written[:3] in _STATA_MONTHS:
            return _Calendar(_STATA_MONTHS[written[:3]], 0, is_day=True, is_months=True)
        if written.startswith(("%td", "%d", "%-td", "%-d")):
            return _Calendar(_DAY, _1960, is_day=True)
        return _Calendar(_SECOND // 1000, _1960) if written.lower().startswith(("%tc", "%-tc")) else None
    if _SAS_DATES.fullmatch(written.upper()):
        return _Calendar(_DAY, _1960, is_day=True)
    return _Calendar(_SECOND, _1960) if _SAS_TIMES.match(written.upper()) else None


# Of Stata 8 to 12, and of 14 and later: in those of 13, texts of any length have no known encoding.
_STATA = re.compile(rb"[\x71-\x73][\x01\x02]|(<stata_dta><header><release>11[89])")
_HEAD = 64


def _find_text_encoding(head: bytes, declared: str | None) -> str | None:
    """Return the encoding of the texts of a file of Stata that pandas reads; None for any other file."""
    version = _STATA.match(head)
    if version is None:
        return None
    if version[1] is None:
        return declared or "cp1252"
    return None if declared else "utf-8"  # pandas takes no other


def _read_by_pandas(file: Any, columns: list[str], rows: int, encoding: str) -> Iterator[Any]:
    """Yield frames of a file of Stata: pyreadstat takes eight times as long, cell by cell."""
    with pd.read_stata(
        file, columns=columns, chunksize=rows, convert_dates=False, convert_categoricals=False
    ) as reader:
        while True:
            with warnings.catch_warnings():
                # Texts of another encoding would be read as Latin 1.
                warnings.simplefilter("error", UnicodeWarning)
                frame = next(reader, None)
            if frame is None:
                return
            for name in frame.select_dtypes("object") if encoding != "utf-8" else ():
                codes, texts = pd.factorize(frame[name])
                decoded = [text.encode("latin-1").decode(encoding) for text in texts]
                frame[name] = np.array(decoded, dtype=object)[codes]
            yield frame


def _to_arrow(values: npt.NDArray[Any], kind: str, calendar: _Calendar | None, name: str, table: str) -> Any:
    if kind == "string":
        texts = pa.array(values, pa.string(), from_pandas=True)
        return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    numbers = values.astype(np.float64)
    if calendar is None:
        return _to_numbers(numbers, kind)
    times = calendar.read(numbers)
    present = ~np.isnan(times)
    if ((times[present] < _FIRST) | (times[present] >= _END)).any():
        raise InputError(
            f"{table}: column {name!r} has dates before the year 1 or after 9999, which cannot be compared: "
            "make them missing, or give the column a format of numbers."
        )
    whole = np.where(present, times, 0).astype(np.int64)
    array = pa.array(whole, pa.timestamp("us"), mask=~present)
    return array.cast(pa.date32()) if calendar.is_day and not (whole % _DAY).any() else array


def _to_numbers(numbers: Floats, kind: str) -> Any:
    """Return whole numbers as integers, and those of 32 bits as the decimals that they stand for."""
    present = ~np.isnan(numbers)
    if kind == "float":
        return widen_arrow(pa.array(numbers.astype(np.float32), mask=~present))
    if (present & ((numbers != np.floor(numbers)) | (np.abs(numbers) >= EXACT_IN_FLOAT))).any():
        return pa.array(numbers, mask=~present)
    return pa.array(np.where(present, numbers, 0).astype(np.int64), mask=~present)
