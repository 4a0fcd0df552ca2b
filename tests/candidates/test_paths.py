"""No id, file name, link or archive leads out of the gate's folders, and the ground truth is copied by none.

Around the home of the gate lies what is nobody else's business. Whatever a candidate is called and holds,
everything outside the store stays as it was, to the byte.
"""

import hashlib
import io
import os
import re
import shutil
import socket
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support import gates
from support.gates import CANARIES, GATE, HONEST, MARKER, Home
from support.homes import refused
from support.processes import fork
from support.sampling import CI, on_some_days, some_of

pytestmark = pytest.mark.usefixtures("remembered_results")

STEPS = ("synthetic", "bins", "identity_risk", "dossier", "release")
CANDIDATE = "third"

IDS = (
    *("../../evil", "../../../evil", "..", ".", "a/b", "/evil", "//evil", "honest/..", "honest/../evil"),
    *("a\\b", "..\\..\\evil", "%2e%2e%2fevil", "..%2fevil", "a..b", "a..", "...", ".hidden", "-rf"),
    *("~", "~root", "$HOME", "${HOME}", "*", "?", ".partial-honest~1", "honest~1", "honest|copy", "CON:"),
    *("a;b", "a&b", "a,b", "a'b", 'a"b', "a`b"),
    *(" honest", "honest ", "a b", "a\nb", "a\n", "\na", "a\rb", "a\tb", "a\0b", "a\0", "\0"),
    # Dots and slashes of other scripts, letters that look alike or are not seen.
    *(
        "\uff0e\uff0e\uff0fevil",
        "\u2024\u2024\u2215evil",
        "a\u202egpj",
        "e\u0301",
        "\u00e9",
        "\u0430",
        "\ufeffa",
    ),
    *("x" * 101, "x" * 5000),
)
# Dagster's own rule for partitions keeps these out before the gate is asked.
KEPT_OUT_BY_DAGSTER = ("...", "\n", "\r", "\t", "\0")


@pytest.fixture(scope="module")
def recorded(small_gate: dg.Definitions) -> Iterator[Path]:
    with gates.quick_folder() as path, pytest.MonkeyPatch.context() as patch:
        with gates.home_in_memory(path, small_gate, patch) as home:
            home.prepare()
        yield path


@pytest.fixture
def home(recorded: Path, small_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with gates.quick_folder() as outer:
        path = outer / "secret" / "homes" / "home"
        shutil.copytree(recorded, path)
        (outer / "secret" / "evil").mkdir()
        for folder in (outer / "secret", outer / "secret" / "evil"):
            (folder / "synthetic.csv").write_text(gates.ground_truth().to_csv(index=False))
            (folder / MARKER).touch()
        with gates.home_in_memory(path, small_gate, monkeypatch) as home:
            yield home


def listing(home: Home) -> dict[str, str]:
    """All that lies around the home and in it, with its kind and content; a link is not followed."""
    around = home.path.parents[2]
    return {str(path.relative_to(around)): _kind(path) for path in around.rglob("*")}


def _kind(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_dir():
        return "folder"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "special"


def outside_the_store(home: Home) -> dict[str, str]:
    store = rf"secret/homes/home/store/{GATE}($|[/.])"
    return {name: kind for name, kind in listing(home).items() if not re.match(store, name)}


def ground_truth_copied(home: Home) -> dict[str, list[str]]:
    """Files of the home that hold what only the ground truth holds, but for itself."""
    return gates.files_with(home.path, CANARIES, ["ground_truth.csv", "incoming"])


@on_some_days
@pytest.mark.parametrize("step", STEPS)
def test_no_id_leads_anywhere(home: Home, step: str) -> None:
    """Each id in every step that takes one, with a folder and a table where it would lead."""
    before = listing(home)
    by_dagster = []
    for number, candidate in enumerate(IDS):
        if not CI and number % len(STEPS) != STEPS.index(step):
            continue
        try:
            message = refused(home.materialize(step, candidate))
        except dg.DagsterError:
            by_dagster.append(candidate)
        else:
            assert "is not allowed" in message and len(message) < 500, candidate
        assert listing(home) == before, candidate
    assert all(any(part in candidate for part in KEPT_OUT_BY_DAGSTER) for candidate in by_dagster)
    assert home.nothing_published()


@pytest.mark.parametrize("candidate", [name for name in IDS if any(p in name for p in KEPT_OUT_BY_DAGSTER)])
def test_no_id_that_dagster_keeps_out_would_lead_anywhere(home: Home, candidate: str) -> None:
    """Its rule is about display, and could change: as a run's tag nothing but the gate stops it."""
    before = listing(home)
    ran = home.defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=home.instance,
        asset_selection=[dg.AssetKey([GATE, "synthetic"])],
        tags={"dagster/partition": candidate},
        raise_on_error=False,
    )
    assert "is not allowed" in refused(ran)
    assert listing(home) == before


def test_the_sensor_takes_no_such_folder(home: Home) -> None:
    """And does not stop at one: the candidate that lies beside them has its run."""
    for name in IDS:
        if name not in {"", ".", ".."} and not set(name) & {"/", "\0"} and len(name.encode()) < 256:
            home.deliver(name, {"synthetic.csv": gates.honest()})
    home.deliver(CANDIDATE, {"synthetic.csv": gates.honest()})
    before = listing(home)
    assert tick(home) == [CANDIDATE]
    assert listing(home) == before


def tick(home: Home) -> list[str | None]:
    actual = home.tick()
    requested = [request.partition_key for request in actual.run_requests or []]
    assert set(requested) == {
        key for added in actual.dynamic_partitions_requests or [] for key in added.partition_keys
    }
    return requested


@on_some_days
def test_names_that_differ_in_case_or_end_in_a_dot_are_names_of_their_own(home: Home) -> None:
    assert home.run_ground_truth().success
    names = [HONEST, HONEST.upper(), f"{HONEST}."]
    for seed, name in enumerate(names):
        home.deliver(name, {"synthetic.csv": gates.honest(seed)})
        assert home.run_gate(name).success
    for seed, name in enumerate(names):
        assert gates.published_records(home.published(name)) == gates.sorted_records(gates.honest(seed))
        assert gates.stated(home.published(name)).candidate == name


def test_a_file_system_that_takes_two_names_for_one_releases_none_over_the_other(home: Home) -> None:
    """Links stand for one that does not tell upper from lower case."""
    assert home.run_ground_truth().success
    home.deliver(HONEST, {"synthetic.csv": gates.honest(1)})
    assert home.run_gate(HONEST).success
    other = HONEST.upper()
    home.record(other, "").symlink_to(HONEST)
    home.published(other).symlink_to(HONEST)
    home.deliver(other, {"synthetic.csv": gates.honest(2)})
    before = outside_the_store(home)
    refused(home.run_gate(other))
    assert outside_the_store(home) == before
    refused(home.materialize("release", HONEST))  # its records are the other's by now
    assert outside_the_store(home) == before


Make = Callable[[Home, Path], object]


def archive(member: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr(member, "a,b")
    return content.getvalue()


def tar(member: str) -> bytes:
    """A packed tar file that would write outside, and a link in it."""
    content, link = io.BytesIO(), tarfile.TarInfo("link.csv")
    link.type, link.linkname = tarfile.SYMTYPE, "../../../ground_truth.csv"
    with tarfile.open(fileobj=content, mode="w:gz") as packed:
        packed.addfile(tarfile.TarInfo(member))
        packed.addfile(link)
    return content.getvalue()


def bound(path: Path) -> None:
    """A socket; its path may not be long, so that it is made elsewhere and moved."""
    with socket.socket(socket.AF_UNIX) as made, gates.quick_folder() as short:
        made.bind(str(short / "s"))
        shutil.move(short / "s", path)


def linked_folder(target: Callable[[Home], Path]) -> Make:
    def make(home: Home, folder: Path) -> None:
        shutil.rmtree(folder)
        folder.symlink_to(target(home))

    return make


def replaced(name: str, make: Callable[[Path], object]) -> Make:
    def put(_: Home, folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return put


def link(name: str, target: str) -> Make:
    return replaced(name, lambda path: path.symlink_to(target))


def held(name: str, content: bytes = b"") -> Make:
    return replaced(name, lambda path: path.write_bytes(content))


def file_for_a_folder(_: Home, folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


GROUND_TRUTH = "../../ground_truth.csv"
OUT = "../../evil.csv"
FOLDERS: dict[str, Make] = {
    "a link to the ground truth": link("2.csv", GROUND_TRUTH),
    "a link for its only table": link("synthetic.csv", GROUND_TRUTH),
    "a link that leads nowhere": link("2.csv", "missing.csv"),
    "a link to itself": link("2.csv", "2.csv"),
    "a link to its own folder": link("2.csv", "."),
    "a marker that is a link": link(MARKER, "synthetic.csv"),
    "a marker that is a link to nothing": link(MARKER, "missing"),
    "a marker that is a folder": replaced(MARKER, Path.mkdir),
    "a marker that is a pipe": replaced(MARKER, os.mkfifo),
    "a table that is a pipe": replaced("synthetic.csv", os.mkfifo),
    "another table that is a pipe": replaced("2.csv", os.mkfifo),
    "a table that is a socket": replaced("2.csv", bound),
    "a table that is a folder": replaced("synthetic.csv", Path.mkdir),
    "a folder of tables": lambda home, folder: shutil.copytree(
        home.path / "incoming" / "good", folder / "2.parquet"
    ),
    "a folder that is a link to the ground truth's": linked_folder(lambda home: home.path),
    "a folder that is a link to one outside": linked_folder(lambda home: home.path.parents[1] / "evil"),
    "a folder that is a link to a candidate": linked_folder(lambda home: home.path / "incoming" / "good"),
    "a folder that is a link to itself": linked_folder(lambda home: home.path / "incoming" / CANDIDATE),
    "a folder that is a file": file_for_a_folder,
    "no marker": lambda _, folder: (folder / MARKER).unlink(),
    "no table": lambda _, folder: (folder / "synthetic.csv").unlink(),
    "an unknown format": held("notes.txt", b"x"),
    "no suffix": held("notes", b"x"),
    "a manifest": held("manifest.json", b"{}"),
    "a name with a blank": held("a b.csv", b"x"),
    "a zip file of a table that is called like one outside": held("2.zip", archive(OUT)),
    "a packed tar file": held("2.tar.gz", tar(OUT)),
    "a zip file that is called a table": held("2.csv", archive(OUT)),
    "a tar file that is called a table": held("2.csv.gz", tar(OUT)),
    "a tar file that is called Parquet": held("2.parquet", tar("/evil.csv")),
    "a name with a newline": held("2\n.csv"),
    "a name with a backslash": held("..\\2.csv"),
    "a name with what looks like dots": held("\u2024\u2024\u22152.csv"),
    "a name that is no text": held(os.fsdecode(b"\xff.csv")),
    "a name that is too long": held("x" * 101 + ".csv"),
    "a name that is hidden": held(".2.csv"),
    "a name of a file that is half written": held(".partial-2.csv"),
    "the name of the statement": held("statement.dsse.json"),
}


@pytest.fixture
def delivered(home: Home) -> Home:
    for name in ("good", CANDIDATE):
        home.deliver(name, {"synthetic.csv": gates.honest()})
    (home.path / MARKER).touch()
    return home


@pytest.mark.parametrize("what", some_of(FOLDERS, 8))
def test_what_is_no_table_is_refused(delivered: Home, what: str) -> None:
    """And the sensor goes on to the candidate beside it."""
    folder = delivered.path / "incoming" / CANDIDATE
    FOLDERS[what](delivered, folder)
    before, around = listing(delivered), outside_the_store(delivered)
    assert "good" in tick(delivered)

    def receive() -> str:
        return refused(delivered.materialize("synthetic", CANDIDATE))

    message = fork(receive).result() if "pipe" in what else receive()  # a pipe that is opened hangs
    assert CANARIES[0] not in message
    assert "called" in what or f"'{CANDIDATE}'" in message or "file name" in message
    after = listing(delivered)
    assert outside_the_store(delivered) == around
    assert not [name for name in after.keys() - before.keys() if "link" in after[name]]
    assert not delivered.record(CANDIDATE, "snapshot.json").exists() or "called" in what
    assert not ground_truth_copied(delivered)
    refused(delivered.materialize("release", CANDIDATE))
    assert delivered.nothing_published()


SWAPS: dict[str, Make] = {
    "a link to the ground truth": link("synthetic.csv", GROUND_TRUTH),
    "a pipe": replaced("synthetic.csv", os.mkfifo),
    "a folder": replaced("synthetic.csv", Path.mkdir),
    "nothing": replaced("synthetic.csv", lambda _: None),
}


@pytest.mark.parametrize("what", some_of(SWAPS))
def test_a_table_that_is_swapped_before_it_is_read_is_refused(
    delivered: Home, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was looked at, and before it is opened."""
    opens, folder = os.open, delivered.path / "incoming" / CANDIDATE

    def swapping(path: Any, *arguments: Any, **settings: Any) -> int:
        if path == "synthetic.csv":
            SWAPS[what](delivered, folder)
        return opens(path, *arguments, **settings)

    def receive() -> str:
        monkeypatch.setattr(os, "open", swapping)
        return refused(delivered.materialize("synthetic", CANDIDATE))

    assert "'synthetic.csv'" in fork(receive).result()
    assert not ground_truth_copied(delivered)
    assert not delivered.record(CANDIDATE, "snapshot.json").exists()


def test_a_folder_that_is_swapped_while_it_is_read_is_not_followed(
    delivered: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opened table is read to its end: the candidate as it was, and none of the ground truth."""
    opens, folder = os.open, delivered.path / "incoming" / CANDIDATE

    def swapping(path: Any, *arguments: Any, **settings: Any) -> int:
        if path == "synthetic.csv" and not folder.is_symlink():
            folder.rename(folder.with_name("moved"))
            folder.symlink_to(delivered.path.parents[1] / "evil")
        return opens(path, *arguments, **settings)

    monkeypatch.setattr(os, "open", swapping)
    assert delivered.materialize("synthetic", CANDIDATE).success
    (file,) = gates.read_json(delivered.record(CANDIDATE, "snapshot.json"))["files"]
    assert file["sha256"] == hashlib.sha256(gates.honest().to_csv(index=False).encode()).hexdigest()
    assert not ground_truth_copied(delivered)
