"""A revoked table is the same table in whatever order, format, file or release it comes again."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from support import gate_steps, gates
from support.gates import HONEST, Home, failures
from support.sampling import on_some_days

from disclosure_pipeline.candidates.released import read_recorded_releases, record_released
from disclosure_pipeline.candidates.snapshot import Snapshot
from disclosure_pipeline.candidates.store import STATEMENT, StoredFile, locate_revocations
from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
from disclosure_pipeline.release.keys import load_signer
from disclosure_pipeline.release.published_tables import digest_published
from disclosure_pipeline.release.standing import list_standings, record_releases
from disclosure_pipeline.release.statement import build_statement, sign
from disclosure_pipeline.runtime.files import hash_file

pytestmark = pytest.mark.usefixtures("remembered_results")

REASON = "A respondent was recognised"
DICTIONARY = {
    "text": {"type": "category"},
    "number": {"type": "number"},
    "whole": {"type": "integer"},
    "day": {"type": "date"},
    "moment": {"type": "datetime", "time_zone": "Europe/Berlin"},
    "flag": {"type": "boolean"},
}


def mixed_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "text": ["=1+1", "x", None, "NA", "ü", "x"],
            "number": [0.5, -0.0, None, 1e300, 0.5, 2.0],
            "whole": pd.array([1, 2, None, 2**50, 1, 2], dtype="Int64"),
            "day": ["2020-02-29", None, "1900-01-01", "2020-02-29", "2021-01-01", "2020-02-29"],
            "moment": ["2020-06-01T12:00:00", None, *["2020-12-01T12:00:00.5"] * 4],
            "flag": [True, False, None, True, True, False],
        }
    )


def write_published(
    root: Path, *tables: pd.DataFrame, suffix: str = ".csv", reverse: bool = False
) -> set[str]:
    names = list(DICTIONARY)[:: -1 if reverse else 1]
    definition = gate_steps.definition_of_two_columns(
        columns={name: DICTIONARY[name] for name in names},
        keys=["text"],
        targets=["number", "whole", "day", "moment", "flag"],
    )
    with gate_steps.staged(root, definition, *tables, suffix=suffix) as staged:
        files = staged.write_tables()
        return {digest_published(staged.stage.release / file.name) for file in files}


def test_the_hash_is_of_the_records_alone(tmp_path: Path) -> None:
    table = mixed_table()
    (digest,) = write_published(tmp_path / "first", table)
    shuffled = table.sample(frac=1, random_state=1)[list(DICTIONARY)[::-1]]
    assert write_published(tmp_path / "order", shuffled) == {digest}
    assert write_published(tmp_path / "packed", table, suffix=".csv.gz") == {digest}
    assert write_published(tmp_path / "parquet", table, suffix=".parquet") == {digest}
    assert write_published(tmp_path / "dictionary", table, reverse=True) == {digest}
    assert digest in write_published(tmp_path / "two", table.iloc[:3], shuffled)
    others = [table.iloc[1:], pd.concat([table, table.iloc[:1]]), table.assign(flag=table["flag"].shift())]
    assert digest not in write_published(tmp_path / "others", *others)


def test_a_rewritten_file_has_the_same_hash(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [1.5, 2.5, None]})
    frame.to_parquet(tmp_path / "one.parquet")
    rewritten = frame.iloc[::-1][["b", "a"]]
    rewritten.to_parquet(tmp_path / "two.parquet", row_group_size=1, compression="gzip", index=False)
    frame.to_parquet(tmp_path / "three.parquet", index=False)
    one, two = (digest_published(tmp_path / f"{name}.parquet") for name in ("three", "two"))
    assert one == two


@pytest.fixture
def revoked_home(finished_home: Home) -> Home:
    key = str(finished_home.path / "keys" / "public-key.pem")
    folder = str(finished_home.published(HONEST))
    shown = gates.run_command("revoke", folder, "--key", key, "--reason", REASON)
    assert shown.exit_code == 0, shown.output
    return finished_home


def refuse_again(home: Home, candidate: str) -> str:
    """Return why a candidate is not released; one that has its dossier is not judged anew."""
    ran = home.materialize("release", HONEST) if candidate == HONEST else home.run_gate(candidate)
    assert not ran.success
    assert set(failures(ran)) == {f"{gates.GATE}__release"}
    return failures(ran)[f"{gates.GATE}__release"]


@on_some_days
def test_it_is_not_published_again(revoked_home: Home) -> None:
    """Nor is it a success where it stands, published."""
    assert REASON in refuse_again(revoked_home, HONEST)
    table = gates.honest()
    revoked_home.deliver("again", {"other.csv": table.sample(frac=1, random_state=2)[table.columns[::-1]]})
    revoked_home.deliver("two", {"a.csv": gates.honest(2), "b.csv": table})
    for candidate in ("again", "two"):
        message = refuse_again(revoked_home, candidate)
        assert "is not released" in message and REASON in message
        assert not revoked_home.published(candidate).exists()
    shutil.rmtree(revoked_home.published(HONEST))
    assert REASON in refuse_again(revoked_home, HONEST)
    revoked_home.deliver("new", {"other.csv": gates.honest(3)})
    assert revoked_home.run_gate("new").success


def test_status_says_so(revoked_home: Home) -> None:
    """However the list is printed; a damaged statement hides no revocation."""
    gates.write_definition(revoked_home.path, gates.definition())
    for _ in range(2):
        shown = gates.run_command("status", revoked_home.path, "--format", "json")
        assert shown.exit_code == 0, shown.output
        standings = {row["candidate"]: row["standing"] for row in json.loads(shown.stdout)["candidates"]}
        assert standings == {HONEST: "revoked", gates.COPY: "refused"}
        (revoked_home.published(HONEST) / STATEMENT).write_text("{}")


def test_whose_bytes_are_gone_is_known_by_name_and_by_snapshot_apart(revoked_home: Home) -> None:
    """Somebody may name a candidate as the snapshot of a revoked release."""
    folders = folders_of(load_gate(gates.write_definition(revoked_home.path, gates.definition())))
    [revoked] = read_recorded_releases(folders.store)
    missing = StoredFile("a.csv", "0" * 64, 1)
    for name, files in ((revoked.snapshot.sha256, (missing,)), (HONEST, (missing, *revoked.snapshot.files))):
        record_released(folders.store, replace(revoked, snapshot=Snapshot(name, files)))
    record_releases(folders)
    recorded = {release.snapshot.candidate: release for release in read_recorded_releases(folders.store)}
    assert recorded[HONEST].is_revoked
    assert not recorded[revoked.snapshot.sha256].is_revoked


def test_verify_finds_it_in_another_release(finished_home: Home) -> None:
    """The same records in another order, published before the other release was revoked."""
    folder = finished_home.published(HONEST)
    other = Path(shutil.copytree(folder, folder.with_name("two")))
    pd.read_parquet(other / "synthetic.parquet").iloc[::-1].to_parquet(other / "synthetic.parquet")
    files = {path.name: hash_file(path) for path in other.iterdir() if path.name != STATEMENT}
    predicate = gates.stated(folder).model_copy(update={"candidate": "two", "snapshot": "0" * 64})
    (other / STATEMENT).write_bytes(sign(build_statement(files, predicate), load_signer()))
    key = str(finished_home.path / "keys" / "public-key.pem")
    file = str(locate_revocations(folder.parent))
    assert gates.run_command("revoke", other, "--key", key, "--reason", REASON).exit_code == 0
    shown = gates.run_command("verify", folder, "--key", key, "--revocations", file)
    assert shown.exit_code == 1 and REASON in shown.output


def test_revocations_that_cannot_be_read_stop_a_release(revoked_home: Home) -> None:
    file = locate_revocations(revoked_home.path / "releases" / gates.GATE)
    file.write_bytes(file.read_bytes()[:-1])
    standings = {of.candidate: str(of) for of in list_standings(folders_of(gates.gate()))}
    assert standings[HONEST] == "published: its revocations cannot be read"
    shutil.rmtree(revoked_home.published(HONEST))
    assert "ends within a revocation" in refuse_again(revoked_home, HONEST)
    assert not revoked_home.published(HONEST).exists()
