"""Which conversation a client is. Where it gives nothing to hold on to, its process does."""

from __future__ import annotations

import os

from meantime.kernel.ids import check_id
from meantime.surfaces.caller.caller_thread import OURS, session_of, thread_of_session
from meantime.system.platform import BETWEEN, boot, stat

TYPE_CHECKING = False  # to load `typing` takes time, and a client waits for its first answer
if TYPE_CHECKING:
    from collections.abc import Mapping

THREAD = "This conversation is the thread {thread} of Meantime."


def is_said(given: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    return bool(given or environ.get(OURS))


def own_thread(given: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The command line decides, then the environment, then the process that started us, and where."""
    said = given or environ.get(OURS)
    if said:
        return check_id(said, "thread")
    session = session_of(environ)
    if session:
        return thread_of_session(session)
    return f"mcp-{_mark(*_agent(os.getppid()), _folder())}"


def instructions(guidance: str, thread: str, *, said: bool, by_argument: bool) -> str:
    """The server's description of itself. Its thread is not in it where every call names its own."""
    whose = "" if by_argument and not said else THREAD.format(thread=thread)
    return f"{guidance} {whose}".strip()


def _agent(pid: int) -> tuple[int, str]:
    """The process that this is for, by its id and its start: the id alone will be another's one day."""
    found = stat(pid)
    for _ in range(5):
        if found is None or found.name not in BETWEEN or found.parent <= 1:
            break
        pid = found.parent
        found = stat(pid)
    return pid, str(found.started) if found else ""


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _mark(*parts: object) -> str:
    import hashlib  # only where an agent says nothing of itself

    return hashlib.sha256("\0".join(map(str, (boot(), *parts))).encode()).hexdigest()[:16]
