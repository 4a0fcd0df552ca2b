"""Further confidential tables of a gate: copies of their records are refused, through real runs."""

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from support import gates
from support.gates import COPY, GATE, HONEST, Home
from support.sampling import on_some_days, some_of

from disclosure_pipeline.measures.catalogue import FIGURES
from disclosure_pipeline.measures.found import WAYS
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.policy.clauses import list_effective_clauses
from disclosure_pipeline.release.readiness import find_missing
from disclosure_pipeline.release.standing import list_standings

pytestmark = [pytest.mark.usefixtures("remembered_results"), on_some_days]

NAME = "last_year"
CLAUSES = {
    f"{name}[{about}]{' beyond' if 'beyond' in figure.statistics else ''}"
    for name, figure in FIGURES.items()
    if figure.is_per_confidential_table
    for about in (f"{way} of {NAME}" for way in WAYS)
}
LOOSE = {"repU": 100, "DiSCO": 100, "whole_key_overlap": 0, "key_overlap": 1}


def last_year() -> pd.DataFrame:
    """Other people, and a fifth who are in the ground truth too."""
    return pd.concat([gates.last_year(240), gates.ground_truth().head(60)], ignore_index=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    defs = gates.load(gates.definition(policy=LOOSE, confidential={NAME: "last_year.csv"}))
    last_year().to_csv(tmp_path / "last_year.csv", index=False)
    with gates.home_in_memory(tmp_path, defs, monkeypatch) as home:
        home.prepare()
        yield home


def test_an_honest_candidate_is_released_and_names_the_table(home: Home) -> None:
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    ran = home.run_gate(HONEST)
    assert ran.success, gates.failures(ran)
    outcomes = home.outcomes(HONEST)
    assert {name: outcomes[name] for name in CLAUSES} == dict.fromkeys(CLAUSES, "kept")
    dossier = home.dossier(HONEST)
    stated = gates.stated(home.published(HONEST))
    assert [table.name for table in stated.confidential] == [NAME]
    digest = dossier["measured"][f"confidential[{NAME}]"]
    assert stated.confidential[0].salted_hash not in {digest, stated.ground_truth.salted_hash}
    assert {clause.name for clause in stated.clauses} >= CLAUSES
    assert digest in home.record(HONEST, "dossier.md").read_text(encoding="utf-8")
    assert digest not in stated.model_dump_json()
    # What no record tells is not current.
    for record in ("{}", '{"sha256": "a", "confidential": []}', "["):
        (home.store / "ground_truth.json").write_text(record, encoding="utf-8")
        assert "not judged today" in standing()


@pytest.mark.parametrize("files", some_of([1, 3]))
def test_copies_of_the_table_are_refused(home: Home, files: int) -> None:
    """In one file or in several; nothing tells a value of the table."""
    copy = last_year().drop(index=0).head(239).reset_index(drop=True)
    parts = {f"synthetic_{i}.csv": copy[i::files] for i in range(files)}
    home.deliver(COPY, parts)
    ran = home.run_gate(COPY)
    assert not ran.success and home.nothing_published()
    checks = gates.checks(ran)
    failed = {name for name, check in checks.items() if not check.passed}
    assert "identity_risk:copied_found" in failed
    assert f"Of the confidential table {NAME}: " in str(checks["identity_risk:copied_found"].description)
    assert home.outcomes(COPY)[f"found[whole of {NAME}] beyond"] == "exceeded"
    assert "guessed" not in " ".join(failed)
    assert gates.CANARY_AMOUNT not in gates.everything_logged(home.instance)
    assert not gates.files_with(home.path, [gates.CANARY_AMOUNT], ["last_year.csv"])


@pytest.mark.parametrize("damage", some_of(["missing", "contract", "empty"]))
def test_without_the_table_nothing_is_released(home: Home, damage: str) -> None:
    path = home.path / "last_year.csv"
    if damage == "missing":
        path.unlink()
    else:
        broken = {"contract": last_year().assign(age=str(gates.AMOUNT)), "empty": last_year().head(0)}[damage]
        broken.to_csv(path, index=False)
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    ran = home.run_gate(HONEST)
    assert not ran.success and home.nothing_published()
    assert gates.CANARY_AMOUNT not in gates.everything_logged(home.instance)


def standing() -> str:
    """Return the standing of the one candidate that is published."""
    gate = gates.gate(policy=LOOSE, confidential={NAME: "last_year.csv"})
    [known] = list_standings(folders_of(gate))
    assert known.candidate == HONEST
    return str(known)


def test_a_changed_table_is_noticed(home: Home) -> None:
    """By the release, the sensor, `status` and the schedule; what is published would be refused today."""

    def jobs() -> list[str | None]:
        return [request.job_name for request in home.tick().run_requests or []]

    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    assert home.run_gate(HONEST).success
    assert standing() == "published"
    assert jobs() == []  # it was judged as it lies there

    gates.honest().to_csv(home.path / "last_year.csv", index=False)
    assert not home.materialize("release", HONEST).success
    assert jobs() == [f"{GATE}_ground_truth"]
    assert home.run_ground_truth().success
    assert standing() == "published, approved under another ground truth or policy, not judged today"
    assert jobs() == [f"{GATE}_gate"]
    with gates.quick_folder() as folder, gates.instance_on_disk(folder) as instance:
        instance.add_dynamic_partitions(f"{GATE}_candidates", [HONEST])
        schedule: Any = home.defs.resolve_schedule_def(f"{GATE}_ground_truth_changed")
        requests = schedule(dg.build_schedule_context(instance=instance))
        assert [request.partition_key for request in requests] == [HONEST]
    home.materialize("identity_risk", HONEST)  # records about another table are not believed
    assert gates.read_json(home.record(HONEST, "figures.json"))["decision"] == "refused"
    assert not home.run_gate(HONEST).success
    assert standing() == "published, refused today"


def test_clauses_are_listed_and_loosened_ones_told() -> None:
    of = gates.gate(policy=LOOSE | {"found": {"nearly": 20}}, confidential={NAME: "a.csv"})
    words = "\n".join(list_effective_clauses(of.clauses()))
    assert f"found (whole of {NAME}) is at most 2.5 beyond (worst synthesis): refuses" in words
    assert "found (nearly) is at most 20 beyond, loosened from 10" in words
    assert {clause.name for clause in of.clauses()} >= CLAUSES


def test_the_digest_tells_which_tables_there_are_and_not_where() -> None:
    tables = ({NAME: "a.csv"}, {NAME: "b.csv"}, {"holdout": "a.csv"})
    one, same, other = (gates.gate(confidential=named).policy_digest() for named in tables)
    assert one == same != other


def test_a_missing_table_is_told_with_its_place(home: Home) -> None:
    """As `disclosure-pipeline check` and `dg check defs` tell it."""
    gate = gates.gate(confidential={NAME: "elsewhere.csv"})
    [(attribute, problem)] = find_missing(folders_of(gate), datetime.now(timezone.utc))
    assert attribute == "confidential" and NAME in problem and "elsewhere.csv" in problem
