"""The file of a gate: its schema, a commented new one, and reading it strictly.

A new one is written from the schema of a table that is not confidential. Templates in paths stay as written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_sections import NAME
from disclosure_pipeline.policy.reviewed_files import DefinitionError, Document, read_documents, read_file
from disclosure_pipeline.tables.dictionary import NUMERIC, Column
from disclosure_pipeline.tables.inference import draft, propose_unit
from disclosure_pipeline.tables.messages import suggest_names

COMPONENT = "disclosure_pipeline.DisclosureGate"


def file_schema() -> dict[str, Any]:
    """Return the schema of a whole file: the type of the component, and the gate as its attributes."""
    gate = Gate.model_json_schema()
    definitions = gate.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A gate",
        "type": "object",
        "properties": {
            "type": {"const": COMPONENT},
            "attributes": {"$ref": "#/$defs/Gate"},
        },
        "required": ["type", "attributes"],
        "$defs": {**definitions, "Gate": gate},
    }


# A number with more values than this is put into groups where it is a target.
_MOST_VALUES = 50
# So is a key or target whose values have fewer records each: another sample would hardly have them.
_FEWEST_OF_VALUE = 5
_GROUPS, _FEWEST_GROUPS = 20, 3
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./ -]*")
# In a shorter table, as one writes down to show its columns, values that are all different mean nothing.
_FEWEST_RECORDS = 20
_NOT_PLAIN = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", ""}


@dataclass(frozen=True)
class Schema:
    """The columns of a table with a note for a person on some of them; the keys and targets among them.

    `unit` looks like the column that says whose record each is: it is none of them.
    """

    columns: Mapping[str, Column]
    notes: Mapping[str, str]
    keys: tuple[str, ...]
    targets: tuple[str, ...]
    unit: str | None = None


def describe_table(
    raw: pd.DataFrame,
    keys: Sequence[str],
    targets: Sequence[str],
    groups: Mapping[str, int] | None = None,
    special: Mapping[str, Sequence[float]] | None = None,
) -> Schema:
    """Return the schema of a synthetic or invented table: types only, for the ground truth has the levels.

    Without targets all columns are that are no keys and no identifiers. A target with many values is put into
    groups, and so is a key or target whose values hardly repeat. InputError where a key or target is no
    column, or looks like an identifier.
    """
    unit = propose_unit(raw, {*keys, *targets, *(groups or {}), *(special or {})})
    raw = raw if unit is None else raw.drop(columns=unit)
    drafted = draft(raw, _FEWEST_RECORDS)
    columns: dict[str, Column] = {}
    notes = {
        name: _name_range(drafted.columns[name], note)
        for name, note in drafted.notes.items()
        if "levels" not in note
    }
    for name in (*keys, *targets, *(groups or {}), *(special or {})):
        if name not in drafted.columns:
            raise InputError(f"There is no column {name!r}. {suggest_names(name, drafted.columns)}")
    chosen = tuple(targets) or tuple(
        name
        for name, column in drafted.columns.items()
        if name not in keys and column.type != "text identifier"
    )
    for name, column in drafted.columns.items():
        if column.type == "text identifier" and name in (*keys, *chosen):
            raise InputError(
                f"Column {name!r} has a value of its own in every record, as an identifier has: it can be no "
                "key and no target."
            )
        changes: dict[str, Any] = {"levels": None, "range": None, "unit": ""}
        if groups and name in groups:
            changes["groups"] = groups[name]
        elif name in (*keys, *chosen) and column.type in NUMERIC:
            number = _propose_groups(raw[name], len(keys) if name in keys else 0)
            if number:
                changes["groups"] = number
                notes[name] = _GROUPED
        if special and name in special:
            changes["special_values"] = tuple(
                int(code) if code == int(code) else code for code in special[name]
            )
        columns[name] = _change(name, column, changes)
    return Schema(columns, notes, tuple(keys), chosen, unit)


_GROUPED = "many values, so it is compared in groups: who knows or is told the group has learned enough"


def _propose_groups(values: pd.Series[Any], keys: int) -> int | None:
    """Propose a number of groups for a target, or for one of this many `keys`; None if it stays as it is.

    Keys together have about half as many combinations as there are records, so that another sample has them.
    """
    records, levels = int(values.notna().sum()), values.nunique()
    hardly_repeats = records >= _FEWEST_RECORDS // 2 and levels * _FEWEST_OF_VALUE > records
    if not hardly_repeats and (keys or levels <= _MOST_VALUES):
        return None
    enough = (records / 2) ** (1 / keys) if keys else records / _FEWEST_OF_VALUE
    return min(_GROUPS, max(_FEWEST_GROUPS, int(enough)))


def _name_range(column: Column, note: str) -> str:
    """Return the note with the range of this table, which need not be that of the ground truth."""
    if column.range is None:
        return note.replace("check its range", "set its range")
    return note.replace("check its range", "set its range, here [{}, {}]".format(*column.range))


def _change(name: str, column: Column, changes: Mapping[str, Any]) -> Column:
    try:
        return Column.model_validate(column.model_dump() | dict(changes))
    except ValidationError as error:
        problems = "; ".join(problem["msg"] for problem in error.errors(include_input=False))
    raise InputError(f"Column {name!r}: {problems}.")


EXAMPLE = Schema(
    columns={
        "sex": Column(type="category"),
        "age": Column(type="integer"),
        "region": Column(type="category"),
        "income": Column(type="number", groups=_GROUPS),
        "health": Column(type="category"),
    },
    notes={"sex": "an invented example: write down the columns of your own table"},
    keys=("sex", "age", "region"),
    targets=("income", "health"),
)
"""The schema of a gate that was made without a table."""


def require_gate_name(name: str) -> str:
    """Return the name itself. InputError where a gate cannot be called so.

    >>> require_gate_name("survey")
    'survey'
    """
    if not re.fullmatch(NAME, name):
        raise InputError(
            f"A gate cannot be called {name!r}: a small letter first, then small letters, digits and '_', at "
            "most 50."
        )
    return name


def write_definition(name: str, ground_truth: str, schema: Schema) -> str:
    """Return the text of a gate's file, with comments; its folders and keys lie in DAGSTER_HOME."""
    columns = "\n".join(_write_column(column, schema) for column in schema.columns)
    return f"""\
# A gate: what has to hold before a synthetic version of one confidential table may be published.
# `disclosure-pipeline check` says whether it is ready; docs/policy.md has everything that can stand here.
type: {COMPONENT}

attributes:
  name: {name}
  description: {_quote(f"Decides which synthetic versions of {name} may be published")}

  # Relative paths start at DAGSTER_HOME.
  ground_truth: {_quote(ground_truth)} # the confidential table: read where it lies, never copied
  incoming: {name}/incoming # a folder for each candidate, complete once it holds a file _SUCCESS
  store: {name}/store # what arrived, its figures and dossiers
  releases: {name}/releases # what was approved
  trusted_keys: keys/public-key.pem # whose signature a release must carry

  # The data dictionary. What does not fit is refused, in the ground truth and in every candidate. A category
  # has the levels of the ground truth unless it has `levels`; numbers may have a `range`. A column that is
  # neither key nor target is left out of a release unless it says `published: true`.
  columns:
{columns}

  # What somebody may know of a person before they look into a release.
  keys: {_list(schema.keys)}
  # What they must not learn from it.
  targets: {_list(schema.targets)}
{_write_unit(schema.unit)}
  # What is allowed, in percentage points beyond what the records of other people would show anyway.
  # `disclosure-pipeline policy draft` says which bounds follow from your ground truth, and why. Guards
  # against copies hold in every gate.
  policy:
    unique_hits_beyond: 3 # synthetic records that hit a person who is unique by the keys
    DiSCO:
      beyond: 3 # people whose target can be told, rightly, by somebody who knows their keys
"""


def _write_unit(unit: str | None) -> str:
    if unit is None:
        return ""
    return f"""\
  # Whose record each is: records repeat, and this column looks as if it said so. It is never published.
  unit: {_quote(unit)}
"""


def _write_column(name: str, schema: Schema) -> str:
    content = schema.columns[name].model_dump(mode="json", exclude_defaults=True)
    entries = ", ".join(f"{key}: {_write(value)}" for key, value in content.items())
    note = schema.notes.get(name)
    lines = [f"    # {note}"] if note else []
    return "\n".join([*lines, f"    {_quote(name)}: {{{entries}}}"])


def _write(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_write, value))}]"
    return _quote(value) if isinstance(value, str) else json.dumps(value)


def _list(names: Collection[str]) -> str:
    return f"[{', '.join(map(_quote, names))}]"


def _quote(text: str) -> str:
    # Every reader of YAML takes it for text.
    is_plain = _PLAIN.fullmatch(text) and text == text.strip() and text.casefold() not in _NOT_PLAIN
    return text if is_plain else json.dumps(text, ensure_ascii=False)


_NAMES = ("defs.yaml", "component.yaml")


def find_gate_file(folder: Path) -> Path | None:
    """Return the file in a folder that Dagster reads components from; None where there is none."""
    return next((folder / name for name in _NAMES if (folder / name).is_file()), None)


def read_gate(path: Path) -> Gate:
    """Return the gate of a file, or of a folder with one.

    DefinitionError, with the place, where it cannot be taken as it is written.
    """
    file = find_gate_file(path) if path.is_dir() else path
    if file is None:
        raise DefinitionError(f"{path}: it holds no {' and no '.join(_NAMES)}.")
    return parse_written_gate(read_file(file), file)


def parse_written_gate(text: str, file: Path) -> Gate:
    """Return the gate of the text of a file. DefinitionError as `read_gate`."""
    gates = [
        document
        for document in read_documents(text, str(file))
        if isinstance(document.content, dict)
        and str(document.content.get("type")).endswith(f".{COMPONENT.rpartition('.')[2]}")
    ]
    if len(gates) != 1:
        raise DefinitionError(f"{file}: it holds {len(gates)} gates (type: {COMPONENT}), expected is one.")
    return validate_gate(gates[0], file)


def validate_gate(document: Document, file: Path) -> Gate:
    """Return the gate that a document of a file defines. DefinitionError with the places of all problems."""
    attributes = document.content.get("attributes") if isinstance(document.content, dict) else None
    try:
        return Gate.model_validate(attributes)
    except ValidationError as error:
        problems = [
            f"{file}:{document.line(('attributes', *problem['loc']))}: "
            f"{'.'.join(map(str, problem['loc'])) or 'attributes'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
    raise DefinitionError("; ".join(problems))
