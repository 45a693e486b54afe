"""The secrets under which keys that may be personal are hashed into ids: a ring of them, the newest first.

An id is stable for ever, so a version keeps the secret that was the newest when it was first hashed for. Rotating makes
a new one for versions to come. Destroying an old one makes its ids into numbers that nobody can link to a person again.
A secret is known by its fingerprint, which tells nothing of it.
"""

import base64
import os
import secrets
from collections.abc import Iterable
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

import msgspec
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from provenance_store.errors import InputError
from provenance_store.model.files import FOR_OWNER, in_turn, write_whole
from provenance_store.model.ids import hash_key, key_text, version_prefix
from provenance_store.settings import Settings

FORMAT = 1
_SHORTEST = 12


class Ring(msgspec.Struct, frozen=True):
    """The secrets, the newest first, and of each version the fingerprint of its own."""

    secrets: list[bytes]
    versions: dict[str, str]


class _Sealed(msgspec.Struct, frozen=True):
    format: int
    salt: bytes
    ring: bytes


def fingerprint(secret: bytes) -> str:
    """The name of a secret."""
    return sha256(b"headwater key " + secret).hexdigest()[:16]


class KeyRing:
    """The ring of one home, in files that only their owner reads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = settings.hmac_key_file
        self._versions = self._file.with_name("hmac-versions")

    def read(self) -> Ring:
        """All of it; the first secret is made on first use."""
        return Ring(self._settings.hmac_keys(), self._read_versions())

    def of_version(self, dataset: str, version: str) -> bytes:
        """The secret of a version: the newest at its first use, and the same ever after."""
        name = version_prefix(dataset, version)
        with self._locked():
            ring = self.read()
            known = ring.versions.get(name)
            if known is None:
                known = fingerprint(ring.secrets[0])
                _write(self._versions, _version_lines({**ring.versions, name: known}))
        for secret in ring.secrets:
            if fingerprint(secret) == known:
                return secret
        raise InputError(
            f"The keys of {name} were hashed under {known}, which was destroyed: its records cannot be told by their "
            "keys any more. Name the data as a new version."
        )

    def texts_of(self, *key: str) -> list[str]:
        """A key as it may stand in an id: plain, and hashed under every secret that there is."""
        return [key_text(*key), *(hash_key(*key, secret=secret) for secret in self._settings.hmac_keys())]

    def rotate(self) -> str:
        """Make a new secret for versions to come; its fingerprint."""
        with self._locked():
            ring = self.read()
            new = secrets.token_bytes(32)
            _write(self._file, _secret_lines([new, *ring.secrets]))
        return fingerprint(new)

    def destroy(self, name: str) -> list[str]:
        """Forget an old secret; the versions whose ids nobody can link to their keys any more."""
        with self._locked():
            ring = self.read()
            kept = [secret for secret in ring.secrets if fingerprint(secret) != name]
            if len(kept) == len(ring.secrets):
                raise InputError(f"There is no key {name}: `headwater key show` lists them.")
            if fingerprint(ring.secrets[0]) == name:
                raise InputError(f"{name} is the key that new ids are made with: `headwater key rotate` first.")
            _write(self._file, _secret_lines(kept))
        return sorted(version for version, known in ring.versions.items() if known == name)

    def export(self, passphrase: str) -> bytes:
        """The ring under a passphrase, to be kept elsewhere."""
        if len(passphrase) < _SHORTEST:
            raise InputError(f"A passphrase of {len(passphrase)} characters is soon guessed: take {_SHORTEST} or more.")
        salt = os.urandom(16)
        sealed = _Sealed(FORMAT, salt, _cipher(passphrase, salt).encrypt(msgspec.json.encode(self.read())))
        return msgspec.json.encode(sealed) + b"\n"

    def add(self, exported: bytes, passphrase: str) -> list[str]:
        """Take in an exported ring, behind the secrets that are here; the fingerprints of those that are new."""
        ring = _open(exported, passphrase)
        with self._locked():
            own = self.read() if self._file.exists() else Ring([], self._read_versions())
            for version, known in ring.versions.items():
                if own.versions.get(version, known) != known:
                    raise InputError(
                        f"{version} has key {known} there and {own.versions[version]} here: nothing taken in."
                    )
            new = [secret for secret in ring.secrets if secret not in own.secrets]
            # Versions first: without its entry a version would get the newest secret.
            _write(self._versions, _version_lines({**own.versions, **ring.versions}))
            _write(self._file, _secret_lines([*own.secrets, *new]))
        return [fingerprint(secret) for secret in new]

    def _read_versions(self) -> dict[str, str]:
        if not self._versions.exists():
            return {}
        lines = (line.split(" ") for line in self._versions.read_text("ascii").splitlines())
        return {version: known for known, version in lines}

    def _locked(self) -> AbstractContextManager[None]:
        return in_turn(self._file.with_name(".hmac-lock"))


def _write(path: Path, lines: Iterable[str]) -> None:
    write_whole(path, "".join(f"{line}\n" for line in lines).encode("ascii"), mode=FOR_OWNER)


def _secret_lines(ring: Iterable[bytes]) -> list[str]:
    return [secret.hex() for secret in ring]


def _version_lines(versions: dict[str, str]) -> list[str]:
    return [f"{known} {version}" for version, known in sorted(versions.items())]


def _open(exported: bytes, passphrase: str) -> Ring:
    try:
        sealed = msgspec.json.decode(exported, type=_Sealed)
    except msgspec.DecodeError as error:
        raise InputError(f"This is not an exported key ring: {error}") from None
    if sealed.format != FORMAT:
        raise InputError(
            f"This key ring has format {sealed.format}, and this release reads {FORMAT}: update Headwater."
        )
    try:
        return msgspec.json.decode(_cipher(passphrase, sealed.salt).decrypt(sealed.ring), type=Ring)
    except InvalidToken:
        raise InputError("The passphrase is not the one of this key ring, or the file was altered.") from None


def _cipher(passphrase: str, salt: bytes) -> Fernet:
    # About 0.1 s and 32 MB a try: a guesser pays that for each.
    return Fernet(base64.urlsafe_b64encode(Scrypt(salt, 32, n=2**15, r=8, p=1).derive(passphrase.encode())))
