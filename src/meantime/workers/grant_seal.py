"""Input on its way to the worker: sealed, so that whoever reads the carrier's server, its tables or its files
learns no argument, no value of a variable, no stdin, no text that is sent and no answer to a question.

Each life of a worker has an X25519 key, and so has each life of the owner; neither is ever written anywhere.
The public half of the worker's comes with its claim and with every `alive`, that of the owner with the seal.
HKDF-SHA256 makes of both a key of its own for each message, which is bound to the worker, the claim and
whatever else the message is for; ChaCha20-Poly1305 seals with it. The message is signed as well, as
everything of the owner's is.
"""

from __future__ import annotations

import base64
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from meantime.kernel.model import Work, fence_of
from meantime.kernel.questions import Reply

from .messages import GrantedMessage, RepliedMessage, Sealed, SendMessage

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

MOST_KEYS = 2_000  # keys of workers whose shared secret is kept; the one that was not used for longest goes
NONCE = 12  # bytes
_GRANT, _SEND, _REPLY = "meantime grant 1", "meantime send 1", "meantime reply 1"
InputMessage: TypeAlias = SendMessage | RepliedMessage


class GrantSecrets(Struct, frozen=True, omit_defaults=True, gc=False):
    """The sealed part of a grant."""

    work: Work
    env: dict[str, str | None] = {}
    stdin: bytes | None = None


_SECRETS = msgspec.json.Decoder(GrantSecrets)
_REPLIES = msgspec.json.Decoder(Reply)


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
        if granted.sealed is None:
            return granted  # by an owner of an earlier version
        data = self._data(granted.sealed, worker, _bound_grant(granted))
        try:
            found = None if data is None else _SECRETS.decode(data)
        except msgspec.MsgspecError:
            return None
        if found is None:
            return None
        task = replace(granted.task, work=found.work)
        return GrantedMessage(
            nonce=granted.nonce, task=task, env=found.env, stdin=found.stdin, events=granted.events
        )

    def opened_input(self, message: InputMessage, worker: str) -> InputMessage | None:
        """The message with its text. None if it was sealed for another worker, claim or question, or for an
        earlier life of this worker: the owner repeats it, and has the new key by then."""
        if message.sealed is None:
            return message  # by an owner of an earlier version, or without a text
        data = self._data(message.sealed, worker, _bound_input(message))
        if data is None:
            return None
        if isinstance(message, SendMessage):
            return replace(message, data=data, sealed=None)
        try:
            return replace(message, reply=_REPLIES.decode(data), sealed=None)
        except msgspec.MsgspecError:
            return None

    def _data(self, sealed: Sealed, worker: str, bound: Bound) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        shared = self.shared_with(sealed.key)
        if shared is None:
            return None
        cipher = _cipher(shared, _info(bound, worker, sealed.key, self.public))
        try:
            return cipher.decrypt(sealed.data[:NONCE], sealed.data[NONCE:], None)
        except (InvalidTag, ValueError):
            return None


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
        task = granted.task
        secrets = msgspec.json.encode(GrantSecrets(task.work, granted.env, granted.stdin))
        sealed = self._seal(secrets, key, worker, _bound_grant(granted))
        if sealed is None:
            return None
        bare = replace(task, work=Work(task.work.kind))
        return GrantedMessage(nonce=granted.nonce, task=bare, sealed=sealed, events=granted.events)

    def sealed_input(self, message: InputMessage, key: str, worker: str) -> InputMessage | None:
        """The message without its text but in its seal. None for a key that cannot be sealed for."""
        if isinstance(message, SendMessage):
            sealed = self._seal(message.data, key, worker, _bound_input(message))
            return None if sealed is None else replace(message, data=b"", sealed=sealed)
        if message.reply is None:
            return message
        sealed = self._seal(msgspec.json.encode(message.reply), key, worker, _bound_input(message))
        return None if sealed is None else replace(message, reply=None, sealed=sealed)

    def _seal(self, data: bytes, key: str, worker: str, bound: Bound) -> Sealed | None:
        shared = self._secret(key)
        if shared is None or self._half is None:
            return None
        nonce = os.urandom(NONCE)
        cipher = _cipher(shared, _info(bound, worker, self._half.public, key))
        return Sealed(self._half.public, nonce + cipher.encrypt(nonce, data, None))

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


Bound: TypeAlias = tuple[object, ...]  # purpose of a message, and all that it is for: each has its own key


def _bound_grant(granted: GrantedMessage) -> Bound:
    task = granted.task
    return _GRANT, granted.nonce, task.id, fence_of(task.run)


def _bound_input(message: InputMessage) -> Bound:
    if isinstance(message, SendMessage):
        return _SEND, message.nonce, message.sender, message.number, message.eof
    return _REPLY, message.nonce, message.question


def _info(bound: Bound, worker: str, owner_key: str, worker_key: str) -> bytes:
    purpose, *rest = bound
    return msgspec.json.encode((purpose, owner_key, worker_key, worker, *rest))


def _cipher(shared: bytes, info: bytes) -> ChaCha20Poly1305:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return ChaCha20Poly1305(HKDF(SHA256(), length=32, salt=None, info=info).derive(shared))


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
