"""The number of processes that a command may have, where the system can limit it."""

from __future__ import annotations

from meantime.kernel.errors import Refused
from meantime.system.platform import cgroup


def check() -> None:
    """Refused, with the reason, where the number of processes cannot be limited."""
    try:
        cgroup.check()
    except OSError as problem:
        raise Refused(
            f"The number of processes cannot be limited here: {problem}.",
            code="no_cgroup",
            hint="Leave out limits.processes, or let this user write to its cgroup.",
        ) from None
