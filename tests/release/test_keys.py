"""Keys and the salt: made so that nobody else can read them, and refused where somebody could."""

from __future__ import annotations

import hashlib
import hmac
import os
import shlex
import stat
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from securesystemslib.signer import SIGNER_FOR_URI_SCHEME, CryptoSigner, Key, Signature, Signer
from support.gates import run_command

from disclosure_pipeline.policy.reviewed_files import TrustedKey, TrustError, read_key_file, trust_always
from disclosure_pipeline.release import keys
from disclosure_pipeline.release.keys import KeyFiles, KeysError, keygen

DATA = b"what is signed"
SHA256 = hashlib.sha256(b"a table").hexdigest()


@pytest.fixture
def key_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeyFiles:
    key_files = keygen(tmp_path / "keys")
    monkeypatch.setenv(keys.SIGNING_KEY, str(key_files.signing_key))
    monkeypatch.setenv(keys.SALT, str(key_files.salt))
    monkeypatch.delenv(keys.PUBLIC_KEY, raising=False)
    monkeypatch.delenv(CryptoSigner.PREFIX_ENV_VAR, raising=False)
    return key_files


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def private_pem(key: Any, password: bytes | None = None) -> bytes:
    locked = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return bytes(key.private_bytes(Encoding.PEM, serialization.PrivateFormat.PKCS8, locked))


def public_pem(key: Any) -> str:
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_only_the_owner_can_read_what_is_secret(tmp_path: Path, mask: int) -> None:
    """Whatever the mask of the shell is."""
    (tmp_path / "keys").mkdir()
    before = os.umask(mask)
    try:
        key_files = keygen(tmp_path / "keys")
    finally:
        os.umask(before)
    assert [mode_of(path) for path in (key_files.signing_key, key_files.salt)] == [0o600, 0o600]
    assert mode_of(key_files.public_key) == 0o644
    names = {path.name for path in (tmp_path / "keys").iterdir()}
    assert names == {"signing-key.pem", "public-key.pem", "salt"}
    assert len(key_files.salt.read_bytes()) == 32


def test_keys_are_new_every_time_in_a_folder_for_the_owner_alone(tmp_path: Path) -> None:
    one, two = keygen(tmp_path / "one"), keygen(tmp_path / "a" / "two")
    assert mode_of(tmp_path / "a" / "two") == 0o700
    for name in ("signing_key", "public_key", "salt"):
        assert getattr(one, name).read_bytes() != getattr(two, name).read_bytes()


@pytest.mark.parametrize("there", ["signing-key.pem", "public-key.pem", "salt"])
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_nothing_is_overwritten(tmp_path: Path, there: str, kind: str) -> None:
    """Not even through a link that leads nowhere; and no half of a pair is left."""
    path = tmp_path / there
    put = {"file": path.touch, "link": lambda: path.symlink_to(tmp_path / "elsewhere"), "folder": path.mkdir}
    put[kind]()
    with pytest.raises(KeysError, match="Cannot write keys"):
        keygen(tmp_path)
    assert [actual.name for actual in tmp_path.iterdir()] == [there]


def test_the_command_line_makes_keys_that_the_gate_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = run_command("keygen", tmp_path / "the keys")
    assert shown.exit_code == 0, shown.output
    exported = [line for line in shown.output.splitlines() if line.startswith("export ")]
    for line in exported:
        name, _, value = shlex.split(line)[1].partition("=")
        monkeypatch.setenv(name, value)
    assert keys.load_signer().sign(DATA).signature
    assert len(keys.hash_with_salt(SHA256)) == 64
    (public,) = [line for line in shown.output.splitlines() if "public-key.pem" in line]
    assert "everyone" in public
    again = run_command("keygen", tmp_path / "the keys")
    assert again.exit_code == 1
    assert "File exists" in again.output
    nowhere = run_command("keygen", "/proc/none/keys")
    assert nowhere.exit_code == 1
    assert isinstance(nowhere.exception, SystemExit)


@pytest.mark.parametrize("variable", [keys.SIGNING_KEY, keys.SALT])
@pytest.mark.parametrize("value", [None, ""])
def test_what_is_not_set_is_told(
    key_files: KeyFiles, monkeypatch: pytest.MonkeyPatch, variable: str, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, value)
    with pytest.raises(KeysError, match=rf"{variable} is not set.*disclosure-pipeline keygen"):
        read(variable)


def read(variable: str) -> object:
    return keys.load_signer() if variable == keys.SIGNING_KEY else keys.hash_with_salt(SHA256)


@pytest.mark.parametrize("variable", [keys.SIGNING_KEY, keys.SALT])
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604, 0o601, 0o620, 0o700 | 0o007])
def test_what_others_may_read_or_write_is_refused(key_files: KeyFiles, variable: str, mode: int) -> None:
    path = Path(os.environ[variable])
    path.chmod(mode)
    with pytest.raises(KeysError, match=f"chmod 600 {path}"):
        read(variable)
    for stricter in (0o400, 0o600):
        path.chmod(stricter)
        assert read(variable)


def _replace(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def replaced(path: Path) -> None:
        path.unlink()
        make(path)

    return replaced


REPLACEMENTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (Path.unlink, "No such file"),
    "a link to the file": (lambda path: path.symlink_to(path.rename(path.with_name("real"))), "is a link"),
    "a folder": (_replace(lambda path: path.mkdir(mode=0o700)), "not a regular file"),
    "a pipe": (_replace(lambda path: os.mkfifo(path, 0o600)), "not a regular file"),
    "huge": (lambda path: path.write_bytes(os.urandom(1 << 17)), "larger than 65536 bytes"),
}


@pytest.mark.parametrize("variable", [keys.SIGNING_KEY, keys.SALT])
@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_a_secret_is_a_plain_file(key_files: KeyFiles, variable: str, replacement: str) -> None:
    replace, message = REPLACEMENTS[replacement]
    replace(Path(os.environ[variable]))
    with pytest.raises(KeysError, match=message):
        read(variable)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("variable", [keys.SIGNING_KEY, keys.SALT])
def test_a_secret_belongs_to_who_uses_it(key_files: KeyFiles, variable: str) -> None:
    os.chown(os.environ[variable], 12345, -1)
    with pytest.raises(KeysError, match="a different user"):
        read(variable)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no private key"),
        (b"\x00\xff" * 99, "no private key"),
        (public_pem(Ed25519PrivateKey.generate()).encode(), "no private key"),
        (private_pem(Ed25519PrivateKey.generate())[:-40], "no private key"),
        (private_pem(Ed25519PrivateKey.generate(), b"secret"), "passphrase"),
        (private_pem(generate_private_key(SECP256R1())), "no Ed25519 key"),
    ],
    ids=["empty", "no text", "a public key", "a part of one", "locked", "another kind"],
)
def test_only_an_ed25519_key_signs(key_files: KeyFiles, content: bytes, message: str) -> None:
    key_files.signing_key.write_bytes(content)
    with pytest.raises(KeysError, match=message):
        keys.load_signer()


def test_a_secret_in_a_folder_of_somebody_else_is_said_to_be_out_of_reach(
    key_files: KeyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may enter every folder, so the system's refusal is played."""

    def refuse(path: Any, *_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(Path, "is_symlink", refuse)
    for read in (keys.load_signer, lambda: keys.hash_with_salt(SHA256)):
        with pytest.raises(KeysError, match=r"cannot be read \(Permission denied\)"):
            read()


def test_a_file_can_be_given_as_a_uri(key_files: KeyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keys.PUBLIC_KEY, str(key_files.public_key))
    monkeypatch.setenv(keys.SIGNING_KEY, f"file2:{key_files.signing_key}")
    keys.parse_public_key(key_files.public_key.read_text()).verify_signature(
        keys.load_signer().sign(DATA), DATA
    )
    # As securesystemslib finds it; and no way around the rights of the file.
    monkeypatch.setenv(CryptoSigner.PREFIX_ENV_VAR, str(key_files.signing_key.parent))
    monkeypatch.setenv(keys.SIGNING_KEY, f"file2:{key_files.signing_key.name}")
    assert keys.load_signer().sign(DATA)
    key_files.signing_key.chmod(0o644)
    with pytest.raises(KeysError, match="chmod 600"):
        keys.load_signer()


class ElsewhereSigner(Signer):
    KEY = CryptoSigner.generate_ed25519()
    HAS: Key | None = None
    BROKEN = False

    def __init__(self, uri: str, public_key: Key) -> None:
        self.uri, self._public_key = uri, public_key

    @classmethod
    def from_priv_key_uri(
        cls, priv_key_uri: str, public_key: Key, secrets_handler: Any = None
    ) -> ElsewhereSigner:
        if cls.BROKEN:
            raise ConnectionError("the vault does not answer")
        return cls(priv_key_uri, public_key)

    @property
    def public_key(self) -> Key:
        return self.HAS or self._public_key

    def sign(self, payload: bytes) -> Signature:
        return self.KEY.sign(payload)


@pytest.fixture
def public_key_file(tmp_path: Path, key_files: KeyFiles, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(SIGNER_FOR_URI_SCHEME, "elsewhere", ElsewhereSigner)
    public = tmp_path / "elsewhere.pem"
    public.write_text(keys.to_pem(ElsewhereSigner.KEY.public_key))
    monkeypatch.setenv(keys.SIGNING_KEY, "elsewhere:slot/7")
    monkeypatch.setenv(keys.PUBLIC_KEY, str(public))
    return public


def test_any_registered_signer_signs(public_key_file: Path) -> None:
    signer = keys.load_signer()
    assert isinstance(signer, ElsewhereSigner)
    assert signer.uri == "elsewhere:slot/7"
    keys.parse_public_key(public_key_file.read_text()).verify_signature(signer.sign(DATA), DATA)


def test_a_signer_needs_its_public_key(
    public_key_file: Path, key_files: KeyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content, message in (
        (public_pem(generate_private_key(SECP256R1())), "not an Ed25519 key"),
        (key_files.signing_key.read_text(), "got a private one"),
        ("- valid_from: 2026-01-01T00:00:00Z\n  public_key: x\n" * 2, "several"),
    ):
        public_key_file.write_text(content)
        with pytest.raises(KeysError, match=message):
            keys.load_signer()
    monkeypatch.delenv(keys.PUBLIC_KEY)
    with pytest.raises(KeysError, match=keys.PUBLIC_KEY):
        keys.load_signer()


def test_a_signer_that_cannot_be_reached_is_told(
    public_key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ElsewhereSigner, "BROKEN", True)
    with pytest.raises(KeysError, match="the vault does not answer"):
        keys.load_signer()
    monkeypatch.setenv(keys.SIGNING_KEY, "nowhere:slot/7")
    with pytest.raises(KeysError, match=r"nowhere: .*Unsupported private key scheme"):
        keys.load_signer()


def test_a_signer_has_the_key_that_it_is_said_to_have(
    key_files: KeyFiles, public_key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ElsewhereSigner, "HAS", CryptoSigner.generate_ed25519().public_key)
    with pytest.raises(KeysError, match=f"a different key than {keys.PUBLIC_KEY}"):
        keys.load_signer()
    monkeypatch.setenv(keys.PUBLIC_KEY, str(keygen(tmp_path / "other").public_key))
    monkeypatch.setenv(keys.SIGNING_KEY, f"file2:{key_files.signing_key}")
    with pytest.raises(KeysError, match="does not match"):
        keys.load_signer()


def test_the_salt_tells_equal_from_unequal_and_nothing_else(
    key_files: KeyFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = keys.hash_with_salt(SHA256)
    assert first == keys.hash_with_salt(SHA256)
    assert first == hmac.new(key_files.salt.read_bytes(), SHA256.encode(), hashlib.sha256).hexdigest()
    assert first != keys.hash_with_salt(hashlib.sha256(b"another table").hexdigest())
    monkeypatch.setenv(keys.SALT, str(keygen(tmp_path / "other").salt))
    assert keys.hash_with_salt(SHA256) != first
    # What somebody without the salt can compute from a guess is not it.
    assert first not in (SHA256, hmac.new(b"", SHA256.encode(), hashlib.sha256).hexdigest())


@pytest.mark.parametrize(
    "secret", [b"", bytes(range(31)), b"\0" * 32, b"abc" * 40, b"secret\n", b"changeme" * 4, b"0" * 64]
)
def test_a_salt_that_can_be_guessed_is_refused(key_files: KeyFiles, secret: bytes) -> None:
    key_files.salt.write_bytes(secret)
    with pytest.raises(KeysError, match="32 random bytes"):
        keys.hash_with_salt(SHA256)


def test_a_salt_may_be_written_in_hexadecimal(key_files: KeyFiles) -> None:
    for _ in range(20):
        key_files.salt.write_text(f"{os.urandom(32).hex()}\n")
        assert len(keys.hash_with_salt(SHA256)) == 64


@pytest.mark.parametrize("given", ["", "0" * 63, SHA256.upper(), f"{SHA256}\n", "not determined"])
def test_only_a_hash_is_salted(key_files: KeyFiles, given: str) -> None:
    """An empty one would be the same for every table that could not be read."""
    with pytest.raises(KeysError, match="ground truth has no sha256"):
        keys.hash_with_salt(given)


PEM = public_pem(Ed25519PrivateKey.generate())


def listed(**entry: str) -> str:
    body = "".join(f"  {name}: {value}\n" for name, value in entry.items())
    indented = PEM.replace("\n", "\n    ")
    return f"- public_key: |\n    {indented}\n{body}"


def test_a_file_lists_keys_with_their_periods(tmp_path: Path) -> None:
    path = tmp_path / "keys.yaml"
    path.write_text(
        listed(valid_from="2024-01-01T00:00:00+01:00", valid_until="2025-12-31T23:59:59Z")
        + listed(valid_from='"2026-01-01T00:00:00+00:00"')
    )
    old, new = read_key_file(path)
    assert keys.parse_public_key(old.public_key) == keys.parse_public_key(PEM)
    assert old.valid_from == datetime(2023, 12, 31, 23, tzinfo=timezone.utc)
    assert old.valid_until == datetime(2025, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
    assert new.valid_from == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert new.valid_until is None


def test_a_public_key_alone_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "public.pem"
    path.write_text(PEM)
    (actual,) = read_key_file(path)
    assert actual == trust_always(PEM)
    assert actual.covers(datetime(1970, 1, 1, tzinfo=timezone.utc))
    assert actual.covers(datetime(9999, 1, 1, tzinfo=timezone(timedelta(hours=-12))))


def test_both_ends_of_a_period_belong_to_it() -> None:
    start, end = (datetime(2026, month, 1, tzinfo=timezone.utc) for month in (1, 2))
    key = TrustedKey(public_key=PEM, valid_from=start, valid_until=end)
    second = timedelta(seconds=1)
    assert [key.covers(at) for at in (start - second, start, end, end + second)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (listed(valid_from="2026-01-01T00:00:00"), "timezone"),
        (listed(valid_from="2026-01-01 00:00:00"), "timezone"),
        (listed(valid_from="2026-01-01"), "with an offset"),
        (listed(valid_from="1767225600"), "with an offset"),
        (listed(valid_from='"1767225600"'), "with an offset"),
        (listed(valid_from="soon"), "with an offset"),
        (listed(), "valid_from"),
        (listed(valid_from="2026-01-01T00:00:00Z", valid_until="2026-01-01T00:00:00"), "timezone"),
        (listed(valid_from="2026-01-02T00:00:00Z", valid_until="2026-01-01T00:00:00Z"), "is before"),
        (
            listed(valid_from="2026-01-01T00:00:00Z", until="2026-01-01T00:00:00Z"),
            "until: there is no such entry",
        ),
        (listed(valid_from="2026-13-01T00:00:00Z"), "month"),
        ("- valid_from: 2026-01-01T00:00:00Z\n", "public_key"),
        ("public_key: x\nvalid_from: 2026-01-01T00:00:00Z\n", "list"),
        ("", "list"),
        ("[]", "at least 1"),
        ("- !!python/object/apply:os.system ['true']", r"keys.yaml:1:3: the tag .* not allowed"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
    ],
)
def test_a_list_that_could_be_misread_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / "keys.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TrustError, match=message):
        read_key_file(path)


def test_a_list_that_is_not_there_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(TrustError, match="cannot be read"):
            read_key_file(path)


def test_a_key_that_is_listed_twice_is_refused() -> None:
    """With another period, or written otherwise."""
    with pytest.raises(KeysError, match="twice"):
        keys.parse_keys_by_id([trust_always(PEM), trust_always(f"\n{PEM}\n\n")])
    with pytest.raises(KeysError, match="No public key"):
        keys.parse_keys_by_id([])
    with pytest.raises(KeysError, match="not in PEM"):
        keys.parse_keys_by_id([trust_always("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----")])


# Keys for which anybody can sign (RFC 8032, 5.1)

P = 2**255 - 19
# Made without a private key: the neutral point, and zero. Valid if the key's order divides a message's hash.
FORGED = (1).to_bytes(32, "little") + bytes(32)


def is_forged(key: Ed25519PublicKey, message: bytes) -> bool:
    try:
        key.verify(FORGED, message)
    except InvalidSignature:
        return False
    return True


ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
LOW = [0, 1, P - 1, ORDER_8, P - ORDER_8]


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("y", [*LOW, P, P + 1])
def test_a_key_of_low_order_is_refused(y: int, sign: int) -> None:
    key = Ed25519PublicKey.from_public_bytes((y | sign << 255).to_bytes(32, "little"))
    assert any(is_forged(key, bytes([number])) for number in range(64))
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    with pytest.raises(KeysError, match="low order"):
        keys.parse_public_key(pem)
