"""A published folder as the small gate would make it, without a run: measured, judged, stated and signed."""

import functools
import hashlib
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
from securesystemslib.signer import CryptoSigner

from disclosure_pipeline.candidates.snapshot import Snapshot
from disclosure_pipeline.candidates.store import STATEMENT, StoredFile
from disclosure_pipeline.evidence.dossier import build_dossier
from disclosure_pipeline.policy.clauses import Clause
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import TrustedKey, Waiver, trust_always
from disclosure_pipeline.policy.verdict import has_public_value, judge, waive
from disclosure_pipeline.release.keys import to_pem
from disclosure_pipeline.release.predicate import Predicate, build_predicate
from disclosure_pipeline.release.statement import build_statement, sign
from support import gates

PUBLISHED = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
CANDIDATE = "honest-2026"
STRICT = {"repU": {"at_most": 8, "at_most_share": 0.6}, "DiSCO": {"at_most": 12, "targets": {"income": 0.01}}}


def hex_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def tables() -> dict[str, pd.DataFrame]:
    return {"first.csv": gates.honest(1), "second.csv": gates.honest(2)}


def files() -> dict[str, bytes]:
    return {name: table.to_csv(index=False).encode() for name, table in tables().items()}


@functools.cache
def _content(waived: bool) -> str:
    definition = gates.definition(**({"policy": STRICT} if waived else {}))
    gate = Gate.model_validate(definition)
    stored = tuple(StoredFile(name, hex_of(content), len(content)) for name, content in files().items())
    snapshot = Snapshot(CANDIDATE, stored).sha256
    result = gates.measured(gate, gates.ground_truth(), list(tables().values()))
    judgements = judge(gate.clauses(), result)
    waiver = Waiver(
        name="income-2026",
        gate=gate.name,
        snapshot=snapshot,
        policy_digest=gate.policy_digest(),
        clause="DiSCO[income]",
        ceiling=15,
        reason="The committee of 3 February found the incomes too coarse to harm.",
        approver="R. Okafor",
        expires=PUBLISHED + timedelta(days=30),
    )
    judgements, refused = waive(
        judgements,
        [waiver] if waived else [],
        gate=gate.name,
        snapshot=snapshot,
        policy_digest=gate.policy_digest(),
        now=PUBLISHED,
    )
    assert not refused
    measured = {"ground_truth": hex_of(b"ground truth"), "snapshot": snapshot}
    content = build_dossier(gate, CANDIDATE, measured, result, judgements)
    return json.dumps([content, gate.policy.model_dump(mode="json")])


def content(*, waived: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    dossier, definition = json.loads(_content(waived))
    return dossier, definition


def predicate(*, waived: bool = False, published: datetime = PUBLISHED) -> Predicate:
    dossier, definition = content(waived=waived)
    return build_predicate(
        dossier,
        definition,
        dossier=hex_of(b"dossier"),
        ground_truth=hex_of(b"salted"),
        tables={name: len(table) for name, table in tables().items()},
        run_id="3f0c2",  # a payload whose length is no multiple of three: its base64 ends with padding
        measured_at=published - timedelta(minutes=1),
        published_at=published,
    )


def assert_states_clauses(predicate: Predicate, content: dict[str, Any]) -> None:
    """Every clause and control is that of the dossier's content, but for figures rounded to ten records."""
    rounded = {"value", "limit", "words", "rules"}
    step = 100 * 10 / min(content["figures"]["N_d"], *content["figures"]["N_s"])
    for is_control, clauses in ((False, predicate.clauses), (True, predicate.controls)):
        rows = [row for row in content["clauses"] if (row["figure"] == "controls") is is_control]
        assert rows
        for stated, row in zip(clauses, rows, strict=True):
            clause, fields = Clause.from_row(row), stated.model_dump()
            assert {name: row[name] for name in fields if name not in rounded} == {
                name: list(value) if name == "about" else value
                for name, value in fields.items()
                if name not in rounded
            }
            assert stated.limit == (None if clause.share_of else row["limit"])
            assert (stated.value is not None) == has_public_value(clause)
            assert stated.value is None or 0 <= stated.value - max(0, row["value"]) <= 2 * step


def publish(folder: Path, signer: CryptoSigner, made: Predicate | None = None) -> Path:
    folder.mkdir(parents=True)
    for name, written in files().items():
        (folder / name).write_bytes(written)
    (folder / STATEMENT).write_bytes(sign(build_statement(hashes(), made or predicate()), signer))
    return folder


def hashes() -> dict[str, str]:
    return {name: hex_of(written) for name, written in files().items()}


def trust(signer: CryptoSigner) -> TrustedKey:
    return trust_always(to_pem(signer.public_key))
