"""Secrets of the server: 256 bits, kept in a private file, compared in constant time, never logged."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import NamedTuple

from meantime.kernel.errors import InvalidInput
from meantime.kernel.ids import check_id

from .discovery import drafted

FILE = "token"
LEAST = 32  # characters


class Caller(NamedTuple):
    """The caller, what it may see (one thread, or None for everything), and whether it may change it."""

    thread: str | None = None
    writes: bool = False


class Tokens:
    """One secret opens everything. A thread's token is made from it, and needs no list to be known by."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def for_thread(self, thread: str) -> str:
        thread = check_id(thread, "thread")
        return f"{thread}~{self._seal(thread)}"

    def caller(self, token: str) -> Caller | None:
        """Its owner; None is a token that we did not give."""
        thread, mark, seal = token.rpartition("~")
        if mark:
            return Caller(thread, writes=True) if _same(seal, self._seal(thread)) else None
        return Caller(writes=True) if _same(token, self.secret) else None

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
            _make(path)
        except OSError as problem:
            raise InvalidInput(
                f"The token file {path} cannot be made: {problem.strerror}.",
                hint=f"Make sure that you can write to {folder}, and that its disk is not full.",
            ) from None
    return _read(path)


def _make(path: Path) -> None:
    """Never over one that is there: somebody may have made it in the same moment."""
    with drafted(path, new_secret().encode()) as new:
        place = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _put(new, path, place)
            with contextlib.suppress(OSError):  # where that cannot be, a power cut may cost the token
                os.fsync(place)
        finally:
            os.close(place)


def _put(new: Path, path: Path, folder: int) -> None:
    try:
        os.link(new, path)
    except FileExistsError:
        return
    except OSError:  # this file system has no links: nobody has them here, and so everybody takes this lock
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not os.path.lexists(path):
            new.rename(path)


def _read(path: Path) -> str:
    hint = f"Delete {path}; a new one is made at the next start."
    try:
        place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as problem:
        raise InvalidInput(f"The token file {path} cannot be read: {problem.strerror}.", hint=hint) from None
    with os.fdopen(place, encoding="ascii", errors="replace") as file:
        found = os.fstat(place)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise InvalidInput(f"The token file {path} is not private to you.", hint=hint)
        secret = file.read(1_000).strip()
    if len(secret) < LEAST or not (secret.isascii() and secret.isalnum()):
        raise InvalidInput(f"The token file {path} holds no token.", hint=hint)
    return secret
