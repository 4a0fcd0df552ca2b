"""The steps of a run one by one, and something swapped between any two of them: nothing is published."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support import gates
from support.gates import COPY, GATE, HONEST, Home, failures
from support.sampling import on_some_days, some_of

from disclosure_pipeline.candidates import evaluation
from disclosure_pipeline.candidates.reading import StagedTables
from disclosure_pipeline.release import releasing
from disclosure_pipeline.release.keys import SIGNING_KEY, keygen
from disclosure_pipeline.release.releasing import stage_snapshot

STEPS = ("synthetic", "bins", "identity_risk", "dossier", "release")
LAX = {"repU": 100, "DiSCO": 100}
STRICT = {"repU": 0.01, "DiSCO": 0.01}

Swap = Callable[[Home, pytest.MonkeyPatch], Home]


@pytest.fixture(scope="module")
def lax() -> dg.Definitions:
    return gates.load(gates.definition(policy=LAX))


@pytest.fixture(scope="module")
def strict() -> dg.Definitions:
    return gates.load(gates.definition(policy=STRICT))


@pytest.fixture(scope="module")
def arrived(small_gate: dg.Definitions) -> Iterator[Path]:
    """A home in which the ground truth is recorded, and one of two candidates has arrived. To be copied."""
    with gates.quick_folder() as path, pytest.MonkeyPatch.context() as patch:
        with gates.home_in_memory(path, small_gate, patch) as home:
            home.prepare({HONEST: gates.honest(), COPY: gates.ground_truth()})
            assert home.materialize("synthetic", COPY).success
        yield path


@pytest.fixture
def ready(
    arrived: Path, small_gate: dg.Definitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Home]:
    path = shutil.copytree(arrived, tmp_path / "home")
    with gates.home_in_memory(path, small_gate, monkeypatch) as home:
        yield home


def in_steps(home: Home, candidate: str, swap: Swap | None, after: str, patch: pytest.MonkeyPatch) -> Any:
    """Run every step by itself, whatever becomes of those before; the run of `release` is returned."""
    ran = None
    for step in STEPS:
        ran = home.materialize(step, candidate)
        if step == after and swap is not None:
            home = swap(home, patch)
    return ran


def bytes_of_the_snapshot(home: Home, _: pytest.MonkeyPatch) -> Home:
    home.stored(HONEST).write_bytes(home.stored(COPY).read_bytes())
    return home


def record_of_the_snapshot(home: Home, _: pytest.MonkeyPatch) -> Home:
    record = home.record(COPY, "snapshot.json").read_text().replace(f'"{COPY}"', f'"{HONEST}"')
    home.record(HONEST, "snapshot.json").write_text(record)
    return home


def ground_truth(home: Home, _: pytest.MonkeyPatch) -> Home:
    home.write_ground_truth(gates.ground_truth().iloc[1:])
    return home


def signing_key(home: Home, patch: pytest.MonkeyPatch) -> Home:
    patch.setenv(SIGNING_KEY, str(keygen(home.path / "another").signing_key))
    return home


def trusted_key(home: Home, _: pytest.MonkeyPatch) -> Home:
    shutil.copy(keygen(home.path / "another").public_key, home.path / "keys" / "public-key.pem")
    return home


SWAPS: dict[str, Swap] = {
    swap.__name__: swap
    for swap in (bytes_of_the_snapshot, record_of_the_snapshot, ground_truth, signing_key, trusted_key)
}


@pytest.mark.usefixtures("remembered_results")
def test_nothing_swapped_is_published(ready: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base of all that follows."""
    assert in_steps(ready, HONEST, None, "", monkeypatch).success
    assert ready.published(HONEST).is_dir()


@pytest.mark.parametrize(("swap", "after"), some_of(product(SWAPS, STEPS[:-1])))
@pytest.mark.usefixtures("remembered_results")
def test_nothing_is_published_after_a_swap(
    ready: Home, monkeypatch: pytest.MonkeyPatch, swap: str, after: str
) -> None:
    ran = in_steps(ready, HONEST, SWAPS[swap], after, monkeypatch)
    assert not ran.success
    assert "Unexpected" not in "".join(failures(ran).values())
    assert ready.nothing_published()


@pytest.mark.parametrize(
    ("candidate", "first_lax", "after"), some_of(product([HONEST, COPY], [True, False], STEPS[:-1]))
)
@pytest.mark.usefixtures("remembered_results")
def test_what_a_policy_refuses_is_not_published_where_it_was_swapped(
    ready: Home,
    lax: dg.Definitions,
    strict: dg.Definitions,
    monkeypatch: pytest.MonkeyPatch,
    candidate: str,
    first_lax: bool,
    after: str,
) -> None:
    before, then = (lax, strict) if first_lax else (strict, lax)
    ran = in_steps(
        replace(ready, defs=before), candidate, lambda home, _: replace(home, defs=then), after, monkeypatch
    )
    measured_under_lax = not first_lax and after in {"synthetic", "bins"}
    # Where all that measures ran under the lax policy it is the policy, as whoever changed the code wanted;
    # but a copy of the ground truth is published under none.
    is_published = measured_under_lax and candidate == HONEST
    assert ran.success == is_published
    assert ready.published(candidate).is_dir() == is_published


@pytest.fixture
def judged(finished_home: Home) -> Home:
    """A home where both candidates were judged, and neither is published."""
    shutil.rmtree(finished_home.path / "releases")
    return finished_home


@on_some_days
@pytest.mark.usefixtures("remembered_results")
def test_what_is_measured_is_what_is_published_whatever_becomes_of_the_store(
    judged: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Swapped within `release`, after the snapshot was checked and before it is measured, and back."""
    genuine = {name: judged.stored(name).read_bytes() for name in (COPY, HONEST)}
    evaluate = evaluation.evaluate

    def evaluate_other_bytes(*arguments: Any) -> Any:
        judged.stored(COPY).write_bytes(genuine[HONEST])
        try:
            return evaluate(*arguments)
        finally:
            judged.stored(COPY).write_bytes(genuine[COPY])

    monkeypatch.setattr(releasing, "evaluate", evaluate_other_bytes)
    assert not judged.materialize("release", COPY).success
    assert judged.nothing_published()
    monkeypatch.setattr(releasing, "evaluate", evaluate)

    def stage_other_bytes(*arguments: Any) -> Any:
        judged.stored(HONEST).write_bytes(genuine[COPY])
        return stage_snapshot(*arguments)

    monkeypatch.setattr(releasing, "stage_snapshot", stage_other_bytes)
    assert not judged.materialize("release", HONEST).success
    assert judged.nothing_published()


@pytest.mark.usefixtures("remembered_results")
def test_a_folder_that_is_staged_cannot_be_changed_unseen(
    judged: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not by somebody who gets at it after it was measured."""
    evaluate = evaluation.evaluate

    def evaluate_and_change(folders: Any, candidate: str, now: Any, staged: StagedTables) -> Any:
        actual = evaluate(folders, candidate, now, staged)
        assert staged.candidate.stage is not None
        (staged.candidate.stage / "synthetic.csv").write_bytes(
            gates.ground_truth().to_csv(index=False).encode()
        )
        return actual

    monkeypatch.setattr(releasing, "evaluate", evaluate_and_change)
    ran = judged.materialize("release", HONEST)
    assert "was changed" in failures(ran)[f"{GATE}__release"]
    assert judged.nothing_published()
