"""A session's conversation, line by line: the form in which every agent's conversation is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from .argument_checks import check_all, shown
from .errors import InvalidInput
from .model import Json
from .payloads import as_text, jsonable, short
from .plain_text import escape_surrogates

ROLES = frozenset({"user", "assistant", "tool", "system"})
MOST_NAME = 200  # characters of a tool's name, or of an id


class Kind(StrEnum):
    TEXT = "text"  # somebody says something
    THOUGHT = "thought"  # the agent thinks aloud
    CALL = "call"  # the agent calls a tool
    RESULT = "result"  # what the tool answered
    SUMMARY = "summary"  # the conversation up to here in short: what was before is not needed any more


class Line(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """One thing that was said. `role` is user, assistant, tool or system."""

    role: str
    kind: Kind = Kind.TEXT
    text: str = ""
    tool: str = ""  # the name, of a call or a result
    call: str = ""  # which call it is, or answers
    arguments: Json = None
    failed: bool = False  # a result that is an error
    at: float = 0.0
    run: int = 1
    id: str = ""  # the host's own, where it has one


class PlacedLine(NamedTuple):
    """A line, and its place in its conversation."""

    place: int
    line: Line


class LinePage(Struct, frozen=True):
    """A stretch of a conversation. Places grow; only its keeper knows what they count."""

    lines: tuple[PlacedLine, ...]
    begin: int  # the place from which it was read: above 0 there are older lines
    next: int  # where to read on
    total: int  # the place behind the last line


def spoken(line: Line) -> str:
    """As a person reads it in a log."""
    if line.kind is Kind.CALL:
        return f"→ {line.tool} {as_text(line.arguments) if line.arguments is not None else ''}".rstrip()
    if line.kind is Kind.RESULT:
        return f"{'✗' if line.failed else '←'} {line.tool} {line.text}".rstrip()
    return f"> {line.text}" if line.role == "user" else line.text


def storable(line: Line, *, at: float, run: int) -> Line:
    """A host is somebody else's code: what it says is made JSON that can be kept. `at` is for one without."""
    return Line(
        role=_name(line.role),
        kind=Kind(line.kind),
        text=escape_surrogates(str(line.text)),
        tool=_name(line.tool),
        call=_name(line.call),
        arguments=short(jsonable(line.arguments).value),
        failed=bool(line.failed),
        at=line.at or at,
        run=run,
        id=_name(line.id),
    )


def check_lines(given: object, what: str) -> tuple[Line, ...]:
    return tuple(check_all(given, Line, what))


def chosen(
    lines: Sequence[Line], kinds: Iterable[str] = (), roles: Iterable[str] = (), last: int | None = None
) -> Sequence[Line]:
    """The lines of these kinds and roles, no name being any; only the newest `last` of them."""
    wanted, said_by = set(kinds), set(roles)
    for what, named, known in (("kind", wanted, set(Kind)), ("role", said_by, ROLES)):
        if unknown := named - known:
            raise InvalidInput(
                f"There is no {what} {shown(min(unknown))} of lines.", hint=f"Use {', '.join(sorted(known))}."
            )
    kinds, roles = wanted or set(Kind), said_by or ROLES
    found = [line for line in lines if line.kind in kinds and line.role in roles]
    return found if last is None else found[-last:] if last else []


def _name(text: object) -> str:
    return escape_surrogates(str(text))[:MOST_NAME]
