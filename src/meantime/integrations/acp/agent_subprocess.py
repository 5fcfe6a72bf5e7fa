"""An agent's process: started under a guard, read, and ended with everything that it started."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from meantime.integrations.agent_host.host_errors import signal_name
from meantime.integrations.agent_host.inherited_env import inherited
from meantime.integrations.guarded_process import GuardedProcess
from meantime.ports.session import AgentSettings, Brief
from meantime.system.append_file import append
from meantime.system.platform.tree import children
from meantime.system.process import Process, process

INHERITED = ("HOME", "LANG", "PATH", "TERM")
LOG = 1 << 20  # bytes of stderr in one of two files
TAIL = 600  # characters of stderr that an error shows


def environment(settings: AgentSettings, *more: dict[str, str]) -> dict[str, str]:
    env = inherited(INHERITED, settings)
    for each in more:
        env |= each
    return env


def command_of(settings: AgentSettings) -> tuple[str, ...]:
    return (os.path.expanduser(settings.command[0]), *settings.command[1:])


def where(brief: Brief) -> str:
    return os.path.abspath(os.path.expanduser(brief.cwd))


class AgentSubprocess(GuardedProcess):
    log: StderrLog
    _agent: tuple[Process, ...] = ()  # the guard's children

    @classmethod
    async def launch(
        cls, command: tuple[str, ...], env: dict[str, str], cwd: str, log: Path
    ) -> AgentSubprocess:
        """Raises OSError."""
        kept = StderrLog(log)
        launched = await cls.start(command, env, cwd, kept.write)
        launched.log = kept
        return launched

    def ended(self) -> str:
        """How it ended, in words, with what it said last on stderr."""
        code = self.returncode
        name = "" if code is None else f"exit code {code}" if code >= 0 else signal_name(-code)
        how = f"ended with {name}" if name else "is gone"
        said = self.log.tail()
        return f"The agent's process {how}." + (f" It said on stderr: {said}" if said else "")

    def look(self) -> None:
        """Remembers who the agent is: should its guard be killed, nobody else would end it."""
        self._agent = tuple(map(process, children(self.pid))) or self._agent

    def kill(self) -> None:
        """At once. The agent's end is the sign for its guard to end all that it has started."""
        self.look()
        for agent in self._agent:
            if agent.started and process(agent.pid) == agent:  # its pid may be another's by now
                with suppress(OSError):
                    os.killpg(agent.pid, signal.SIGKILL)


class StderrLog:
    """The stderr of an agent: the last of it, in two files that take turns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = 0
        self._last = b""
        path.unlink(missing_ok=True)

    def write(self, data: bytes) -> None:
        self._last = (self._last + data)[-4 * TAIL :]
        if self._size + len(data) > LOG and self._size:
            self._path.replace(self._path.with_suffix(".before"))
            self._size = 0
        with suppress(OSError):  # a full disk is no reason to leave the agent's pipe unread
            append(self._path, data)
        self._size += len(data)

    def tail(self) -> str:
        return self._last.decode("utf-8", "replace").strip()[-TAIL:]
