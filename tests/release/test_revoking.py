"""A release that is taken back: signed, believed only if it is signed, and honoured by whoever verifies."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from securesystemslib.signer import CryptoSigner
from support import releases
from support.gates import run_command

from disclosure_pipeline.policy.reviewed_files import TrustedKey, read_key_file
from disclosure_pipeline.release.keys import SIGNING_KEY, keygen, load_signer
from disclosure_pipeline.release.predicate import Predicate
from disclosure_pipeline.release.revoking import Revocation, RevocationError, read_revocations, revoke
from disclosure_pipeline.release.verifying import Approval, VerificationError, verify

NOW = releases.PUBLISHED + timedelta(days=3)
REASON = "The income of a hospital was withdrawn"
SIGNER = CryptoSigner.generate_ed25519()


@dataclass(frozen=True)
class Published:
    """A release, and the list of revocations that may concern it."""

    folder: Path
    file: Path
    signer: CryptoSigner

    @property
    def keys(self) -> list[TrustedKey]:
        return [releases.trust(self.signer)]

    def revoke(self, reason: str = REASON, when: datetime = NOW) -> Revocation:
        return revoke(self.folder, self.file, reason, self.keys, self.signer, when)

    def verify(self) -> Approval:
        return verify(self.folder, self.keys, revocations=self.file)

    def read(self) -> tuple[Revocation, ...]:
        return read_revocations(self.file, self.keys)

    def beside(self, predicate: Predicate) -> "Published":
        """Another release of the same tables, under the same list."""
        return replace(self, folder=releases.publish(self.folder.with_name("beside"), self.signer, predicate))


@pytest.fixture
def release(tmp_path: Path) -> Published:
    folder = releases.publish(tmp_path / "release", SIGNER)
    return Published(folder, tmp_path / "revocations", SIGNER)


def other(candidate: str, published: datetime = releases.PUBLISHED) -> Predicate:
    return releases.predicate(published=published).model_copy(update={"candidate": candidate})


def test_a_revoked_release_is_not_verified(release: Published) -> None:
    assert verify(release.folder, release.keys).predicate.candidate == releases.CANDIDATE
    revocation = release.revoke()
    assert release.read() == (revocation,)
    assert verify(release.folder, release.keys)
    with pytest.raises(VerificationError) as refused:
        release.verify()
    assert refused.value.problems == (
        f"it was approved on 2026-03-01 12:00 UTC, revoked on 2026-03-04 12:00 UTC because: {REASON}",
    )
    assert str(refused.value).startswith(f"{release.folder} is a revoked release:\n- ")
    (release.folder / "more.csv").write_bytes(b"")
    with pytest.raises(VerificationError) as damaged:
        release.verify()
    assert str(damaged.value).startswith(f"{release.folder} is not an approved release:\n- ")
    assert damaged.value.problems[-1] == refused.value.problems[0]


def test_the_number_of_revocations_is_told(release: Published) -> None:
    """Whoever knows of a revocation sees that a list without it has lost its lines."""
    assert "Revocations checked" not in str(verify(release.folder, release.keys))
    release.beside(other("foreign").model_copy(update={"snapshot": "0" * 64})).revoke()
    for number in (1, 0):
        assert f"Revocations checked: {number}. None concerns it." in str(release.verify())
        release.file.write_bytes(b"")


def test_a_time_without_an_offset_is_a_mistake_of_the_command(release: Published, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text(release.keys[0].public_key)
    result = run_command("verify", release.folder, "--key", key, "--not-before", "2026-01-31T12:00:00")
    assert result.exit_code == 2
    assert "--not-before" in result.output
    assert "is not a valid time" in result.output


def test_the_same_tables_under_another_name_are_revoked_too(release: Published) -> None:
    revocation = release.revoke()
    with pytest.raises(VerificationError, match="is a revoked release"):
        release.beside(other("again")).verify()
    gate, candidate, snapshot = revocation.gate, revocation.candidate, revocation.snapshot
    assert revocation.concerns(gate, candidate, "0" * 64)
    assert revocation.concerns(gate, "x", snapshot)
    assert not revocation.concerns("other", candidate, snapshot)
    assert not revocation.concerns(gate, "x", "0" * 64)
    assert not revocation.concerns(gate, snapshot, "0" * 64)


def test_revocations_are_added_of_damaged_tables_too(release: Published) -> None:
    first = release.revoke("first")
    (release.folder / "first.csv").write_text("changed")
    (release.folder / "second.csv").unlink()
    second = release.revoke("second", NOW + timedelta(days=1))
    assert release.read() == (first, second)


def test_what_is_no_release_is_not_revoked(release: Published) -> None:
    foreign = replace(release, signer=CryptoSigner.generate_ed25519())
    early = releases.PUBLISHED - timedelta(seconds=1)
    for of, reason, by, when, message in (
        (foreign, REASON, foreign, NOW, "not with a given one"),
        (replace(release, folder=release.folder / "nothing"), REASON, release, NOW, "cannot be read"),
        (release, REASON, release, early, "correct the clock"),
        (release, "  ", release, NOW, "reason"),
        (release, REASON, foreign, NOW, "not with a given one"),  # by a key that nobody will believe
    ):
        with pytest.raises(RevocationError, match=message):
            revoke(of.folder, of.file, reason, of.keys, by.signer, when)
    assert not release.file.exists()


def test_a_revocation_outside_the_period_of_its_key_is_not_believed(release: Published) -> None:
    release.revoke()
    began, ended = releases.PUBLISHED - timedelta(days=9), NOW - timedelta(days=1)
    key = TrustedKey(public_key=release.keys[0].public_key, valid_from=began, valid_until=ended)
    with pytest.raises(RevocationError, match="outside the period"):
        read_revocations(release.file, [key])


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
    damage: Callable[[bytes], bytes], message: str, release: Published
) -> None:
    """A revocation that is passed over would not be missed."""
    release.revoke()
    damaged = damage(release.file.read_bytes())
    release.file.write_bytes(damaged)
    for use in (release.verify, release.revoke):
        with pytest.raises(RevocationError, match=message):
            use()
    assert release.file.read_bytes() == damaged


def test_a_file_without_revocations_stops_the_verification(release: Published) -> None:
    for name, message in (("nothing", "cannot be read"), ("statement.dsse.json", "of type")):
        with pytest.raises(RevocationError, match=message):
            replace(release, file=release.folder / name).verify()


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


def test_a_copy_of_a_release_is_not_revoked_where_its_gate_does_not_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate would publish the same table again."""
    files = keygen(tmp_path / "keys")
    monkeypatch.setenv(SIGNING_KEY, str(files.signing_key))
    published = releases.predicate(published=datetime.now(timezone.utc) - timedelta(days=1))
    own, copy = tmp_path / "releases" / published.gate / "first", tmp_path / "sent" / "first"
    for folder in (own, copy):
        folder.parent.mkdir(parents=True)
        releases.publish(folder, load_signer(), published)  # type: ignore[arg-type]
    options = ["--key", str(files.public_key), "--reason", REASON]
    refused = run_command("revoke", copy, *options)
    assert refused.exit_code == 1 and f"is not where the gate {published.gate} publishes" in refused.stderr
    assert run_command("revoke", Path("/"), *options).exit_code == 1
    assert not list(tmp_path.rglob("*.revocations"))
    file = own.parent.with_name(f"{published.gate}.revocations")
    assert run_command("revoke", copy, *options, "--revocations", file).exit_code == 0
    assert run_command("revoke", own, *options).exit_code == 0
    assert list(tmp_path.rglob("*.revocations")) == [file]
    assert len(read_revocations(file, read_key_file(files.public_key))) == 2
