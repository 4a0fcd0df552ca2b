"""What is published can be read by everybody and written by its owner alone; names and formulas are right."""

from __future__ import annotations

import stat
from contextlib import ExitStack
from pathlib import Path

import pandas as pd
from support import gate_steps, gates

from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.candidates.reading import read_staged
from disclosure_pipeline.candidates.store import MARKER
from disclosure_pipeline.release.publishing import publish, stage_snapshot
from disclosure_pipeline.release.tables import write_tables


def test_everybody_may_read_and_nobody_else_may_write(tmp_path: Path) -> None:
    stage, target = tmp_path / "stage", tmp_path / "published"
    stage.mkdir(mode=0o700)
    (stage / "table").touch(mode=0o600)
    publish(stage, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "table").stat().st_mode) == 0o644
    assert not stage.exists()


def folders_with_text(path: Path) -> GateFolders:
    columns = {"a": {"type": "category"}, "b": {"type": "integer"}}
    definition = gates.definition(
        columns=columns,
        keys=["a"],
        targets=["b"],
        formulas="quote",
        policy={"repU": 100, "DiSCO": 100},
    )
    return gate_steps.folders(path, definition, "auto", "ground_truth.csv")


def test_every_table_is_written_under_a_name_of_its_own_and_formulas_are_quoted(tmp_path: Path) -> None:
    folders = folders_with_text(tmp_path)
    delivered = tmp_path / "incoming" / "several"
    delivered.mkdir(parents=True)
    for number in range(3):
        records = pd.DataFrame({"a": ["=1+1", "x", "y"], "b": [number, 5, 6]})
        records.to_csv(delivered / f"{number}.csv", index=False)
    (delivered / MARKER).touch()
    snapshot = gates.take(delivered, tmp_path / "auto")
    with stage_snapshot(snapshot, folders.store, tmp_path / "staging") as stage, ExitStack() as stack:
        staged = read_staged(folders, snapshot, stage.arrived, stack)
        files = write_tables(folders.gate, snapshot, staged, stage.release)
        tables = [pd.read_parquet(stage.release / file.name) for file in files]
    assert [file.name for file in files] == [f"synthetic_{number}.parquet" for number in (1, 2, 3)]
    assert [file.records for file in files] == [3, 3, 3]
    assert all(set(table["a"]) == {"'=1+1", "x", "y"} for table in tables)
    assert {int(table["b"].min()) for table in tables} == {0, 1, 2}
