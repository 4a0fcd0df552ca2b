"""Ground truth in disguise is never published, honest tables are; the policy itself bounds nothing here.

What decides are the guards: over all columns, whatever the keys, for each file and for all together.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import gates
from support.sampling import some_of

from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.guards import DEFAULTS
from disclosure_pipeline.policy.verdict import Judgement, decide, judge
from disguises.cases import DISGUISES, HONEST
from disguises.tables import Case, definition, ground_truth


def judged(case: Case) -> tuple[Judgement, ...]:
    """The verdict of each clause on a case, without a run."""
    gate = Gate.model_validate(definition(case.gate) | dict(case.changes))
    tables = [table.reset_index(drop=True) for table in case.make()]
    return judge(gate.clauses(), gates.measured(gate, ground_truth(case.gate), tables))


@pytest.mark.parametrize("case", DISGUISES, ids=str)
def test_no_disguise_passes(case: Case) -> None:
    judgements = judged(case)
    assert decide(judgements) in {"refused", "undetermined"}
    assert {judgement.clause.measure for judgement in judgements if judgement.outcome != "kept"} & set(
        DEFAULTS
    )


@pytest.mark.parametrize("case", HONEST, ids=str)
def test_no_honest_table_is_refused(case: Case) -> None:
    judgements = judged(case)
    broken = [
        str(judgement)
        for judgement in judgements
        if judgement.outcome != "kept" and not judgement.clause.warns
    ]
    assert decide(judgements) == "approved", broken


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a key that signs releases."""
    gates.with_keys(tmp_path, monkeypatch)
    yield tmp_path


def run(case: Case, path: Path) -> gates.Home:
    """A case delivered to a gate and judged by a real run."""
    import dagster as dg

    places = gates.definition()
    kept = ("ground_truth", "incoming", "store", "releases", "trusted_keys")
    own = definition(case.gate) | {name: places[name] for name in kept} | {"name": gates.GATE}
    defs = gates.load(own | dict(case.changes))
    with dg.DagsterInstance.ephemeral() as instance:
        home = gates.Home(path, defs, instance)
        home.write_ground_truth(ground_truth(case.gate))
        home.deliver("candidate", {f"synthetic_{i}.csv": table for i, table in enumerate(case.make())})
        assert home.run_ground_truth().success
        home.run_gate("candidate")
    return home


@pytest.mark.parametrize("case", some_of(DISGUISES), ids=str)
def test_a_run_publishes_no_disguise(case: Case, home: Path) -> None:
    assert run(case, home).nothing_published()


@pytest.mark.parametrize("case", some_of(HONEST), ids=str)
def test_a_run_publishes_what_is_honest(case: Case, home: Path) -> None:
    assert run(case, home).published("candidate").is_dir()
