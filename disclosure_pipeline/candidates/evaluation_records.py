"""The evaluations of a ground truth: how many contents were measured against it, and which tables.

Tables that differ from a measured one in too few records would tell of single people. Compared are sketches
of the records (see `record_sketch`), of the whole tables and of every part that a figure is made of (see
`list_figure_inputs`); they stay in the store when the tables themselves are pruned. Their hashes have a key,
drawn once for the store, so that they tell no value and nobody can make tables whose hashes agree.
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

from disclosure_pipeline.candidates.store import GateFolders, Snapshot, Store, list_syntheses
from disclosure_pipeline.errors import RefusedError, StoreError
from disclosure_pipeline.evaluation.counts import EVENTS_ALONE, SUMMARIES_ALONE
from disclosure_pipeline.measures.chance import bound_chance_of_nearness
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.files import (
    hold_lock,
    read_json,
    read_json_if_whole,
    sync_folder,
    write_json,
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

# Of a part it is asked whether tables differ in a few records; sketches of so many buckets tell that.
_BITS = 9


@dataclass(frozen=True)
class FigureInput:
    """A part of a table, and its name in messages. Those near in a whole one are near, be it by chance."""

    label: str
    part: Part
    is_whole: bool = False


def list_figure_inputs(gate: Gate) -> tuple[FigureInput, ...]:
    """Return the whole table first, then each part that a figure of the gate is made of, once.

    The guards read all columns, all but one, the targets alone, all but numbers, and the events alone; the
    measures of identity the keys, those of a target the keys with it, grouped as they are measured, and not
    grouped where it is predicted.
    """
    as_measured = [
        ("the keys", gate.keys),
        *((f"the keys and {target!r}", (*gate.keys, target)) for target in gate.targets),
    ]
    events = tuple(name for name in gate.published if name.startswith(PREFIX))
    numbers = {name for name in gate.published if gate.columns[name].type in NUMERIC}
    as_they_are = [
        *((f"all columns but {name!r}", _leave_out(gate.published, name)) for name in gate.published),
        ("the targets", gate.targets),
        ("all columns but numbers", tuple(name for name in gate.published if name not in numbers)),
        (EVENTS_ALONE, events),
        (SUMMARIES_ALONE, _leave_out(events, MULTISET)),
        *(as_measured[1:] if gate.measures.prediction else []),
    ]
    inputs = [
        FigureInput("all columns", Part(gate.published), is_whole=True),
        FigureInput("the keys and targets", Part(gate.measured), is_whole=True),
        *(
            FigureInput(label, Part(columns, any(map(gate.grouping.groups_column, columns)), _BITS))
            for label, columns in as_measured
        ),
        *(FigureInput(label, Part(columns, bits=_BITS)) for label, columns in as_they_are),
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
"""The folder of a store that holds the sketches of what was measured, and their key."""

_KEY_FILE = "sketch_key"
_KEY_BYTES = 32
_FORM = 2  # of the records: those of another form cannot be compared
_ALL_FILES = "all files together"


_BY_CHANCE = 1e-4
"""Tables are near by chance where tables drawn anew are so near more often than once in 10,000."""


@dataclass(frozen=True)
class SketchedTable:
    """A table as it is measured: its name in messages, and a sketch of each of `list_figure_inputs`."""

    name: str
    sketches: tuple[RecordSketch, ...]

    def find_near_part(
        self, other: SketchedTable, inputs: Sequence[FigureInput], smallest_count: int
    ) -> str | None:
        """Return in what it differs from another table in few records, but in some, or may do so.

        None where there is nothing, as of the same records again. Parts with few combinations of values are
        near to each other by chance: nothing is said of them then.
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
    """Return each table of a candidate, by its name, and all as one; `groups` are those of its numbers."""
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
    """Return the same for the same records in any order; who has not the store's key can make no others."""
    [sketch] = sketch_parts(table, [Part(gate.published)], gate.columns, _read_key(store), {})
    return json.dumps(to_record(sketch), sort_keys=True)


def _find_near(folders: GateFolders, content: str, tables: Sequence[SketchedTable]) -> str | None:
    """Return the first two tables that are near, in words; None where there are none.

    They differ in fewer records than the policy's `smallest_count`; the same records again are no new
    question, nor is the same `content` under another data dictionary.
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
                before = f"{other.name} of {candidate!r}, which was measured before,"
                return f"{table.name} differs from {before}{_name_part(inputs, part)}"
    return None


def _name_part(inputs: Sequence[FigureInput], label: str) -> str:
    return "" if label == inputs[0].label else f" in {label}"


def _is_recorded(folders: GateFolders, content: str, ground_truth: str) -> bool:
    """Return whether a content was measured against this GT, read by the data dictionary as it is now."""
    record = read_json_if_whole(_folder(folders) / f"{content}.json")
    # Where groups of numbers end depends on GT.
    is_same_GT = record.get("ground_truth") == ground_truth
    return is_same_GT and record.get("columns") == _hash_definition(folders.gate)


def _folder(folders: GateFolders) -> Path:
    """Return where the sketches of tables with the same columns lie: only these can be compared."""
    gate = folders.gate
    columns = {name: (gate.columns[name].type, gate.columns[name].time_zone) for name in gate.published}
    labels = [figure_input.label for figure_input in list_figure_inputs(gate)]
    return folders.store.root / SKETCHES / _hash([_FORM, columns, labels])[:16]


def _hash_definition(gate: Gate) -> str:
    return _hash({name: gate.columns[name].model_dump(mode="json") for name in gate.published})


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_measured(folders: GateFolders, leaving_out: str) -> Iterator[tuple[str, tuple[SketchedTable, ...]]]:
    """Return the candidates that were measured, each with its tables; one content is left out."""
    sizes = [1 << figure_input.part.bits for figure_input in list_figure_inputs(folders.gate)]
    key = _identify_key(folders.store)
    for path in sorted(_folder(folders).glob("*.json")):
        if path.stem == leaving_out:
            continue
        try:
            yield _parse(read_json(path, "synthetic"), key, sizes)
            continue
        except (StoreError, KeyError, TypeError, ValueError):
            pass  # told outside: the error itself is not carried along
        raise StoreError(
            f"The record {path.name} among the store's sketches is damaged, or of another key than "
            f"{_KEY_FILE}: nobody can tell whether the candidate is near to that one. Restore it; remove it "
            "only if nobody has seen the figures of that candidate."
        )


def _parse(
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
    """Return the key of the store's hashes, drawn when it is needed first. StoreError where it is damaged."""
    folder = store.root / SKETCHES
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _KEY_FILE
    with hold_lock(folder / f"{_KEY_FILE}.lock"):
        if not path.exists():
            partial = folder / f".partial-{_KEY_FILE}"
            partial.unlink(missing_ok=True)
            handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
                file.flush()
                os.fsync(handle)
            partial.replace(path)
            sync_folder(folder)
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise StoreError(f"{_KEY_FILE} in the store is damaged: restore it.")
    return key


def draw_seed(store: Store) -> int:
    """Return the seed by which people are drawn to be compared: who knew it could spare the drawn."""
    return int.from_bytes(hashlib.sha256(b"drawn people " + _read_key(store)).digest()[:8], "big")


def _identify_key(store: Store) -> str:
    return hashlib.sha256(b"sketch key " + _read_key(store)).hexdigest()[:16]


EVALUATIONS = "evaluations"
"""The folder of a store that records them."""


def count_evaluations(store: Store, ground_truth: str) -> int:
    """Return how many contents were measured against the ground truth of that sha256."""
    folder = store.root / EVALUATIONS / ground_truth
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def count_recorded(store: Store) -> int:
    """Count those of the recorded ground truth; where none is, of the one that was evaluated most."""
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
) -> None:
    """Record that a candidate is measured against a ground truth, before it is; once for the same content.

    `sketch_tables` gives its tables, and is called unless they are recorded. RefusedError where the policy's
    `evaluations_per_ground_truth` were made, or where a table differs in too few records from another one of
    the candidate or from one that was measured before: whoever may ask without end, or about single
    records, learns the ground truth from the answers. StoreError where the record of an earlier candidate is
    damaged.
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
    with hold_lock(
        store.root / SKETCHES / "measured.lock"
    ):  # of several at the same moment none is overlooked
        limit = gate.policy.evaluations_per_ground_truth
        if not evaluation.exists() and count_evaluations(store, ground_truth) >= limit:
            raise RefusedError(
                f"Candidate {snapshot.candidate!r} is not measured: {limit} contents were measured against "
                "this ground truth, which is the limit (policy.evaluations_per_ground_truth)."
            )
        if tables is not None:
            near = _find_near(folders, content, tables)
            if near is not None:
                raise RefusedError(
                    f"Candidate {snapshot.candidate!r} is not measured: {near} in fewer than "
                    f"{gate.policy.smallest_count} records (policy.smallest_count), but not in none. By "
                    "their difference they would tell of single people: make a synthesis anew instead of "
                    "changing one."
                )
            record = {
                "candidate": snapshot.candidate,
                "sketch_key": _identify_key(store),
                "columns": _hash_definition(gate),
                "ground_truth": ground_truth,
                "tables": [
                    {"name": table.name, "sketches": list(map(to_record, table.sketches))} for table in tables
                ],
            }
            write_json(_folder(folders) / f"{content}.json", record)
        os.close(os.open(evaluation, os.O_CREAT | os.O_WRONLY, 0o600))
        sync_folder(folder)


def _hash_content(gate: Gate, snapshot: Snapshot) -> str:
    """Return the same for the same tables, whatever their files are called."""
    tables = [" ".join(file.sha256 for file in files) for files in list_syntheses(gate, snapshot)]
    return hashlib.sha256("\n".join(sorted(tables)).encode()).hexdigest()
