"""One bit of a large file is another, its size the same: every step that reads bytes notices it by itself."""

import hashlib
import io
import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.signer import CryptoSigner
from support import gate_steps, gates, releases

from disclosure_pipeline.candidates.snapshot import load_snapshot
from disclosure_pipeline.candidates.store import MARKER, STATEMENT, Store
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.release import published_tables
from disclosure_pipeline.release.releasing import stage_snapshot
from disclosure_pipeline.release.statement import build_statement, sign
from disclosure_pipeline.release.verifying import VerificationError, verify
from disclosure_pipeline.runtime.files import copy_hashed, hash_file, hash_stream
from disclosure_pipeline.tables.encoding import Encoded
from disclosure_pipeline.tables.sources import FileSource

CHUNK = 1 << 20
# In the first piece that is read, at its end, at the beginning of the second one, and in the last byte.
PLACES = {"first byte": 0, "end of the first chunk": CHUNK - 1, "second chunk": CHUNK, "last byte": -1}


@cache
def content() -> bytes:
    """A table of 2.5 MiB, no piece of which is like another."""
    lines = (f"{number},{number * 7919 % 104729}\n" for number in range(250_000))
    return ("a,b\n" + "".join(lines)).encode()[: 5 * CHUNK // 2]


def flip(path: Path, place: int) -> None:
    before = path.stat()
    changed = bytearray(path.read_bytes())
    changed[place] ^= 1
    path.write_bytes(changed)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK // 2])
def test_every_byte_is_hashed_and_copied(size: int, tmp_path: Path) -> None:
    given = content()[:size]
    expected = (hashlib.sha256(given).hexdigest(), size)
    assert hash_stream(io.BytesIO(given)) == expected
    path, copy = tmp_path / "given.csv", tmp_path / "copy.csv"
    path.write_bytes(given)
    assert hash_file(path) == FileSource(path=str(path)).sha256() == expected[0]
    with path.open("rb") as original, copy.open("xb") as target:
        assert copy_hashed(original, target) == expected
    assert copy.read_bytes() == given


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_reading_and_staging_notice_a_changed_bit(place: int, tmp_path: Path) -> None:
    """Each by itself: what is staged was read before the bit changed."""
    folder, staging, store = tmp_path / "large", tmp_path / "staging", Store(tmp_path / "store")
    folder.mkdir()
    (folder / "table.csv").write_bytes(content())
    (folder / MARKER).touch()
    snapshot = gates.take(folder, store.root)
    (file,) = snapshot.files
    assert (file.sha256, file.bytes) == (hashlib.sha256(content()).hexdigest(), len(content()))
    assert store.stored_path(file).read_bytes() == content()
    assert load_snapshot("large", store) == snapshot
    flip(store.stored_path(file), place)
    with pytest.raises(StoreError, match=r"'table\.csv' are missing or changed"):
        load_snapshot("large", store)
    with pytest.raises(StoreError, match=r"'table\.csv' changed"), stage_snapshot(snapshot, store, staging):
        pass
    assert list(staging.iterdir()) == []


def test_writing_the_release_notices_another_value_in_what_is_staged(tmp_path: Path) -> None:
    """By itself: the copy was the snapshot when it was staged."""
    written = tmp_path / "written"
    written.mkdir()
    with gate_steps.staged(tmp_path, gates.definition(), gates.honest()) as staged:
        assert staged.write_tables()
        (copy,) = staged.stage.arrived.iterdir()
        before = copy.stat()
        copy.write_bytes(copy.read_bytes().replace(b"f,", b"m,", 1))
        os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert copy.stat().st_size == before.st_size
        with pytest.raises(StoreError, match=rf"staged copy of '{copy.name}' was changed"):
            staged.write_tables(written)
    assert list(written.iterdir()) == []


@pytest.mark.parametrize(
    ("levels", "records_at_once"), [(1, 1 << 20), (40, 700), (4096, 1 << 20), (5000, 900)]
)
def test_texts_that_are_written_as_codes_give_the_same_bytes(
    levels: int, records_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(levels)
    codes = random.integers(-1, levels, 3000)
    codes[:2000] %= max(levels // 2, 1)  # levels that the first batches do not have
    names = [f"={level * 7919}" if level % 3 else f"level {level} ü" for level in range(levels)]
    frame = pd.DataFrame(
        {"a": pd.Categorical.from_codes(codes.tolist(), pd.Index(names)), "b": random.integers(0, 9, 3000)}
    )
    monkeypatch.setattr(published_tables, "_RECORDS", records_at_once)
    definition = gate_steps.definition_of_two_columns(csv=True)
    with gate_steps.staged(tmp_path, definition, frame, suffix=".parquet") as staged:
        as_codes = staged.write_tables()
        monkeypatch.setattr(published_tables, "_FEW_LEVELS", -1)
        assert staged.write_tables() == as_codes
        text = pd.read_csv(staged.stage.release / "synthetic.csv", dtype=str, keep_default_na=False)
    assert sorted(text["b"]) == sorted(frame["b"].astype(str))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=60), st.sampled_from([7, 1 << 20]))
def test_records_are_ordered_by_all_digits_of_their_hashes(
    parts: list[tuple[int, int]], records_at_once: int
) -> None:
    """Also where hashes differ in their lowest digits alone, which are those that the position takes."""
    hashes = np.array([(above << 62) + below for above, below in parts], dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published_tables, "_RECORDS", records_at_once)
        order = published_tables._sort_positions(hashes)
    assert sorted(order.tolist()) == list(range(len(hashes)))
    assert hashes[order].tolist() == sorted(hashes.tolist())


@pytest.mark.parametrize("codes", [[], [-1, -1], [2, -1, 0, 2], [0] * (1 << 15) + [2, 1]])
def test_levels_are_listed_as_they_come(codes: list[int]) -> None:
    """Wherever the first record of a level is, and no level that no record has."""
    column = Encoded(np.array(codes, dtype=np.int8), pa.array(["a", "b", "c", "d"]))
    expected = list(dict.fromkeys(code for code in codes if code >= 0))
    assert published_tables._list_used_levels(column).tolist() == expected


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_verifying_notices_a_changed_bit(place: int, tmp_path: Path) -> None:
    signer, folder = CryptoSigner.generate_ed25519(), tmp_path / "large"
    folder.mkdir()
    files = {"first.csv": content(), "second.csv": releases.files()["second.csv"]}
    for name, written in files.items():
        (folder / name).write_bytes(written)
    hashes = {name: releases.hex_of(written) for name, written in files.items()}
    (folder / STATEMENT).write_bytes(sign(build_statement(hashes, releases.predicate()), signer))
    assert verify(folder, [releases.trust(signer)]).files == hashes
    flip(folder / "first.csv", place)
    with pytest.raises(VerificationError) as caught:
        verify(folder, [releases.trust(signer)])
    (problem,) = caught.value.problems
    assert problem.startswith("'first.csv' was changed")
