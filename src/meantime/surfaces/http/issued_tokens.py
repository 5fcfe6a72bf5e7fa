"""Tokens that are given out by name or for a code: with a scope and an expiry, listed, and revoked at once.

The server keeps a hash of each, in memory and in tokens.json. A revoked or expired token stays known for a
while, so that its holder can be told why it is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace

from meantime.kernel.argument_checks import shown
from meantime.kernel.constraints import check_choice
from meantime.kernel.errors import Degraded, InvalidInput, NotFound, Refused
from meantime.kernel.ids import check_id
from meantime.kernel.plain_text import plain
from meantime.ports.clock import Clock

from .token_file import IssuedToken, read_tokens, write_tokens

PREFIX = "mt_"
ACCESS = ("read", "write")
DAY = 86_400.0
MOST = 100  # tokens with a name, and as many again of pages
MOST_DAYS = 365
MOST_NAME = 100  # characters
KEPT = 7 * DAY  # that a token is listed after its end
COARSE = 60.0  # seconds between two notes of a use
Ended = Literal["", "token_revoked", "token_expired"]


class Grant(NamedTuple):
    """The rights of a token: everything, one thread, or one task and the answer to its question."""

    access: str = "write"
    thread: str | None = None
    question: str | None = None
    days: float = 7.0

    def checked(self) -> Grant:
        """InvalidInput for a grant that cannot be given."""
        check_choice(self.access, "access", ACCESS)
        if self.thread is not None and self.question is not None:
            raise InvalidInput("thread and question exclude each other.", hint="Choose one.")
        if self.thread is not None:
            check_id(self.thread, "thread")
        if self.question is not None and self.access != "write":
            raise InvalidInput("A token that answers a question cannot be read-only.", hint="Leave one out.")
        if not 0 < self.days <= MOST_DAYS:
            raise InvalidInput(f"days={shown(self.days)} is not possible.", hint=f"Give 1 to {MOST_DAYS}.")
        return self


class Holder(NamedTuple):
    """The token that somebody showed, and why it is refused, if it is."""

    token: IssuedToken
    ended: Ended


class IssuedTokens:
    def __init__(self, clock: Clock, path: Path | None = None) -> None:
        """path: where they are kept; None keeps them in memory only."""
        self._clock = clock
        self._path = path
        self._known = {one.id: one for one in read_tokens(path)} if path is not None else {}
        self._open: dict[str, set[asyncio.Future[Ended]]] = {}  # answers under way, by the id of their token
        self._saving = asyncio.Lock()
        self._unsaved = False

    def listed(self) -> list[IssuedToken]:
        """Newest first."""
        return sorted(self._known.values(), key=lambda one: one.created_at, reverse=True)

    def holder(self, token: str) -> Holder | None:
        """None: we did not give out this token, or forgot it after its end."""
        id = token.removeprefix(PREFIX).partition("_")[0]
        known = self._known.get(id)
        if not hmac.compare_digest(_digest(token), known.digest if known else "0" * 64) or known is None:
            return None
        if ended := self._ended(known):
            return Holder(known, ended)
        now = self._clock.now()
        if known.used_at is None or not 0 <= now - known.used_at < COARSE:
            known = self._known[id] = replace(known, used_at=now)
            self._unsaved = True
        return Holder(known, "")

    async def issue(self, grant: Grant, name: str = "", *, page: bool = False) -> tuple[IssuedToken, str]:
        """The new token as it is kept, and its text, which nobody can find out again.

        page: for a page that showed its code. Pages that were not used for longest give way to new ones.
        """
        name = plain(name).strip()
        if not name or len(name) > MOST_NAME:
            raise InvalidInput(f"A token's name has 1 to {MOST_NAME} characters.", hint="Say whom it is for.")
        grant, now, id = grant.checked(), self._clock.now(), secrets.token_hex(5)
        text = f"{PREFIX}{id}_{secrets.token_hex(32)}"
        made = IssuedToken(
            id=id,
            digest=_digest(text),
            name=name,
            access=grant.access,
            thread=grant.thread,
            question=grant.question,
            page=page,
            created_at=now,
            expires_at=now + grant.days * DAY,
        )
        async with self._saving:
            self._make_room(page=page)
            self._known[id] = made
            try:
                await self._save()
            except OSError as problem:
                del self._known[id]
                text = f"The token could not be kept: {problem.strerror}."
                raise Degraded(text, hint="Free some space, then ask again.") from problem
        return made, text

    async def revoke(self, id: str) -> IssuedToken:
        """It is refused from now on, and its streams end. NotFound for an unknown id."""
        if id not in self._known:
            raise NotFound(f"No token {id[:128]!r}.", hint="`meantime token list` shows their ids.")
        if self._known[id].revoked_at is None:
            self._known[id] = replace(self._known[id], revoked_at=self._clock.now())
            self._end(id)
        revoked = self._known[id]
        async with self._saving:
            try:
                await self._save()
            except OSError as problem:
                text = f"The token is refused now, but that could not be recorded: {problem.strerror}."
                hint = "It would work again after a restart. Free some space, then revoke it again."
                raise Degraded(text, hint=hint) from problem
        return revoked

    @contextmanager
    def watched(self, token: IssuedToken) -> Generator[asyncio.Future[Ended]]:
        """A future that is done when the token ends, for an answer that takes long."""
        ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        left = max(0.0, token.expires_at - self._clock.now())
        alarm = self._clock.call_later(left, lambda: _finish(ended, "token_expired"))
        self._open.setdefault(token.id, set()).add(ended)
        try:
            yield ended
        finally:
            alarm.cancel()
            self._open[token.id].discard(ended)
            if not self._open[token.id]:
                del self._open[token.id]

    async def close(self) -> None:
        """Keeps when each was used last; no more than that is lost where the disk refuses."""
        async with self._saving:
            if self._unsaved:
                with suppress(OSError):
                    await self._save()

    def _ended(self, token: IssuedToken) -> Ended:
        if token.revoked_at is not None:
            return "token_revoked"
        return "token_expired" if token.expires_at <= self._clock.now() else ""

    def _make_room(self, *, page: bool) -> None:
        """The ended ones go first, then the page that was not used for longest."""
        now = self._clock.now()
        for one in list(self._known.values()):
            if min(one.revoked_at or one.expires_at, one.expires_at) < now - KEPT:
                del self._known[one.id]
        alike = [one for one in self._known.values() if one.page is page]
        if len(alike) < MOST:
            return
        if ended := [one for one in alike if self._ended(one)]:
            del self._known[min(ended, key=lambda one: one.created_at).id]
            return
        if not page:
            raise Refused(
                f"There are {MOST} tokens already.",
                code="too_many_tokens",
                hint="Revoke one: `meantime token list`, then `meantime token revoke ID`.",
            )
        oldest = min(alike, key=lambda one: one.used_at or one.created_at)
        del self._known[oldest.id]
        self._end(oldest.id)

    def _end(self, id: str) -> None:
        for ended in self._open.get(id, ()):
            _finish(ended, "token_revoked")

    async def _save(self) -> None:
        if self._path is not None:
            await asyncio.to_thread(write_tokens, self._path, self.listed())
        self._unsaved = False


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _finish(ended: asyncio.Future[Ended], why: Ended) -> None:
    if not ended.done():
        ended.set_result(why)
