"""Homes on disk that several processes share, runs in them, and what became of those."""

import base64
import hashlib
import json
import os
import pickle
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from disclosure_pipeline.candidates import evaluation_records, measuring
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.evidence import validation
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.policy.gate import Gate
from support import event_stores, gates
from support.event_stores import kept_connections
from support.gates import GATE, Home
from support.paths import ROOT

# The job that runs the release alone.
ALONE = f"{GATE}_release_alone"


@contextmanager
def opened(path: Path, defs: dg.Definitions) -> Iterator[Home]:
    event_stores.keep_engines()
    with pytest.MonkeyPatch.context() as patch, gates.quiet():
        gates.with_keys(path, patch)
        with dg.DagsterInstance.from_config(str(path)) as instance:
            yield Home(path, defs, instance)


@contextmanager
def new_home(settings: str | None = None) -> Iterator[Path]:
    """A folder with a ground truth and a dagster.yaml: the project's own, or `settings`."""
    with gates.quick_folder() as path:
        shutil.copy(ROOT / "dagster_home" / "dagster.yaml", path)
        if settings is not None:
            (path / "dagster.yaml").write_text(settings)
        yield path


@contextmanager
def copied(template: Path) -> Iterator[Path]:
    with gates.quick_folder() as path:
        shutil.copytree(template, path, dirs_exist_ok=True)
        yield path


@lru_cache
def code_location() -> dg.Definitions:
    """The small gate with the executor of the project's code location, and a job that only publishes."""
    release = dg.AssetSelection.assets(dg.AssetKey([GATE, "release"]))
    return dg.Definitions.merge(
        gates.load(gates.definition()),
        dg.Definitions(executor=dg.in_process_executor, jobs=[dg.define_asset_job(ALONE, release)]),
    )


@dataclass(frozen=True)
class Ran:
    """The outcome of a run, in a form that passes between processes."""

    run_id: str
    success: bool
    failures: dict[str, str]
    published: str | None

    @property
    def failure_text(self) -> str:
        return "\n".join(self.failures.values())


def ran(result: dg.ExecuteInProcessResult | dg.JobExecutionResult) -> Ran:
    """The outcome of a run. None of its steps may have been tried twice."""
    kinds = {event.event_type_value for event in result.all_events}
    assert not kinds & {"STEP_UP_FOR_RETRY", "STEP_RESTARTED"}
    failures, published = {}, None
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            error = data.error.cls_name if data.error else None
            failures[str(event.step_key)] = str(
                data.user_failure_data.description if data.user_failure_data else error
            )
        if event.is_step_materialization and event.materialization.asset_key.path[-1] == "release":
            published = str(event.materialization.metadata["published"].value)
    return Ran(result.run_id, result.success, failures, published)


def refused(result: dg.ExecuteInProcessResult | dg.JobExecutionResult) -> str:
    """Return the message of a run that a blocking check or one of our errors stopped."""
    outcome = ran(result)
    assert not outcome.success and outcome.published is None
    assert outcome.failure_text and "Unexpected" not in outcome.failure_text, outcome.failure_text
    assert not [sentence for sentence in outcome.failures.values() if " " not in sentence], outcome
    return outcome.failure_text


# What is of one run: a rerun has its own. Everything else has to be the same.
OF_A_RUN = {"run_id", "measured_at", "published_at", "signatures", "last_moment"}
# What depends on a key that every store draws for itself.
OF_A_STORE = {"sketch_key", "sketches"}


def state(home: Path) -> dict[str, Any]:
    """Every file of the store and the releases of a home, by its path: all of it that counts."""
    return {
        str(path.relative_to(home)): content(path)
        for folder in ("store", "releases", "releases-staging")
        for path in sorted((home / folder).rglob("*"))
        if path.is_file() and path.suffix != ".lock" and path.name not in OF_A_STORE
    }


def content(path: Path) -> Any:
    """The bytes of a file; of JSON its content without what is of one run, a signed payload included."""
    if path.suffix != ".json":
        return path.read_bytes()
    return _timeless(json.loads(path.read_bytes()))


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "payload" in value and "payloadType" in value:
        value["payload"] = json.loads(base64.b64decode(value["payload"]))
    return {name: _timeless(entry) for name, entry in value.items() if name not in OF_A_RUN | OF_A_STORE}


# What opens a file to write, and what else changes a folder, by the names of Python's audit events.
_WRITES = os.O_WRONLY | os.O_RDWR
_CHANGES = {"shutil.rmtree"} | {
    f"os.{name}" for name in ("rename", "mkdir", "remove", "rmdir", "chmod", "link", "symlink", "truncate")
}


@dataclass(frozen=True)
class Moment:
    """A moment of a run: after an event was stored, or before a file changes."""

    kind: str
    step: str | None = None

    @property
    def is_boundary(self) -> bool:
        return self.kind in {"STEP_START", "STEP_SUCCESS", "STEP_FAILURE", "RUN_START", "RUN_SUCCESS"}


def watch(home: Path, at: Callable[[Moment], None]) -> None:
    """Call a function at every moment of the runs of this process. It cannot be undone."""
    original = dg.DagsterInstance.handle_new_event
    step: list[str | None] = [None]

    def handle(self: dg.DagsterInstance, event: Any, **settings: Any) -> None:
        original(self, event, **settings)
        if event.is_dagster_event:
            kind = event.get_dagster_event().event_type_value.replace("PIPELINE", "RUN")
            step[0] = event.step_key if kind == "STEP_START" else step[0]
            at(Moment(kind, event.step_key))

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            changes = (
                isinstance(path, (str, bytes, os.PathLike)) and isinstance(flags, int) and flags & _WRITES
            )
        else:
            path, changes = (arguments or (None,))[0], event in _CHANGES
        if changes and counts(home, os.fspath(path)):
            at(Moment(event, step[0]))

    setattr(dg.DagsterInstance, "handle_new_event", handle)  # noqa: B010 (mypy knows it as a method)
    sys.addaudithook(audit)


def counts(home: Path, path: str | bytes) -> bool:
    return os.fsdecode(path).startswith((f"{home}/store/", f"{home}/releases/", f"{home}/releases-staging/"))


def run_gate(path: Path, defs: dg.Definitions, candidate: str) -> Ran:
    with opened(path, defs) as home:
        return ran(home.run_gate(candidate))


def run_gate_undisturbed(path: Path, defs: dg.Definitions, candidate: str) -> Ran:
    """The same, of a run that nobody kills or copies halfway."""
    with kept_connections():
        return run_gate(path, defs, candidate)


def release_alone(path: Path, defs: dg.Definitions, candidate: str) -> Ran:
    with opened(path, defs) as home:
        return ran(home.materialize("release", candidate))


@contextmanager
def remember_results(folder: Path) -> Iterator[None]:
    """Take from a folder what any process worked out before, also one that runs meanwhile.

    New stores get the same key, so that they draw the same people.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation_records, "secrets", SimpleNamespace(token_bytes=bytes))
        for module, name, describe in (
            (charts, "_draw", repr),
            (measuring, "measure_tables", _describe_tables),
            (validation, "validate", repr),
        ):
            patch.setattr(module, name, _remember(folder, name, describe, getattr(module, name)))
        yield


def _remember(
    folder: Path, name: str, describe: Callable[[Any], str | None], work_out: Callable[..., Any]
) -> Callable[..., Any]:
    def recall(*arguments: Any) -> Any:
        description = describe(arguments)
        if description is None:
            return work_out(*arguments)
        kept = folder / hashlib.sha256(f"{name} {description}".encode()).hexdigest()
        if not kept.exists():
            partial = kept.with_suffix(f".{os.getpid()}")
            partial.write_bytes(pickle.dumps(work_out(*arguments)))
            partial.replace(kept)  # whole or not there: a child may be killed at any moment
        return pickle.loads(kept.read_bytes())

    return recall


def _describe_tables(arguments: tuple[Gate, Any, str, Any, int, Any]) -> str | None:
    """All that the figures of a candidate are measured from: every record of its tables included.

    Not how much memory is free, which is different each time. None where no records are in memory.
    """
    gate, opened, engine, with_holdout, seed, claim = arguments
    described: list[Any] = [gate.model_dump(mode="json"), engine, seed, claim]
    for tables in (opened, with_holdout) if with_holdout is not None else (opened,):
        if not isinstance(tables, FramesInMemory):
            return None
        described += [type(tables).__name__, _without_memory(tables.engine_description)]
        described += [tables.ledger, tables.names]
        for frame in tables.frames:
            described.append(hashlib.sha256(_to_bytes(pa.Table.from_pandas(frame))).hexdigest())
    return repr(described)


def _without_memory(engine_description: str) -> str:
    return re.sub(r"[\d.]+ GB are free", "", engine_description)


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()
