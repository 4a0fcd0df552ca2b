"""A gate of persons and events: both contracts, what is published of both, and copied histories."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import gate_steps, gates
from support.gate_steps import folders, steps, write
from support.hospital import PEOPLE, hospital, hospital_gate, with_histories
from support.sampling import on_some_days

from disclosure_pipeline.candidates.arrival import deliver, record_ground_truth
from disclosure_pipeline.candidates.evaluation_records import count_recorded_evaluations
from disclosure_pipeline.candidates.reading import read_staged
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.evidence.page.rendering import render_page
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.release.pruning import prune
from disclosure_pipeline.release.published_tables import write_tables
from disclosure_pipeline.release.readiness import check_readiness
from disclosure_pipeline.release.releasing import stage_snapshot
from disclosure_pipeline.release.verifying import VerificationError

pytestmark = [pytest.mark.usefixtures("remembered_results"), on_some_days]

Pair = tuple[pd.DataFrame, pd.DataFrame]
Change = Callable[[pd.DataFrame], pd.DataFrame]


def gate_at(root: Path, patch: pytest.MonkeyPatch, known: Pair | None = None, **changes: Any) -> GateFolders:
    """The gate of the hospital, with its two confidential tables."""
    patch.setenv("DAGSTER_HOME", str(root))
    for name, table in zip(("ground_truth.csv", "events.csv"), known or hospital(1), strict=True):
        write(root / name, table)
    return folders_of(Gate.model_validate(hospital_gate(**changes)))


def arrive(root: Path, candidate: str, *syntheses: Pair, suffix: str = ".csv") -> None:
    folder = root / "incoming" / candidate
    folder.mkdir(parents=True)
    for number, tables in enumerate(syntheses):
        for name, table in zip(("persons", "events"), tables, strict=True):
            write(folder / f"{name}{f'_{number}' if number else ''}{suffix}", table)
    (folder / gates.MARKER).touch()


def in_events(change: Change) -> Callable[[Pair], Pair]:
    return lambda tables: (tables[0], change(tables[1]))


def in_persons(change: Change) -> Callable[[Pair], Pair]:
    return lambda tables: (change(tables[0]), tables[1])


def spoil(**values: Any) -> Change:
    """Return what writes values into the fifth record."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        table = table.astype(dict.fromkeys(values, object))
        table.loc[5, [*values]] = [*values.values()]
        return table

    return change


LINKS = {
    "a person twice": (
        in_persons(lambda p: pd.concat([p, p.tail(1)])),
        "persons",
        "names a person in several",
    ),
    "an event of nobody": (in_events(spoil(person="p-9-4711")), "events", "names somebody who is not"),
    "a person left out": (in_persons(lambda p: p.head(300)), "events", "names somebody who is not"),
    "an event without a person": (in_events(spoil(person=None)), "events", "lacks a value"),
    "a person without a name": (in_persons(spoil(person=None)), "persons", "lacks a value"),
    "events that name nobody": (
        in_events(lambda e: e.drop(columns="person")),
        "events",
        "is not in the table",
    ),
}
"""Errors in two tables, GT and SD: the table, and the broken rule."""


@pytest.mark.parametrize("name", LINKS)
def test_tables_that_do_not_belong_together_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, table, rule = LINKS[name]
    arrive(tmp_path, "broken", change(hospital(2)))
    found = steps(gate_at(tmp_path, monkeypatch), "broken")
    [violation] = found["arrival"][0]
    assert (violation.table, violation.column) == (f"synthetic table '{table}.csv'", "person")
    assert rule in violation.rule and "dossier" not in found
    found = steps(gate_at(tmp_path, monkeypatch, change(hospital(1))), "broken")
    [violation] = found["ground truth"].violations
    of = {"persons": "the ground truth", "events": "the events of the ground truth"}
    assert (violation.table, violation.column) == (of[table], "person")
    assert rule in violation.rule
    assert "p-1" not in str(found) and "4711" not in str(found)


@pytest.mark.parametrize(
    ("change", "column", "rule"),
    [
        (spoil(days=44), "days", "outside the range"),
        (spoil(month="May"), "month", "is not of type integer"),
        (
            spoil(diagnosis="a new one"),
            "events.diagnosis",
            "holds 'a new one', which the ground truth does not have",
        ),
        (spoil(diagnosis="=1+1"), "events.diagnosis", "a formula"),
        (spoil(diagnosis="person p-1-000004"), "(any)", "identifiers of the ground truth"),
        (lambda e: e.assign(ward=1), "(other columns)", "1 column is not in the data dictionary"),
        (lambda e: e.drop(columns="days"), "days", "not in the table"),
        (lambda e: e.head(0), "(all)", "has no records"),
    ],
)
def test_events_keep_a_contract_of_their_own(
    change: Change, column: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrive(tmp_path, "broken", in_events(change)(hospital(2)))
    found = steps(gate_at(tmp_path, monkeypatch), "broken")
    violations = {violation.column: violation.rule for violation in found["arrival"][0]}
    assert rule in violations[column]
    assert "dossier" not in found and "p-1" not in str(found)


def test_what_one_person_has_alone_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value in several of a person's events, and of nobody else's, names the person all the same."""
    persons, events = hospital(1)
    own = events.assign(diagnosis=events["person"].str.replace("p-1", "bed"))
    found = steps(gate_at(tmp_path, monkeypatch, (persons, own)), "any")
    [violation] = found["ground truth"].violations
    assert violation.column == "events.diagnosis" and "as an identifier does" in violation.rule


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["persons.csv"], "'persons.csv' without its counterpart"),
        (["persons.csv", "events.csv", "events_2.csv"], "'events_2.csv' without its counterpart"),
        (["persons.csv", "events.csv", "stays.csv"], "has 'stays.csv'"),
        (["persons.csv", "persons.parquet", "events.csv"], "has 'persons.parquet'"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    files: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrive(tmp_path, "files")
    for name in files:
        (tmp_path / "incoming" / "files" / name).write_text("person\n")
    kind, message = steps(gate_at(tmp_path, monkeypatch), "files")["refused"]
    assert kind == "StoreError" and problem in message


def published(gate: GateFolders, candidate: str, folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a release, and the hashes of the tables that it was written from."""
    folder.mkdir()
    snapshot = gates.take(gate.incoming / candidate, gate.store.root)
    with stage_snapshot(snapshot, gate.store, gate.staging) as stage, ExitStack() as stack:
        staged = read_staged(gate, snapshot, stage.arrived, stack)
        files = write_tables(gate.gate, staged, folder)
        hashes = [table.sha256 for table in staged.tables]
    assert {file.name for file in files} == {path.name for path in folder.iterdir()}
    return {file.name: (folder / file.name).read_bytes() for file in files}, hashes


def test_both_tables_are_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numbers of their own, in an order that follows from the content: no trace of how they came."""
    gate = gate_at(tmp_path, monkeypatch)
    persons, events = hospital(2)
    arrive(tmp_path, "once", (persons, events))
    other = {name: f"q{number}" for number, name in enumerate(persons["person"])}
    shuffled = tuple(
        table.assign(person=table["person"].map(other)).sample(frac=1, random_state=4)
        for table in (persons, events)
    )
    arrive(tmp_path, "again", (shuffled[0], shuffled[1]), suffix=".parquet")
    once = published(gate, "once", tmp_path / "a")
    assert once == published(gate, "again", tmp_path / "b")
    of_persons, of_events = (pd.read_parquet(tmp_path / "a" / name) for name in once[0])
    assert [*once[0]] == ["synthetic.parquet", "synthetic_events.parquet"]
    assert sorted(of_persons["person"]) == list(range(1, PEOPLE + 1))
    columns = ["sex", "age", "region", "height", "month", "diagnosis", "days"]
    written = of_persons.merge(of_events, on="person")[columns].astype(str)
    arrived = persons.merge(events, on="person")[columns].astype(str)
    assert sorted(map(tuple, written.to_numpy())) == sorted(map(tuple, arrived.to_numpy()))
    histories = [
        sorted(tuple(sorted(map(tuple, own.drop(columns="person").astype(str).to_numpy()))) for _, own in of)
        for of in (of_events.groupby("person"), events.groupby("person"))
    ]
    assert histories[0] == histories[1]


def test_several_syntheses_each_have_two_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = gate_at(tmp_path, monkeypatch, csv=True)
    arrive(tmp_path, "two", hospital(2), hospital(3))
    found = steps(gate, "two", measured_anew=False)
    assert json.loads(found["dossier"])["decision"] == "approved", found["checks"]
    assert found["arrival"][1] == (PEOPLE, PEOPLE)
    assert [*published(gate, "two", tmp_path / "a")[0]] == [
        f"synthetic_{number}{table}.{suffix}"
        for number in (1, 2)
        for table in ("", "_events")
        for suffix in ("parquet", "csv")
    ]


def test_pairs_decide_what_is_the_same_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files in other pairs are other tables, and another evaluation."""
    gate = gate_at(tmp_path, monkeypatch)
    (persons, events), (others, _) = hospital(2), hospital(3)
    others = others.assign(person=persons["person"])
    for name, of_people in (("once", persons), ("again", persons), ("other", others)):
        arrive(tmp_path, name, (of_people, events))
        steps(gate, name, measured_anew=False)
    assert count_recorded_evaluations(gate.store) == 2


def test_an_asset_hands_over_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = gate_at(tmp_path, monkeypatch)
    persons, events = hospital(2)
    for delivered, number in (((persons, events), 1), ([(persons, events)] * 2, 2)):
        folder = deliver(gate, "made", delivered)
        assert len(list(folder.glob("*.parquet"))) == 2 * number
    for wrong in (persons, [persons], (persons,), [(persons, events, events)]):
        with pytest.raises(StoreError, match="a pair of DataFrames"):
            deliver(gate, "made", wrong)


def test_tables_of_a_database_are_one_ground_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its hash is that of both tables, whose bytes nobody has."""
    duckdb = pytest.importorskip("duckdb")
    persons, events = hospital(1)
    hashes = []
    for rows in (events, events.sample(frac=1, random_state=1), events.iloc[1:]):
        with duckdb.connect(str(tmp_path / "known.duckdb")) as database:
            for name, table in (("people", persons), ("stays", rows)):
                database.register("frame", table)
                database.execute(f"CREATE OR REPLACE TABLE {name} AS FROM frame")
        source = {"duckdb": str(tmp_path / "known.duckdb")}
        stays = hospital_gate()["events"] | {"ground_truth": source | {"table": "stays"}}
        gate = gate_at(tmp_path, monkeypatch, ground_truth=source | {"table": "people"}, events=stays)
        recorded = record_ground_truth(gate)
        assert not recorded.violations and recorded.records == len(persons)
        hashes.append(recorded.sha256)
    assert hashes[0] == hashes[1] != hashes[2]


def decision(gate: GateFolders, candidate: str) -> tuple[str, set[str]]:
    dossier = json.loads(steps(gate, candidate, measured_anew=False)["dossier"])
    return dossier["decision"], {row["name"] for row in dossier["clauses"] if row["outcome"] != "kept"}


def test_copied_histories_of_fresh_people_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gate_at(tmp_path, monkeypatch)
    arrive(tmp_path, "fresh", hospital(2))
    arrive(tmp_path, "copied", with_histories(0.1))
    assert decision(gate, "fresh") == ("approved", set())
    assert decision(gate, "copied") == ("refused", {"found[all but one] beyond"})
    persons, events = with_histories(0.5)
    last = events.index.isin(events.groupby("person").tail(1).index)
    arrive(tmp_path, "changed", (persons, events.assign(days=events["days"].where(~last, 31))))
    assert "found[all but one] beyond" in decision(gate, "changed")[1]  # one value of each history
    written = gates.write_definition(tmp_path / "gate", hospital_gate())
    gates.with_keys(tmp_path, monkeypatch)
    for name, code in (("fresh", 0), ("copied", 1)):
        assert gates.run_command("evaluate", written, gate.incoming / name).exit_code == code
    definition = hospital_gate(events=None, keys=["sex", "age"], targets=["region"])
    alone = folders(tmp_path, definition, "memory", "ground_truth.csv")
    gate_steps.deliver(tmp_path, "alone", with_histories(0.1)[0].drop(columns="person"))
    assert decision(alone, "alone") == ("approved", set())


def test_a_run_publishes_both_tables_and_tells_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = hospital(1)
    with gates.home_in_memory(tmp_path, gates.load(hospital_gate()), monkeypatch) as home:
        gate = gate_at(tmp_path, monkeypatch)
        arrive(tmp_path, "fresh", hospital(2))
        arrive(tmp_path, "copied", with_histories(0.5))
        ran = home.run_ground_truth()
        assert ran.success, gates.failures(ran)
        ran = home.run_gate("fresh")
        assert ran.success, gates.failures(ran)
        assert not home.run_gate("copied").success
        stated = gates.stated(home.published("fresh"))
        files = {table.name: table.records for table in stated.synthetic}
        assert files == {"synthetic.parquet": PEOPLE, "synthetic_events.parquet": len(hospital(2)[1])}
        people = known[0]["person"].head(20).tolist()
        assert not gates.files_with(tmp_path, people, ["ground_truth.csv", "events.csv"])
        logged = gates.everything_logged(home.instance)
        assert not [person for person in people if person in logged]
        dossier = home.dossier("fresh")
        assert "diagnosis first" in render_page(dossier, "publication").replace(".", " ")
        now = datetime.now(timezone.utc) + timedelta(days=60)
        assert not [finding for finding in check_readiness(gate, now) if finding.is_problem]
        # The fresh people of both candidates are one file, which is needed.
        assert len(prune(gate.store, gate.releases, timedelta(days=30), now).removed) == 1
        write(tmp_path / "events.csv", known[1].iloc[1:])  # another ground truth
        assert not home.materialize("identity_risk", "fresh").success
        events = home.published("fresh") / "synthetic_events.parquet"
        events.write_bytes(events.read_bytes() + b" ")
        with pytest.raises(VerificationError, match=r"'synthetic_events\.parquet' was changed"):
            gates.stated(home.published("fresh"))
