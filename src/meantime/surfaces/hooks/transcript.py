"""Whether a conversation has a notice: the host writes its transcript to a file, and the id is in it."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable

MOST = 256 * 1024 * 1024  # bytes of its end: more cannot be looked through in the time that a hook has


def found(path: str, ids: Iterable[str]) -> set[str] | None:
    """Those of the ids that are in it; None where there is no transcript to look into."""
    wanted = list(ids)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0 or not wanted:
                return set()
            start = max(0, size - MOST) // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
            with mmap.mmap(file.fileno(), size - start, access=mmap.ACCESS_READ, offset=start) as text:
                return {id for id in wanted if _mark(id).search(text)}
    except (OSError, ValueError):
        return None


def _mark(id: str) -> re.Pattern[bytes]:
    """As the kernel writes it into a notice, inside of a JSON string, however often that was escaped, as
    JSON or as HTML. The bare id would not do: a command that lists tasks prints it, too."""
    quote = rb'(?:\\*"|&quot;)'
    return re.compile(rb"task-notification id=" + quote + re.escape(id.encode()) + quote)
