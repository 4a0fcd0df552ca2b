"""A claim of privacy that comes with a candidate: held against a holdout, in nothing that is published."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError
from support import gates
from support.gate_steps import deliver, folders, steps, write
from support.sampling import on_some_days, some_of
from support.surveys import LOOSE, gate_of, leaked, silc

from disclosure_pipeline.candidates.claims import CLAIMS, Claims, read_claims
from disclosure_pipeline.candidates.snapshot import read_snapshot, take_snapshot
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.evaluation.long_table import view_frame
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.files import write_json

pytestmark = pytest.mark.usefixtures("remembered_results")

NAME = "survey of living conditions"


def people(seed: int) -> pd.DataFrame:
    return silc(seed).drop(columns="household")


def definition(others: str = "others.parquet", **changes: Any) -> dict[str, Any]:
    """A gate that bounds nothing but the guards, with a holdout and without a unit."""
    return gate_of(NAME, with_unit=False, confidential={"others": others}, holdout="others", **changes)


def gate_at(root: Path, engine: str = "memory", **changes: Any) -> GateFolders:
    return folders(root, definition(**changes), engine, "gt.parquet")


@pytest.fixture
def arrived(tmp_path: Path) -> Path:
    write(tmp_path / "gt.parquet", people(1))
    write(tmp_path / "others.parquet", people(3))
    return tmp_path


def claim(root: Path, candidate: str, text: str, table: pd.DataFrame) -> None:
    folder = deliver(root, candidate, table, suffix=".parquet")
    if text:
        (folder / CLAIMS).write_text(text, encoding="utf-8")


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row["outcome"] for row in json.loads(found["dossier"])["clauses"]}


@on_some_days
@pytest.mark.parametrize("engine", some_of(["memory", "partitioned", "duckdb://"], 3, part_in_ci=1))
def test_a_claim_that_is_ruled_out_leaves_the_candidate_undetermined(engine: str, arrived: Path) -> None:
    claim(arrived, "claims-much", "claims: {epsilon: 1, delta: 1e-6}", leaked(NAME, 0.5))
    claim(arrived, "claims-little", "claims: {epsilon: 50}", leaked(NAME, 0.6))
    for candidate, outcome in (("claims-much", "undetermined"), ("claims-little", "kept")):
        found = steps(gate_at(arrived, engine), candidate, measured_anew=False)
        assert outcomes(found)["epsilon_beyond_claim"] == outcome
        [row] = view_frame(json.loads(found["dossier"])["figures"], "membership")
        assert row["epsilon_ruled_out"] > 1
        claimed = pd.read_csv(StringIO(found["frames"]["membership"]))["epsilon_claimed"].item()
        assert claimed == (1 if candidate == "claims-much" else 50)
    assert Clause("epsilon_beyond_claim", "at_most", 0).consequence == "leaves undetermined"


def test_a_fresh_table_keeps_what_it_claims(arrived: Path) -> None:
    claim(arrived, "fresh", "claims: {epsilon: 0.1}", people(2))
    found = steps(gate_at(arrived), "fresh", measured_anew=False)
    assert outcomes(found)["epsilon_beyond_claim"] == "kept"
    assert json.loads(found["dossier"])["decision"] == "approved"


def test_a_claim_is_part_of_what_was_measured(arrived: Path) -> None:
    """The same tables with another claim are another candidate."""
    hashes, store = set(), gate_at(arrived).store
    for name, text in (("one", "claims: {epsilon: 1}"), ("two", "claims: {epsilon: 2}"), ("none", "")):
        claim(arrived, name, text, people(2))
        snapshot = take_snapshot(arrived / "incoming" / name, name, store)
        assert snapshot == read_snapshot(name, store)
        assert [file.name for file in snapshot.files] == ["synthetic0.parquet"]
        hashes.add(snapshot.sha256)
        recorded = json.loads((store.candidate_folder(name) / "snapshot.json").read_text())
        assert ("claims" in recorded) == bool(text)
    assert len(hashes) == 3


@pytest.mark.parametrize("damaged", [{"epsilon": "much", "delta": 0}, {"epsilon": 0, "delta": 0}, {"rho": 1}])
def test_a_damaged_record_of_a_claim_is_no_claim(damaged: dict[str, Any], arrived: Path) -> None:
    claim(arrived, "one", "claims: {epsilon: 1}", people(2))
    gate = gate_at(arrived)
    snapshot = take_snapshot(arrived / "incoming" / "one", "one", gate.store)
    assert snapshot.claims == Claims(1, 0)
    record = gate.store.candidate_folder("one") / "snapshot.json"
    write_json(record, json.loads(record.read_text()) | {"claims": damaged})
    with pytest.raises(StoreError, match="damaged"):
        read_snapshot("one", gate.store)


# 811 bytes that stand for 2^40 values.
NESTED_ALIASES = "a0: &a0 [1, 1]\n" + "".join(
    f"a{level}: &a{level} [*a{level - 1}, *a{level - 1}]\n" for level in range(1, 40)
)


@pytest.mark.parametrize(
    "content",
    [
        *("epsilon: 1", "{claims: {epsilon: 1}, other: 2}", "claims: {delta: 0.1}", "[1]", ""),
        *(f"claims: {{epsilon: {value}}}" for value in ("0", "-1", "one", "true", ".inf", ".nan")),
        *("claims: {epsilon: 1, rho: 2}", "claims: {epsilon: 1, delta: 1}", "claims: {"),
        *("claims: {epsilon: 1, epsilon: 9}", "\udcff"),
        *("claims: {epsilon: 010}", "claims: {epsilon: 1:30}", "claims: {epsilon: 1e400}"),
        *("claims: &c {epsilon: 1}", "base: &b {epsilon: 1}\nclaims: {<<: *b}", "claims: !!map {epsilon: 1}"),
        pytest.param("claims: {epsilon: 1} #" + "x" * 5000, id="long"),
        pytest.param(f"claims: {{epsilon: {'9' * 400}}}", id="400 digits"),
        pytest.param(f"claims: {{epsilon: {'9' * 4000}}}", id="4000 digits"),
        pytest.param("claims: " + "{a: " * 900, id="deep"),
        pytest.param(NESTED_ALIASES, id="nested aliases"),
    ],
)
def test_what_is_no_claim_is_refused(content: str) -> None:
    with pytest.raises(StoreError, match=r"claims\.yaml must hold only a claim"):
        read_claims(content.encode(errors="surrogateescape"))


def test_a_link_is_no_claim(arrived: Path) -> None:
    folder = deliver(arrived, "link", people(2), suffix=".parquet")
    elsewhere = arrived / "elsewhere.yaml"
    elsewhere.write_text("claims: {epsilon: 1}", encoding="utf-8")
    (folder / CLAIMS).symlink_to(elsewhere)
    assert "refused" in steps(gate_at(arrived), "link")


def test_membership_is_bounded_where_there_is_a_holdout(arrived: Path) -> None:
    for name in ("TPR_at_1", "AUC"):
        with pytest.raises(ValidationError, match="is read, not bounded"):
            Gate.model_validate(definition(policy=LOOSE | {name: 5}))
    bounds = {"advantage_records": 5}
    with pytest.raises(ValidationError, match="only measured with a holdout"):
        Gate.model_validate(gate_of(NAME, policy=LOOSE | bounds))
    deliver(arrived, "copied", leaked(NAME, 0.5), suffix=".parquet")
    found = outcomes(steps(gate_at(arrived, policy=LOOSE | bounds), "copied", measured_anew=False))
    assert {found[name] for name in bounds} == {"exceeded"}


@on_some_days
def test_a_run_publishes_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gates.home_in_memory(tmp_path, gates.load(definition("others.csv")), monkeypatch) as home:
        home.write_ground_truth(people(1))
        people(3).to_csv(tmp_path / "others.csv", index=False)
        for name, seed in (("fresh", 2), ("copied", 1)):
            home.deliver(name, {"synthetic.csv": people(seed)})
            (tmp_path / "incoming" / name / CLAIMS).write_text("claims: {epsilon: 1}", encoding="utf-8")
        assert home.run_ground_truth().success
        assert home.run_gate("fresh").success
        assert not home.run_gate("copied").success
        assert not list(home.published("fresh").rglob(CLAIMS))
        page = home.record("fresh", "dossier.html").read_text(encoding="utf-8")
        assert "show who took part with an advantage of" in page
