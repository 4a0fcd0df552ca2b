"""A run that is killed at any moment, and run again, ends where an undisturbed one does.

"Where an undisturbed one does" is: every file of the store and of the releases is there and no other is,
with the same bytes; where a file tells of its run (ids, times, signatures), with the same content beside
those. What was published before the kill is not touched again, and nothing is ever half published. A file
that was half written stays behind in the store, under a name that nothing reads, until it is pruned.
"""

import hashlib
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support import gates, homes, processes
from support.gates import COPY, GATE, HONEST
from support.homes import (
    Moment,
    Ran,
    copied,
    opened,
    release_alone,
    remember_results,
    run_gate,
    run_gate_undisturbed,
    state,
    watch,
)
from support.processes import fork
from support.sampling import CI, SEED, on_some_days, only_in_ci

from disclosure_pipeline.candidates.store import Store
from disclosure_pipeline.release.pruning import prune

pytestmark = pytest.mark.usefixtures("remembered_results")

# The work is cut into so many tests, so that processors share it.
PARTS = 2 if CI else 1
RANDOM_MOMENTS = 20


Run = Callable[[Path, dg.Definitions, str], Ran]


def watched(
    run: Run, path: Path, defs: dg.Definitions, candidate: str
) -> tuple[Ran, list[Moment], list[str]]:
    """A run, all its moments, and a digest at each of them of what a kill there would leave to the next."""
    moments: list[Moment] = []
    digests: list[str] = []

    def note(moment: Moment) -> None:
        moments.append(moment)
        digests.append(digest(path, with_logs_of_runs=False))

    watch(path, note)
    return run(path, defs, candidate), moments, digests


def until(number: int, run: Run, path: Path, defs: dg.Definitions, candidate: str) -> Ran:
    passed = count()

    def kill(_: Moment) -> None:
        if next(passed) == number:
            processes.kill_myself()

    watch(path, kill)
    return run(path, defs, candidate)


def kept_at(
    numbers: Iterable[int], folder: Path, run: Run, path: Path, defs: dg.Definitions, candidate: str
) -> Ran:
    """A run; its home at each of the moments, as a kill there leaves it, is kept in a folder."""
    wanted, passed = set(numbers), count()

    def keep(_: Moment) -> None:
        if (number := next(passed)) in wanted:
            shutil.copytree(path, folder / str(number))

    watch(path, keep)
    return run(path, defs, candidate)


@dataclass(frozen=True)
class Undisturbed:
    """A home in which nothing ran but the ground truth, and what a run of it ends in.

    `worked_out_anew`: what it ends in where every figure and page is worked out anew, as no run that follows
    does.
    """

    template: Path
    defs: dg.Definitions
    ran: dict[str, Ran]
    moments: dict[str, list[Moment]]
    digests: dict[str, list[str]]
    state: dict[str, dict[str, Any]]
    worked_out_anew: dict[str, dict[str, Any]]

    @property
    def published(self) -> set[str]:
        return {Path(name).name for name in self.state[HONEST] if name.startswith("releases/")}

    def that_differ(self, candidate: str, numbers: Iterable[int]) -> list[int]:
        """Return the first of the moments at which a later run opens the same files.

        Kills at the other moments leave the same to it. A later run: `run_again`.
        """
        digests = self.digests[candidate]
        return sorted({digests.index(digests[number]) for number in numbers})


@pytest.fixture(scope="module")
def undisturbed(small_gate: dg.Definitions, results_folder: Path) -> Iterator[Undisturbed]:
    with homes.new_home() as template:
        with opened(template, small_gate) as home:
            home.deliver(HONEST, {"1.csv": gates.honest(1), "2.csv": gates.honest(2)})
            home.deliver(COPY, {"synthetic.csv": gates.ground_truth()})
            gates.share_key(home.store)
            home.prepare()
            home.instance.add_dynamic_partitions(f"{GATE}_candidates", [HONEST, COPY])
        ran, moments, digests, states, worked_out_anew = {}, {}, {}, {}, {}
        for candidate in (HONEST, COPY):
            with copied(template) as path:  # here, so that children have what a first run loads
                run_gate(path, small_gate, candidate)
                worked_out_anew[candidate] = state(path)
        with remember_results(results_folder):
            for candidate in (HONEST, COPY):
                with copied(template) as path:
                    child = fork(watched, run_gate, path, small_gate, candidate)
                    ran[candidate], moments[candidate], digests[candidate] = child.result()
                    states[candidate] = state(path)
        yield Undisturbed(template, small_gate, ran, moments, digests, states, worked_out_anew)


def test_an_undisturbed_run_has_moments_of_every_kind(undisturbed: Undisturbed) -> None:
    """Others end in the same state, also those that work everything out anew: so there is what to compare."""
    assert undisturbed.ran[HONEST].success and not undisturbed.ran[COPY].success
    moments = undisturbed.moments[HONEST]
    steps = {moment.step for moment in moments if moment.kind == "STEP_SUCCESS"}
    assert steps == {f"{GATE}__{name}" for name in ("synthetic", "bins", "disclosure", "dossier", "release")}
    at_release = {moment.kind for moment in moments if moment.step == f"{GATE}__release"}
    assert at_release >= {"open", "os.rename", "os.mkdir", "ASSET_MATERIALIZATION", "STEP_OUTPUT"}
    published = [name for name in undisturbed.state[HONEST] if name.startswith("releases")]
    assert {Path(name).parent for name in published} == {Path("releases", GATE, HONEST)}
    assert {Path(name).name for name in published} >= {"synthetic_1.parquet", "synthetic_2.parquet"}
    assert not [name for name in undisturbed.state[COPY] if name.startswith("releases")]
    assert not [name for name in undisturbed.state[HONEST] if ".partial-" in name]
    assert undisturbed.worked_out_anew == undisturbed.state


def boundaries(moments: Sequence[Moment]) -> list[int]:
    return [number for number, moment in enumerate(moments) if moment.is_boundary]


def publishing(moments: Sequence[Moment]) -> range:
    return range(moments.index(Moment("STEP_START", f"{GATE}__release")), len(moments))


def the_publication(moments: Sequence[Moment]) -> int:
    return max(number for number, moment in enumerate(moments) if moment.kind == "os.rename")


@on_some_days
def test_killed_again_and_again(undisturbed: Undisturbed) -> None:
    """At one boundary of its steps after the other: what each kill leaves is no trap for the next run."""
    moments = undisturbed.moments[HONEST]
    numbers = [number for number in boundaries(moments) if number < the_publication(moments)]
    with copied(undisturbed.template) as path:
        for number in numbers[:: 1 if CI else 4]:
            assert fork(until, number, run_gate, path, undisturbed.defs, HONEST).was_killed()
        run_again(undisturbed, HONEST, path, "at every boundary")


@only_in_ci("a run after each kill")
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_a_boundary_of_its_steps(undisturbed: Undisturbed, part: int) -> None:
    """Before it publishes: all moments that follow are another test's."""
    moments = undisturbed.moments[HONEST]
    before = [number for number in boundaries(moments) if number not in publishing(moments)]
    chosen = undisturbed.that_differ(HONEST, before)
    kill_and_run_again(undisturbed, HONEST, chosen[part::PARTS])


@on_some_days
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_while_it_publishes(undisturbed: Undisturbed, part: int) -> None:
    """Around the moment that counts; in CI, also before half the changes of files and half the events."""
    moments = undisturbed.moments[HONEST]
    last = the_publication(moments)
    half = publishing(moments)[SEED % 2 :: 2] if CI else ()
    chosen = undisturbed.that_differ(HONEST, sorted({last, last + 1, *half}))
    kill_and_run_again(undisturbed, HONEST, chosen[part::PARTS])


@on_some_days
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_before_it_publishes(undisturbed: Undisturbed, part: int) -> None:
    """Before a file is given its name; in CI, before half of all files and in between."""
    moments = undisturbed.moments[HONEST]
    first = publishing(moments)[0]
    named = [number for number in range(first) if moments[number].kind == "os.rename"]
    numbers = [*named[SEED % 2 :: 2], *range(SEED % 16, first, 16)] if CI else [named[-4]]
    chosen = undisturbed.that_differ(HONEST, numbers)
    if CI:  # these are another test's
        at_boundaries = undisturbed.that_differ(HONEST, boundaries(moments))
        chosen = [number for number in chosen if number not in at_boundaries]
    kill_and_run_again(undisturbed, HONEST, chosen[part::PARTS])


@on_some_days
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_while_it_refuses(undisturbed: Undisturbed, part: int) -> None:
    last = len(undisturbed.moments[COPY])
    chosen = undisturbed.that_differ(COPY, range(1 + SEED % 12, last, 12) if CI else [last - 5])
    kill_and_run_again(undisturbed, COPY, chosen[part::PARTS])


@only_in_ci("a run after each of many kills")
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_moments_drawn_at_random(undisturbed: Undisturbed, part: int) -> None:
    """From outside, at times and not at events: in the middle of whatever it does."""
    drawn = random.Random(SEED)
    shares = sorted([drawn.random() for _ in range(RANDOM_MOMENTS)][part::PARTS])
    with copied(undisturbed.template) as path:
        began = time.monotonic()
        fork(run_gate, path, undisturbed.defs, HONEST).result()
        lasts = time.monotonic() - began
        assert state(path) == undisturbed.state[HONEST]
    while shares:
        with gates.quick_folder() as folder:
            kept = kept_while_it_runs([share * lasts for share in shares], folder, undisturbed)
            digests = [digest(home, with_logs_of_runs=False) for home in kept]
            for number in sorted(set(map(digests.index, digests))):  # a later run opens other files in each
                when = f"at {shares[number]:.3f} of {lasts:.3f} seconds"
                run_again(undisturbed, HONEST, kept[number], when)
            shares = shares[len(kept) :]
            lasts *= 0.9  # what is left was too late: the run was faster than the undisturbed one


def kept_while_it_runs(seconds: Sequence[float], folder: Path, undisturbed: Undisturbed) -> list[Path]:
    """A run that is held at each of these times, until its end; its home at each, as a kill there leaves it.

    At the last one it is killed, and what that leaves is what was kept.
    """
    kept: list[Path] = []
    with copied(undisturbed.template) as path:
        child = fork(run_gate, path, undisturbed.defs, HONEST)
        try:
            for before, second in pairwise((0.0, *seconds)):
                child.process.join(second - before)
                if not child.hold():
                    return kept
                kept.append(shutil.copytree(path, folder / str(len(kept))))
                if second != seconds[-1]:
                    child.go_on()
        finally:
            child.kill()
        assert child.was_killed()
        assert digest(path) == digest(kept[-1])
    return kept


@on_some_days
def test_killed_while_it_looks_at_what_was_refused(undisturbed: Undisturbed) -> None:
    """No part of a refused table is ever where releases are taken from, not even for a moment."""
    defs = undisturbed.defs
    with copied(undisturbed.template) as refused:
        assert not fork(run_gate, refused, defs, COPY).result().success
        with copied(refused) as path:
            actual, moments, _ = fork(watched, release_alone, path, defs, COPY).result()
        assert "is refused" in actual.failure_text
        assert {moment.step for moment in moments} == {None, f"{GATE}__release"}
        with gates.quick_folder() as folder, copied(refused) as path:
            fork(kept_at, range(len(moments)), folder, release_alone, path, defs, COPY).result()
            for number, moment in enumerate(moments):
                assert (folder / str(number) / "store").is_dir()
                assert not bytes_of(folder / str(number) / "releases"), f"killed at {moment}"
        with copied(refused) as path:
            actual, released = fork(looking_at_releases, path, defs, COPY).result()
        assert "is refused" in actual.failure_text and len(released) >= 100
        assert not any(released)


def looking_at_releases(path: Path, defs: dg.Definitions, candidate: str) -> tuple[Ran, list[set[str]]]:
    released: list[set[str]] = []
    watch(path, lambda _: released.append(set(bytes_of(path / "releases"))))
    return run_gate(path, defs, candidate), released


def kill_and_run_again(undisturbed: Undisturbed, candidate: str, numbers: Sequence[int]) -> None:
    with gates.quick_folder() as folder, copied(undisturbed.template) as path:
        ran: Ran = fork(kept_at, numbers, folder, run_gate, path, undisturbed.defs, candidate).result()
        assert ran.success == undisturbed.ran[candidate].success
        for number in numbers:
            shutil.rmtree(path)
            (folder / str(number)).rename(path)
            run_again(undisturbed, candidate, path, f"{number}: {undisturbed.moments[candidate][number]}")


def run_again(undisturbed: Undisturbed, candidate: str, path: Path, when: str) -> None:
    """After a kill: nothing is half published, and a rerun ends where an undisturbed run does."""
    expected = undisturbed.state[candidate]
    target = path / "releases" / GATE / candidate
    before = bytes_of(target)
    assert set(before) in (set(), undisturbed.published), f"half published, killed {when}"
    assert not before or gates.stated(target).candidate == candidate

    again, opened_logs = fork(run_and_note_logs, path, undisturbed.defs, candidate).result()
    assert opened_logs == {again.run_id}, f"it opened what another run logged, killed {when}"
    assert again.success == undisturbed.ran[candidate].success, f"{again.failure_text}, killed {when}"
    assert "Unexpected" not in again.failure_text, f"killed {when}"
    actual = state(path)
    half_written = {name for name in actual if ".partial-" in name}
    assert not [name for name in half_written if not name.startswith("store/")], f"killed {when}"
    assert {name: actual[name] for name in actual.keys() - half_written} == expected, f"killed {when}"
    if candidate == HONEST:
        assert again.published == ("before, with the same content" if before else "now"), f"killed {when}"
        assert not before or bytes_of(target) == before, f"published twice, killed {when}"
        later = datetime.now(timezone.utc) + timedelta(days=2)
        prune(Store(path / "store" / GATE), path / "releases" / GATE, timedelta(days=1), later)
        assert state(path) == expected, f"not clean, killed {when}"


def run_and_note_logs(path: Path, defs: dg.Definitions, candidate: str) -> tuple[Ran, set[str]]:
    """A run, and the runs of which it opened what they logged for themselves alone."""
    databases: set[Path] = set()

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event in {"open", "sqlite3.connect"} and isinstance(arguments[0], str | Path):
            databases.add(Path(arguments[0]))

    sys.addaudithook(audit)
    actual = run_gate_undisturbed(path, defs, candidate)
    return actual, {database.stem for database in databases if is_log_of_a_run(database)}


def is_log_of_a_run(path: Path) -> bool:
    """The database of one run's events; what later runs ask for is in the index beside it."""
    return path.match("history/runs/*.db*") and path.stem != "index"


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def digest(home: Path, *, with_logs_of_runs: bool = True) -> str:
    hashed = hashlib.sha256()
    for path in sorted(home.rglob("*")):
        if not with_logs_of_runs and is_log_of_a_run(path):
            continue
        content = path.read_bytes() if path.is_file() else b""
        described = (str(path.relative_to(home)), path.stat().st_mode, hashlib.sha256(content).hexdigest())
        hashed.update(repr(described).encode())
    return hashed.hexdigest()
