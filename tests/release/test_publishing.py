"""What is published can be read by everybody and written by its owner alone; names and formulas are right."""

import stat
from pathlib import Path

import pandas as pd
from support import gate_steps

from disclosure_pipeline.release.releasing import publish


def test_everybody_may_read_and_nobody_else_may_write(tmp_path: Path) -> None:
    stage, target = tmp_path / "stage", tmp_path / "published"
    stage.mkdir(mode=0o700)
    (stage / "table").touch(mode=0o600)
    publish(stage, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "table").stat().st_mode) == 0o644
    assert not stage.exists()


def test_every_table_is_written_under_a_name_of_its_own_and_formulas_are_quoted(tmp_path: Path) -> None:
    delivered = [pd.DataFrame({"a": ["=1+1", "x", "y"], "b": [number, 5, 6]}) for number in range(3)]
    with gate_steps.staged(tmp_path, gate_steps.definition_of_two_columns(), *delivered) as staged:
        files = staged.write_tables()
        tables = [pd.read_parquet(staged.stage.release / file.name) for file in files]
    assert [file.name for file in files] == [f"synthetic_{number}.parquet" for number in (1, 2, 3)]
    assert [file.records for file in files] == [3, 3, 3]
    assert all(set(table["a"]) == {"'=1+1", "x", "y"} for table in tables)
    assert {int(table["b"].min()) for table in tables} == {0, 1, 2}
