"""Whether a conversation has a notice: the host writes its transcript to a file, and the id is in it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

from meantime.surfaces.caller import goose_sessions

# What stands before an id in a notice, up to its opening quote. Hosts escape that quote as JSON or as HTML,
# once or several times, and the bracket too (Claude Code writes `<\\task-notification`): so between `id` and
# the id anything without a space may stand that does not end like an id.
BEFORE = re.compile(rb"task-notification\s+id\S{0,32}?(?:[^A-Za-z0-9._:-]|u00(?:22|27)|x2[27])\Z")
# Claude Code notes here what waits to be said to its model. If it is killed before it was said, the session
# does not have it when it is resumed.
QUEUED = re.compile(rb'\{"type": ?"(?:queue-operation|api-request-blob)"')
GOES_ON = re.compile(rb"[A-Za-z0-9._:-]")
NEAR = 80  # bytes that are looked at before an id
LINE = 64 << 10  # bytes of a line before an id: a queued one is shorter, as a host takes 10,000 characters
PIECE = 1 << 20  # bytes that are read at once
MOST = 256 << 20  # bytes of its end: more cannot be looked through while an agent waits


def size(path: str) -> int:
    """How long it is now; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def is_database(path: str) -> bool:
    """As goose has it: one for all sessions, which is written before the model is asked."""
    return path.endswith(".db")


def found(path: str, since: Mapping[str, int], session: str = "") -> set[str] | None:
    """The ids that are in it, each looked for from its offset; None where there is no transcript.

    A transcript that is shorter than an offset was written anew, and is read from its start. It is read, not
    mapped: one that is cut off meanwhile would kill the process that has it mapped.
    """
    if is_database(path):
        return goose_sessions.found(path, session, since)
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not keep us
    except (OSError, ValueError):
        return None
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            return None
        left = {id.encode(): offset if offset <= about.st_size else 0 for id, offset in since.items()}
        return {id.decode() for id in _seen(file, about.st_size, left)}
    except OSError:
        return None
    finally:
        os.close(file)


def _seen(file: int, end: int, left: dict[bytes, int]) -> set[bytes]:
    seen: set[bytes] = set()
    if not left:
        return seen
    at = max(min(left.values()) - NEAR, end - MOST, 0)
    kept = b""  # the end of the piece before: an id may stand across the cut
    while left and (piece := os.pread(file, PIECE, at)):
        text = kept + piece
        for id in [id for id in left if has(text, id)]:
            seen.add(id)
            del left[id]
        at += len(piece)
        kept = text[-LINE:]
    return seen


def has(text: bytes, id: bytes) -> bool:
    """In a notice. The bare id would not do: a command that lists tasks prints it, too. A line that the host
    is still writing is looked at again when there is more.
    """
    at = text.find(id)
    while at >= 0:
        follows = text[at + len(id) : at + len(id) + 1]
        if follows and not GOES_ON.match(follows) and BEFORE.search(text, max(0, at - NEAR), at):
            line = text.rfind(b"\n", max(0, at - LINE), at) + 1
            if not QUEUED.match(text, line):
                return True
        at = text.find(id, at + 1)
    return False
