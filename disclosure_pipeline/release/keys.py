"""The keys that sign releases and verify them, and the salt of the ground truth's hash."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.reviewed_files import TrustedKey, read_trusted
from disclosure_pipeline.runtime.files import sync_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.signer import Key, Signer, SSlibKey

SIGNING_KEY = "DISCLOSURE_PIPELINE_SIGNING_KEY"
PUBLIC_KEY = "DISCLOSURE_PIPELINE_PUBLIC_KEY"
SALT = "DISCLOSURE_PIPELINE_SALT"

_SALT_BYTES = 32
# Fewer different bytes than this are typed in, not drawn; hexadecimal digits have more, too.
_DISTINCT_BYTES = 8
_MAXIMUM_BYTES = 1 << 16
# Ed25519, RFC 8032: the field, and the y coordinates of its eight points of low order. A signature by such a
# key can be made without a private key, for any content.
_FIELD = 2**255 - 19
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_LOW_ORDER = frozenset({0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8})
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# No sha256 begins so: what is sealed is never a hash of the ground truth.
_SEALED = b"sealed "
_KEYGEN = "`disclosure-pipeline keygen FOLDER` makes one"


class KeysError(DisclosurePipelineError):
    """A key or the salt is missing, cannot be taken as it is, or does not sign."""


@dataclass(frozen=True)
class KeyFiles:
    """The files of a key pair and a salt."""

    signing_key: Path
    public_key: Path
    salt: Path

    @classmethod
    def in_folder(cls, folder: Path) -> KeyFiles:
        """Return the files of a folder that `keygen` wrote."""
        return cls(folder / "signing-key.pem", folder / "public-key.pem", folder / "salt")


def keygen(folder: Path) -> KeyFiles:
    """Write a new Ed25519 key pair (PEM) and a salt into a folder; only the public key is for others to read.

    KeysError where one of the files is there already, or cannot be written: then none is written.
    """
    from securesystemslib.signer import CryptoSigner

    signer = CryptoSigner.generate_ed25519()
    files = KeyFiles.in_folder(folder)
    contents = {
        files.signing_key: (signer.private_bytes, 0o600),
        files.public_key: (to_pem(signer.public_key).encode(), 0o644),
        files.salt: (secrets.token_bytes(_SALT_BYTES), 0o600),
    }
    written: list[Path] = []
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, (content, mode) in contents.items():
            _write_new(path, content, mode, written)
        sync_folder(folder)
    except OSError as error:
        for path in written:
            path.unlink()
        raise KeysError(
            f"No keys were written into {folder} ({error}): give a folder for new ones."
        ) from None
    return files


def _write_new(path: Path, content: bytes, mode: int, written: list[Path]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    written.append(path)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, mode)
        file.write(content)
        file.flush()
        os.fsync(handle)


def load_signer() -> Signer:
    """Return the signer of releases: the private key in the file that DISCLOSURE_PIPELINE_SIGNING_KEY names.

    Or the securesystemslib signer of the URI that the variable holds; then DISCLOSURE_PIPELINE_PUBLIC_KEY
    names the file of the public key. KeysError where there is none, it is not Ed25519, or others than its
    owner may read the file.
    """
    from securesystemslib.signer import CryptoSigner, Signer

    location = _read_variable(SIGNING_KEY, f"the file of the private key ({_KEYGEN}), or a signer's URI")
    uri = _URI.match(location)
    if uri is None:
        return CryptoSigner(_load_private_key(Path(location)))
    key = parse_public_key(_read_public_pem())
    if uri[1] == CryptoSigner.SCHEME:
        folder = os.environ.get(CryptoSigner.PREFIX_ENV_VAR, "")
        _read_secret(Path(folder, urlparse(location).path), SIGNING_KEY)
    try:
        signer = Signer.from_priv_key_uri(location, key)
        signer_key = signer.public_key
    except Exception as error:  # securesystemslib: a signer may raise anything
        raise KeysError(
            f"The signer {uri[1]}: of {SIGNING_KEY} cannot be used with the public key of {PUBLIC_KEY} "
            f"({type(error).__name__}: {error}). A private key in a file is given by its path alone."
        ) from None
    if signer_key != key:
        raise KeysError(f"The signer {uri[1]}: of {SIGNING_KEY} has another key than {PUBLIC_KEY} says.")
    return signer


def _read_variable(name: str, content: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise KeysError(f"The environment variable {name} is not set: it names {content}.")
    return value


def _load_private_key(path: Path) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read_secret(path, SIGNING_KEY)
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:
        raise KeysError(f"{path} is locked by a passphrase: give the key without one, or a signer.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise KeysError(f"{path} holds no private key in PEM: {_KEYGEN}.") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeysError(f"{path} holds no Ed25519 key: {_KEYGEN}.")
    return key


def _read_public_pem() -> str:
    path = Path(_read_variable(PUBLIC_KEY, f"the file of the public key (PEM) that belongs to {SIGNING_KEY}"))
    keys = read_trusted(path)
    if len(keys) != 1:
        raise KeysError(f"{path} lists several keys: {PUBLIC_KEY} names the one of {SIGNING_KEY}.")
    return keys[0].public_key


def _read_secret(path: Path, variable: str) -> bytes:
    """Read a secret file. KeysError unless it is a plain file that only this user has rights to."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        problem = "is a link" if path.is_symlink() else f"cannot be read ({error.strerror})"
        raise KeysError(f"{path}, which {variable} names, {problem}: name the file itself.") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise KeysError(f"{path}, which {variable} names, is no plain file.")
        if status.st_uid != os.geteuid():
            raise KeysError(f"{path} belongs to another user than the one that runs this.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise KeysError(
                f"Others may read or change {path}: run `chmod 600 {path}`, and make a new one if it is not "
                "certain that nobody did."
            )
        content = os.read(handle, _MAXIMUM_BYTES + 1)
    finally:
        os.close(handle)
    if len(content) > _MAXIMUM_BYTES:
        raise KeysError(f"{path}, which {variable} names, is far too large.")
    return content


def parse_public_key(pem: str) -> SSlibKey:
    """Return a public key from its PEM text. KeysError where it is no Ed25519 public key, or a weak one."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.signer import SSlibKey

    if "PRIVATE KEY-----" in pem:
        raise KeysError("A private key was given for a public one: keep it secret, whoever has it can sign.")
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise KeysError("What was given for a public key is none in PEM.") from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeysError("The public key that was given is no Ed25519 key.")
    y = int.from_bytes(key.public_bytes_raw(), "little") & (2**255 - 1)
    if y >= _FIELD or y in _LOW_ORDER:
        raise KeysError(
            "The public key that was given is of low order: anybody can sign for it. Make another one; "
            f"{_KEYGEN}."
        )
    return SSlibKey.from_crypto(key)


def to_pem(key: Key) -> str:
    """Return the PEM text of an Ed25519 public key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.keyval["public"]))
    return public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def parse_keys_by_id(trusted_keys: Iterable[TrustedKey]) -> dict[str, tuple[SSlibKey, TrustedKey]]:
    """Return the trusted keys, parsed, by their id (sha256 of the key, as securesystemslib computes it).

    KeysError where there is none, one is no Ed25519 public key, or one is given twice.
    """
    by_id: dict[str, tuple[SSlibKey, TrustedKey]] = {}
    for trusted_key in trusted_keys:
        key = parse_public_key(trusted_key.public_key)
        if key.keyid in by_id:
            raise KeysError(f"The public key {key.keyid} is given twice: which period holds is not clear.")
        by_id[key.keyid] = key, trusted_key
    if not by_id:
        raise KeysError("No public key is given: a release is verified with one.")
    return by_id


def hash_with_salt(sha256: str) -> str:
    """Return the HMAC-SHA256 of a sha256 (64 hexadecimal digits), keyed by DISCLOSURE_PIPELINE_SALT's file.

    Whoever has not got the secret cannot test what was hashed. KeysError where there is none, others than
    its owner may read it, or it is shorter than 32 bytes.
    """
    if not _SHA256.fullmatch(sha256):
        raise KeysError("The ground truth has no sha256: run ground_truth, then this again.")
    return _hash_with_salt(sha256.encode())


def make_seal(content: bytes) -> str:
    """Return what shows that some content was written by who has the salt. KeysError as `hash_with_salt`."""
    return _hash_with_salt(_SEALED + content)


def _hash_with_salt(message: bytes) -> str:
    path = Path(_read_variable(SALT, f"the file of the salt ({_KEYGEN})"))
    secret = _read_secret(path, SALT)
    if len(secret) < _SALT_BYTES or len(set(secret)) < _DISTINCT_BYTES:
        raise KeysError(f"{path}, which {SALT} names, is no {_SALT_BYTES} random bytes: {_KEYGEN}.")
    return hmac.new(secret, message, hashlib.sha256).hexdigest()
