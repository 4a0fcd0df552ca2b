"""A gate whose tables a database counts decides what it decides in memory, and leaves nothing there."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import altered_copies, gates
from support.gate_steps import NOW, deliver, folders, steps, write
from support.sampling import on_some_days, only_in_ci, some_of
from support.services import require_engine

from disclosure_pipeline.candidates import evaluation
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.counting.relational.opened_database import DatabaseEngine
from disclosure_pipeline.counting.relational.transfer import fetch_rows
from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.tables.dictionary import Contract
from disclosure_pipeline.tables.record_hashes import values_sha256

pytestmark = on_some_days

DATABASE = "duckdb://"


def compared(actual: dict[str, Any]) -> dict[str, Any]:
    """Leave out the hash and the controls, whose tables differ in a database."""
    dossier = json.loads(actual.pop("dossier"))
    actual["frames"] = {name: text for name, text in actual["frames"].items() if "control" not in name}
    actual["ground truth"] = replace(actual["ground truth"], sha256="")
    dossier.pop("measured")
    rows = dossier["figures"]["table"]
    rows[:] = [row for row in rows if not FIGURES[row["figure"]].place.frame.startswith("control")]
    controls = [clause for clause in dossier["clauses"] if clause["figure"] == "controls"]
    assert controls and all(clause["outcome"] == "kept" for clause in controls)
    for clause in controls:
        del actual["checks"][clause["name"]]
        dossier["clauses"].remove(clause)
    return actual | {"dossier": dossier}


def gate_of(root: Path, engine: str = "memory", **definition: Any) -> GateFolders:
    """A gate whose GT is a Parquet file."""
    require_engine(engine)
    return folders(root, definition or gates.definition(), engine, "gt.parquet")


@only_in_ci("two measurements of two tables")
def test_the_order_in_which_a_database_returns_values_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Databases return them in any order, another one each time: what is drawn from them stays the same."""
    write(tmp_path / "gt.parquet", gates.ground_truth())
    gate = gate_of(tmp_path, DATABASE)
    deliver(tmp_path, gates.HONEST, gates.honest(1), gates.honest(2))
    expected = steps(gate, gates.HONEST)

    def in_reverse(table: Any) -> Any:
        rows = fetch_rows(table)
        return rows.take(np.arange(len(rows))[::-1])

    monkeypatch.setattr("disclosure_pipeline.counting.relational.opened_database.fetch_rows", in_reverse)
    assert evaluation.evaluate(gate, gates.HONEST, NOW).dossier == json.loads(expected["dossier"])


@pytest.mark.parametrize(("suffix", "m"), some_of(product([".parquet", ".csv"], [1, 2]), 4))
def test_the_same_decision_as_in_memory(suffix: str, m: int, tmp_path: Path) -> None:
    gates.share_key(tmp_path / "memory")
    write(tmp_path / "gt.parquet", gates.ground_truth())
    deliver(tmp_path, gates.HONEST, *(gates.honest(seed) for seed in range(1, m + 1)), suffix=suffix)
    deliver(tmp_path, gates.COPY, *[gates.ground_truth()] * m, suffix=suffix)
    for candidate, decision in ((gates.HONEST, "approved"), (gates.COPY, "refused")):
        expected, actual = (
            compared(steps(gate_of(tmp_path, engine), candidate, measured_anew=candidate == gates.HONEST))
            for engine in ("memory", DATABASE)
        )
        assert actual == expected
        assert actual["dossier"]["decision"] == decision


def test_a_dictionary_of_all_kinds(tmp_path: Path) -> None:
    """Aliases, missing codes, dates, special values, groups and exclusions: canonical form is Python's."""
    gates.share_key(tmp_path / "memory")
    write(tmp_path / "gt.parquet", altered_copies.GROUND_TRUTH.head(400))
    candidate = altered_copies.GROUND_TRUTH.tail(300)[altered_copies.NEEDED]
    deliver(tmp_path, "c", candidate, suffix=".parquet")
    expected, actual = (
        compared(steps(gate_of(tmp_path, engine, **altered_copies.RICH), "c", measured_anew=False))
        for engine in ("memory", DATABASE)
    )
    assert actual == expected


BROKEN: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "unknown level": lambda sd: sd.assign(sex="x"),
    "outside the range": lambda sd: sd.assign(age=200),
    "a column less": lambda sd: sd.drop(columns="work"),
    "a column more": lambda sd: sd.assign(more=1),
    "nothing known": lambda sd: sd.rename(columns=lambda name: f"{name}_"),
    "no records": lambda sd: sd.head(0),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_contract(broken: str, tmp_path: Path) -> None:
    """In the very same words, with the same numbers."""
    write(tmp_path / "gt.parquet", gates.ground_truth())
    deliver(tmp_path, "c", BROKEN[broken](gates.honest()), suffix=".parquet")
    expected, actual = (steps(gate_of(tmp_path, engine), "c") for engine in ("memory", DATABASE))
    assert actual["arrival"] == expected["arrival"]
    assert actual["arrival"][0]


def test_the_tables_of_the_controls_are_invented(tmp_path: Path) -> None:
    """Each column keeps its values as often as it has them; a second time gives the same tables."""
    write(tmp_path / "gt.parquet", gates.ground_truth(3000))
    definition = gate_of(tmp_path, DATABASE).gate
    engine = DatabaseEngine(definition.engine)
    with ExitStack() as stack:
        table = engine.read(
            tmp_path / "gt.parquet",
            Contract(definition.columns, "the ground truth", definition.measured_columns, False),
            stack,
        )
    with engine.open_read([table]) as opened:
        [first], [again] = opened.sample(3000, 0), opened.sample(3000, 0)
    pd.testing.assert_frame_equal(first, again)
    real = gates.ground_truth(3000)
    assert len(first) == 3000
    assert set(first["work"].dropna()) == set(real["work"].dropna())
    shares = first["work"].value_counts(normalize=True) - real["work"].value_counts(normalize=True)
    assert np.abs(shares).max() < 0.05
    # The combinations are not those of the table.
    both = pd.merge(first.astype(str), real.astype(str), on=[*first.columns], how="inner")
    assert len(both) < len(real)
    assert values_sha256(table.distinct) == values_sha256(dict(reversed(list(table.distinct.items()))))
