"""Following shims: they say when their commands begin, speak and end; one that is silent may be gone."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from enum import Enum
from pathlib import Path

from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.model import Failed
from meantime.system.platform import ProcessHandle

from . import provenance
from .output_ring import State
from .provenance import Whose
from .shim import cells, process_tree

MAX_PENDING = 1 << 20  # bytes that may wait for a command to read them
TELLS, TELL_AGAIN = 500, 0.01  # tries, and seconds between them
LOOK_AGAIN = 1.0  # seconds: should a wake be missed
_DEAF = "The command cannot be told anything any more."


class End(Enum):
    ENDED = "ended"
    GONE = "gone"  # the shim was killed
    DETACHED = "detached"  # we leave, it goes on
    SPARED = "spared"  # it is not ours: our state is a copy


class ShimWatch:
    """One command. Made on the event loop; raises FileNotFoundError where its state is not there."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[End] = self._loop.create_future()
        self.begun: asyncio.Future[None] = self._loop.create_future()
        self.failed: Failed | None = None  # it never began, and why
        self.lost = ""
        self.followed = False  # we saw its shim hold this state: so what it names is ours
        self.kept = False  # it was a call that somebody waited for, and is a task now
        self._followers: set[asyncio.Future[None]] = set()
        self._writing = asyncio.Lock()
        self._held: ProcessHandle | None = None
        self._wanted: tuple[bytes, bytes] | None = None  # the stop that it was asked for
        # Held open: then its end can be told even if somebody removes the files under it.
        self._state = os.open(f"{base}{cells.STATE_FILE}", os.O_RDWR | os.O_CLOEXEC)

    def look(self) -> State | None:
        """None while no shim has taken the command."""
        return State.of(os.pread(self._state, cells.SIZE, 0))

    def is_damaged(self, id: str) -> bool:
        """Whether it is neither a state that a shim has taken, nor one as its owner has made it: then nobody
        knows whether the command has begun, and it must not begin a second time."""
        data = os.pread(self._state, cells.SIZE, 0)
        if State.of(data) is not None:  # of this task, and no other one's
            return data[cells.ID :].partition(b"\0")[0] != id.encode()
        return len(data) < cells.SIZE or any(data[:8]) or provenance.whose(self.base) is Whose.UNSAID

    def is_alive(self) -> bool:
        """Whether a shim holds its lock: surer than any pid."""
        return _has_shim(self._state)

    def is_copy(self) -> bool:
        """Whether the command belongs to another ledger. How it ended is true in a copy, too."""
        state = self.look()
        ended = state is not None and state[cells.PHASE] == cells.ENDED
        return not ended and provenance.whose(self.base) is provenance.Whose.ANOTHERS

    def forbid(self) -> bool:
        """Marks the command as taken, so that no shim begins it: a former owner's order may still be on
        its way. False if one has it already; then we shall be notified."""
        try:
            fcntl.flock(self._state, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if free := self.look() is None:
            self._store(cells.FORMAT, cells.VERSION)
        fcntl.flock(self._state, fcntl.LOCK_UN)
        return free

    def on_event(self, said: bytes) -> None:
        """An event is only a reason to look: it may be of a former life of the same command."""
        if said == cells.OUTPUT:
            self._wake()
        elif said == cells.BEGUN and self._wanted is not None:
            self.reconcile()
            self._send_stop(*self._wanted)  # we took it up before it could be told anything
        elif said == cells.GAVE_UP and self.look() is None:
            self.fail(Failed("It was not started: it could not be supervised.", "not_started"))
        else:
            self.reconcile()

    def take_up(self, state: State) -> None:
        """A command that somebody has begun: we follow it, or its end."""
        if state[cells.PHASE] != cells.ENDED and self.is_alive():
            self.begin()
        else:
            self.shim_ended()  # it may have ended while we looked

    def begin(self) -> None:
        """It runs: from now on we are notified, should its shim be killed."""
        self._resolve(self.begun)
        self._wake()
        if self._wanted is not None:
            self._send_stop(*self._wanted)
        state = self.look()
        if state is None or self._held is not None or self.over.done():
            return
        with contextlib.suppress(OSError):  # no descriptor is left: we try again the next time
            self._held = ProcessHandle(state[cells.SHIM_PID])
            self._held.on_exit(self._loop, self.shim_ended)
        self.followed = self.is_alive()
        if not self.followed:
            self.shim_ended()  # it ended while we looked, and another may have its pid by now

    def shim_ended(self) -> None:
        state = self.look()
        ended = state is not None and state[cells.PHASE] == cells.ENDED
        self.finish(End.ENDED if ended else End.GONE)

    def reconcile(self) -> None:
        """Looks how it stands: because it said something, or in case that was missed."""
        state = None if self.over.done() else self.look()
        if state is not None and state[cells.PHASE] == cells.ENDED:
            self.finish(End.ENDED)
        elif state is not None and self._held is None:
            is_running = state[cells.PHASE] == cells.RUNNING
            if is_running or not self.is_alive():  # otherwise it is about to say so
                self.begin()

    def fail(self, failed: Failed) -> None:
        self.failed = failed
        self.finish(End.ENDED)

    def lose(self, why: str) -> None:
        self.lost = why
        self.finish(End.GONE)

    def spare(self) -> None:
        self.finish(End.SPARED)

    def finish(self, end: End) -> None:
        if not self.over.done():
            self.over.set_result(end)
        if self._held is not None:
            self._held.close()
            self._held = None
        self._resolve(self.begun)
        self._wake()

    def _wake(self) -> None:
        followers, self._followers = self._followers, set()
        for follower in followers:
            self._resolve(follower)

    def _resolve(self, future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_result(None)

    # -- saying something to the shim

    def stop(self, grace: float) -> None:
        self._send_stop(cells.STOP, str(round(grace * 1000)).encode())

    def kill(self) -> None:
        self._send_stop(cells.KILL, b"")

    def interrupt(self) -> bool:
        """To its group: it leads a session, as every command of ours does."""
        state = None if self.over.done() else self.look()
        pid = state[cells.COMMAND_PID] if state is not None and state[cells.PHASE] == cells.RUNNING else 0
        if state is None or not pid or process_tree.start_time(pid) != state[cells.COMMAND_START]:
            return False
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGINT)
            return True
        return False

    def _send_stop(self, letter: bytes, data: bytes) -> None:
        """Once it runs: a command that is just being started cannot be told anything yet."""
        self._wanted = (letter, data)
        if self.begun.done():
            with contextlib.suppress(Refused):  # it is over, or its shim does not answer and is put down
                tell(self.base, letter, data)

    def keep(self, kept: bool) -> None:
        """A call that becomes a task, or does not after all."""
        self.kept = kept
        self.outlive(kept)

    def outlive(self, us: bool) -> None:
        """Whether it goes on without its owner; written where the shim looks when we are gone."""
        self._store(cells.KEPT, int(us))

    async def write(self, data: bytes, *, eof: bool) -> None:
        """All of it is taken, or Refused says that the command does not read."""
        await asyncio.wait({self.begun, self.over}, return_when=asyncio.FIRST_COMPLETED)
        if self.over.done():  # its state may be closed by now
            raise Refused(_DEAF, code="not_listening", hint="It has ended, or is just ending.")
        if len(data) > MAX_PENDING:
            raise InvalidInput(f"One send takes at most {MAX_PENDING} bytes.", hint="Send it in pieces.")
        state = self.look()
        pending = state[cells.STDIN_PENDING] if state else 0
        if pending + len(data) > MAX_PENDING:
            raise Refused(
                f"The command has not read {pending} bytes of its stdin yet; at most {MAX_PENDING} may wait.",
                code="stdin_full",
                hint="Wait until it reads, then send the rest.",
            )
        size = cells.MAX_MESSAGE - cells.MESSAGE_HEAD
        async with self._writing:  # one after the other: parts of two texts must not mix
            for at in range(0, len(data), size):
                await self._tell(cells.INPUT, data[at : at + size])
            if eof:
                await self._tell(cells.CLOSE_INPUT)

    async def _tell(self, letter: bytes, data: bytes = b"") -> None:
        for _ in range(TELLS):
            try:
                return tell(self.base, letter, data)
            except Refused as problem:
                # A shim that we took up may be so young that its pipe is not there yet.
                if problem.code != "supervisor_busy" and (self.over.done() or not self.is_alive()):
                    raise
            await asyncio.sleep(TELL_AGAIN)  # the pipe is full; a shim empties it as soon as it runs
        return tell(self.base, letter, data)

    def _store(self, cell: int, value: int) -> None:
        os.pwrite(self._state, value.to_bytes(8, "little"), cell * 8)

    # -- following

    async def changed(self, stream: str, seen: int) -> bool:
        """Returns True when there is more output than `seen` bytes, False when the command is over."""
        await asyncio.wait({self.begun, self.over}, return_when=asyncio.FIRST_COMPLETED)
        while not self.over.done():
            self._store(cells.WANTS_WAKE, 1)
            state = self.look()  # after we have said that we want to be woken, else it may pass us by
            if state is not None and state.total(stream) > seen:
                return True
            follower: asyncio.Future[None] = self._loop.create_future()
            self._followers.add(follower)
            try:
                await asyncio.wait([follower], timeout=LOOK_AGAIN)
            finally:
                self._followers.discard(follower)
        return False

    def close(self) -> None:
        self.finish(End.DETACHED)
        state, self._state = self._state, -1  # whoever comes late must not meet another file under its number
        os.close(state)


def tell(base: Path, letter: bytes, data: bytes = b"") -> None:
    """A message to a shim. Whole or not at all, so that nobody finds half a message of a dead owner."""
    try:
        control = os.open(f"{base}{cells.CONTROL_PIPE}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise Refused(_DEAF, code="not_listening", hint="It has ended, or is just ending.") from None
    try:
        os.write(control, letter + len(data).to_bytes(4, "little") + data)
    except BlockingIOError:
        raise Refused(
            "The command's supervisor does not answer.", code="supervisor_busy", hint="Try again."
        ) from None
    except OSError:
        raise Refused(_DEAF, code="not_listening", hint="It has ended, or is just ending.") from None
    finally:
        os.close(control)


def is_locked(base: Path) -> bool:
    """Whether a shim lives that supervises this command."""
    try:
        fd = os.open(f"{base}{cells.STATE_FILE}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _has_shim(fd)
    finally:
        os.close(fd)


def _has_shim(state: int) -> bool:
    try:
        fcntl.flock(state, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(state, fcntl.LOCK_UN)
    return False
