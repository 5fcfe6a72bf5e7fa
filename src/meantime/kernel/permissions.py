"""Permissions by rule: what an agent's settings allow and deny, and what it was answered for its task."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from .questions import TASK, Reply

ASK = "ask"


def ruling(subject: str, allow: Iterable[str], deny: Iterable[str], otherwise: str) -> str:
    """ "allow", "deny" or "ask". A tool that is denied by name is denied, whatever else allows it."""
    said = subject.casefold()
    if any(fnmatchcase(said, pattern.casefold()) for pattern in deny):
        return "deny"
    if any(fnmatchcase(said, pattern.casefold()) for pattern in allow):
        return "allow"
    return otherwise


def granted(subject: str, answers: Iterable[Reply]) -> bool | None:
    """The last answer that was given for all of this task; None where there is none."""
    found = [reply.allows for reply in answers if reply.scope == TASK and reply.subject == subject]
    return found[-1] if found else None
