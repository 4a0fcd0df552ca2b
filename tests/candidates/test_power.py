"""How often a gate refuses honest tables, and which share of copies it notices."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from support import gates
from support.gate_steps import folders, write

from disclosure_pipeline.candidates import power
from disclosure_pipeline.candidates.power import (
    COPIES,
    DILUTED,
    KINDS,
    NEAR_COPIES,
    SHARES,
    GatePower,
    measure_power,
    read_power,
)
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.cli.main import main
from disclosure_pipeline.errors import InputError

POLICY = {"unique_hits_beyond": 3, "DiSCO": {"beyond": 3}}
A_MOMENT = 0.001  # one try


def gate_of(root: Path, records: int, **changes: Any) -> GateFolders:
    write(root / "gt.csv", gates.ground_truth(records))
    return folders(root, gates.definition(policy=POLICY, **changes), "memory", "gt.csv")


def test_large_shares_of_copies_are_noticed_and_honest_tables_are_not_refused(tmp_path: Path) -> None:
    tries: list[int] = []
    measured = measure_power(gate_of(tmp_path, 2000), A_MOMENT, tries.append)
    assert tries == [1]
    assert measured.records == 1000
    assert set(measured.noticed) == {COPIES, NEAR_COPIES, DILUTED}
    [smallest] = measured.noticed[COPIES]
    assert 0 < smallest <= 30
    assert measured.noticed[DILUTED][0] > 0  # a table ten times as large is no offence
    assert not measured.is_blind


def test_what_is_planted_at_a_share_is_planted_at_all_larger_ones(tmp_path: Path) -> None:
    gate = gate_of(tmp_path, 400).gate
    rng = np.random.default_rng(1)
    records = gates.ground_truth(400).sample(frac=1, random_state=1)
    first, second = records.iloc[:200], records.iloc[200:]
    for kind, (known, plant) in power._plant(gate, first, second, rng).items():
        before: set[tuple[Any, ...]] = set()
        of_GT = set(known.itertuples(index=False, name=None))
        for share in SHARES:
            table = plant(share)
            assert len(table) == len(known) * (10 if kind == DILUTED else 1)
            assert list(table.columns) == list(known.columns)
            now = set(table.itertuples(index=False, name=None)) & of_GT
            if kind == COPIES:
                assert before <= now
                before = now
        if kind in {COPIES, DILUTED}:
            assert now == of_GT
        else:
            assert len(now) < len(of_GT) / 2


def test_a_gate_that_notices_nothing_is_blind() -> None:
    blind = GatePower(200, {COPIES: (math.inf, 30.0), NEAR_COPIES: (0.0, 0.0)})
    assert blind.is_blind
    first, second, third = blind.describe()
    assert first == "Of honest tables it refuses 0 % (2 tries; with 95 % certainty 0 % to 66 %)."
    assert second == "It does not notice copies reliably, whatever their share."
    assert "nothing can be said" in third


def test_it_is_read_of_the_same_ground_truth_and_policy_only(tmp_path: Path) -> None:
    of_gate = gate_of(tmp_path, 400)
    measured = measure_power(of_gate, A_MOMENT)
    digest = json.loads(of_gate.store.power.read_text())["ground_truth"]
    assert read_power(of_gate, digest) == measured
    assert read_power(of_gate, "0" * 64) is None
    stricter = of_gate.gate.model_copy(update={"keys": of_gate.gate.keys[:1]})
    assert read_power(replace(of_gate, gate=stricter), digest) is None
    kept = json.loads(of_gate.store.power.read_text())
    unusable: list[Any] = [{}, [], kept | {"noticed": {COPIES: [1]}}, kept | {"records": None}]
    unusable += [kept | {"noticed": {kind: [] for kind in KINDS}}]
    for damaged in unusable:
        of_gate.store.power.write_text(json.dumps(damaged))
        assert read_power(of_gate, digest) is None


def test_rates_and_limits() -> None:
    found = GatePower(100, {COPIES: (3.0,) * 19 + (30.0,)})
    assert found.detection_limit(COPIES) == 3
    share, (low, high) = found.refused(COPIES, 3)
    assert share == 0.95
    assert (low, high) == pytest.approx((0.7639, 0.9911), abs=1e-4)  # Wilson
    assert found.refused(COPIES, 2)[0] == 0
    assert found.describe()[1] == "It refuses copies of 3 % of the people: 19 of 20 tries."
    assert GatePower(100, {COPIES: (3.0,) * 18 + (30.0,) * 2}).detection_limit(COPIES) == 30
    frame = found.to_frame()
    assert frame["refused"].is_monotonic_increasing
    assert frame["share"].tolist() == list(SHARES)


@pytest.mark.parametrize(("records", "seconds"), [(39, 1.0), (300, 0.0), (300, math.nan), (300, -1.0)])
def test_what_cannot_be_tried_is_refused(records: int, seconds: float, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tell nothing|above 0"):
        measure_power(gate_of(tmp_path, records), seconds)


def test_the_command_tells_no_value(home: gates.Home) -> None:
    home.write_ground_truth(gates.ground_truth())
    folder = home.path / "definition"
    folder.mkdir()
    attributes = gates.definition(policy=POLICY)
    body = {"type": "disclosure_pipeline.DisclosureGate", "attributes": attributes}
    (folder / "defs.yaml").write_text(yaml.safe_dump(body))
    arguments = ["policy", "power", str(folder), "--seconds", str(A_MOMENT)]
    printed = CliRunner().invoke(main, arguments)
    assert printed.exit_code == 0, printed.output
    assert "Of honest tables it refuses" in printed.stdout
    found = json.loads(CliRunner().invoke(main, [*arguments, "--format", "json"]).stdout)
    assert {row["planted"] for row in found["power"]} == {COPIES, NEAR_COPIES, DILUTED}
    assert not [canary for canary in gates.CANARIES if canary in printed.output]
    [kept] = home.path.rglob("power.json")
    assert not [canary for canary in gates.CANARIES if canary in kept.read_text()]
    ready = CliRunner().invoke(main, ["check", str(folder)])
    assert "Of honest tables it refuses" in ready.output
    content = json.loads(kept.read_text())
    kept.write_text(json.dumps(content | {"noticed": {kind: [None] for kind in KINDS}}))
    blind = CliRunner().invoke(main, ["check", str(folder)])
    assert "does not notice that 30 % of the people are copied" in blind.output
    assert blind.exit_code != 0
    kept.write_text(json.dumps(content | {"policy_digest": "another"}))
    assert "is not measured" in CliRunner().invoke(main, ["check", str(folder)]).output
