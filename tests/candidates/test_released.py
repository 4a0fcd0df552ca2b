"""Earlier releases count for a candidate, or nothing is determined; without Dagster, by every engine."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reference import releases as records
from support import gate_steps, gates
from support.gate_steps import NOW
from support.sampling import on_some_days, only_in_ci

from disclosure_pipeline.candidates import arrival, evaluation, rehearsal
from disclosure_pipeline.candidates.released import (
    RELEASED,
    Released,
    list_earlier,
    read_recorded_releases,
    record_released,
)
from disclosure_pipeline.candidates.snapshot import read_snapshot
from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.evaluation.long_table import WITH_RELEASES, view_frame
from disclosure_pipeline.policy.gate import Gate

pytestmark = [pytest.mark.usefixtures("remembered_results"), on_some_days]

LOOSE = {"repU": 100, "DiSCO": 100}


def folders(root: Path, engine: str = "memory", **changes: Any) -> GateFolders:
    definition = gates.definition(policy=LOOSE, ground_truth="ground_truth.parquet", **changes)
    gate = gate_steps.folders(root, definition, engine, "ground_truth.parquet")
    people = gates.ground_truth().assign(weight=3, person=np.arange(300) // 2)
    people[[*gates.ground_truth(), *changes.values()]].to_parquet(root / "ground_truth.parquet", index=False)
    gate = replace(gate, store=Store(root / "store"))
    arrival.record_ground_truth(gate)
    return gate


def receive(gate: GateFolders, candidate: str, *tables: pd.DataFrame) -> None:
    gate_steps.deliver(gate.incoming.parent, candidate, *tables)
    assert not arrival.receive(gate, candidate).violations


def publish(gate: GateFolders, candidate: str, *tables: pd.DataFrame, day: int = 1) -> Released:
    """Only what the gate itself keeps of a release."""
    folder = gate_steps.deliver(gate.incoming.parent, candidate, *tables)
    released = Released(gates.take(folder, gate.store.root), f"2026-01-{day:02}T00:00:00+00:00")
    record_released(gate.store, released)
    return released


def counted(gate: GateFolders, candidate: str) -> pd.DataFrame:
    """As the first steps judge it, and as a release does, which measures anew."""
    anew = evaluation.evaluate(gate, candidate, NOW)
    assert evaluation.measure(gate, candidate, NOW).dossier == anew.dossier
    assert evaluation.measure(gate, candidate, NOW).dossier == anew.dossier  # from the record
    return anew.result.over_releases


RELEASES = [[gates.ground_truth().head(150)], [gates.honest(1)], [gates.honest(3), gates.honest(4)]]


@cache
def find_one_by_one() -> tuple[list[float], float]:
    """People in the releases, and those shared with them beyond chance."""
    rows = [[list(map(tuple, table.to_numpy().tolist())) for table in of] for of in RELEASES]
    people = list(map(tuple, gates.ground_truth().to_numpy().tolist()))
    found = [found for found, _ in records.in_releases(people, rows)]
    return found, max(found - by_fresh for found, by_fresh in records.shared(rows))


@pytest.mark.parametrize(
    "engine",
    ["memory", "partitioned", pytest.param("duckdb://", marks=only_in_ci("a database opens every table"))],
)
def test_what_is_published_counts(tmp_path: Path, engine: str) -> None:
    """In the order of publication, with all files of the candidate, as the records say one by one."""
    gate = folders(tmp_path, engine)
    publish(gate, "honest", *RELEASES[1], day=2)
    publish(gate, "copy", *RELEASES[0], day=1)
    receive(gate, "candidate", *RELEASES[2])
    frame = evaluation.evaluate(gate, "candidate", NOW).result.over_releases
    expected, beyond = find_one_by_one()
    assert frame.index.tolist() == [1, 2, 3]
    assert frame["people_in_releases"].tolist() == pytest.approx(expected)
    assert frame["shared_with_releases_beyond"].tolist()[2] == pytest.approx(beyond)


def test_what_comes_first_and_later(tmp_path: Path) -> None:
    """The first of a gate has nothing earlier; of what is published itself, what was out before it counts."""
    gate = folders(tmp_path)
    receive(gate, "candidate", gates.honest(3))
    first = counted(gate, "candidate")
    assert first.index.tolist() == [1]
    assert first["shared_with_releases"].tolist() == first["releases_gone"].tolist() == [0]
    publish(gate, "second", gates.honest(1), day=2)
    publish(gate, "first", gates.honest(2), day=1)
    assert counted(gate, "candidate").index.tolist() == [1, 2, 3]
    dossier = evaluation.evaluate(gate, "candidate", NOW).dossier
    assert dossier["measured"][RELEASED] == list_earlier(gate, "candidate").digest
    assert counted(gate, "second").index.tolist() == [1, 2]
    assert counted(gate, "first").index.tolist() == [1]


@pytest.mark.parametrize("column", ["weight", "unit"])
def test_columns_of_the_ground_truth_alone(tmp_path: Path, column: str) -> None:
    """Whose a record is, and how many people it stands for, is in no published table."""
    gate = folders(tmp_path, **{column: {"weight": "weight", "unit": "person"}[column]})
    publish(gate, "first", gates.ground_truth().head(100))
    receive(gate, "candidate", gates.honest(2))
    assert counted(gate, "candidate")["people_in_releases"].min() > 30


def test_the_same_table_again_is_no_further_release(tmp_path: Path) -> None:
    gate = folders(tmp_path)
    publish(gate, "first", gates.honest(1))
    publish(gate, "again", gates.honest(1), day=2)
    receive(gate, "other", gates.honest(1).sample(frac=1, random_state=1), gates.honest(2))
    frame = counted(gate, "other")
    assert frame.index.tolist() == [1] and frame["shared_with_releases"].tolist() == [0]
    receive(gate, "new", gates.honest(2))
    assert counted(gate, "new").index.tolist() == [1, 2]


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_a_table_with_the_same_values_is_another_one(tmp_path: Path, engine: str) -> None:
    """An engine without records knows the values of a column alone: they do not tell who is copied."""
    gate = folders(tmp_path, engine)
    copied = gates.ground_truth().head(100)
    publish(gate, "first", copied)
    order = np.random.default_rng(1).permutation
    receive(gate, "candidate", pd.DataFrame({name: order(copied[name]) for name in copied}))
    frame = evaluation.evaluate(gate, "candidate", NOW).result.over_releases
    assert frame.index.tolist() == [1, 2] and frame["people_in_releases"].min() > 25


def stored(gate: GateFolders) -> Path:
    [file] = read_snapshot("first", gate.store).files
    return gate.store.stored_path(file)


def leave_unrecorded(gate: GateFolders) -> None:
    (gate.releases / "unheard-of").mkdir(parents=True)
    (gate.releases / "unheard-of" / "synthetic.parquet").touch()


MISSING = "'first' are missing from the store or changed"
DAMAGED_RECORD = '{"published_at": "2026", "is_revoked": false}'


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda gate: stored(gate).write_bytes(b"sex,age,work,income\n"), MISSING),
        (lambda gate: stored(gate).unlink(), MISSING),
        (
            lambda gate: (gate.store.root / RELEASED / "first.json").write_text(DAMAGED_RECORD),
            "record of the release 'first' in the store is damaged",
        ),
        (leave_unrecorded, "'unheard-of' is not recorded in the store"),
    ],
)
def test_without_a_release_nothing_is_determined(
    tmp_path: Path, damage: Callable[[GateFolders], object], words: str
) -> None:
    gate = folders(tmp_path)
    publish(gate, "first", gates.honest(1))
    receive(gate, "candidate", gates.honest(2))
    evaluation.measure(gate, "candidate", NOW)
    damage(gate)
    for step in (evaluation.evaluate, evaluation.measure):
        with pytest.raises(StoreError, match=words):
            step(gate, "candidate", NOW)


def test_a_revoked_release_counts_while_its_bytes_are_there(tmp_path: Path) -> None:
    gate = folders(tmp_path)
    released = publish(gate, "first", gates.honest(1))
    receive(gate, "candidate", gates.honest(2))
    record_released(gate.store, replace(released, is_revoked=True))
    assert counted(gate, "candidate").index.tolist() == [1, 2]
    stored(gate).unlink()
    gone = counted(gate, "candidate")
    assert gone.index.tolist() == [1] and gone["releases_gone"].tolist() == [1]
    assert read_recorded_releases(gate.store)[0].is_revoked


def test_a_release_that_breaks_the_dictionary_of_today_is_undetermined(tmp_path: Path) -> None:
    gate = folders(tmp_path)
    publish(gate, "first", gates.honest(1).assign(age=99))
    definition = gates.definition(policy=LOOSE)
    definition["columns"]["age"]["range"] = [20, 98]
    changed = replace(gate, gate=Gate.model_validate(definition))
    receive(changed, "candidate", gates.honest(2))
    with pytest.raises(StoreError, match="'first' does not fit the gate's current data dictionary"):
        evaluation.evaluate(changed, "candidate", NOW)


def test_a_rehearsal_counts_it_too(tmp_path: Path) -> None:
    gate = folders(tmp_path)
    publish(gate, "first", gates.honest(1))
    folder = gate_steps.deliver(tmp_path, "rehearsed", gates.honest(2))
    dossier = rehearsal.rehearse(gate, folder, NOW).dossier
    releases = {row["releases"] for row in view_frame(dossier["figures"], "over_releases")}
    assert releases == {"1 release", WITH_RELEASES}


def test_figures_of_no_release_are_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = folders(tmp_path)
    receive(gate, "candidate", gates.honest(1))
    monkeypatch.setattr(evaluation, "add_releases", lambda _, __, measured, *others: measured)
    with pytest.raises(StoreError, match="not compared with earlier releases"):
        evaluation.evaluate(gate, "candidate", NOW)
