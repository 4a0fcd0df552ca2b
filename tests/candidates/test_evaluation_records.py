"""How often a ground truth may be asked: each new content is a question, the same one asked again is none."""

import json
import os
import shutil
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import gate_steps, gates
from support.sampling import examples

from disclosure_pipeline.candidates import evaluation
from disclosure_pipeline.candidates.evaluation import evaluate
from disclosure_pipeline.candidates.evaluation_records import (
    EVALUATIONS,
    SKETCHES,
    SketchedTable,
    count_evaluations,
    count_recorded_evaluations,
    list_figure_inputs,
    record_evaluation,
)
from disclosure_pipeline.candidates.measuring import read_groups, read_measured
from disclosure_pipeline.candidates.snapshot import Snapshot, read_snapshot, take_snapshot
from disclosure_pipeline.candidates.store import GateFolders, Store, StoredFile
from disclosure_pipeline.errors import RefusedError, StoreError
from disclosure_pipeline.runtime.files import HashedStream, copy_hashed, read_json, to_json, write_json
from disclosure_pipeline.tables.additions import GT_IDENTIFIER
from disclosure_pipeline.tables.record_hashes import RecordSketch

GT = "a" * 64


def snapshot(name: str, *contents: str) -> Snapshot:
    files = [StoredFile(f"{number}.csv", content * 64, 1) for number, content in enumerate(contents)]
    return Snapshot(name, tuple(files))


def folders(root: Path, limit: int, **changes: Any) -> GateFolders:
    policy = gates.definition()["policy"] | {"evaluations_per_ground_truth": limit}
    return gate_steps.folders(root, gates.definition(policy=policy, **changes), "memory", "ground_truth.csv")


def sketch(file: StoredFile) -> SketchedTable:
    random = np.random.default_rng(int(file.sha256, 16))
    sketches = []
    for figure_input in list_figure_inputs(gates.gate()):
        buckets = 1 << figure_input.part.bits
        sums = random.integers(1, 2**63, buckets, dtype=np.uint64)
        sketches.append(RecordSketch(np.ones(buckets, dtype=np.int64), sums))
    return SketchedTable(file.name, tuple(sketches))


def measure_once(gate: GateFolders, arrived: Snapshot, ground_truth: str) -> None:
    record_evaluation(gate, arrived, ground_truth, lambda: list(map(sketch, arrived.files)))


def test_only_new_contents_count(tmp_path: Path) -> None:
    gate = folders(tmp_path, 2)
    measure_once(gate, snapshot("one", "1", "2"), GT)
    measure_once(gate, snapshot("one", "1", "2"), GT)
    measure_once(gate, snapshot("renamed", "2", "1"), GT)
    assert count_evaluations(gate.store, GT) == 1
    measure_once(gate, snapshot("two", "1"), GT)
    for _ in range(2):
        with pytest.raises(RefusedError, match="the limit of 2 candidates measured"):
            measure_once(gate, snapshot("three", "3"), GT)
    assert count_evaluations(gate.store, GT) == 2
    measure_once(gate, snapshot("one", "1", "2"), GT)  # what was measured is measured again
    measure_once(gate, snapshot("three", "3"), "b" * 64)  # another ground truth
    assert count_evaluations(gate.store, "c" * 64) == 0


def test_a_candidate_beyond_the_limit_is_not_measured(tmp_path: Path) -> None:
    """And says no figure; those before it can still be released."""
    gate = folders(tmp_path, 1)
    gates.ground_truth().to_csv(tmp_path / "ground_truth.csv", index=False)
    for name, seed in (("first", 1), ("second", 2)):
        gate_steps.deliver(tmp_path, name, gates.honest(seed))
    first, second = (gate_steps.steps(gate, name, measured_anew=False) for name in ("first", "second"))
    assert "refused" not in first
    assert second["refused"][0] == "RefusedError"
    assert set(second) == {"ground truth", "refused"}
    assert count_recorded_evaluations(gate.store) == 1
    assert evaluate(gate, "first", gate_steps.NOW).judgements


def test_a_candidate_with_an_identifier_of_the_ground_truth_counts(tmp_path: Path) -> None:
    """Else whoever asks could try out who is in the ground truth, without end."""
    columns = gates.definition()["columns"] | {
        "person": {"type": "text identifier"},
        "sex": {"type": "category", "unknown_levels": "keep"},
    }
    gate = folders(tmp_path, 1, columns=columns)
    table = gates.ground_truth().assign(person=[f"p-{number}" for number in range(300)])
    gate_steps.write(tmp_path / "ground_truth.csv", table)
    honest = gates.honest(1)
    for name, guess in (("first", "p-7"), ("second", "p-8")):
        gate_steps.deliver(tmp_path, name, honest.assign(sex=[guess, *honest["sex"][1:]]))
    first, second = (gate_steps.steps(gate, name) for name in ("first", "second"))
    [violation] = [broken for broken in first["arrival"][0] if broken.rule == GT_IDENTIFIER]
    assert "p-7" not in str(violation)
    assert count_recorded_evaluations(gate.store) == 1
    assert second["refused"][0] == "RefusedError"


def test_without_a_recorded_ground_truth_the_most_evaluations_count(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    assert count_recorded_evaluations(store) == 0
    (store.root / EVALUATIONS).mkdir(parents=True)
    assert count_recorded_evaluations(store) == 0
    for name in ("one/a", "other/b", "other/c", "other/d"):
        (store.root / EVALUATIONS / name).parent.mkdir(exist_ok=True)
        (store.root / EVALUATIONS / name).touch()
    assert count_recorded_evaluations(store) == 3
    write_json(store.ground_truth, {"sha256": "one"})
    assert count_recorded_evaluations(store) == 1


def test_a_table_whose_sketch_is_lost_is_sketched_again_before_it_is_measured_again(tmp_path: Path) -> None:
    """Else no later one would be held against it."""
    gate = folders(tmp_path, 2)
    measure_once(gate, snapshot("one", "1"), GT)
    assert read_measured(gate, snapshot("one", "1"), GT) is None  # its figures were never recorded
    assert read_groups(gate, snapshot("one", "1"), GT) is None
    sketches = gate.store.root / SKETCHES
    before = {path for path in sketches.rglob("*") if path.is_file()}
    shutil.rmtree(sketches)
    measure_once(gate, snapshot("one", "1"), GT)
    assert before == {path for path in sketches.rglob("*") if path.is_file()}
    assert any(path.suffix == ".json" for path in before)
    assert count_evaluations(gate.store, GT) == 1


def test_other_candidates_stand_on_a_page_where_their_dossiers_can(tmp_path: Path) -> None:
    """The one of the page itself does not, nor what an earlier version wrote, nor what is damaged."""
    gate = folders(tmp_path, 2)
    whole = {"decision": "refused", "clauses": [], "figures": {"table": []}}
    contents = {
        "own": json.dumps({"candidate": "own"} | whole),
        "other": json.dumps({"candidate": "other"} | whole),
        "earlier": json.dumps({"candidate": "earlier", "decision": "refused"}),
        "damaged": "{",
    }
    for name, content in contents.items():
        folder = gate.store.candidate_folder(name)
        folder.mkdir(parents=True)
        (folder / "dossier.json").write_text(content)
    assert [dossier["candidate"] for dossier in evaluation._read_other_dossiers(gate, "own")] == ["other"]


# The snapshot of a candidate: files that change under its hands, and records of it that are damaged


CANDIDATE = "first"
CONTENT = b"sex,age\nF,30\n"


@pytest.fixture
def arrived(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming" / CANDIDATE
    folder.mkdir(parents=True)
    (folder / "synthetic.csv").write_bytes(CONTENT)
    return folder


@pytest.mark.parametrize(("content", "later"), [(CONTENT + b"M,40\n", 0), (CONTENT.replace(b"30", b"31"), 1)])
def test_a_file_that_changes_while_it_is_copied_is_not_taken(
    arrived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, later: int
) -> None:
    """Each sign of a change alone, its size or its time; nothing of it stays in the store."""
    file = arrived / "synthetic.csv"

    def copy_while_it_is_written(original: IO[bytes], target: IO[bytes]) -> HashedStream:
        copied = copy_hashed(original, target)
        time = file.stat().st_mtime_ns + later
        file.write_bytes(content)
        os.utime(file, ns=(time, time))
        return copied

    monkeypatch.setattr("disclosure_pipeline.candidates.snapshot.copy_hashed", copy_while_it_is_written)
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError, match="changed while it was read"):
        take_snapshot(arrived, CANDIDATE, store, needs_marker=False)
    assert not list((store.root / "objects").iterdir())
    assert not store.candidate_folder(CANDIDATE).exists()


def test_a_record_that_names_a_file_twice_is_damaged(arrived: Path, tmp_path: Path) -> None:
    """Otherwise one synthesis would be counted as two."""
    store = Store(tmp_path / "store")
    snapshot = take_snapshot(arrived, CANDIDATE, store, needs_marker=False)
    assert read_snapshot(CANDIDATE, store) == snapshot
    place = store.candidate_folder(CANDIDATE) / "snapshot.json"
    record = read_json(place, "synthetic")
    write_json(place, record | {"files": record["files"] * 2})
    with pytest.raises(StoreError, match="is damaged"):
        read_snapshot(CANDIDATE, store)


# The bytes of the store's JSON files


_NAMES = (
    st.text() | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False)
)
_VALUES = st.recursive(
    _NAMES,
    lambda values: (
        st.lists(values, max_size=4)
        | st.lists(values, max_size=4).map(tuple)
        | st.dictionaries(_NAMES, values, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=4))
@examples(20, 100)
def test_a_file_has_the_bytes_of_json_with_an_indent(content: dict[Any, Any]) -> None:
    """Also where a name is no text, or comes twice once it is."""
    expected = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    assert to_json(content) == expected.encode()
