"""An agent's process: started under a guard, read, and ended with everything that it started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from meantime.integrations import guarded_process
from meantime.ports.session import AgentSettings, Brief

GUARD = Path(__file__).parents[1] / "guard.py"
INHERITED = ("HOME", "LANG", "PATH", "TERM")
MOST_BYTES = 64 << 20  # of one message
PIECE = 1 << 16
LOG = 1 << 20  # bytes of stderr in one of two files
TAIL = 600  # characters of stderr that an error shows
GOES = 6.0  # seconds in which a guard has ended its agent, with a margin


def environment(settings: AgentSettings, *more: dict[str, str]) -> dict[str, str]:
    """Nothing of ours goes to the agent that is not named."""
    named = (*INHERITED, *settings.inherit)
    env = {name: os.environ[name] for name in named if name in os.environ}
    for each in more:
        env |= each
    return env


def command_of(settings: AgentSettings) -> tuple[str, ...]:
    return (os.path.expanduser(settings.command[0]), *settings.command[1:])


def where(brief: Brief) -> str:
    return os.path.abspath(os.path.expanduser(brief.cwd))


class AgentSubprocess:
    def __init__(self, process: asyncio.subprocess.Process, lifeline: int, log: StderrLog) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._lifeline = lifeline
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.log = log
        self._errors = asyncio.ensure_future(self._drain(process.stderr))
        self._agent: dict[int, str] = {}  # by pid, with when it began: a pid may be another's later

    @classmethod
    async def start(
        cls, command: tuple[str, ...], env: dict[str, str], cwd: str, log: Path
    ) -> AgentSubprocess:
        """Raises OSError. A program that cannot be executed ends with 127, and says so on stderr."""
        theirs, lifeline = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(GUARD), str(theirs), *command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env=env,
                limit=MOST_BYTES,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(theirs)
        return cls(process, lifeline, StderrLog(log))

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def ended(self) -> str:
        """How it ended, in words, with what it said last on stderr."""
        code = self._process.returncode
        how = "is gone" if code is None else f"ended with {_named(code)}"
        said = self.log.tail()
        return f"The agent's process {how}." + (f" It said on stderr: {said}" if said else "")

    async def _drain(self, stream: asyncio.StreamReader) -> None:
        """Always: an agent whose stderr nobody reads stands still after 64 kB."""
        while piece := await stream.read(PIECE):
            self.log.write(piece)

    def look(self) -> None:
        """Remembers who the agent is: should its guard be killed, nobody else would end it."""
        pid = self._process.pid
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            self._agent = {int(child): _began(int(child)) for child in children} or self._agent

    def kill(self) -> None:
        """At once. The agent's end is the sign for its guard to end all that it has started."""
        self.look()
        for pid, began in self._agent.items():
            if began and _began(pid) == began:
                with suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)

    async def close(self) -> None:
        if self._lifeline < 0:
            return
        self.stdin.close()
        os.close(self._lifeline)
        self._lifeline = -1
        await guarded_process.let_go(self._process, self._errors, GOES)

    async def wait_ended(self, seconds: float) -> int | None:
        return await guarded_process.wait_ended(self._process, seconds)


def _began(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


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
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, data)
            finally:
                os.close(fd)
        self._size += len(data)

    def tail(self) -> str:
        return self._last.decode("utf-8", "replace").strip()[-TAIL:]


def _named(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
