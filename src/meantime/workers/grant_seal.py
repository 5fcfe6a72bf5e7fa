"""The work of a grant on its way to the worker: sealed, so that whoever reads the carrier's server, its
tables or its files learns no input, no value of a variable and no stdin.

Each life of a worker has an X25519 key, and so has each life of the owner; neither is ever written anywhere.
The public half of the worker's comes with its claim, that of the owner with the grant. HKDF-SHA256 makes of
both a key of its own for each grant, which is bound to the worker, the claim, the task and the attempt;
ChaCha20-Poly1305 seals with it. The grant is signed as well, as everything of the owner's is.
"""

from __future__ import annotations

import base64
import os
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from meantime.kernel.model import Work, fence_of

from .messages import GrantedMessage, SealedWork

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MOST_KEYS = 2_000  # keys of workers whose shared secret is kept; the one that was not used for longest goes
NONCE = 12  # bytes
_PURPOSE = "meantime grant 1"


class GrantSecrets(Struct, frozen=True, omit_defaults=True, gc=False):
    """The sealed part of a grant."""

    work: Work
    env: dict[str, str | None] = {}
    stdin: bytes | None = None


_SECRETS = msgspec.json.Decoder(GrantSecrets)


class _Half:
    """One side's key."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._private: X25519PrivateKey = X25519PrivateKey.generate()
        self.public = _text(self._private.public_key().public_bytes_raw())

    def shared_with(self, public: str) -> bytes | None:
        """None for a text that is not a key, and for the few keys that share the same with everybody."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(_raw(public)))
        except ValueError:
            return None


class WorkerSealKey(_Half):
    """The worker's half, for one life of its process."""

    def opened(self, granted: GrantedMessage, worker: str) -> GrantedMessage | None:
        """The grant with its work. None if it was sealed for another worker, claim, task or attempt."""
        from cryptography.exceptions import InvalidTag

        sealed = granted.sealed
        if sealed is None:
            return granted  # by an owner of an earlier version
        shared = self.shared_with(sealed.key)
        if shared is None:
            return None
        info = _info(granted, worker, sealed.key, self.public)
        try:
            data = _cipher(shared, info).decrypt(sealed.data[:NONCE], sealed.data[NONCE:], None)
            found = _SECRETS.decode(data)
        except (InvalidTag, ValueError, msgspec.MsgspecError):
            return None
        task = replace(granted.task, work=found.work)
        return GrantedMessage(nonce=granted.nonce, task=task, env=found.env, stdin=found.stdin)


class OwnerSeal:
    """The owner's half. One exchange serves all grants to one life of a worker."""

    def __init__(self) -> None:
        self._half: _Half | None = None
        self._shared: OrderedDict[str, bytes] = OrderedDict()

    def can_reach(self, key: str) -> bool:
        """Whether this is a key that can be sealed for."""
        return self._secret(key) is not None

    def sealed(self, granted: GrantedMessage, key: str, worker: str) -> GrantedMessage | None:
        """The grant without anything secret but in its seal. None for a key that cannot be sealed for."""
        shared = self._secret(key)
        if shared is None or self._half is None:
            return None
        task = granted.task
        secrets = msgspec.json.encode(GrantSecrets(task.work, granted.env, granted.stdin))
        nonce = os.urandom(NONCE)
        cipher = _cipher(shared, _info(granted, worker, self._half.public, key))
        sealed = SealedWork(self._half.public, nonce + cipher.encrypt(nonce, secrets, None))
        bare = replace(task, work=Work(task.work.kind))
        return GrantedMessage(nonce=granted.nonce, task=bare, sealed=sealed)

    def _secret(self, key: str) -> bytes | None:
        shared = self._shared.get(key)
        if shared is None:
            if self._half is None:
                self._half = _Half()
            shared = self._half.shared_with(key)
            if shared is None:
                return None
            self._shared[key] = shared
            if len(self._shared) > MOST_KEYS:
                self._shared.popitem(last=False)
        self._shared.move_to_end(key)
        return shared


def _info(granted: GrantedMessage, worker: str, owner_key: str, worker_key: str) -> bytes:
    """Both keys, and everything that the grant is for: another one of these is another key."""
    task = granted.task
    bound = (_PURPOSE, owner_key, worker_key, worker, granted.nonce, task.id, fence_of(task.run))
    return msgspec.json.encode(bound)


def _cipher(shared: bytes, info: bytes) -> ChaCha20Poly1305:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return ChaCha20Poly1305(HKDF(SHA256(), length=32, salt=None, info=info).derive(shared))


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
