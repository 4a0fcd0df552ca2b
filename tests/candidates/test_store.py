"""The snapshot of a candidate: files that change under its hands, and records of it that are damaged."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from disclosure_pipeline.candidates.files import StoreError, copy_hashed, read_json, write_json
from disclosure_pipeline.candidates.store import Store, read_snapshot, take_snapshot
from disclosure_pipeline.runtime.hashing import HashedStream

CANDIDATE = "first"
CONTENT = b"sex,age\nF,30\n"


@pytest.fixture
def arrived(tmp_path: Path) -> Path:
    folder = tmp_path / "incoming" / CANDIDATE
    folder.mkdir(parents=True)
    (folder / "synthetic.csv").write_bytes(CONTENT)
    return folder


def change_size(file: Path) -> None:
    times = file.stat()
    with file.open("ab") as opened:
        opened.write(b"M,40\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def change_time(file: Path) -> None:
    changed = file.stat().st_mtime_ns + 1
    file.write_bytes(CONTENT.replace(b"30", b"31"))
    os.utime(file, ns=(changed, changed))


@pytest.mark.parametrize("change", [change_size, change_time])
def test_a_file_that_changes_while_it_is_copied_is_not_taken(
    arrived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    """Each sign of a change alone; nothing of it stays in the store."""
    copy = copy_hashed

    def copy_while_it_is_written(original: IO[bytes], target: IO[bytes]) -> HashedStream:
        copied = copy(original, target)
        change(arrived / "synthetic.csv")
        return copied

    monkeypatch.setattr("disclosure_pipeline.candidates.store.copy_hashed", copy_while_it_is_written)
    store = Store(tmp_path / "store")
    with pytest.raises(StoreError, match="changed while it was read"):
        take_snapshot(arrived, CANDIDATE, store, (".csv",), needs_marker=False)
    assert not list((store.root / "objects").iterdir())
    assert not store.candidate_folder(CANDIDATE).exists()


def test_a_record_that_names_a_file_twice_is_damaged(arrived: Path, tmp_path: Path) -> None:
    """Otherwise one synthesis would be counted as two."""
    store = Store(tmp_path / "store")
    snapshot = take_snapshot(arrived, CANDIDATE, store, (".csv",), needs_marker=False)
    assert read_snapshot(CANDIDATE, store) == snapshot
    place = store.candidate_folder(CANDIDATE) / "snapshot.json"
    record = read_json(place, "synthetic")
    write_json(place, record | {"files": record["files"] * 2})
    with pytest.raises(StoreError, match="is damaged"):
        read_snapshot(CANDIDATE, store)
