"""A program on pipes, under a guard that ends it with all that it has started, even if we are killed."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Self

from meantime.system import bare_python
from meantime.system.platform import inherited
from meantime.system.process_marks import unmarked

GUARD = (
    f"{bare_python.BEGIN}; from meantime.integrations.guard import main; "
    "sys.exit(main(int(sys.argv[3]), sys.argv[4:]))"
)
PIECE = 1 << 16
GOES = 6.0  # seconds in which a guard has ended its program, with a margin


class GuardedProcess:
    """`on_stderr` gets every piece of its stderr, which is always read: a program whose stderr nobody reads
    stands still after 64 kB."""

    def __init__(self, process: Process, lifeline: int, on_stderr: Callable[[bytes], None]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._lifeline = lifeline
        self._on_stderr = on_stderr
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._errors = asyncio.ensure_future(self._drain(process.stderr))

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        env: dict[str, str],
        cwd: str | None,
        on_stderr: Callable[[bytes], None],
    ) -> Self:
        """Raises OSError. A program that cannot be executed ends with 127, and says so on stderr."""
        theirs, lifeline = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(*bare_python.command(GUARD), str(theirs), *command),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=cwd,
                env={**unmarked(env), **inherited()},
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(theirs)
        return cls(process, lifeline, on_stderr)

    @property
    def pid(self) -> int:
        """The guard's; the program is its child."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def _drain(self, stream: asyncio.StreamReader) -> None:
        while piece := await stream.read(PIECE):
            self._on_stderr(piece)

    async def wait_ended(self, seconds: float) -> int | None:
        """Its exit code, negative for a signal; None while it runs. (`process.wait()` would also wait for
        pipes that somebody else may hold.)"""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while self._process.returncode is None and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return self._process.returncode

    async def close(self) -> None:
        """Lets go of its lifeline: its guard ends it, TERM, KILL, with all that it ever started. A caller
        that cancels us does not wait for that; the guard goes on."""
        if self._lifeline < 0:
            return
        self.stdin.close()
        os.close(self._lifeline)
        self._lifeline = -1
        try:
            await self.wait_ended(GOES)
            await asyncio.wait([self._errors], timeout=0.5)
        finally:
            self._errors.cancel()
            self._close_pipes()

    def _close_pipes(self) -> None:
        """asyncio kills a process that runs when its transport is closed, or collected. Without its guard
        nobody would end the program."""
        transport = getattr(self._process, "_transport", None)
        if transport is None:
            return
        started = getattr(transport, "_proc", None)
        if self._process.returncode is None and started is not None:
            started.kill = _spared
        transport.close()


def _spared() -> None:
    """In place of `kill`."""
