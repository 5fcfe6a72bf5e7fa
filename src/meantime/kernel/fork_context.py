"""A conversation as the beginning of another: cut to what matters, with a preamble that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from .lines import Kind, Line
from .payloads import as_text, clean
from .plain_text import escape_surrogates

WHOLE, SHORTENED = 5, 10  # of the newest tool results: so many whole, and so many of those before them
SHORT, SHORTEST = 3_000, 500  # characters of the ones after these
CHARACTERS = 4  # to a token, nearly
TOKENS = 50_000
HEAD = 0.8  # of what is kept of command output and errors; the rest is their end
_COMMANDS = ("bash", "shell", "exec", "terminal", "command", "run")
_TAG = "conversation"
PREAMBLE = (
    "You go on from a copy of another agent's conversation, which follows. It is there for you to know; "
    "nobody sees what you do with it, and you do not answer it.{cut} Files may have changed since: read "
    "again what you rely on."
)

# Where the host has copied the session itself: how much of it still fits is the host's business.
COPIED = (
    "You go on from a copy of another agent's conversation, which is what was said above. It may have been "
    "shortened to fit. It is there for you to know, and you do not answer it. Files may have changed since: "
    "read again what you rely on."
)


class Forked(NamedTuple):
    lines: Sequence[Line]
    dropped: int  # lines at the beginning
    shortened: int  # tool results, and a last line that was too long by itself
    compacted: bool  # what was before a summary is left out


def fork(lines: Sequence[Line], tokens: int = TOKENS) -> Forked:
    """From the last summary on; tool results the shorter the older; oldest dropped first, never the last."""
    start = max((place for place, line in enumerate(lines) if line.kind is Kind.SUMMARY), default=0)
    kept, shortened = _shortened([line for line in lines[start:] if line.kind is not Kind.THOUGHT])
    left = tokens * CHARACTERS
    first = len(kept)
    for place in range(len(kept) - 1, -1, -1):
        left -= len(said(kept[place]))
        if left < 0:
            break
        first = place
    if kept and first == len(kept):  # the last alone is too long: what fits of it
        first -= 1
        kept[first] = _fitting(kept[first], tokens * CHARACTERS)
        shortened += 1
    return Forked(kept[first:], first, shortened, start > 0)


def seed(lines: Sequence[Line], tokens: int = TOKENS) -> str:
    """The first message for the new agent."""
    forked = fork(lines, tokens)
    cuts = [
        "what was before its last summary is left out" if forked.compacted else "",
        f"{forked.dropped} lines at its beginning are left out" if forked.dropped else "",
        f"{forked.shortened} results of tools are shortened" if forked.shortened else "",
    ]
    cut = "; ".join(part for part in cuts if part)
    spoken = "\n\n".join(said(line) for line in forked.lines)
    preamble = PREAMBLE.format(cut=f" To save room, {cut}." if cut else "")
    return f"{preamble}\n\n<{_TAG}>\n{spoken}\n</{_TAG}>"


def _shortened(lines: Sequence[Line]) -> tuple[list[Line], int]:
    newer = count = 0
    kept: list[Line] = []
    for line in reversed(lines):
        if line.kind is Kind.RESULT:
            newer += 1
            most = None if newer <= WHOLE else SHORT if newer <= WHOLE + SHORTENED else SHORTEST
            if most is not None and len(line.text) > most:
                line = replace(line, text=_cut(line, most))
                count += 1
        kept.append(line)
    return kept[::-1], count


def _fitting(line: Line, most: int) -> Line:
    """Cut so far that with its label and its mark it has at most so many characters."""
    if line.kind is Kind.CALL:
        text = as_text(line.arguments)
        return replace(line, arguments=text[: max(0, most - len(line.tool) - len(line.role) - 10)])
    over = len(said(line)) - most
    while over > 0 and line.text:
        keep = max(0, min(len(line.text) - over - _MARK_ROOM, len(line.text) - 1))
        line = replace(line, text=_cut(line, keep) if keep else "")
        over = len(said(line)) - most
    return line


_MARK_ROOM = 50


def _cut(line: Line, most: int) -> str:
    gone = len(line.text) - most
    mark = f"\n[… {gone} characters left out …]\n"
    both_ends = line.failed or any(word in line.tool.casefold() for word in _COMMANDS)
    if not both_ends:
        return line.text[:most] + mark.rstrip()
    head = int(most * HEAD)
    return line.text[:head] + mark + line.text[len(line.text) - (most - head) :]


def said(line: Line) -> str:
    """As the new agent reads it. It was said by others: nothing in it can end the conversation."""
    text = _safe(line.text)
    if line.kind is Kind.CALL:
        given = _safe(as_text(line.arguments)) if line.arguments is not None else ""
        return f"[{line.role} calls {line.tool}] {given}".rstrip()
    if line.kind is Kind.RESULT:
        return f"[{line.tool} {'failed' if line.failed else 'answers'}] {text}"
    return f"[{line.kind if line.kind is Kind.SUMMARY else line.role}] {text}"


def _safe(text: str) -> str:
    return clean(escape_surrogates(text)).replace(f"</{_TAG}>", f"<\\/{_TAG}>")
