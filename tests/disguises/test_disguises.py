"""Ground truth in disguise is never published, honest tables are; the policy itself bounds nothing here.

What decides are the guards: over all columns, whatever the keys, for each file and for all together.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import dagster as dg
import pytest
from support import gates
from support.gates import Home
from support.sampling import some_of

from disclosure_pipeline.evidence.page import charts
from disclosure_pipeline.policy.bounds import DEFAULTS
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, decide, judge
from disguises.cases import DISGUISES, HONEST
from disguises.tables import Case, definition, ground_truth

# In CI a gate runs over every case. Every day it runs over few; others are judged without a run.
DISGUISES_JUDGED, HONEST_JUDGED = some_of(DISGUISES, 5), some_of(HONEST, 5)
RUN = [*some_of(DISGUISES_JUDGED, 5), *some_of(HONEST_JUDGED, 5)]


def judged(case: Case) -> tuple[Judgement, ...]:
    """The verdict of each clause on a case, without a run."""
    gate = Gate.model_validate(definition(case.gate) | dict(case.changes))
    tables = [table.reset_index(drop=True) for table in case.make()]
    return judge(gate.clauses(), gates.measured(gate, ground_truth(case.gate), tables))


@dataclass(frozen=True)
class Ran:
    """A case that a gate ran over, in a home of its own."""

    home: Home
    candidate: str

    def is_published(self) -> bool:
        return self.home.published(self.candidate).is_dir()

    def judgements(self) -> tuple[Judgement, ...]:
        """The verdict of each clause in the dossier; empty where the run ended before."""
        dossier = self.home.record(self.candidate, "dossier.json")
        rows = gates.read_json(dossier)["clauses"] if dossier.exists() else []
        return tuple(map(Judgement.from_row, rows))


@pytest.fixture(scope="module")
def recorded() -> Iterator[Callable[[Case], Home]]:
    """The gate of a case where its ground truth is recorded: the same one for all that define it alike."""
    places = gates.definition()
    kept = ("ground_truth", "incoming", "store", "releases", "trusted_keys")
    homes: dict[str, Home] = {}

    def record(case: Case) -> Home:
        own = definition(case.gate) | {name: places[name] for name in kept} | {"name": gates.GATE}
        attributes = own | dict(case.changes)
        key = json.dumps([case.gate, attributes])
        if key in homes:
            return homes[key]
        path = stack.enter_context(gates.quick_folder())
        instance = stack.enter_context(dg.DagsterInstance.ephemeral())
        home = homes[key] = Home(path, gates.load(attributes), instance)
        with pytest.MonkeyPatch.context() as patch:
            gates.with_keys(path, patch)
            home.write_ground_truth(ground_truth(case.gate))
            assert home.run_ground_truth().success
        return home

    with ExitStack() as stack:
        yield record


# A candidate of each case: its instance may know others.
NUMBERS = count()


# Charts decide nothing, and to draw them takes a third of a run: each page has all of its own, empty.
NOT_DRAWN = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


@pytest.fixture
def run(
    recorded: Callable[[Case], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Case], Ran]:
    """A case delivered to a gate and judged by a real run."""
    monkeypatch.setattr(charts, "convert", lambda _: NOT_DRAWN)

    def run_gate(case: Case) -> Ran:
        template, candidate = recorded(case), f"candidate-{next(NUMBERS)}"
        home = replace(template, path=shutil.copytree(template.path, tmp_path / "home"))
        gates.with_keys(home.path, monkeypatch)
        home.deliver(candidate, {f"synthetic_{i}.csv": table for i, table in enumerate(case.make())})
        home.run_gate(candidate)
        return Ran(home, candidate)

    return run_gate


@pytest.mark.parametrize("case", DISGUISES_JUDGED, ids=str)
def test_no_disguise_passes(case: Case, run: Callable[[Case], Ran]) -> None:
    """Nor is it published by a run; one that does not get as far as the clauses is judged without it."""
    judgements: tuple[Judgement, ...] = ()
    if case in RUN:
        ran = run(case)
        assert ran.home.nothing_published()
        judgements = ran.judgements()
    judgements = judgements or judged(case)
    assert decide(judgements) in {"refused", "undetermined"}
    assert {judgement.clause.measure for judgement in judgements if judgement.outcome != "kept"} & set(
        DEFAULTS
    )


@pytest.mark.parametrize("case", HONEST_JUDGED, ids=str)
def test_no_honest_table_is_refused(case: Case, run: Callable[[Case], Ran]) -> None:
    """And a run publishes it."""
    if case in RUN:
        ran = run(case)
        assert ran.is_published()
        judgements = ran.judgements()
    else:
        judgements = judged(case)
    broken = [
        str(judgement)
        for judgement in judgements
        if judgement.outcome != "kept" and not judgement.clause.warns
    ]
    assert decide(judgements) == "approved", broken


@pytest.mark.parametrize("case", RUN[:1], ids=str)
def test_a_run_files_what_is_judged_without_one(case: Case, run: Callable[[Case], Ran]) -> None:
    def outcomes(judgements: tuple[Judgement, ...]) -> set[tuple[str, str]]:
        return {(judgement.clause.name, judgement.outcome) for judgement in judgements}

    assert outcomes(run(case).judgements()) == outcomes(judged(case))
