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
from support.gates import COPY, HONEST, Home, failures
from support.sampling import on_some_days, some_of

from disclosure_pipeline.candidates import evaluation
from disclosure_pipeline.release import releasing
from disclosure_pipeline.release.keys import SIGNING_KEY, KeyFiles, keygen
from disclosure_pipeline.release.releasing import stage_snapshot

pytestmark = pytest.mark.usefixtures("remembered_results")

STEPS = ("synthetic", "bins", "identity_risk", "dossier", "release")


@pytest.fixture(scope="module")
def lax_and_strict() -> list[dg.Definitions]:
    return [gates.load(gates.definition(policy={"repU": bound, "DiSCO": bound})) for bound in (100, 0.01)]


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


def in_steps(home: Home, candidate: str, swap: Callable[[Home], object] = id, after: str = "") -> Any:
    """Run every step by itself, whatever becomes of those before; the run of `release` is returned.

    The home goes on as the one that `swap` returns, if it does.
    """
    for step in STEPS:
        ran = home.materialize(step, candidate)
        if step == after and isinstance(other := swap(home), Home):
            home = other
    return ran


def another_key(home: Home) -> KeyFiles:
    return keygen(home.path / "another")


SWAPS: dict[str, Callable[[Home, pytest.MonkeyPatch], object]] = {
    "bytes of the snapshot": lambda home, _: home.stored(HONEST).write_bytes(home.stored(COPY).read_bytes()),
    "record of the snapshot": lambda home, _: home.record(HONEST, "snapshot.json").write_text(
        home.record(COPY, "snapshot.json").read_text().replace(f'"{COPY}"', f'"{HONEST}"')
    ),
    "ground truth": lambda home, _: home.write_ground_truth(gates.ground_truth().iloc[1:]),
    "signing key": lambda home, patch: patch.setenv(SIGNING_KEY, str(another_key(home).signing_key)),
    "trusted key": lambda home, _: shutil.copy(
        another_key(home).public_key, home.path / "keys" / "public-key.pem"
    ),
}


def test_nothing_swapped_is_published(ready: Home) -> None:
    """The base of all that follows."""
    assert in_steps(ready, HONEST).success
    assert ready.published(HONEST).is_dir()


@pytest.mark.parametrize(("swap", "after"), some_of(product(SWAPS, STEPS[:-1])))
def test_nothing_is_published_after_a_swap(
    ready: Home, monkeypatch: pytest.MonkeyPatch, swap: str, after: str
) -> None:
    ran = in_steps(ready, HONEST, lambda home: SWAPS[swap](home, monkeypatch), after)
    assert not ran.success
    assert "Unexpected" not in "".join(failures(ran).values())
    assert ready.nothing_published()


@on_some_days
@pytest.mark.parametrize(
    ("candidate", "first_lax", "after"), some_of(product([HONEST, COPY], [True, False], STEPS[:-1]))
)
def test_what_a_policy_refuses_is_not_published_where_it_was_swapped(
    ready: Home, lax_and_strict: list[dg.Definitions], candidate: str, first_lax: bool, after: str
) -> None:
    before, then = lax_and_strict if first_lax else reversed(lax_and_strict)
    ran = in_steps(replace(ready, defs=before), candidate, lambda home: replace(home, defs=then), after)
    measured_under_lax = not first_lax and after in {"synthetic", "bins"}
    # Where all that measures ran under the lax policy it is the policy, as whoever changed the code wanted;
    # but a copy of the ground truth is published under none.
    is_published = measured_under_lax and candidate == HONEST
    assert ran.success == is_published
    assert ready.published(candidate).is_dir() == is_published


@on_some_days
def test_what_is_measured_is_what_is_published_whatever_becomes_of_the_store(
    finished_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Swapped within `release`, after the snapshot was checked and before it is measured, and back."""
    judged = finished_home
    shutil.rmtree(judged.path / "releases")
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
