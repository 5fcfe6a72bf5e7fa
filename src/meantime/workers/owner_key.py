"""Signatures of the owner: workers pin its public key, so that nobody else can give them work.

Ed25519 by `cryptography`, of the extra `workers`; it is loaded when a key is first used.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from meantime.kernel.argument_checks import shown
from meantime.kernel.errors import InvalidInput
from meantime.system.atomic_file import make_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE = 64  # bytes
KEY = 32  # bytes
_MISSING = "Workers need the package cryptography."
_INSTALL = "Install it: pip install 'meantime[workers]'."


class Signer:
    """The owner's private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def load(cls, path: Path | None) -> Signer:
        """The key in this file, which is made where there is none; only its user can read it. Without a path
        it is a new key, for a ledger that forgets."""
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        except ImportError:
            raise InvalidInput(_MISSING, hint=_INSTALL) from None
        if path is None:
            return cls(Ed25519PrivateKey.generate())
        try:
            secret = path.read_bytes()
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_file(path, Ed25519PrivateKey.generate().private_bytes_raw())
            secret = path.read_bytes()  # perhaps of somebody who came first
        if len(secret) != KEY:
            raise InvalidInput(
                f"{path} is not a key of Meantime.",
                hint="Remove it: another one is made, and workers pin that.",
            )
        return cls(Ed25519PrivateKey.from_private_bytes(secret))

    @property
    def public(self) -> str:
        """The key that workers pin."""
        return base64.urlsafe_b64encode(self._key.public_key().public_bytes_raw()).decode().rstrip("=")

    def signed(self, data: bytes) -> bytes:
        return self._key.sign(data) + data


class Verifier:
    """The owner's public key, as a worker has pinned it."""

    def __init__(self, public: str) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        except ImportError:
            raise InvalidInput(_MISSING, hint=_INSTALL) from None
        try:
            raw = base64.urlsafe_b64decode(public + "=" * (-len(public) % 4))
            self._key: Ed25519PublicKey = Ed25519PublicKey.from_public_bytes(raw)
        except ValueError:
            raise InvalidInput(
                f"{shown(public)} is not the key of an owner.",
                hint="Copy the one that `meantime workers` prints at the owner.",
            ) from None

    def opened(self, data: bytes) -> bytes | None:
        """The signed bytes; None if this owner did not sign them."""
        from cryptography.exceptions import InvalidSignature

        if len(data) <= SIGNATURE:
            return None
        try:
            self._key.verify(data[:SIGNATURE], data[SIGNATURE:])
        except InvalidSignature:
            return None
        return data[SIGNATURE:]
