"""One-time codes: a link carries one, and a page exchanges it for a token. They live in memory only."""

from __future__ import annotations

import hmac
import secrets
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256

from msgspec import Struct

from meantime.kernel.argument_checks import shown
from meantime.kernel.errors import InvalidInput, MeantimeError, Refused
from meantime.ports.clock import Clock

from .issued_tokens import Grant

MINUTES = 2
MOST_MINUTES = 1_440
MOST = 32  # codes at once
REMEMBERED = 96  # codes that are over, so that a second use is explained
TRIES = 20  # wrong codes in a minute
_MINUTE = 60.0
_AGAIN = "A link works once, and for a short time. Get another one with `meantime open`."


class CodeRefused(MeantimeError):
    """This code is not exchanged; `code` says why."""


class Code(Struct):
    digest: bytes
    grant: Grant
    same_user: bool  # only a program of the server's own user may exchange it
    ends: float  # on the monotonic clock
    used: bool = False


class OneTimeCodes:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: list[Code] = []
        # Separate for this user and all others: nobody else can keep this user's page from opening.
        self._wrong: dict[bool, deque[float]] = {own: deque(maxlen=TRIES) for own in (True, False)}

    def make(self, grant: Grant, *, minutes: int = MINUTES, same_user: bool = False) -> tuple[str, float]:
        """A new code, and when it expires, as a time of the wall clock.

        same_user: other users cannot exchange it, though they see it in the arguments of a browser.
        """
        if type(minutes) is not int or not 0 < minutes <= MOST_MINUTES:
            text = f"minutes={shown(minutes)} is not possible."
            raise InvalidInput(text, hint=f"Give a whole number from 1 to {MOST_MINUTES}.")
        now = self._clock.monotonic()
        live = [one for one in self._codes if not one.used and now < one.ends]
        if len(live) >= MOST:
            text = f"{MOST} links are open, and none of them was used."
            raise Refused(text, code="too_many_codes", hint="Use one of them, or wait until they expire.")
        over = [one for one in self._codes if one.used or now >= one.ends]
        self._codes = [*over[-REMEMBERED:], *live]
        code = secrets.token_urlsafe(24)
        self._codes.append(Code(_digest(code), grant.checked(), same_user, now + minutes * _MINUTE))
        return code, self._clock.now() + minutes * _MINUTE

    @contextmanager
    def taken(self, code: str, *, own: bool) -> Generator[Grant]:
        """The grant of a code, for the one who comes first. The code can be used again if the block raises.

        own: a program of the server's own user asks.
        """
        found = self._find(code, own=own)
        found.used = True
        try:
            yield found.grant
        except BaseException:
            found.used = False
            raise

    def _find(self, code: str, *, own: bool) -> Code:
        now, wrong = self._clock.monotonic(), self._wrong[own]
        if len(wrong) == TRIES and now - wrong[0] < _MINUTE:
            text = "Too many wrong codes were tried."
            raise CodeRefused(text, code="too_many_tries", hint="Wait a minute, then open the link again.")
        digest = _digest(code)
        # All of them are compared, so that the time says nothing about any.
        found = [one for one in self._codes if hmac.compare_digest(one.digest, digest)]
        if not found:
            wrong.append(now)
            raise CodeRefused("This code is unknown or expired.", code="unknown_code", hint=_AGAIN)
        if found[0].used:
            raise CodeRefused("This code was used already.", code="code_used", hint=_AGAIN)
        if now >= found[0].ends:
            raise CodeRefused("This code has expired.", code="code_expired", hint=_AGAIN)
        if found[0].same_user and not own:
            hint = "Open the link of `meantime open --print` there."
            raise CodeRefused("This code is for a browser of the same user.", code="other_user", hint=hint)
        return found[0]


def _digest(code: str) -> bytes:
    return sha256(code.encode("utf-8", "surrogatepass")).digest()


def link(url: str, code: str) -> str:
    """The code is in the fragment: browsers send that to no server, and no log has it."""
    reached = url.replace("://0.0.0.0:", "://127.0.0.1:").replace("://[::]:", "://[::1]:")
    return f"{reached}/#code={code}"
