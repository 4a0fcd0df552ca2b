"""The record of evaluations: how many candidates were measured against a ground truth, and which tables.

The figures of two tables that differ in few records would reveal single people. So every table is compared
with all that were measured before, by sketches of its records (see `record_sketch`): of the whole table, and
of each part that a figure depends on (see `list_figure_inputs`). Sketches stay in the store when tables are
pruned. They are hashed with a secret key of the store, so that they reveal no value and collisions cannot be
constructed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.snapshot import Snapshot, list_syntheses
from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.errors import RefusedError, StoreError, write_count
from disclosure_pipeline.evaluation.record_sets import EVENTS_ALONE, SUMMARIES_ALONE
from disclosure_pipeline.measures.chance import bound_chance_of_nearness
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.files import (
    hold_lock,
    read_json,
    read_json_if_whole,
    sync_folder,
    write_json,
    write_whole,
)
from disclosure_pipeline.tables.contract import MULTISET, PREFIX
from disclosure_pipeline.tables.dictionary import NUMERIC
from disclosure_pipeline.tables.record_hashes import (
    Groups,
    Part,
    Records,
    RecordSketch,
    bound_difference,
    from_record,
    sketch_parts,
    stack_sketches,
    to_record,
)

# Size of the sketch of a part (2 ** 9 buckets), enough to recognise a difference in few records.
_BITS = 9


@dataclass(frozen=True)
class FigureInput:
    """A part of a table that figures depend on, and its name in messages.

    Tables that are near in a part with `is_whole` are refused even if chance explains it.
    """

    label: str
    part: Part
    is_whole: bool = False


def list_figure_inputs(gate: Gate) -> tuple[FigureInput, ...]:
    """Return the whole table, then each distinct part that a figure of the gate depends on.

    Guards depend on all columns, all but one, the targets, all but numbers, and the events; identity
    disclosure on the grouped keys; figures of a target on the keys and the target, grouped unless it is
    predicted.
    """
    grouped = [
        ("the keys", gate.keys),
        *((f"the keys and {target!r}", (*gate.keys, target)) for target in gate.targets),
    ]
    events = tuple(name for name in gate.published_columns if name.startswith(PREFIX))
    numbers = {name for name in gate.published_columns if gate.columns[name].type in NUMERIC}
    ungrouped = [
        *(
            (f"all columns but {name!r}", _leave_out(gate.published_columns, name))
            for name in gate.published_columns
        ),
        ("the targets", gate.targets),
        ("all columns but numbers", tuple(name for name in gate.published_columns if name not in numbers)),
        (EVENTS_ALONE, events),
        (SUMMARIES_ALONE, _leave_out(events, MULTISET)),
        *(grouped[1:] if gate.measures.prediction else []),
    ]
    inputs = [
        FigureInput("all columns", Part(gate.published_columns), is_whole=True),
        FigureInput("the keys and targets", Part(gate.measured_columns), is_whole=True),
        *(
            FigureInput(label, Part(columns, any(map(gate.grouping.groups_column, columns)), _BITS))
            for label, columns in grouped
        ),
        *(FigureInput(label, Part(columns, bits=_BITS)) for label, columns in ungrouped),
    ]
    distinct: dict[tuple[frozenset[str], bool], FigureInput] = {}
    for figure_input in inputs:
        part = figure_input.part
        if part.columns:
            distinct.setdefault((frozenset(part.columns), part.in_groups), figure_input)
    return tuple(distinct.values())


def _leave_out(columns: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(column for column in columns if column != name)


SKETCHES = "sketches"
"""The folder of a store with the sketches of measured tables, and their key."""

_KEY_FILE = "sketch_key"
_KEY_BYTES = 32
_FORMAT = 2  # version of the records, which are only comparable within a version
_ALL_FILES = "all files together"


_BY_CHANCE = 1e-4
"""Tables are near by chance if more than 1 in 10,000 fresh tables are as near."""


@dataclass(frozen=True)
class SketchedTable:
    """The sketches of a table, one for each of `list_figure_inputs`, and its name in messages."""

    name: str
    sketches: tuple[RecordSketch, ...]

    def find_near_part(
        self, other: SketchedTable, inputs: Sequence[FigureInput], smallest_count: int
    ) -> str | None:
        """Return the first part in which two tables may differ in some, but few records, or None.

        Tables with the same records have no such part. Neither is a part returned that is near by chance
        because it has few combinations of values, unless it is a whole table.
        """
        for position, figure_input in enumerate(inputs):
            sketch = self.sketches[position]
            difference = bound_difference(sketch, other.sketches[position])
            if position == 0 and difference == 0:
                return None
            if 0 < difference < smallest_count and (
                figure_input.is_whole or bound_chance_of_nearness(sketch.counts, difference) < _BY_CHANCE
            ):
                return figure_input.label
        return None


def sketch_candidate(
    store: Store, gate: Gate, tables: Mapping[str, Records], groups: Mapping[str, Groups] | None = None
) -> tuple[SketchedTable, ...]:
    """Return the sketches of each table of a candidate and of all as one; `groups` are those of numbers."""
    key = _read_key(store)
    parts = [figure_input.part for figure_input in list_figure_inputs(gate)]
    sketched = [
        SketchedTable(name, sketch_parts(table, parts, gate.columns, key, groups))
        for name, table in tables.items()
    ]
    if len(sketched) > 1:
        sketches = zip(*(table.sketches for table in sketched), strict=True)
        sketched.append(SketchedTable(_ALL_FILES, tuple(map(stack_sketches, sketches))))
    return tuple(sketched)


def identify_records(store: Store, gate: Gate, table: Records) -> str:
    """Return an identifier of a table's records, independent of their order and keyed by the store."""
    [sketch] = sketch_parts(table, [Part(gate.published_columns)], gate.columns, _read_key(store), {})
    return json.dumps(to_record(sketch), sort_keys=True)


def _find_near(folders: GateFolders, content: str, tables: Sequence[SketchedTable]) -> str | None:
    """Describe the first two tables that differ in fewer than `smallest_count` records, but in some; or None.

    Measured tables with the hash `content` are skipped: they may be the same under another data dictionary.
    """
    smallest_count, inputs = folders.gate.policy.smallest_count, list_figure_inputs(folders.gate)
    for table, other in combinations(tables, 2):
        part = table.find_near_part(other, inputs, smallest_count)
        if part is not None:
            return f"{table.name} and {other.name} differ{_name_part(inputs, part)}"
    for candidate, earlier in _read_measured(folders, content):
        for table, other in product(tables, earlier):
            part = table.find_near_part(other, inputs, smallest_count)
            if part is not None:
                measured = f"{other.name} of {candidate!r}, which was measured before,"
                return f"{table.name} differs from {measured}{_name_part(inputs, part)}"
    return None


def _name_part(inputs: Sequence[FigureInput], label: str) -> str:
    return "" if label == inputs[0].label else f" in {label}"


def _is_recorded(folders: GateFolders, content: str, ground_truth: str) -> bool:
    """Return whether a content was measured against this GT under the current data dictionary."""
    record = read_json_if_whole(_locate_sketches(folders) / f"{content}.json")
    # The edges of groups depend on GT.
    is_same_GT = record.get("ground_truth") == ground_truth
    return is_same_GT and record.get("columns") == _hash_definition(folders.gate)


def _locate_sketches(folders: GateFolders) -> Path:
    """Return the folder of the sketches that are comparable: of tables with the same columns."""
    gate = folders.gate
    columns = {
        name: (gate.columns[name].type, gate.columns[name].time_zone) for name in gate.published_columns
    }
    labels = [figure_input.label for figure_input in list_figure_inputs(gate)]
    return folders.store.root / SKETCHES / _hash([_FORMAT, columns, labels])[:16]


def _hash_definition(gate: Gate) -> str:
    return _hash({name: gate.columns[name].model_dump(mode="json") for name in gate.published_columns})


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_measured(folders: GateFolders, skipped: str) -> Iterator[tuple[str, tuple[SketchedTable, ...]]]:
    """Yield each measured candidate with its tables, except the content `skipped`."""
    sizes = [1 << figure_input.part.bits for figure_input in list_figure_inputs(folders.gate)]
    key = _identify_key(folders.store)
    for path in sorted(_locate_sketches(folders).glob("*.json")):
        if path.stem == skipped:
            continue
        try:
            yield _parse_record(read_json(path, "synthetic"), key, sizes)
            continue
        except (StoreError, KeyError, TypeError, ValueError):
            pass  # raised below without the context of this error
        raise StoreError(
            f"The record {path.name} in the store's sketches is damaged or has another key than "
            f"{_KEY_FILE}, so the candidate cannot be compared with it. Restore it; remove it only if nobody "
            "has seen the figures of that candidate."
        )


def _parse_record(
    record: Mapping[str, Any], key: str, sizes: Sequence[int]
) -> tuple[str, tuple[SketchedTable, ...]]:
    if record["sketch_key"] != key:
        raise ValueError("of another key")
    tables = tuple(
        SketchedTable(str(table["name"]), tuple(map(from_record, table["sketches"])))
        for table in record["tables"]
    )
    if not tables or any([len(sketch.counts) for sketch in table.sketches] != sizes for table in tables):
        raise ValueError("without a sketch of each part")
    return str(record["candidate"]), tables


def _read_key(store: Store) -> bytes:
    """Return the secret key of the store, creating it on first use. Raise StoreError if it is damaged."""
    folder = store.root / SKETCHES
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _KEY_FILE
    with hold_lock(folder / f"{_KEY_FILE}.lock"):
        if not path.exists():
            write_whole(path, secrets.token_bytes(_KEY_BYTES))
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise StoreError(f"{_KEY_FILE} in the store is damaged: restore it.")
    return key


def draw_seed(store: Store) -> int:
    """Return the seed that draws the people to compare, secret so that no synthesis can spare those drawn."""
    return int.from_bytes(hashlib.sha256(b"drawn people " + _read_key(store)).digest()[:8], "big")


def _identify_key(store: Store) -> str:
    return hashlib.sha256(b"sketch key " + _read_key(store)).hexdigest()[:16]


EVALUATIONS = "evaluations"
"""The folder of a store with one file per evaluation."""


def count_evaluations(store: Store, ground_truth: str) -> int:
    """Count the contents that were measured against the ground truth with that sha256."""
    folder = store.root / EVALUATIONS / ground_truth
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def count_recorded_evaluations(store: Store) -> int:
    """Count the evaluations of the recorded GT; if none is recorded, of the one with the most evaluations."""
    try:
        sha256 = read_json(store.ground_truth, "ground_truth").get("sha256")
    except StoreError:
        folder = store.root / EVALUATIONS
        numbers = (
            [count_evaluations(store, path.name) for path in folder.iterdir()] if folder.is_dir() else []
        )
        return max(numbers, default=0)
    return count_evaluations(store, sha256) if isinstance(sha256, str) else 0


def record_evaluation(
    folders: GateFolders,
    snapshot: Snapshot,
    ground_truth: str,
    sketch_tables: Callable[[], Sequence[SketchedTable]],
    *,
    is_measured: bool = True,
) -> None:
    """Record the evaluation of a candidate before it is measured, once per content.

    `sketch_tables` returns its tables, and is only called if they are not recorded. Raise RefusedError if the
    policy's `evaluations_per_ground_truth` is reached, or if a table differs in too few records from another
    one of the candidate or a measured one: unlimited measurements, or differences of single records, would
    reveal the ground truth. Raise StoreError if the record of an earlier candidate is damaged.

    A candidate that breaks its contract with the ground truth is not to be measured (`is_measured`): it
    counts, since that answer depends on the ground truth, but has no figures that a corrected one could be
    compared with, so its tables are not recorded.
    """
    store, gate = folders.store, folders.gate
    content = _hash_content(gate, snapshot)
    folder = store.root / EVALUATIONS / ground_truth
    folder.mkdir(parents=True, exist_ok=True)
    evaluation = folder / content
    tables = None if _is_recorded(folders, content, ground_truth) else sketch_tables()
    if tables is None and evaluation.exists():
        return
    (store.root / SKETCHES).mkdir(exist_ok=True)
    with hold_lock(store.root / SKETCHES / "measured.lock"):  # concurrent evaluations must see each other
        limit = gate.policy.evaluations_per_ground_truth
        if not evaluation.exists() and count_evaluations(store, ground_truth) >= limit:
            raise RefusedError(
                f"Candidate {snapshot.candidate!r} is not measured: the limit of "
                f"{write_count(limit, 'candidate')} measured against this ground truth is reached "
                "(policy.evaluations_per_ground_truth)."
            )
        if tables is not None:
            near = _find_near(folders, content, tables)
            if near is not None:
                raise RefusedError(
                    f"Candidate {snapshot.candidate!r} is not measured: {near} in fewer than "
                    f"{write_count(gate.policy.smallest_count, 'record')} (policy.smallest_count), but "
                    "in some. The difference of their figures would reveal single people: generate a new "
                    "synthesis instead of editing one."
                )
        if tables is not None and is_measured:
            record = {
                "candidate": snapshot.candidate,
                "sketch_key": _identify_key(store),
                "columns": _hash_definition(gate),
                "ground_truth": ground_truth,
                "tables": [
                    {"name": table.name, "sketches": list(map(to_record, table.sketches))} for table in tables
                ],
            }
            write_json(_locate_sketches(folders) / f"{content}.json", record)
        os.close(os.open(evaluation, os.O_CREAT | os.O_WRONLY, 0o600))
        sync_folder(folder)


def _hash_content(gate: Gate, snapshot: Snapshot) -> str:
    """Return a hash of a candidate's tables that is independent of their file names."""
    tables = [" ".join(file.sha256 for file in files) for files in list_syntheses(gate, snapshot)]
    return hashlib.sha256("\n".join(sorted(tables)).encode()).hexdigest()
