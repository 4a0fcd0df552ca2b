"""Pruning the store: old bytes that nobody needs go, what is published or approved and the evidence stays."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from securesystemslib.signer import CryptoSigner
from support import gates, releases

from disclosure_pipeline.candidates.evaluation_records import EVALUATIONS, SKETCHES
from disclosure_pipeline.candidates.snapshot import load_snapshot, take_snapshot
from disclosure_pipeline.candidates.store import MARKER, STATEMENT, Store
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.release.pruning import Pruned, prune
from disclosure_pipeline.runtime.files import write_json

NOW = datetime(2024, 6, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)
SIGNER = CryptoSigner.generate_ed25519()


def date(path: Path, age: timedelta) -> None:
    """Make a file, or all that is in a folder, as old as that; of a link, the link."""
    inside = sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else []
    when = (NOW - age).timestamp()
    for dated in (*inside, path):
        os.utime(dated, (when, when), follow_symlinks=False)


@dataclass(frozen=True)
class Home:
    path: Path

    @property
    def store(self) -> Store:
        return Store(self.path / "store" / "small")

    @property
    def releases(self) -> Path:
        return self.path / "releases" / "small"

    def receive(
        self, candidate: str, *contents: bytes, decision: str | None = None, age: timedelta = 100 * DAY
    ) -> list[Path]:
        arrived = self.path / "incoming" / candidate
        arrived.mkdir(parents=True)
        for number, content in enumerate(contents):
            (arrived / f"{number}.csv").write_bytes(content)
        (arrived / MARKER).touch()
        snapshot = take_snapshot(arrived, candidate, self.store)
        records = self.store.candidate_folder(candidate)
        (records / "release.lock").touch()
        if decision:
            write_json(records / "dossier.json", {"candidate": candidate, "decision": decision})
        stored = [self.store.stored_path(file) for file in snapshot.files]
        for path in (records, *stored):
            date(path, age)
        return stored

    def prune(self, age: timedelta = 30 * DAY, *, dry_run: bool = False) -> Pruned:
        return prune(self.store, self.releases, age, NOW, dry_run=dry_run)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    home.receive("refused", b"refused 1", b"refused 2", decision="refused")
    home.receive("undetermined", b"undetermined", decision="undetermined")
    home.receive("undecided", b"undecided")
    home.receive("approved", b"approved", decision="approved")
    home.receive("published", *releases.files().values(), decision="approved")
    releases.publish(home.releases / "published", SIGNER)
    return home


@pytest.fixture
def home(filled: Home, tmp_path: Path) -> Home:
    return Home(Path(shutil.copytree(filled.path, tmp_path / "home")))


def test_the_bytes_of_what_was_refused_or_never_decided_go(home: Home) -> None:
    before = gates.contents(home.path)
    pruned = home.prune()
    after = gates.contents(home.path)
    gone = {b"refused 1", b"refused 2", b"undetermined", b"undecided"}
    assert {before[name] for name in before.keys() - after.keys()} == gone
    assert {f"store/small/{name}" for name in pruned.removed} == before.keys() - after.keys()
    assert pruned.bytes == sum(map(len, gone))
    assert pruned.unclear == ()
    assert {name: before[name] for name in after} == after
    for candidate in ("approved", "published"):
        assert load_snapshot(candidate, home.store)
    with pytest.raises(StoreError, match="run synthetic again"):
        load_snapshot("refused", home.store)


def test_a_trial_removes_nothing_and_a_second_time_finds_nothing(home: Home) -> None:
    before = gates.contents(home.path)
    trial = home.prune(dry_run=True)
    assert trial.removed and gates.contents(home.path) == before
    assert home.prune() == trial
    before = gates.contents(home.path)
    records = (home.store.root / "candidates").rglob("*.*")
    assert len(list(records)) == 14  # every record stays
    assert home.prune() == Pruned((), 0, ())
    assert gates.contents(home.path) == before


@pytest.mark.parametrize("decision", ["refused", "undetermined", None])
@pytest.mark.parametrize("record", ["snapshot.json", "figures.json", "pages/index.html", None])
def test_a_candidate_is_as_old_as_its_newest_record(
    home: Home, decision: str | None, record: str | None
) -> None:
    """Or its bytes, which are stored first: they may be of a candidate that arrives right now."""
    (stored,) = home.receive("young", b"young", decision=decision)
    newest = home.store.candidate_folder("young") / record if record else stored
    newest.parent.mkdir(exist_ok=True)
    if not newest.exists():
        newest.touch()
    date(newest, 30 * DAY - timedelta(seconds=1))
    home.prune()
    assert stored.exists()
    date(newest, 30 * DAY + timedelta(seconds=1))
    home.prune()
    assert not stored.exists()


@pytest.mark.parametrize("other", ["approved", "published", "young"])
def test_bytes_that_another_candidate_needs_stay(home: Home, other: str) -> None:
    content = {"approved": b"approved", "published": releases.files()["second.csv"], "young": b"young"}[other]
    if other == "young":
        home.receive("young", b"young", decision="refused", age=DAY)
    shared, own = home.receive("sharing", content, b"own", decision="refused")
    date(shared, 100 * DAY)
    home.prune()
    assert shared.exists() and not own.exists()


def test_what_is_published_keeps_its_bytes_whatever_came_after(home: Home) -> None:
    """Delivered again under its name, refused, and its first record overwritten."""
    shutil.rmtree(home.path / "incoming" / "published")
    (later,) = home.receive("published", b"later", decision="refused")
    home.prune()
    kept = {path.read_bytes() for path in (home.store.root / "objects").iterdir()}
    assert set(releases.files().values()) <= kept
    assert later.exists()


def test_bytes_of_an_earlier_arrival_go(home: Home) -> None:
    """A candidate that was delivered again: nothing names its first bytes any more."""
    (first,) = home.receive("again", b"first", decision="refused")
    shutil.rmtree(home.path / "incoming" / "again")
    (second,) = home.receive("again", b"second", decision="approved")
    home.prune()
    assert second.exists() and not first.exists()


def test_old_remains_go(home: Home) -> None:
    root = home.store.root
    delivered = root / "delivered" / "candidate"
    delivered.mkdir(parents=True)
    remains = [
        root / ".partial-1",
        root / "objects" / ".partial-2",
        root / "candidates" / "approved" / ".partial-3",
        root / SKETCHES / "0123456789abcdef" / ".partial-4",
        root / EVALUATIONS / "0123456789abcdef" / ".partial-5",
        delivered / "synthesis_0001.parquet",
        delivered / MARKER,
    ]
    for path in remains:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"xy")
    for path in (*remains, delivered):
        date(path, 30 * DAY - timedelta(seconds=1))
    kept = home.prune(dry_run=True)
    assert not any("partial" in name or "delivered" in name for name in kept.removed)
    for path in (*remains, delivered):
        date(path, 31 * DAY)
    date(delivered / MARKER, DAY)  # a delivery of which anything is young stays
    assert not any("delivered" in name for name in home.prune(dry_run=True).removed)
    date(delivered, 31 * DAY)
    pruned = home.prune()
    assert not any(path.exists() for path in (*remains, delivered))
    assert {path.relative_to(root).as_posix() for path in (*remains, delivered)} <= set(pruned.removed)
    assert (root / "delivered").is_dir()


# What is done to the home, or to a file or folder of a candidate in it.
Damage = Callable[[Home], object]


def _in(record: str, change: Callable[[Path], object]) -> Damage:
    return lambda home: change(home.store.candidate_folder("refused") / record)


def _content(record: str, **changes: object) -> Damage:
    return _in(record, lambda path: gates.edit_json(path, lambda content: content.update(changes)))


def _file(**changes: object) -> Damage:
    return _in(
        SNAPSHOT, lambda path: gates.edit_json(path, lambda content: content["files"][0].update(changes))
    )


def _link(path: Path) -> None:
    moved = path.rename(path.parents[4] / f"moved-{path.name}")
    path.symlink_to(moved)


SNAPSHOT, DOSSIER = "snapshot.json", "dossier.json"
UNCLEAR: dict[str, Damage] = {
    "no snapshot": _in(SNAPSHOT, Path.unlink),
    "no JSON in a snapshot": _in(SNAPSHOT, lambda path: path.write_text("{")),
    "a list for a snapshot": _in(SNAPSHOT, lambda path: path.write_text("[]")),
    "nested": _in(SNAPSHOT, lambda path: path.write_text("[" * 100_000)),
    "another's snapshot": _content(SNAPSHOT, candidate="approved"),
    "no files": _content(SNAPSHOT, files=[]),
    "files that are none": _content(SNAPSHOT, files=[1]),
    "no hash": _file(sha256="x"),
    "a number for a hash": _file(sha256=1),
    "a list for a name": _file(name=[]),
    "a name that leads elsewhere": _file(name="../x"),
    "no JSON in a dossier": _in(DOSSIER, lambda path: path.write_text("")),
    "an unknown decision": _content(DOSSIER, decision="Approved"),
    "no decision": _in(DOSSIER, lambda path: gates.edit_json(path, lambda content: content.pop("decision"))),
    "another's dossier": _content(DOSSIER, candidate="approved"),
    "a file among the candidates": lambda home: (home.store.root / "candidates" / "x").touch(),
    "an unsafe name": _in("", lambda folder: folder.rename(folder.with_name("a..b"))),
    "a candidate that is a link": _in("", _link),
    "a snapshot that is a link": _in(SNAPSHOT, _link),
    "a release without a statement": lambda home: (home.releases / "published" / STATEMENT).unlink(),
    "a broken statement": lambda home: (home.releases / "published" / STATEMENT).write_text("{}"),
    "a release that is a link": lambda home: _link(home.releases / "published"),
    "a file among the releases": lambda home: (home.releases / "x").touch(),
}


@pytest.mark.parametrize("damage", UNCLEAR)
def test_where_a_record_is_not_understood_every_table_is_kept(home: Home, damage: str) -> None:
    """It may need any of them. And it is told."""
    UNCLEAR[damage](home)
    for path in (home.store.root / "candidates").iterdir():
        date(path, 100 * DAY)
    before = gates.contents(home.path)
    pruned = home.prune()
    assert gates.contents(home.path) == before
    assert pruned.removed == ()
    assert len(pruned.unclear) == 1
    assert pruned.unclear[0].startswith(("candidate '", "release '"))


def test_an_arrival_without_its_record_and_a_release_that_is_being_made_block_nothing(home: Home) -> None:
    folder = home.store.candidate_folder("interrupted")
    folder.mkdir()
    (folder / ".partial-x").touch()
    (folder / "release.lock").touch()
    (home.releases / ".partial-refused~x").mkdir()
    pruned = home.prune()
    assert pruned.unclear == () and len(pruned.removed) == 4


def test_what_is_no_stored_table_is_not_touched(home: Home) -> None:
    objects = home.store.root / "objects"
    others = [objects / name for name in ("README", "0" * 63, f"{'A' * 64}.csv", f"{'0' * 64}.csv~")]
    for path in others:
        path.touch()
    others.append(objects / ("0" * 64))
    others[-1].mkdir()
    for path in objects.iterdir():
        date(path, 100 * DAY)
    assert len(home.prune().removed) == 4
    assert all(path.exists() for path in others)


STORED = f"{'0' * 64}.csv"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in (STORED, ".partial-1", "synthesis_0001.parquet"):
        (folder / name).write_bytes(b"not ours")
    date(folder, 1000 * DAY)
    return folder


@pytest.mark.parametrize(
    ("place", "to"),
    [
        *(
            (place, "")
            for place in ("objects", "delivered", "delivered/x", "candidates/x", f"objects/{STORED}")
        ),
        *((f"objects/{name}", name) for name in (STORED, ".partial-1")),
    ],
)
def test_links_are_not_followed(home: Home, outside: Path, place: str, to: str) -> None:
    path = home.store.root / place
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.symlink_to(outside / to)
    date(path, 1000 * DAY)
    home.prune()
    assert len(list(outside.iterdir())) == 3
    assert path.is_symlink()


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    home: Home, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking and removing."""
    for path in (home.store.root / "objects").iterdir():
        shutil.copy2(path, outside)
    swapped: list[str] = []
    unlink = os.unlink

    def swap(name: str, *, dir_fd: int) -> None:
        if not swapped:
            swapped.append(name)
            (home.store.root / "objects").rename(home.store.root / "objects-2")
            (home.store.root / "objects").symlink_to(outside)
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", swap)
    before = {path.name for path in outside.iterdir()}
    with pytest.raises(StoreError, match="cannot be removed"):
        home.prune()
    assert {path.name for path in outside.iterdir()} == before
    assert swapped


@pytest.mark.parametrize("store", ["none", "releases/small", "link"])
def test_only_a_store_is_pruned(home: Home, store: str) -> None:
    (home.path / "link").symlink_to(home.store.root)
    with pytest.raises(StoreError, match="not the store of a gate"):
        prune(Store(home.path / store), home.releases, 30 * DAY, NOW)


@pytest.mark.parametrize("folder", ["none", "releases", "releases/other", "releases/small/published"])
def test_the_releases_are_those_of_the_gate(home: Home, folder: str) -> None:
    """Otherwise nothing would look published."""
    (home.path / "releases" / "other").mkdir()
    before = gates.contents(home.path)
    with pytest.raises(StoreError, match="is not where the candidates"):
        prune(home.store, home.path / folder, 30 * DAY, NOW)
    assert gates.contents(home.path) == before


@pytest.mark.parametrize(("age", "now"), [(timedelta(0), NOW), (-DAY, NOW), (DAY, NOW.replace(tzinfo=None))])
def test_an_age_is_positive_and_a_time_has_a_zone(home: Home, age: timedelta, now: datetime) -> None:
    with pytest.raises(ValueError, match="time zone"):
        prune(home.store, home.releases, age, now)


def run(home: Home, *options: str) -> Any:
    return gates.run_command("prune", home.store.root, "--releases", home.releases, *options)


def test_the_command_says_what_it_removes(home: Home) -> None:
    """The files of these tests are older than 30 days by the clock of the machine, too."""
    trial = run(home, "--older-than", "30", "--dry-run")
    assert trial.exit_code == 0, trial.output
    assert trial.output.count("would remove objects/") == 4
    pruned = run(home, "--older-than", "30").output
    assert pruned == trial.output.replace("would remove", "removed") and pruned.endswith(
        "4 files, 39 bytes\n"
    )
    assert run(home, "--older-than", "30").output == "0 files, 0 bytes\n"


def test_the_command_fails_where_it_does_not_understand_or_is_given_no_store(home: Home) -> None:
    (home.store.candidate_folder("refused") / "dossier.json").write_text("{}")
    before = gates.contents(home.path)
    shown = run(home, "--older-than", "30")
    assert shown.exit_code == 1
    assert "No stored table was removed" in shown.output and "candidate 'refused'" in shown.output
    assert gates.contents(home.path) == before
    shown = gates.run_command("prune", home.path, "--releases", home.releases, "--older-than", "30")
    assert shown.exit_code == 1 and "not the store of a gate" in shown.output
    for days in ("0", "-1", "x", "99999999"):
        assert run(home, "--older-than", days).exit_code == 2
