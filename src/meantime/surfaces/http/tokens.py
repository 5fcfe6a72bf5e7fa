"""Secrets of the server: 256 bits, kept in a private file, compared in constant time, never logged."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import NamedTuple

from meantime.kernel.errors import InvalidInput
from meantime.kernel.ids import check_id
from meantime.system.atomic_file import make_file

from .issued_tokens import PREFIX, IssuedTokens
from .one_time_codes import OneTimeCodes
from .private_file import read_private
from .token_file import IssuedToken

FILE = "token"
LEAST = 32  # characters


class Caller(NamedTuple):
    """The caller, what it may see (one thread, or None for everything), and whether it may change it."""

    thread: str | None = None
    writes: bool = False
    question: str | None = None  # the one task that it may read and answer; nothing else
    issued: IssuedToken | None = None  # the token that it showed, if that is one of a list
    ended: str = ""  # why that token is refused

    @property
    def owner(self) -> bool:
        """The server's own user: by the secret, by the unix socket, or by a program that only reads."""
        return self.thread is None and self.issued is None


class Tokens:
    """One secret opens everything. A thread's token is made from it, and needs no list to be known by. The
    tokens of a list have scopes, an expiry, and can be revoked; codes are exchanged for one of those.
    """

    def __init__(
        self, secret: str, issued: IssuedTokens | None = None, codes: OneTimeCodes | None = None
    ) -> None:
        self.secret = secret
        self._issued = issued
        self._codes = codes

    @property
    def issued(self) -> IssuedTokens:
        assert self._issued is not None, "the server is not open"
        return self._issued

    @property
    def codes(self) -> OneTimeCodes:
        assert self._codes is not None, "the server is not open"
        return self._codes

    def for_thread(self, thread: str) -> str:
        thread = check_id(thread, "thread")
        return f"{thread}~{self._seal(thread)}"

    def caller(self, token: str) -> Caller | None:
        """Its owner; None is a token that we did not give."""
        if token.startswith(PREFIX):
            return self._holder(token)
        thread, mark, seal = token.rpartition("~")
        if mark:
            return Caller(thread, writes=True) if _same(seal, self._seal(thread)) else None
        return Caller(writes=True) if _same(token, self.secret) else None

    def _holder(self, token: str) -> Caller | None:
        found = self._issued and self._issued.holder(token)
        if not found:
            return None
        one, ended = found
        return Caller(one.thread, one.access == "write", one.question, one, ended)

    def _seal(self, thread: str) -> str:
        return hmac.new(
            self.secret.encode(), f"thread:{thread}".encode("utf-8", "surrogatepass"), hashlib.sha256
        ).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())


def new_secret() -> str:
    return secrets.token_hex(32)


def kept_secret(folder: Path) -> str:
    """The secret of this folder: made once, in a file that nobody else can read."""
    path = folder / FILE
    if not os.path.lexists(path):
        try:
            make_file(path, new_secret().encode())
        except OSError as problem:
            raise InvalidInput(
                f"The token file {path} cannot be made: {problem.strerror}.",
                hint=f"Make sure that you can write to {folder}, and that its disk is not full.",
            ) from None
    return _read(path)


def _read(path: Path) -> str:
    hint = f"Delete {path}; a new one is made at the next start."
    secret = read_private(path, 1_000, what="The token file", hint=hint).decode("ascii", "replace").strip()
    if len(secret) < LEAST or not (secret.isascii() and secret.isalnum()):
        raise InvalidInput(f"The token file {path} holds no token.", hint=hint)
    return secret
