"""The session of an agent that names it to its hooks alone, and neither to its shell nor to its MCP servers.

Gemini CLI is one, and Cursor does not name it to its servers. Claude Code does when it starts them, but not
when a session is cleared and they live on. Shell, servers and hooks are started by the same process of the
agent. So a hook writes the session down under that process, and a command or a server looks for what was
written under a process above it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import islice, takewhile
from typing import NamedTuple

from meantime.daemon.home import home
from meantime.system.platform import BETWEEN, boot, stat

FOLDER = "sessions"  # in the home
SESSION, CALL = ".session", ".call"
CURSOR = "cursor"
DEPTH = 30  # processes above us that are looked at
MOST = 400  # characters of a session's name
OLD = 30 * 86_400  # seconds after which nobody looks for it any more
SWEPT = 500  # files that are looked at in one go


class Above(NamedTuple):
    pid: int
    started: str  # the pid alone will be another's one day
    name: str


class AgentSessions:
    """The notes of hooks in a home."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._home = home(os.environ if environ is None else environ)
        self._folder = os.fspath(self._home.folder / FOLDER)

    def write(self, session: str) -> None:
        """From a hook: the process that runs it has this session from now on."""
        self._write(_mark(self._agent) + SESSION, session)

    def write_call(self, tool: str, arguments: object, session: str) -> None:
        """From a hook: this session is about to make this call. One process may have several sessions."""
        self._write(_mark(self._agent, _call(tool, arguments)) + CALL, session)

    def session(self) -> str:
        """The session of the nearest process above us that has one; empty for none."""
        if not os.path.isdir(self._folder):
            return ""
        return next(filter(None, (self._read(_mark(_identity(one)) + SESSION) for one in above())), "")

    def take_call(self, tool: str, arguments: object) -> str:
        """From a server: whose call it is, once; where nobody said so, whose the process is that started us;
        empty for neither. Two sessions of one process that make the same call in the same moment may be taken
        for each other."""
        if not os.path.isdir(self._folder):
            return ""
        name = _mark(self._agent, _call(tool, arguments)) + CALL
        session = self._read(name)
        if not session:
            return self._read(_mark(self._agent) + SESSION)
        with suppress(OSError):
            os.unlink(f"{self._folder}/{name}")
        return session

    @cached_property
    def _agent(self) -> str:
        """The process that started us, which stays: a server looks for each of its calls."""
        return _identity(_agent())

    def _read(self, name: str) -> str:
        path = f"{self._folder}/{name}"
        try:
            os.stat(path)  # most of the time there is none, and `open` takes three times as long to say so
            with open(path, encoding="utf-8") as file:
                return file.read(MOST)
        except (OSError, ValueError):
            return ""

    def _write(self, name: str, session: str) -> None:
        self._home.make()
        os.makedirs(self._folder, 0o700, exist_ok=True)
        self._sweep()
        beside = f"{self._folder}/.{os.getpid()}"  # not system/atomic_file.py, which would be loaded for it
        with open(beside, "w", encoding="utf-8", opener=_private) as file:
            file.write(session[:MOST])
        os.rename(beside, f"{self._folder}/{name}")

    def _sweep(self) -> None:
        """Calls that nobody made after all, and agents that have gone."""
        limit = time.time() - OLD
        with suppress(OSError), os.scandir(self._folder) as found:
            for entry in islice(found, SWEPT):
                if entry.stat(follow_symlinks=False).st_mtime < limit:
                    os.unlink(entry)


def above() -> Iterator[Above]:
    """The processes above us, the nearest first."""
    pid = os.getppid()
    found = stat(pid)
    for _ in range(DEPTH):
        if found is None or pid <= 1:
            return
        yield Above(pid, str(found.started), found.name)
        pid = found.parent
        found = stat(pid)


def _agent() -> Above:
    """The nearest process that is not a shell; of Cursor, whose hooks and servers may have parents of their
    own, the topmost process."""
    found = [one for one in above() if one.name not in BETWEEN]
    own = list(takewhile(lambda one: one.name.lower().startswith(CURSOR), found)) or found[:1]
    return own[-1] if own else Above(os.getppid(), "", "")


def _call(tool: str, arguments: object) -> str:
    return json.dumps([tool, arguments or {}], sort_keys=True)


def _identity(process: Above) -> str:
    return "\0".join((boot(), str(process.pid), process.started))


def _mark(identity: str, call: str = "") -> str:
    return hashlib.sha256(f"{identity}\0{call}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
