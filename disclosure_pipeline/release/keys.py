"""The keys that sign releases and verify them, and the salt of the ground truth's hash."""

from __future__ import annotations

import errno
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
from disclosure_pipeline.policy.reviewed_files import TrustedKey, read_key_file
from disclosure_pipeline.runtime.files import sync_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from securesystemslib.signer import Key, Signer, SSlibKey

SIGNING_KEY = "DISCLOSURE_PIPELINE_SIGNING_KEY"
PUBLIC_KEY = "DISCLOSURE_PIPELINE_PUBLIC_KEY"
SALT = "DISCLOSURE_PIPELINE_SALT"

_SALT_BYTES = 32
# A secret with fewer distinct bytes was typed, not drawn; random hexadecimal digits have more, too.
_DISTINCT_BYTES = 8
_MAXIMUM_BYTES = 1 << 16
# Ed25519 (RFC 8032): the field's prime, and the y coordinates of the eight points of low order. Anybody can
# forge a signature for such a public key.
_FIELD = 2**255 - 19
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_LOW_ORDER = frozenset({0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8})
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# No sha256 begins like this, so a seal never equals a salted hash.
_SEALED = b"sealed "
_KEYGEN = "`disclosure-pipeline keygen FOLDER` makes one"


class KeysError(DisclosurePipelineError):
    """A key or the salt is missing or unusable, or a signer fails."""


@dataclass(frozen=True)
class KeyFiles:
    """The files of a key pair and a salt."""

    signing_key: Path
    public_key: Path
    salt: Path

    @classmethod
    def in_folder(cls, folder: Path) -> KeyFiles:
        """Return the paths of the files that `keygen` writes into a folder."""
        return cls(folder / "signing-key.pem", folder / "public-key.pem", folder / "salt")


def keygen(folder: Path) -> KeyFiles:
    """Write a new Ed25519 key pair (PEM) and a salt into a folder; others can read only the public key.

    Raise KeysError, and write nothing, if one of the files exists already or cannot be written.
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
        raise KeysError(f"Cannot write keys into {folder} ({error}): name a new or empty folder.") from None
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
    """Load the signer of releases from the environment.

    DISCLOSURE_PIPELINE_SIGNING_KEY is the path of a private key, or the URI of a securesystemslib signer,
    whose public key is in the file DISCLOSURE_PIPELINE_PUBLIC_KEY. Raise KeysError if a key is missing or not
    Ed25519, or if anyone but its owner may read the private key.
    """
    from securesystemslib.signer import CryptoSigner, Signer

    location = _read_variable(SIGNING_KEY, f"the private key's file ({_KEYGEN}) or the URI of a signer")
    uri = _URI.match(location)
    if uri is None:
        return CryptoSigner(_load_private_key(Path(location)))
    path = Path(_read_variable(PUBLIC_KEY, f"the file of the public key (PEM) that belongs to {SIGNING_KEY}"))
    keys = read_key_file(path)
    if len(keys) != 1:
        raise KeysError(f"{path} lists several keys: {PUBLIC_KEY} must name only that of {SIGNING_KEY}.")
    key = parse_public_key(keys[0].public_key)
    if uri[1] == CryptoSigner.SCHEME:
        folder = os.environ.get(CryptoSigner.PREFIX_ENV_VAR, "")
        _read_secret(Path(folder, urlparse(location).path), SIGNING_KEY)
    try:
        signer = Signer.from_priv_key_uri(location, key)
        signer_key = signer.public_key
    except Exception as error:  # securesystemslib: a signer may raise anything
        raise KeysError(
            f"The signer {uri[1]}: of {SIGNING_KEY} cannot be used with the public key of {PUBLIC_KEY} "
            f"({type(error).__name__}: {error}). For a private key in a file, give only its path."
        ) from None
    if signer_key != key:
        raise KeysError(f"The signer {uri[1]}: of {SIGNING_KEY} has a different key than {PUBLIC_KEY}.")
    return signer


def _read_variable(name: str, meaning: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise KeysError(f"The environment variable {name} is not set: it names {meaning}.")
    return value


def _load_private_key(path: Path) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read_secret(path, SIGNING_KEY)
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError:
        raise KeysError(f"{path} is encrypted: use a key without a passphrase, or a signer.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise KeysError(f"{path} holds no private key in PEM: {_KEYGEN}.") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeysError(f"{path} holds no Ed25519 key: {_KEYGEN}.")
    return key


def _read_secret(path: Path, variable: str) -> bytes:
    """Read a secret file. Raise KeysError unless it is a regular file that only this user can access."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        problem = "is a link" if error.errno == errno.ELOOP else f"cannot be read ({error.strerror})"
        raise KeysError(f"{path}, named by {variable}, {problem}: name the file itself.") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise KeysError(f"{path}, named by {variable}, is not a regular file.")
        if status.st_uid != os.geteuid():
            raise KeysError(f"{path} belongs to a different user than this process.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise KeysError(
                f"Others may read or change {path}: run `chmod 600 {path}`, and make a new one unless it is "
                "certain that nobody did."
            )
        content = os.read(handle, _MAXIMUM_BYTES + 1)
    finally:
        os.close(handle)
    if len(content) > _MAXIMUM_BYTES:
        raise KeysError(f"{path}, named by {variable}, is larger than {_MAXIMUM_BYTES} bytes.")
    return content


def parse_public_key(pem: str) -> SSlibKey:
    """Parse an Ed25519 public key from PEM. Raise KeysError if it is anything else, or of low order."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.signer import SSlibKey

    if "PRIVATE KEY-----" in pem:
        raise KeysError("Expected a public key, got a private one: keep it secret, whoever has it can sign.")
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise KeysError("The given public key is not in PEM.") from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeysError("The given public key is not an Ed25519 key.")
    y = int.from_bytes(key.public_bytes_raw(), "little") & (2**255 - 1)
    if y >= _FIELD or y in _LOW_ORDER:
        raise KeysError(
            f"The given public key is of low order: anybody can sign for it. Make another one; {_KEYGEN}."
        )
    return SSlibKey.from_crypto(key)


def to_pem(key: Key) -> str:
    """Return the PEM text of an Ed25519 public key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.keyval["public"]))
    return public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def parse_keys_by_id(trusted_keys: Iterable[TrustedKey]) -> dict[str, tuple[SSlibKey, TrustedKey]]:
    """Parse trusted keys; return each with its entry, by its id (securesystemslib's sha256 of the key).

    Raise KeysError if there are none, one is not a sound Ed25519 public key, or one is given twice.
    """
    by_id: dict[str, tuple[SSlibKey, TrustedKey]] = {}
    for trusted_key in trusted_keys:
        key = parse_public_key(trusted_key.public_key)
        if key.keyid in by_id:
            raise KeysError(f"The public key {key.keyid} is given twice: its period is ambiguous.")
        by_id[key.keyid] = key, trusted_key
    if not by_id:
        raise KeysError("No public key is given: verifying a release needs one.")
    return by_id


def hash_with_salt(sha256: str) -> str:
    """Return the HMAC-SHA256 of a sha256 (64 hexadecimal digits), keyed by the salt.

    Nobody without the salt can test a guess of what was hashed. Raise KeysError if the file that
    DISCLOSURE_PIPELINE_SALT names is missing, accessible to others, or not 32 random bytes.
    """
    if not _SHA256.fullmatch(sha256):
        raise KeysError("The ground truth has no sha256: run ground_truth, then this again.")
    return _hash_with_salt(sha256.encode())


def make_seal(content: bytes) -> str:
    """Return an HMAC of content, keyed by the salt. Raise KeysError as `hash_with_salt` does."""
    return _hash_with_salt(_SEALED + content)


def _hash_with_salt(message: bytes) -> str:
    path = Path(_read_variable(SALT, f"the file of the salt ({_KEYGEN})"))
    secret = _read_secret(path, SALT)
    if len(secret) < _SALT_BYTES or len(set(secret)) < _DISTINCT_BYTES:
        raise KeysError(f"{path}, named by {SALT}, does not hold {_SALT_BYTES} random bytes: {_KEYGEN}.")
    return hmac.new(secret, message, hashlib.sha256).hexdigest()
