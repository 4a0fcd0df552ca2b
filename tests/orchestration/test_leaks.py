"""No value of the ground truth is written anywhere, whatever a run ends in and wherever it breaks.

Canaries of every kind are planted in GT and nowhere else: text and numbers and dates, in a key, in targets,
in a column that the gate does not read, and as identifiers. Then everything that was written is searched.
"""

import importlib
import inspect
import pkgutil
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from support import gates
from support.first_calls import at_first_calls, broken_at_first_calls
from support.gates import COPY, HONEST, Home
from support.paths import ROOT
from support.sampling import on_some_days, some_of
from support.small_batches import small_batches, tiny_batches

import disclosure_pipeline
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.partitioned import engine, opened_files, record_parts, streams
from disclosure_pipeline.counting.partitioned.engine import CellCounter
from disclosure_pipeline.counting.partitioned.record_parts import PartCounter
from disclosure_pipeline.counting.partitioned.spill_file import SpillFile
from disclosure_pipeline.evaluation import resemblance
from disclosure_pipeline.evaluation.plots import drawing
from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.orchestration import steps
from disclosure_pipeline.release.keys import keygen
from disclosure_pipeline.runtime import worker_process
from disclosure_pipeline.tables import coding

pytestmark = on_some_days

CANARIES = (
    "Xylophonist-4711",  # a level of a target that one person has
    "Outer-Quuxington",  # a level of a key that one person has
    "1871-03-09",  # a date, in a key
    "90210377",  # a number, in a grouped target
    "Prefers-no-calls-0815",  # in a column that the gate does not read
    "ID-7f3a91c2",  # an identifier
)


def ground_truth() -> pd.DataFrame:
    frame = gates.ground_truth().drop(columns="age")
    random = np.random.default_rng(3)
    frame["town"] = random.choice(["Northam", "Southam", "Westam"], len(frame))
    frame["born"] = pd.to_datetime("1960-01-01") + pd.to_timedelta(random.integers(0, 40, len(frame)), "D")
    frame["born"] = frame["born"].dt.strftime("%Y-%m-%d")
    frame["note"] = "none"
    frame["person"] = [f"P-{i}" for i in range(len(frame))]
    frame.loc[0, ["work", "town", "born", "income", "note", "person"]] = [
        CANARIES[0], CANARIES[1], CANARIES[2], int(CANARIES[3]), CANARIES[4], CANARIES[5],
    ]  # fmt: skip
    return frame[~frame["work"].eq(gates.CANARIES[0])]


def synthetic() -> pd.DataFrame:
    """Columns drawn independently from the records without canaries."""
    random = np.random.default_rng(2)
    source = ground_truth().iloc[1:]
    names = ["sex", "town", "born", "work", "income"]
    return pd.DataFrame({name: random.choice(source[name].to_numpy(), len(source)) for name in names})


DEFINITION = gates.definition(
    columns={
        "sex": {"type": "category"},
        "town": {"type": "category"},
        "born": {"type": "date"},
        "work": {"type": "category"},
        "income": {"type": "integer", "special_values": [-8], "groups": 5},
    },
    keys=["sex", "town", "born"],
    policy={"repU": 40, "DiSCO": 40},
)


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    return gates.load(DEFINITION)


@contextmanager
def disk(defs: dg.Definitions, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home with an instance on disk; temporary files are made in it as well."""
    with gates.quick_folder() as path, pytest.MonkeyPatch.context() as patch:
        (path / "tmp").mkdir()
        gates.with_keys(path, monkeypatch)
        patch.setenv("TMPDIR", str(path / "tmp"))
        patch.setattr("tempfile.tempdir", None)
        shutil.copy(ROOT / "dagster_home" / "dagster.yaml", path)
        with gates.quiet(), dg.DagsterInstance.get() as instance:
            home = Home(path, defs, instance)
            home.write_ground_truth(ground_truth())
            home.deliver(HONEST, {"synthetic.csv": synthetic()})
            # Not of the record with the canaries: what arrives may be written.
            home.deliver(COPY, {"synthetic.csv": ground_truth().iloc[1:][[*synthetic()]]})
            yield home


@dataclass
class LoggedCanaries:
    """The canaries in what an instance in memory logged; what was searched once is not searched again."""

    instance: dg.DagsterInstance
    last_searched: int = -1
    canaries: list[str] = field(default_factory=list)

    def search(self) -> list[str]:
        entries = self.instance.event_log_storage.get_logs_for_all_runs_by_log_id(self.last_searched)
        for number, entry in entries.items():
            logged = f"{dg.serialize_value(entry)}\n{entry}"
            self.canaries += [
                canary for canary in CANARIES if canary in logged and canary not in self.canaries
            ]
            self.last_searched = max(self.last_searched, number)
        return self.canaries


def leaks(home: Home, printed: str, logged: LoggedCanaries | None = None) -> dict[str, list[str]]:
    in_files = gates.files_with(home.path, CANARIES, ["ground_truth.csv"])
    if logged is None:
        everything = gates.everything_logged(home.instance)
        in_events = [canary for canary in CANARIES if canary in everything]
    else:
        in_events = logged.search()
    in_output = [canary for canary in CANARIES if canary in printed]
    return (
        in_files
        | ({"(events)": in_events} if in_events else {})
        | ({"(output)": in_output} if in_output else {})
    )


def printed(capfd: pytest.CaptureFixture[str]) -> str:
    out, err = capfd.readouterr()
    return out + err


def test_success_and_refusal_write_no_value(
    definitions: dg.Definitions, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with disk(definitions, monkeypatch) as home:
        assert home.run_ground_truth().success
        assert home.run_gate(HONEST).success
        assert not home.run_gate(COPY).success
        assert home.published(HONEST).is_dir()
        assert gates.files_with(home.path, ["honest"], ["incoming"])  # there is something to look through
        # And where the ground truth breaks its contract, after it was recorded.
        home.write_ground_truth(gates.spoil("income", CANARIES[4])(ground_truth()))
        assert not home.run_ground_truth().success
        assert not home.materialize("release", HONEST).success
        assert not leaks(home, printed(capfd))


BROKEN: dict[str, tuple[dict[str, Any], Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "a date that is none": ({}, gates.spoil("born", CANARIES[0])),
    "a number that is none": ({}, gates.spoil("income", CANARIES[4])),
    "a level that is not declared": ({"work": {"type": "category", "levels": ["office"]}}, lambda t: t),
    "a number out of range": ({"income": {"type": "integer", "range": [0, 10]}}, lambda t: t),
    "no value at all": ({}, lambda t: t.assign(town=None)),
    "a column that is missing": ({}, lambda t: t.drop(columns="town")),
}


@pytest.mark.parametrize("violation", some_of(BROKEN, 3))
def test_no_violation_of_the_contract_tells_a_value(
    violation: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    columns, change = BROKEN[violation]
    defs = gates.load(DEFINITION | {"columns": DEFINITION["columns"] | columns})
    with disk(defs, monkeypatch) as home:
        home.write_ground_truth(change(ground_truth()))
        ran = home.run_ground_truth()
        assert not ran.success
        assert not gates.checks(ran)["ground_truth:contract"].passed
        assert not home.run_gate(HONEST).success
        assert not leaks(home, printed(capfd))


def test_a_file_that_is_cut_off_tells_no_value(
    definitions: dg.Definitions, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with disk(definitions, monkeypatch) as home:
        content = ground_truth().to_csv(index=False)
        for damaged in (
            content + f'f,"{CANARIES[0]}',
            content.replace(",none,", ",", 1),
            content[:-40] + "\udcff",
        ):
            home.write_ground_truth(damaged.encode(errors="surrogateescape"))
            assert not home.run_ground_truth().success
        assert not leaks(home, printed(capfd))


# A fault injector: every function of the project that a run calls, broken in turn


def modules() -> list[Any]:
    imported = [disclosure_pipeline]
    for info in pkgutil.walk_packages(disclosure_pipeline.__path__, "disclosure_pipeline."):
        if ".demo" not in info.name and ".defs" not in info.name:
            imported.append(importlib.import_module(info.name))
    return imported


def functions() -> dict[CodeType, FunctionType]:
    """Every function and method of the project, by its code.

    But what `dataclass` makes for a class without fields: the code is the same for every such class.
    """
    by_code = {}
    for module in modules():
        for _, value in inspect.getmembers(module):
            members = [value] if inspect.isfunction(value) else []
            if inspect.isclass(value) and value.__module__ == module.__name__:
                members = [inspect.unwrap(m) for m in vars(value).values() if inspect.isfunction(m)]
                if vars(value).get("__dataclass_fields__") == {}:
                    members = [m for m in members if m.__code__.co_filename != "<string>"]
            for function in members:
                if function.__module__ == module.__name__ and not function.__code__.co_freevars:
                    by_code[function.__code__] = function
    return by_code


def broken(*_: Any, **__: Any) -> NoReturn:
    # Only constants: this code is put in the place of that of other functions.
    secret = "Xylophonist-4711"
    try:
        raise KeyError("1871-03-09")
    except KeyError as error:
        raise ValueError("cannot convert 90210377 of " + secret) from error


@contextmanager
def breaking(function: Any) -> Iterator[Callable[[], None]]:
    """Break a function for the time being; what it returns mends it before."""
    code = function.__code__

    def mend() -> None:
        function.__code__ = code

    function.__code__ = broken.__code__
    try:
        yield mend
    finally:
        mend()


@contextmanager
def fresh_home(keys: Path, defs: dg.Definitions, patch: pytest.MonkeyPatch) -> Iterator[Home]:
    folder = keys.parent / "home"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(keys, folder / "keys")
    with gates.home_in_memory(folder, defs, patch) as home:
        home.write_ground_truth(ground_truth())
        home.deliver(HONEST, {"synthetic.csv": synthetic()})
        yield home


@pytest.fixture
def ready(definitions: dg.Definitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    keygen(tmp_path / "keys")  # while nothing is broken

    def make(defs: dg.Definitions = definitions) -> Any:
        return fresh_home(tmp_path / "keys", defs, monkeypatch)

    return make


@pytest.fixture(scope="module")
def called(definitions: dg.Definitions, tmp_path_factory: pytest.TempPathFactory) -> list[FunctionType]:
    keys = tmp_path_factory.mktemp("called") / "keys"
    keygen(keys)
    with pytest.MonkeyPatch.context() as patch, fresh_home(keys, definitions, patch) as home:
        known = list(functions().values())
        numbers: list[int] = []
        with at_first_calls(known, numbers.append):
            assert home.run_ground_truth().success
            assert home.run_gate(HONEST).success
        return [known[number] for number in numbers]


@dataclass(frozen=True)
class Outcome:
    succeeded: bool
    leaks: dict[str, list[str]]
    is_published: bool
    nothing_published: bool


def outcome(home: Home, succeeded: bool, logged: LoggedCanaries | None = None) -> Outcome:
    return Outcome(
        succeeded, leaks(home, "", logged), home.published(HONEST).is_dir(), home.nothing_published()
    )


# What draws charts, which a process keeps.
DRAWING = {charts.__name__, drawing.__name__, worker_process.__name__}


@contextmanager
def drawing_anew() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "_draw", charts._draw.__wrapped__)
        yield


@dataclass(frozen=True)
class Crash:
    """A function, what became of a run in which it is broken from the start, and what that printed."""

    function: FunctionType
    outcome: Outcome
    printed: str


def crash(function: FunctionType, ready: Any, capfd: pytest.CaptureFixture[str]) -> Crash:
    """In this process, where threads can be started and charts be drawn."""
    with drawing_anew(), breaking(function) as mend, ready() as home:
        succeeded = home.run_ground_truth().success and home.run_gate(HONEST).success
        mend()
        return Crash(function, outcome(home, succeeded), printed(capfd))


def crashes(chosen: Sequence[FunctionType], ready: Any, capfd: pytest.CaptureFixture[str]) -> Iterator[Crash]:
    """Children that are forked where a function is called first take the charts that this process drew."""
    forked = [function for function in chosen if function.__module__ not in DRAWING]
    ended: dict[FunctionType, Crash] = {}

    def note(number: int, result: Outcome) -> None:
        ended[forked[number]] = Crash(forked[number], result, printed(capfd))

    with ready() as home:
        logged = LoggedCanaries(home.instance)
        undisturbed = broken_at_first_calls(
            forked,
            broken.__code__,
            home.path,
            lambda: outcome(home, home.run_ground_truth().success and home.run_gate(HONEST).success, logged),
            note,
            logged.search,
        )
        assert undisturbed == Outcome(True, {}, True, False)
    for function in chosen:
        yield ended.get(function) or crash(function, ready, capfd)


# The functions are dealt out to so many tests, so that processors share them.
PARTS = 2


@pytest.mark.parametrize("part", range(PARTS))
def test_no_crash_tells_a_value(
    part: int, called: list[FunctionType], ready: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len(called) > 60
    survived = []
    for crashed in crashes(some_of(called, 25, part_in_ci=6)[part::PARTS], ready, capfd):
        name, ended = crashed.function.__qualname__, crashed.outcome
        assert not ended.leaks and not [canary for canary in CANARIES if canary in crashed.printed], name
        assert not ended.succeeded or ended.is_published
        survived += [name] if ended.succeeded else []
        # What is published whole is recorded at last; the next release records it if this one could not.
        unrecorded = name == "record_released" and ended.is_published
        assert ended.succeeded or ended.nothing_published or unrecorded, name
    # What may fail without stopping a run is what a run does not need: sizes, which choose the engine, the
    # log of its progress, pictures, which a page may lack, reading the record of figures, which are then
    # measured again, and what Dagster asks of partitions outside a step. Nor what is told of a release that
    # is published already.
    after_publication = {"describe_release"}
    reading = {"Disclosure.from_record", "frame_from_record", "_to_tuples", "_decode"}
    pictures = {"WorkerProcess._start", "_escape_unseen", "escape_unseen_in_lines"}
    outside = {"log_progress", "CandidatePartitions.__hash__"}
    not_needed = {"StoragePath.files", "_entry"} | reading | pictures | outside
    assert set(survived) <= not_needed | after_publication


# Tables that are read in batches, and what is spilled of them.


@pytest.fixture(scope="module")
def in_batches() -> dg.Definitions:
    """A gate whose cells are so few records that the check of pairs has some to look at."""
    return gates.load(DEFINITION | {"engine": "partitioned", "two_way": [0, 100]})


def open_files() -> Iterator[tuple[str, bytes]]:
    for link in list(Path("/proc/self/fd").iterdir()):
        try:
            if stat.S_ISREG(link.stat().st_mode):
                yield str(link.readlink()), link.read_bytes()
        except OSError:  # closed meanwhile
            continue


@pytest.mark.skipif(sys.platform != "linux", reason="open files are found in /proc")
def test_what_is_spilled_holds_no_value_while_it_is_there(
    in_batches: dg.Definitions, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither a value nor the coded records, in any open file but GT itself, whenever a part is measured."""
    spilled: set[bytes] = set()
    searched, unnamed = 0, 0
    original_add, original_part = SpillFile.add, record_parts._find_in_part

    def add(self: SpillFile, part: Any, records: Any) -> None:
        if records.nbytes >= 16:  # what is shorter may be found by chance
            spilled.add(records.tobytes())
        original_add(self, part, records)

    def measure_part(*arguments: Any) -> Any:
        nonlocal searched, unnamed
        for name, content in open_files():
            if Path(name).name == "ground_truth.csv":
                continue
            searched += 1
            assert not [canary for canary in CANARIES if canary.encode() in content], name
            if name.endswith("(deleted)") and len(content) > 1000:
                unnamed += 1
                assert not [records for records in spilled if records in content], name
        return original_part(*arguments)

    monkeypatch.setattr(SpillFile, "add", add)
    monkeypatch.setattr(record_parts, "_find_in_part", measure_part)
    with tiny_batches(spill_part=50), disk(in_batches, monkeypatch) as home:
        assert home.run_ground_truth().success
        assert home.run_gate(HONEST).success
        assert not home.run_gate(COPY).success
        assert home.published(HONEST).is_dir()
        assert not list((home.path / "tmp").rglob("*disclosure*"))
        assert not leaks(home, printed(capfd))
    assert len(spilled) > 20 and unnamed > 5 and searched > unnamed


def test_the_search_of_open_files_finds_a_leak(tmp_path: Path) -> None:
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(CANARIES[0].encode())
        file.flush()
        assert [name for name, content in open_files() if CANARIES[0].encode() in content]


# Functions that are called between batches: of a gate whose records are spilled, and of one of so few key
# combinations that its cells are counted as the batches come.
BETWEEN_BATCHES: dict[str, tuple[Callable[..., Any], ...]] = {
    "spilled": (
        resemblance.identifier_warnings,
        coding.code_distinct,
        opened_files.stream_canonical,
        opened_files.StreamedTable.take_records,
        opened_files.StreamedTables.find_cells,
        streams.code_batch,
        engine.find_in_batches,
        record_parts.RecordParts.find_cells,
        record_parts.RecordParts.spill_batch,
        record_parts._find_in_part,
        record_parts._find_pairs,
        PartCounter.find_cells,
        PartCounter.find_parts,
        SpillFile._decrypt,
        SpillFile.add,
        SpillFile.read,
        streams.SeenValues.add,
        streams.SeenValues.distinct,
        streams._encode_column,
        streams.Stream.codes,
        streams.Stream.value_numbers,
        streams.read_stream,
    ),
    "counted": (
        engine.find_in_batches,
        CellCounter.add,
        CellCounter.count_batch,
        CellCounter.find_cells,
    ),
}


@pytest.mark.parametrize(
    ("records", "function"),
    [(records, function) for records, of in BETWEEN_BATCHES.items() for function in some_of(of)],
    ids=lambda value: getattr(value, "__qualname__", value),
)
def test_no_crash_between_batches_tells_a_value(
    records: str, function: Any, ready: Any, in_batches: dg.Definitions, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also on threads."""
    defs, batches = in_batches, tiny_batches(spill_part=50)
    if records == "counted":
        defs = gates.load(DEFINITION | {"engine": "partitioned", "keys": ["sex", "town"]})
        batches = small_batches(Limits(), rows=64)
    with batches, breaking(function) as mend, ready(defs) as home:
        succeeded = home.run_ground_truth().success and home.run_gate(HONEST).success
        mend()
        assert not succeeded
        assert not leaks(home, printed(capfd))
        assert home.nothing_published()
        if sys.platform == "linux":
            left = [name for name, content in open_files() if name.endswith("(deleted)") and content]
            assert not [name for name in left if name.startswith(tempfile.gettempdir())]


def test_the_search_finds_a_leak_when_the_redaction_is_off(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("disclosure_pipeline.orchestration.steps.redact_errors", lambda body: body)
    unguarded = gates.load(DEFINITION)
    monkeypatch.undo()
    assert steps.redact_errors is not None
    with disk(unguarded, monkeypatch) as home:
        monkeypatch.setattr("disclosure_pipeline.counting.memory.engine.read_canonical", broken)
        assert not home.run_ground_truth().success
        leaks_by_place = leaks(home, printed(capfd))
    assert set(leaks_by_place["(events)"]) == {CANARIES[0], CANARIES[2], CANARIES[3]}
    assert any(name.endswith(".db") for name in leaks_by_place)
