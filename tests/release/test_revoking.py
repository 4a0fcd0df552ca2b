"""A release that is taken back: signed, believed only if it is signed, and honoured by whoever verifies."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from securesystemslib.signer import CryptoSigner
from support import releases
from support.gates import run_command

from disclosure_pipeline.policy.reviewed_files import TrustedKey
from disclosure_pipeline.release.keys import SIGNING_KEY, keygen, load_signer, to_pem
from disclosure_pipeline.release.predicate import Predicate
from disclosure_pipeline.release.revoking import RevocationError, read_revocations, revoke
from disclosure_pipeline.release.verifying import VerificationError, verify

NOW = releases.PUBLISHED + timedelta(days=3)
REASON = "The income of a hospital was withdrawn"


@pytest.fixture(scope="module")
def signer() -> CryptoSigner:
    return CryptoSigner.generate_ed25519()


@pytest.fixture
def release(tmp_path: Path, signer: CryptoSigner) -> Path:
    return releases.publish(tmp_path / "release", signer)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "revocations"


@pytest.fixture
def keys(signer: CryptoSigner) -> list[TrustedKey]:
    return [releases.trust(signer)]


def other(candidate: str, published: datetime = releases.PUBLISHED) -> Predicate:
    return releases.predicate(published=published).model_copy(update={"candidate": candidate})


def test_a_revoked_release_is_not_verified(
    release: Path, signer: CryptoSigner, file: Path, keys: list[TrustedKey]
) -> None:
    assert verify(release, keys).predicate.candidate == releases.CANDIDATE
    revocation = revoke(release, file, REASON, keys, signer, NOW)
    assert read_revocations(file, keys) == (revocation,)
    assert verify(release, keys)
    with pytest.raises(VerificationError) as refused:
        verify(release, keys, revocations=file)
    assert refused.value.problems == (
        f"it was approved on 2026-03-01 12:00 UTC, revoked on 2026-03-04 12:00 UTC because: {REASON}",
    )
    assert str(refused.value).startswith(f"{release} is a revoked release:\n- ")
    (release / "more.csv").write_bytes(b"")
    with pytest.raises(VerificationError) as damaged:
        verify(release, keys, revocations=file)
    assert str(damaged.value).startswith(f"{release} is not an approved release:\n- ")
    assert damaged.value.problems[-1] == refused.value.problems[0]


def test_the_number_of_revocations_is_told(
    release: Path, signer: CryptoSigner, file: Path, keys: list[TrustedKey], tmp_path: Path
) -> None:
    """Whoever knows of a revocation sees that a list without it has lost its lines."""
    assert "Revocations checked" not in str(verify(release, keys))
    foreign = other("foreign").model_copy(update={"snapshot": "0" * 64})
    revoke(releases.publish(tmp_path / "foreign", signer, foreign), file, REASON, keys, signer, NOW)
    for number in (1, 0):
        approval = str(verify(release, keys, revocations=file))
        assert f"Revocations checked: {number}. None concerns it." in approval
        file.write_bytes(b"")


def test_a_time_without_an_offset_is_a_mistake_of_the_command(
    release: Path, signer: CryptoSigner, tmp_path: Path
) -> None:
    key = tmp_path / "key.pem"
    key.write_text(releases.trust(signer).public_key)
    result = run_command("verify", release, "--key", key, "--not-before", "2026-01-31T12:00:00")
    assert result.exit_code == 2
    assert "--not-before" in result.output
    assert "is not a valid time" in result.output


def test_the_same_tables_under_another_name_are_revoked_too(
    release: Path, signer: CryptoSigner, file: Path, keys: list[TrustedKey], tmp_path: Path
) -> None:
    revoke(release, file, REASON, keys, signer, NOW)
    again = releases.publish(tmp_path / "again", signer, other("again"))
    with pytest.raises(VerificationError, match="is a revoked release"):
        verify(again, keys, revocations=file)
    (revocation,) = read_revocations(file, keys)
    predicate = releases.predicate()
    assert revocation.concerns(predicate.model_copy(update={"snapshot": "0" * 64}))
    assert not revocation.concerns(predicate.model_copy(update={"gate": "other"}))
    assert not revocation.concerns(predicate.model_copy(update={"candidate": "x", "snapshot": "0" * 64}))


def test_revocations_are_added_of_damaged_tables_too(
    release: Path, signer: CryptoSigner, file: Path, keys: list[TrustedKey]
) -> None:
    first = revoke(release, file, "first", keys, signer, NOW)
    (release / "first.csv").write_text("changed")
    (release / "second.csv").unlink()
    second = revoke(release, file, "second", keys, signer, NOW + timedelta(days=1))
    assert read_revocations(file, keys) == (first, second)


def test_what_is_no_release_is_not_revoked(
    release: Path, signer: CryptoSigner, file: Path, keys: list[TrustedKey]
) -> None:
    stranger = CryptoSigner.generate_ed25519()
    strangers, early = [releases.trust(stranger)], releases.PUBLISHED - timedelta(seconds=1)
    for folder, reason, believed, by, when, message in (
        (release, REASON, strangers, stranger, NOW, "not with a given one"),
        (release / "nothing", REASON, keys, signer, NOW, "cannot be read"),
        (release, REASON, keys, signer, early, "correct the clock"),
        (release, "  ", keys, signer, NOW, "reason"),
        (release, REASON, keys, stranger, NOW, "not with a given one"),  # by a key that nobody will believe
    ):
        with pytest.raises(RevocationError, match=message):
            revoke(folder, file, reason, believed, by, when)
    assert not file.exists()


def test_a_revocation_outside_the_period_of_its_key_is_not_believed(
    release: Path, signer: CryptoSigner, file: Path, keys: list[TrustedKey]
) -> None:
    revoke(release, file, REASON, keys, signer, NOW)
    pem = to_pem(signer.public_key)
    ended = TrustedKey(
        public_key=pem, valid_from=releases.PUBLISHED - timedelta(days=9), valid_until=NOW - timedelta(days=1)
    )
    with pytest.raises(RevocationError, match="outside the period"):
        read_revocations(file, [ended])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-1], "ends within"),
        (lambda content: content[:-30] + b"\n", "not a signed envelope"),
        (lambda content: content + b"\n", "not a signed envelope"),
        (lambda content: content.replace(b'"sig":"', b'"sig":"00', 1), "revocations:1: .*signature"),
        (lambda content: content.replace(b"revocation+json", b"release+json"), "of type"),
        (lambda content: content + b"{}\n", "revocations:2: "),
        (lambda _: b"x" * ((1 << 24) + 1), "too large for a list"),
    ],
)
def test_a_damaged_file_stops_the_verification(
    damage: object, message: str, release: Path, signer: CryptoSigner, file: Path, keys: list[TrustedKey]
) -> None:
    """A revocation that is passed over would not be missed."""
    revoke(release, file, REASON, keys, signer, NOW)
    assert callable(damage)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(RevocationError, match=message):
        verify(release, keys, revocations=file)
    before = file.read_bytes()
    with pytest.raises(RevocationError, match=message):
        revoke(release, file, REASON, keys, signer, NOW)
    assert file.read_bytes() == before


def test_a_file_without_revocations_stops_the_verification(release: Path, keys: list[TrustedKey]) -> None:
    for name, message in (("nothing", "cannot be read"), ("statement.dsse.json", "of type")):
        with pytest.raises(RevocationError, match=message):
            verify(release, keys, revocations=release / name)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = keygen(tmp_path / "keys")
    monkeypatch.setenv(SIGNING_KEY, str(files.signing_key))
    published = datetime.now(timezone.utc) - timedelta(days=1)
    folder = releases.publish(tmp_path / "r", load_signer(), releases.predicate(published=published))  # type: ignore[arg-type]
    file = tmp_path / "revocations"
    key = ["--key", str(files.public_key), "--revocations", str(file)]
    shown = run_command("revoke", folder, *key, "--reason", REASON)
    assert shown.exit_code == 0, shown.output
    assert REASON in shown.output and str(file) in shown.output
    verified = run_command("verify", folder, *key)
    assert verified.exit_code == 1
    assert f", revoked on {datetime.now(timezone.utc).year}-" in verified.output and REASON in verified.output
    assert run_command("verify", folder, *key[:2]).exit_code == 0
