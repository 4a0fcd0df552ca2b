"""A gate's file: its JSON schema, a commented template, and a strict reader.

The template is written from the columns of a table that is not confidential.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import ValidationError

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.policy.gate import NAME, Gate
from disclosure_pipeline.policy.reviewed_files import DefinitionError, Document, read_documents, read_file
from disclosure_pipeline.tables.descriptions import Description
from disclosure_pipeline.tables.dictionary import NUMERIC, Column, describe_problem
from disclosure_pipeline.tables.inference import Draft, draft, make_column, propose_unit
from disclosure_pipeline.tables.messages import suggest_names
from disclosure_pipeline.tables.sources import FileSource

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

COMPONENT = "disclosure_pipeline.DisclosureGate"


def build_file_schema() -> dict[str, Any]:
    """Return the JSON schema of a whole file: the component's type, and the gate as its attributes."""
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


# A numeric target with more values than this is grouped.
_MOST_VALUES = 50
# So is a numeric key or target with fewer records per value, since another sample would hardly share its
# values.
_FEWEST_PER_VALUE = 5
_GROUPS, _FEWEST_GROUPS = 20, 3
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./ -]*")
# In a shorter table, such as a hand-written example, distinct values do not make an identifier.
_FEWEST_RECORDS = 20
_NOT_PLAIN = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", ""}


@dataclass(frozen=True)
class Schema:
    """The columns of a table, with notes for the reader on some of them, its keys and its targets.

    `unit` is a further column that seems to identify whose record it is.
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
    descriptions: Mapping[str, Description] | None = None,
) -> Schema:
    """Return the schema of a synthetic or invented table, without its own levels: the ground truth has more.

    Levels and ranges in `descriptions` are kept. By default all columns but keys and identifiers are targets.
    Numbers are grouped if a target has many values, or if the values of a key or target hardly repeat. Raise
    InputError if a key or target is not a column, or looks like an identifier.
    """
    groups, special = groups or {}, special or {}
    unit = propose_unit(raw, {*keys, *targets, *groups, *special})
    raw = raw if unit is None else raw.drop(columns=unit)
    drafted = draft(raw, _FEWEST_RECORDS, {*groups, *special}, descriptions)
    for name in (*keys, *targets, *groups, *special):
        if name not in drafted.columns:
            raise InputError(f"There is no column {name!r}. {suggest_names(name, drafted.columns)}")
    identifiers = {name for name, column in drafted.columns.items() if column.type == "text identifier"}
    for name in (*keys, *targets):
        if name in identifiers:
            raise InputError(
                f"Column {name!r} has a different value in every record, like an identifier: it cannot be a "
                "key or a target."
            )
    chosen = tuple(targets) or tuple(
        name for name in drafted.columns if name not in keys and name not in identifiers
    )
    proposed = {
        name: number
        for name, column in drafted.columns.items()
        if name in (*keys, *chosen) and name not in groups and column.type in NUMERIC
        for present in [raw[name][~raw[name].isin(column.missing_codes)]]
        if (number := _propose_groups(present, len(keys) if name in keys else 0))
    }
    changes: dict[str, dict[str, Any]] = {
        name: _forget_values((descriptions or {}).get(name, Description())) for name in drafted.columns
    }
    for name, number in {**proposed, **groups}.items():
        changes[name]["groups"] = number
    for name, codes in special.items():
        changes[name]["special_values"] = tuple(int(code) if code == int(code) else code for code in codes)
    columns = {
        name: make_column(name, column.model_dump() | changes[name])
        for name, column in drafted.columns.items()
    }
    notes = _describe_ranges(drafted)
    for name in proposed:
        notes[name] = f"{notes[name]}; {_GROUPED}" if columns[name].missing_codes else _GROUPED
    return Schema(columns, notes, tuple(keys), chosen, unit)


def _forget_values(described: Description) -> dict[str, Any]:
    """Return the entries that leave out what a column's own values drafted, unless they are described."""
    changes: dict[str, Any] = {"unit": ""}
    if not described.labels and "levels" not in described.entries:
        changes["levels"] = None
    if "range" not in described.entries:
        changes["range"] = None
    return changes


def _describe_ranges(drafted: Draft) -> dict[str, str]:
    """Return the notes on columns, without those on levels, and with the ranges of this table."""
    notes = {}
    for name, note in drafted.notes.items():
        kept = "; ".join(part for part in note.split("; ") if "levels" not in part)
        if kept:
            notes[name] = _name_range(drafted.columns[name], kept)
    return notes


_GROUPED = "many values, so it is compared in groups: learning the group is a disclosure"


def _propose_groups(values: pd.Series[Any], keys: int) -> int | None:
    """Propose a number of groups for a target (`keys` is 0) or one of `keys` keys; None if it needs none.

    All keys together get about half as many combinations as there are records, so that another sample shares
    them.
    """
    records, levels = int(values.notna().sum()), values.nunique()
    hardly_repeats = records >= _FEWEST_RECORDS // 2 and levels * _FEWEST_PER_VALUE > records
    if not hardly_repeats and (keys or levels <= _MOST_VALUES):
        return None
    groups = (records / 2) ** (1 / keys) if keys else records / _FEWEST_PER_VALUE
    return min(_GROUPS, max(_FEWEST_GROUPS, int(groups)))


def _name_range(column: Column, note: str) -> str:
    """Return the note with the range of this table, which may differ from that of the ground truth."""
    if column.range is None:
        return note.replace("check its range", "set its range")
    ends: tuple[Any, ...] = column.range
    low, high = map(int, ends) if column.type == "integer" else ends
    return note.replace("check its range", f"set its range, here [{low}, {high}]")


EXAMPLE = Schema(
    columns={
        "sex": Column(type="category"),
        "age": Column(type="integer"),
        "region": Column(type="category"),
        "income": Column(type="number", groups=_GROUPS),
        "health": Column(type="category"),
    },
    notes={"sex": "an invented example: replace it by the columns of your own table"},
    keys=("sex", "age", "region"),
    targets=("income", "health"),
)
"""The schema of a gate that is created without a table."""


def require_gate_name(name: str) -> str:
    """Return the name, or raise InputError if it is not allowed for a gate.

    >>> require_gate_name("survey")
    'survey'
    """
    if not re.fullmatch(NAME, name):
        raise InputError(
            f"A gate cannot be named {name!r}: expected at most 50 lower-case letters, digits and '_', "
            "beginning with a letter."
        )
    return name


def write_definition(name: str, ground_truth: str | FileSource, schema: Schema) -> str:
    """Return the text of a gate's file, with comments."""
    source: Any = ground_truth
    if isinstance(ground_truth, FileSource):
        source = ground_truth.model_dump(mode="json", exclude_none=True)
    columns = "\n".join(_write_column(column, schema) for column in schema.columns)
    return f"""\
# A gate: the conditions under which a synthetic version of one confidential table may be published.
# `disclosure-pipeline check` says whether it is ready; docs/policy.md lists all settings.
type: {COMPONENT}

attributes:
  name: {name}
  description: {_quote(f"Decides which synthetic versions of {name} may be published")}

  # Relative paths start at DAGSTER_HOME.
  ground_truth: {_write(source)} # the confidential table: read in place, never copied
  incoming: {name}/incoming # one folder per candidate, complete once it has a file _SUCCESS
  store: {name}/store # snapshots of candidates, their figures and dossiers
  releases: {name}/releases # approved candidates
  trusted_keys: keys/public-key.pem # every release is signed with the matching private key

  # The data dictionary. The ground truth and every candidate are refused if they do not fit it. A category
  # has the levels of the ground truth unless it has `levels`; numbers may have a `range`. A column that is
  # neither key nor target is not released unless it has `published: true`.
  columns:
{columns}

  # What an intruder may already know about a person.
  keys: {_write(list(schema.keys))}
  # What an intruder must not learn.
  targets: {_write(list(schema.targets))}
{_write_unit(schema.unit)}
  # The largest figures allowed, in percentage points beyond what other people's records would tell anyway.
  # `disclosure-pipeline policy draft` proposes bounds from your ground truth, with reasons. Guards against
  # copies hold in every gate.
  policy:
    unique_hits:
      beyond: 3 # synthetic records that match a person who is unique on the keys
    DiSCO:
      beyond: 3 # people whose target anybody who knows their keys can infer correctly
    detection_limit:
      at_most: 10 # people whose copies an approval may miss: a small or coarse table hides more
"""


def _write_unit(unit: str | None) -> str:
    if unit is None:
        return ""
    return f"""\
  # The column that seems to identify whose record it is, as people have several. It is never published.
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
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_write(entry)}' for name, entry in value.items())}}}"
    return _quote(value) if isinstance(value, str) else json.dumps(value)


def _quote(text: str) -> str:
    # A plain scalar must be text to every reader of YAML.
    is_plain = _PLAIN.fullmatch(text) and text == text.strip() and text.casefold() not in _NOT_PLAIN
    return text if is_plain else json.dumps(text, ensure_ascii=False)


_NAMES = ("defs.yaml", "component.yaml")


def find_gate_file(folder: Path) -> Path | None:
    """Return the file of a folder that Dagster reads a component from, or None."""
    return next((folder / name for name in _NAMES if (folder / name).is_file()), None)


def read_gate(path: Path) -> Gate:
    """Return the gate of a file, or of the file in a folder.

    Raise DefinitionError, with the line of each problem, if it is invalid.
    """
    file = find_gate_file(path) if path.is_dir() else path
    if file is None:
        raise DefinitionError(f"{path}: there is no {' or '.join(_NAMES)} in this folder.")
    return parse_gate_file(read_file(file), file)


def parse_gate_file(text: str, file: Path) -> Gate:
    """Return the gate of a file's text. Raise DefinitionError as `read_gate` does."""
    gates = [document for document in read_documents(text, str(file)) if is_gate(document)]
    if len(gates) != 1:
        raise DefinitionError(f"{file}: it holds {len(gates)} gates (type: {COMPONENT}), expected one.")
    return validate_gate(gates[0], file)


def is_gate(document: Document) -> bool:
    """Return whether a document is a component that is a gate."""
    kind = COMPONENT.rpartition(".")[2]
    return isinstance(document.content, dict) and str(document.content.get("type")).endswith(f".{kind}")


def validate_gate(document: Document, file: Path) -> Gate:
    """Return the gate that a document defines. Raise DefinitionError with the lines of all problems."""
    attributes = document.content.get("attributes") if isinstance(document.content, dict) else None
    try:
        return Gate.model_validate(attributes)
    except ValidationError as error:
        problems = [
            f"{file}:{document.line(('attributes', *entry))}: {problem}"
            for entry, problem in list_problems(error, attributes)
        ]
    raise DefinitionError("; ".join(problems))


def list_problems(error: ValidationError, attributes: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the entry of each problem, and a message that begins with its name.

    Problems that follow from one inside their entry are left out.
    """
    problems = [
        (_find_entry(attributes, problem), describe_problem(problem))
        for problem in error.errors(include_url=False, include_input=False)
    ]
    return [
        (entry, f"{_name_entry(entry)}: {problem}")
        for entry, problem in problems
        # A bound whose own bounds are misspelt is not a number, either.
        if not any(other[: len(entry)] == entry and len(other) > len(entry) for other, _ in problems)
    ]


def _find_entry(attributes: Any, problem: ErrorDetails) -> tuple[str | int, ...]:
    """Return the path of a problem's entry without the names of types that pydantic adds."""
    entry: tuple[str | int, ...] = ()
    content = attributes
    for part in problem["loc"]:
        if isinstance(content, Mapping) and part in content:
            content = content[str(part)]
        elif isinstance(content, Sequence) and isinstance(part, int):
            content = content[part]
        else:
            continue
        entry = (*entry, part)
    return (*entry, problem["loc"][-1]) if problem["type"] == "missing" else entry


def _name_entry(entry: tuple[str | int, ...]) -> str:
    return ".".join(part for part in entry if isinstance(part, str)) or "attributes"
