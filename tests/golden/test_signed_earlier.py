"""Releases and a revocation that an earlier version signed: whoever has them verifies them with today's.

`signed_<version>.zip` holds what that version published and the public key; the private key is gone. Its
people are invented. It is never made anew: a version that signs otherwise adds a file of its own beside it.
"""

import json
import zipfile
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.gates import run_command

# The demo's gate over 300 people; two syntheses under a policy with a waiver, beside a holdout, with CSV.
PLAIN, WAIVED = "conditional-model", "two-syntheses"


@pytest.fixture(
    scope="module", params=sorted(path.name for path in Path(__file__).parent.glob("signed_*.zip"))
)
def signed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what a version published."""
    folder = tmp_path_factory.mktemp("signed")
    with zipfile.ZipFile(Path(__file__).with_name(request.param)) as archive:
        archive.extractall(folder)
    return folder


def verify(signed: Path, candidate: str, *options: str) -> Result:
    """Run `verify` on a release."""
    return run_command(
        "verify", signed / candidate, "--key", signed / "public-key.pem", "--verbose", *options
    )


def read_predicate(signed: Path, candidate: str) -> Any:
    """Return what the statement says, read without the package."""
    envelope = json.loads((signed / candidate / "statement.dsse.json").read_text(encoding="utf-8"))
    return json.loads(b64decode(envelope["payload"]))["predicate"]


@pytest.mark.parametrize("candidate", [PLAIN, WAIVED])
def test_a_release_verifies(signed: Path, candidate: str) -> None:
    stated = read_predicate(signed, candidate)
    gate, digest = stated["gate"], stated["policy"]["digest"]
    options = ("--gate", gate, "--candidate", candidate, "--policy-digest", digest)
    verified = verify(signed, candidate, *options)
    assert verified.exit_code == 0, verified.output
    assert f"\nApproved: candidate {candidate} of gate {stated['gate']}, published " in verified.stdout
    for clause in [*stated["clauses"], *stated["controls"]]:
        assert clause["words"] in verified.stdout
    for waiver in stated["waivers"]:
        assert waiver["reason"] in verified.stdout


def test_the_waived_release_states_what_only_it_has(signed: Path) -> None:
    stated = read_predicate(signed, WAIVED)
    assert [waiver["clause"] for waiver in stated["waivers"]] == ["DiSCO[income]"]
    assert stated["confidential"] and stated["documentation"]
    assert any(clause["loosened_from"] is not None for clause in stated["clauses"])


@pytest.mark.parametrize("name", ["dossier.html", "synthetic.parquet", "statement.dsse.json"])
def test_a_changed_byte_is_found(signed: Path, name: str) -> None:
    path = signed / PLAIN / name
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    try:
        assert verify(signed, PLAIN).exit_code == 1
    finally:
        path.write_bytes(content)


def test_the_revocation_is_honoured(signed: Path) -> None:
    revocations = ("--revocations", str(signed / "revocations"))
    revoked = verify(signed, WAIVED, *revocations)
    assert revoked.exit_code == 1
    assert "The invented people changed their minds" in revoked.output
    assert verify(signed, PLAIN, *revocations).exit_code == 0
