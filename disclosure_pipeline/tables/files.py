"""Paths and locations of files with tables, the formats that their names show, and open tables."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.files import hash_stream
from disclosure_pipeline.tables.descriptions import Description

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "abfs": "az",
    "abfss": "az",
    "adl": "az",
}


def fill_in_variables(text: str, what: str) -> str:
    """Replace each ${NAME} by that environment variable. Raise InputError if one is not set."""
    missing = sorted({name for name in _VARIABLE.findall(text) if name not in os.environ})
    if missing:
        raise InputError(f"{what} needs the environment variable {', '.join(missing)}, which is not set.")
    return _VARIABLE.sub(lambda variable: os.environ[variable[1]], text)


def redact_location(location: str) -> str:
    """Return the location without user, password and query string."""
    scheme, mark, rest = location.partition("://")
    if not mark:
        return location
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def refuse_password(location: str) -> None:
    """Raise ValueError if a password is written out: it would stay in the file's history forever."""
    user, at, _ = location.partition("://")[2].rpartition("@")
    password = user.partition(":")[2]
    if at and password and not re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", password):
        raise ValueError("a password does not belong here: write ${NAME} and set that environment variable")


_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # bytes


def _find_fault_of_path(path: str) -> str:
    """Return why no system can have a file of this path or location, without the path; "" if one can."""
    if "\0" in path:
        return "a path cannot have the character NUL"
    longest = 0 if is_remote(path) else max(len(part.encode(errors="replace")) for part in path.split("/"))
    if len(path.encode(errors="replace")) > _LONGEST_PATH or longest > _LONGEST_NAME:
        return f"a path has at most {_LONGEST_PATH:,} bytes, and each of its names at most {_LONGEST_NAME}"
    return ""


def refuse_unusable_path(path: str) -> str:
    """Return a path or location. Raise ValueError, without the path, if no system can have such a file."""
    if fault := _find_fault_of_path(path):
        raise ValueError(fault)
    return path


def require_usable_path(path: str, what: str) -> str:
    """Return a path or location. Raise InputError, naming `what`, if no system can have such a file."""
    if fault := _find_fault_of_path(path):
        raise InputError(f"{what}: {fault}.")
    return path


def is_remote(location: str) -> bool:
    """Return whether a location is remote, for fsspec, instead of a path on this machine."""
    return "://" in location


@dataclass(frozen=True)
class Entry:
    """A file: its path within its file system, its size, and a mark that changes when it is written again.

    `inside` is its path within the folder that was listed.
    """

    path: str
    size: int
    version: str
    inside: str


@dataclass(frozen=True)
class StoragePath:
    """A local or remote file or folder, which messages call `redacted_location`."""

    fs: Any
    path: str
    redacted_location: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return bool(self.fs.isfile(self.path))

    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return bool(self.fs.isdir(self.path))

    def files(self) -> list[Entry]:
        """Return the file itself, or a folder's files in order of path, except hidden ones (. or _)."""
        if self.is_file():
            return [_entry(self.path, self.fs.info(self.path), self.name)]
        information_by_path = self.fs.find(self.path, detail=True)
        # The file system's own name of the folder: `path` may be relative, paths of files are not.
        inside = len(self.fs.info(self.path)["name"].rstrip("/")) + 1 if information_by_path else 0
        files = [
            _entry(path, information_by_path[path], path[inside:]) for path in sorted(information_by_path)
        ]
        return [
            file for file in files if not any(part.startswith((".", "_")) for part in file.inside.split("/"))
        ]

    def open_file(self, path: str) -> Any:
        """Open a file at or below the path as a seekable stream of bytes."""
        return self.fs.open(path, "rb")

    def sha256(self) -> str:
        """Return the hash of a file's bytes, or of the names and hashes of a folder's files."""
        if self.is_file():
            return self._sha256(self.path)
        listing = "".join(f"{self._sha256(file.path)}  {file.inside}\n" for file in self.files())
        return hashlib.sha256(listing.encode()).hexdigest()

    def _sha256(self, path: str) -> str:
        with self.open_file(path) as file:
            return hash_stream(file).sha256


def _entry(path: str, details: dict[str, Any], inside: str) -> Entry:
    changes = [
        details.get(name) for name in ("ETag", "etag", "LastModified", "last_modified", "updated", "mtime")
    ]
    return Entry(path, int(details["size"] or 0), repr(changes), inside)


def locate(location: str | Path | Any, what: str) -> StoragePath:
    """Return the storage path of a path, a UPath or the text of either, with environment variables filled in.

    Raise InputError if the package that reads such locations is not installed, or refuses the location.
    """
    text = str(location)
    redacted_location = redact_location(text)
    universal: Any = location
    if hasattr(universal, "fs") and hasattr(universal, "storage_options"):
        return StoragePath(universal.fs, universal.path, redacted_location)
    text = require_usable_path(fill_in_variables(text, what), what)
    try:
        import fsspec

        if not is_remote(text):
            return StoragePath(fsspec.filesystem("file"), str(Path(text)), redacted_location)
        # No cached instance, so that neither listings nor credentials outlive this one.
        fs, path = fsspec.core.url_to_fs(text, skip_instance_cache=True, use_listings_cache=False)
        return StoragePath(fs, path, redacted_location)
    except ImportError:
        extra = _EXTRAS.get(text.partition("://")[0])
        install = f"install disclosure-pipeline[{extra}]" if extra else "install the one that fsspec requires"
        reason = f"the package that reads it is not installed: {install}"
    except Exception as error:  # of any file system; its message may contain credentials
        reason = type(error).__name__
    raise InputError(f"{what}: {redacted_location!r} cannot be opened ({reason}).")


Format = Literal["csv", "tsv", "parquet", "arrow", "sav", "por", "dta", "sas7bdat", "xpt", "workbook"]

_BY_SUFFIX: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".sav": "sav",
    ".zsav": "sav",
    ".por": "por",
    ".dta": "dta",
    ".sas7bdat": "sas7bdat",
    ".xpt": "xpt",
    ".xlsx": "workbook",
    ".xlsm": "workbook",
    ".xlsb": "workbook",
    ".xls": "workbook",
    ".ods": "workbook",
}
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
DELIMITERS = {"csv": ",", "tsv": "\t"}
"""The separator of a text file's fields, by its format."""

ARCHIVE = ".zip"
"""The suffix of an archive, which holds one table."""

_PACKED = tuple(f"{text}{packed}" for text in (".csv", ".tsv") for packed in _CODECS)
KNOWN_FORMATS = f"{', '.join((*_BY_SUFFIX, *_PACKED))} or {ARCHIVE}"
"""The suffixes of files that hold tables, for messages."""


@dataclass(frozen=True)
class FileFormat:
    """The format of a file, its compression, and how it is written, as far as that is declared.

    Only workbooks have a `sheet`, and only text files the rest: the separator and the quotation mark of
    fields (an empty one if none are quoted), the decimal mark and the separator of thousands in numbers. Text
    has an `encoding`, and files of SPSS, Stata and SAS may need one.
    """

    format: Format
    codec: str | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    thousands: str | None = None
    encoding: str | None = None
    quote: str | None = None
    sheet: str | None = None

    @property
    def separator(self) -> str:
        """The separator of a text file's fields: the declared one, or that of the format."""
        return self.delimiter or DELIMITERS[self.format]


def find_suffix(name: str) -> str | None:
    """Return the suffix of a file's name that shows its format, such as ".csv.gz", or None.

    >>> find_suffix("TABLE.CSV"), find_suffix("table.csv.gz"), find_suffix("table.rds")
    ('.csv', '.csv.gz', None)
    """
    suffixes = (suffix for suffix in (*_BY_SUFFIX, *_PACKED, ARCHIVE) if name.lower().endswith(suffix))
    return max(suffixes, key=len, default=None)


_READERS = {
    ".rds": "pyreadr.read_r",
    ".rdata": "pyreadr.read_r",
    ".orc": "pandas.read_orc",
    ".json": "pandas.read_json",
}


def describe_unknown_format(name: str) -> str:
    """Return a sentence on a file of an unknown format, with the function that reads it, if there is one.

    >>> describe_unknown_format("SURVEY.RDS").partition("; ")[2]
    'read it with pyreadr.read_r, and give the data frame, or write it with to_parquet'
    """
    reader = _READERS.get(name.lower()[name.rfind(".") :])
    advice = (
        f"; read it with {reader}, and give the data frame, or write it with to_parquet" if reader else ""
    )
    return f"{name!r} has an unknown format: expected {KNOWN_FORMATS}{advice}"


def find_format(name: str) -> FileFormat | None:
    """Return the format that the name of a file shows, or None; an archive shows none."""
    suffix = find_suffix(name)
    if suffix is None or suffix == ARCHIVE:
        return None
    packed = next((codec for codec in _CODECS if suffix.endswith(codec)), "")
    return FileFormat(_BY_SUFFIX[suffix.removesuffix(packed)], _CODECS.get(packed))


@dataclass(frozen=True)
class OpenTable:
    """An open table: the names of its columns, and a function from selected names to batches.

    `is_text`: it is a text file, whose separator may not be the expected one. `descriptions` are those that
    the file has of its columns.
    """

    names: tuple[str, ...]
    batches: Callable[[list[str]], Iterator[Any]]
    is_text: bool = False
    descriptions: Mapping[str, Description] = field(default_factory=dict)
