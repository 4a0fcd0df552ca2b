"""The second gate of the demo: weights and a band, from the files that arrive to the release."""

from pathlib import Path

import dagster as dg
import pytest
from support import gates
from support.paths import ROOT

from disclosure_pipeline.candidates.files import read_json
from disclosure_pipeline.demo.run import HONEST, RAISED, SALARIES, make_data, sign_with
from disclosure_pipeline.orchestration.component import build_definitions
from disclosure_pipeline.orchestration.gate_file import load_gate
from disclosure_pipeline.orchestration.running import run_job
from disclosure_pipeline.policy.trust import read_trusted
from disclosure_pipeline.release.verifying import verify

DEFINITION = ROOT / "disclosure_pipeline" / "defs" / SALARIES / "defs.yaml"


def test_copies_with_raised_incomes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    make_data(tmp_path / "demo", records=100, seed=0)
    sign_with(tmp_path / "demo" / "keys")
    gate = build_definitions(load_gate(DEFINITION))
    evidence = tmp_path / "demo" / "store" / SALARIES / "candidates"
    with gates.quiet(), dg.DagsterInstance.ephemeral() as instance:
        assert run_job(gate, f"{SALARIES}_ground_truth", instance).success
        for candidate in (HONEST, RAISED):
            instance.add_dynamic_partitions(f"{SALARIES}_candidates", [candidate])
            run_job(gate, f"{SALARIES}_gate", instance, candidate)
    honest, raised = (read_json(evidence / name / "dossier.json", "the test") for name in (HONEST, RAISED))
    assert (honest["decision"], raised["decision"]) == ("approved", "refused")
    outcomes = {clause["name"]: clause["outcome"] for clause in raised["clauses"]}
    assert outcomes["DiSCO_within_beyond[income]"] == outcomes["guessed_within_beyond[income]"] == "exceeded"
    assert {"repU_weighted", "DiSCO_within[income]", "DiSCO_within_weighted[income]"} <= set(outcomes)
    exact = raised["figures"]["attribute"][0]
    assert exact["DiSCO_beyond"] < 5
    assert raised["figures"]["bands"][0]["DiSCO_within_beyond"] > 20
    page = (evidence / RAISED / "dossier.html").read_text(encoding="utf-8")
    assert "is told to within 5 % by table 1" in page
    published = tmp_path / "demo" / "releases" / SALARIES / HONEST
    verify(published, read_trusted(tmp_path / "demo" / "keys" / "public-key.pem"))
    assert "weight" not in (published / "synthetic.parquet").read_bytes().decode("latin-1")
