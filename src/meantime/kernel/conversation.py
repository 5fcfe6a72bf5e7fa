"""What is said in a session, line by line: the form in which every agent's conversation is kept."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from .model import Json


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


def spoken(line: Line) -> str:
    """As a person reads it in a log."""
    if line.kind is Kind.CALL:
        from .payloads import as_text

        return f"→ {line.tool} {as_text(line.arguments) if line.arguments is not None else ''}".rstrip()
    if line.kind is Kind.RESULT:
        return f"{'✗' if line.failed else '←'} {line.tool} {line.text}".rstrip()
    return f"> {line.text}" if line.role == "user" else line.text
