"""Metadata of SDV, table schemas of Frictionless and schemas of pandera, read and written.

Formats: https://docs.sdv.dev/sdv/concepts/metadata, https://datapackage.org/standard/table-schema and
`pandera.io`. They are read as plain data: none of these packages is imported.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, TypeGuard

import yaml

from disclosure_pipeline.errors import InputError, write_count
from disclosure_pipeline.tables.descriptions import Description
from disclosure_pipeline.tables.dictionary import CATEGORIES, DATES, NUMERIC, Column, Dictionary, Type
from disclosure_pipeline.tables.levels import level_label

SchemaFormat = Literal["sdv", "frictionless", "pandera"]

_KINDS = "metadata of SDV, a table schema of Frictionless (both JSON) or a schema of pandera (YAML or JSON)"
_TIME_OF_DAY = ("%H", "%I", "%X", "%c", "%T", "%R", "%s")
_ISO_DAY, _ISO_TIME = "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"

SUFFIXES = (".json", ".yaml", ".yml")
"""The suffixes of files that are read as schemas."""


def read_schema(path: Path, names: Collection[str]) -> dict[str, Description]:
    """Return the descriptions in a schema, by column.

    Of several tables in it, the one is read whose columns are `names`. Raise InputError if the file is no
    schema that is known.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        problem = type(error).__name__
    else:
        problem = ""
    if problem:
        raise InputError(f"{path.name} cannot be read ({problem}): expected {_KINDS}.")
    found = _find_tables(content)
    if not found:
        raise InputError(f"{path.name} describes no table: expected {_KINDS}.")
    tables = [table for table in found if set(table[1]) == set(names)] if len(found) > 1 else found
    if len(tables) != 1:
        raise InputError(
            f"{path.name} describes {write_count(len(found), 'table')}, {len(tables)} of them with the "
            "columns of this one: give the schema of this table alone."
        )
    describe, columns, table = tables[0]
    return {name: describe(name, column, table) for name, column in columns.items()}


Table = Mapping[str, Any]
Describe = Callable[[str, Table, Table], Description]


def _find_tables(content: Any) -> list[tuple[Describe, dict[str, Table], Table]]:
    """Return, for each table that is described, how to read a column, its columns by name, and itself."""
    if not isinstance(content, Mapping):
        return []
    for several in ("tables", "resources"):
        tables = content.get(several)
        if tables:
            parts = tables.values() if isinstance(tables, Mapping) else tables
            return [table for part in parts for table in _find_tables(part)] if _is_list(parts) else []
    if isinstance(content.get("schema"), Mapping):
        return _find_tables(content["schema"])
    if _is_list(content.get("fields")):
        fields = [field for field in content["fields"] if isinstance(field, Mapping) and "name" in field]
        return [(_describe_field, {str(field["name"]): field for field in fields}, content)] if fields else []
    columns = content.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        return []
    if not all(isinstance(column, Mapping) for column in columns.values()):
        return []
    by_name = {str(name): column for name, column in columns.items()}
    if "schema_type" in content:
        return [(_describe_pandera, by_name, content)]
    return [(_describe_sdv, by_name, content)] if any("sdtype" in c for c in by_name.values()) else []


def _is_list(content: Any) -> TypeGuard[Collection[Any]]:
    return isinstance(content, Collection) and not isinstance(content, (str, bytes, Mapping))


def _describe_sdv(name: str, column: Table, table: Table) -> Description:
    sdtype = _text(column, "sdtype")
    entries: dict[str, Any] = {}
    notes: list[str] = []
    types: tuple[Type, ...] = ()
    key = table.get("primary_key")
    keys = [*(_listed_names(key) or [str(key)])[:1], *_listed_names(table.get("alternate_keys"))]
    if sdtype == "id" or name in keys:
        types = ("text identifier",)
    elif sdtype == "numerical":
        written, decimals = column.get("computer_representation"), column.get("decimal_places")
        types = ("number", "integer")
        if decimals == 0 or (isinstance(written, str) and "Int" in written):
            types = ("integer",)
        elif decimals is not None or written == "Float":
            types = ("number",)
    elif sdtype == "datetime":
        types, entries = _read_dates(column.get("datetime_format"))
    elif sdtype == "boolean":
        types = ("boolean",)
    elif sdtype in {"categorical", "ordinal"}:
        # Other values and ranges are those that SDV found in the table: rare and extreme ones, too.
        types = ("category",)
        if order := _levels(column.get("order" if sdtype == "categorical" else "range_values")):
            types, entries = ("ordered category",), {"levels": order}
    elif column.get("pii", sdtype == "unknown"):
        notes.append("personal data, as its description says: leave it unpublished")
    if name == table.get("sequence_key"):
        notes.append("says whose each record is, as its description says: name it as the gate's unit")
    return Description(entries, types=types, notes=tuple(notes))


def _text(entries: Table, name: str) -> str:
    entry = entries.get(name)
    return entry if isinstance(entry, str) else ""


def _listed_names(names: Any) -> list[str]:
    return [str(name) for name in names] if _is_list(names) else []


def _levels(values: Any) -> list[str]:
    """Return the values of a list as levels, without missing and repetitions."""
    scalars = [value for value in values if isinstance(value, _SCALARS)] if _is_list(values) else []
    return [text for text in dict.fromkeys(level_label(value).strip() for value in scalars) if text]


_SCALARS = (str, int, float, datetime.date)


def _read_dates(written: Any) -> tuple[tuple[Type, ...], dict[str, Any]]:
    """Return the type of dates in this format, and its entry."""
    if not isinstance(written, str) or "%" not in written:
        return DATES, {}
    is_time = any(part in written for part in _TIME_OF_DAY)
    entries = {} if written in {_ISO_DAY, _ISO_TIME} else {"date_format": written}
    return (("datetime",) if is_time else ("date",)), entries


_FIELD_TYPES: Mapping[str, tuple[Type, ...]] = {
    "string": ("category",),
    "integer": ("integer",),
    "year": ("integer",),
    "number": ("number",),
    "boolean": ("boolean",),
}


def _describe_field(name: str, field: Table, table: Table) -> Description:
    kind, constraints = _text(field, "type"), field.get("constraints")
    constraints = constraints if isinstance(constraints, Mapping) else {}
    types, entries = _FIELD_TYPES.get(kind, ()), _describe_text(field)
    if kind in DATES:
        types, form = _read_dates(field.get("format"))
        types = (kind,) if types == DATES else types
        entries |= form
    for which in ("trueValues", "falseValues") if kind == "boolean" else ():
        if spellings := _levels(field.get(which)):
            entries[f"{which[:-6]}_values"] = spellings
    missing = field.get("missingValues", table.get("missingValues"))
    missing = missing if _is_list(missing) else []
    codes = _levels([code.get("value") if isinstance(code, Mapping) else code for code in missing])
    if codes:
        entries["missing_codes"] = [
            int(code) if re.fullmatch("-?[1-9][0-9]*", code) else code for code in codes
        ]
    keys = table.get("primaryKey")
    if name in ([keys] if isinstance(keys, str) else _listed_names(keys)[:1]) or constraints.get("unique"):
        return Description(entries, types=("text identifier",))
    labels, is_ordered = {}, field.get("categoriesOrdered") is True
    categories = field.get("categories")
    listed_values: Any = constraints.get("enum") if categories is None else categories
    if _is_list(listed_values) and kind in {"string", "integer", ""}:
        with_labels = [value for value in listed_values if isinstance(value, Mapping)]
        labels = {
            _code(value["value"]): level_label(value.get("label", value["value"]))
            for value in with_labels
            if isinstance(value.get("value"), _SCALARS) and isinstance(value.get("label", ""), _SCALARS)
        }
        types = ("ordered category",) if is_ordered else ("category",)
        if not labels and (levels := _levels(listed_values)):
            entries["levels"] = levels
    entries |= _read_range(constraints.get("minimum"), constraints.get("maximum"), types)
    return Description(entries, labels, is_ordered, types=types)


def _code(value: Any) -> str | int | float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else level_label(value)


def _describe_text(entry: Table) -> dict[str, Any]:
    text = entry.get("description") or entry.get("title")
    return {"description": text} if isinstance(text, str) else {}


def _read_range(low: Any, high: Any, types: tuple[Type, ...]) -> dict[str, Any]:
    """Return the entry of a range whose ends are both known, and fit the types."""
    if types and set(types) <= set(NUMERIC):
        if all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in (low, high)):
            return {"range": [float(low), float(high)]} if low <= high else {}
    elif types and set(types) <= set(DATES):
        days = [_read_day(end) for end in (low, high)]
        if None not in days:
            return {"range": days}
    return {}


def _read_day(end: Any) -> datetime.date | None:
    if isinstance(end, datetime.date):
        return end.date() if isinstance(end, datetime.datetime) else end
    try:
        return datetime.date.fromisoformat(str(end)[: len("2024-12-31")])
    except ValueError:
        return None


_DTYPES: tuple[tuple[str, tuple[Type, ...]], ...] = (
    ("u?int[0-9]*", ("integer",)),
    ("(float|double|decimal)[0-9]*.*", ("number",)),
    ("bool(ean)?", ("boolean",)),
    ("str|string.*|category|<class 'str'>", ("category",)),
    ("datetime.*|timestamp.*", ("datetime", "date")),
    ("date", ("date",)),
)


def _describe_pandera(name: str, column: Table, table: Table) -> Description:
    dtype = str(column.get("dtype") or "").casefold()
    types: tuple[Type, ...] = next((types for form, types in _DTYPES if re.fullmatch(form, dtype)), ())
    entries = _describe_text(column)
    checks = _find_checks(column)
    if column.get("unique") is True or _listed_names(table.get("unique")) == [name]:
        return Description(entries, types=("text identifier",))
    allowed = checks.get("isin")
    if isinstance(allowed, Mapping):
        allowed = allowed.get("value", allowed.get("allowed_values"))
    if levels := _levels(allowed):
        return Description({**entries, "levels": levels}, types=("category",))
    within = checks.get("in_range")
    low, high = (
        (within.get("min_value"), within.get("max_value"))
        if isinstance(within, Mapping)
        else (_value(checks, "greater_than_or_equal_to"), _value(checks, "less_than_or_equal_to"))
    )
    return Description({**entries, **_read_range(low, high, types)}, types=types)


def _find_checks(column: Table) -> dict[str, Any]:
    """Return a column's checks by name: releases of pandera write them in three ways."""
    checks = column.get("checks")
    if isinstance(checks, Mapping):
        return {**column, **checks}
    found = dict(column)
    for check in checks if _is_list(checks) else ():
        options = check.get("options") if isinstance(check, Mapping) else None
        if isinstance(options, Mapping) and "check_name" in options:
            rest = {name: value for name, value in check.items() if name != "options"}
            found[str(options["check_name"])] = rest
    return found


def _value(checks: Table, name: str) -> Any:
    check = checks.get(name)
    if isinstance(check, Mapping):
        return next((check[part] for part in ("value", "min_value", "max_value") if part in check), None)
    return check


def write_schema(dictionary: Dictionary, name: str, kind: SchemaFormat) -> str:
    """Return a dictionary as a schema of another program: of the table of this name, for SDV."""
    identifiers = [column for column, entry in dictionary.items() if entry.type == "text identifier"]
    key = identifiers[0] if len(identifiers) == 1 else None
    if kind == "sdv":
        columns = {column: _write_sdv(entry) for column, entry in dictionary.items()}
        table: dict[str, Any] = {"columns": columns}
        table |= {"primary_key": key} if key is not None else {}
        content: dict[str, Any] = {
            "METADATA_SPEC_VERSION": "V1",
            "tables": {name: table},
            "relationships": [],
        }
    elif kind == "frictionless":
        content = {"fields": [_write_field(column, entry) for column, entry in dictionary.items()]}
        content |= {"primaryKey": [key]} if key is not None else {}
    else:
        columns = {column: _write_pandera(entry) for column, entry in dictionary.items()}
        content = {"schema_type": "dataframe", "columns": columns, "coerce": False, "strict": False}
        return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def list_left_out(dictionary: Dictionary, text: str) -> list[str]:
    """Return the entries of columns that cannot be read from a schema again, such as `pay.groups`."""
    [(describe, columns, table)] = _find_tables(yaml.safe_load(text))
    left_out = []
    for name, column in dictionary.items():
        described = describe(name, columns[name], table)
        known = {*described.entries, *(("levels",) if described.labels else ())}
        known |= {"type"} if described.types[:1] == (column.type,) else set()
        declared = column.model_dump(exclude_defaults=True)
        left_out += [f"{name}.{entry}" for entry in declared if entry not in known]
        if column.aliases and not described.labels and "levels" in known:
            left_out.append(f"{name}.aliases")
    return left_out


def _write_sdv(column: Column) -> dict[str, Any]:
    if column.type in NUMERIC:
        written = "Int64" if column.type == "integer" else "Float"
        return {"sdtype": "numerical", "computer_representation": written}
    if column.type in DATES:
        iso = _ISO_DAY if column.type == "date" else _ISO_TIME
        return {"sdtype": "datetime", "datetime_format": column.date_format or iso}
    if column.type in CATEGORIES:
        order = {"order": list(column.level_names or ())} if column.type == "ordered category" else {}
        return {"sdtype": "categorical", **order}
    return {"sdtype": "boolean"} if column.type == "boolean" else {"sdtype": "id"}


def _write_field(name: str, column: Column) -> dict[str, Any]:
    kind = "string" if column.type in {*CATEGORIES, "text identifier"} else column.type
    field: dict[str, Any] = {"name": name, "type": kind}
    field |= {"description": column.description} if column.description else {}
    constraints: dict[str, Any] = {}
    if column.type == "text identifier":
        constraints["unique"] = True
    if column.type in DATES and column.date_format:
        field["format"] = column.date_format
    if column.type == "boolean":
        field |= {
            "trueValues": list(map(str, column.true_values)),
            "falseValues": list(map(str, column.false_values)),
        }
    if column.range is not None and not column.special_values:
        low, high = column.range
        whole = column.type == "integer"
        constraints |= {"minimum": int(low) if whole else low, "maximum": int(high) if whole else high}  # type: ignore[arg-type]
    if column.levels is not None:
        field["categories"] = [
            {"value": level.aliases[0], "label": level.level}
            if len(level.aliases) == 1
            else {"value": level.level, "label": level.label or level.level}
            for level in column.described_levels
        ]
        field["categoriesOrdered"] = column.type == "ordered category"
    if column.missing_codes:
        field["missingValues"] = ["", *map(level_label, column.missing_codes)]
    return {**field, **({"constraints": constraints} if constraints else {})}


_DTYPE_OF: Mapping[Type, str] = {
    "integer": "Int64",
    "number": "float64",
    "boolean": "boolean",
    "date": "datetime64[us]",
    "datetime": "datetime64[us]",
}


def _write_pandera(column: Column) -> dict[str, Any]:
    """Return a column that validates canonical values: levels, not their aliases."""
    checks: dict[str, Any] = {}
    if column.level_names is not None:
        checks["isin"] = list(column.level_names)
    if column.type in NUMERIC and column.range is not None and not column.special_values:
        low, high = column.range
        checks["in_range"] = {
            **{"min_value": low, "max_value": high},
            **{"include_min": True, "include_max": True},
        }
    return {
        "description": column.description or None,
        "dtype": _DTYPE_OF.get(column.type, "str"),
        "nullable": True,
        "checks": checks or None,
        "unique": column.type == "text identifier",
        "coerce": True,
        "required": True,
        "regex": False,
    }
