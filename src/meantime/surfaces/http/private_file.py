"""Files that nobody else may read or write: believed only while they are private."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from meantime.kernel.errors import InvalidInput


def read_private(path: Path, most: int, *, what: str, hint: str) -> bytes:
    """At most so many bytes of a file that only this user can read or write.

    what: names the file in an error, such as "The token file".
    Raises InvalidInput for a file that cannot be read, or that others can.
    """
    try:
        place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as problem:
        raise InvalidInput(f"{what} {path} cannot be read: {problem.strerror}.", hint=hint) from None
    with os.fdopen(place, "rb") as file:
        found = os.fstat(place)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise InvalidInput(f"{what} {path} is not private to you.", hint=hint)
        return file.read(most)
