"""Runs shell commands. A run begins the command if nobody has, and follows it to its end: so a run of
the same task by a later owner adopts it where it stands."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, cast

from meantime.kernel.errors import Degraded, Duplicate, NotFound, Refused
from meantime.kernel.model import Chunk, Failed, InlineLimits, Task
from meantime.kernel.notices import LEFT_RUNNING
from meantime.kernel.outcomes import Report
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import Abilities, Assignment, Context, Leftovers
from meantime.system.platform import cgroup

from . import exit_report, orphan_processes, output_ring, process_limit, provenance, shim_order
from .command_paths import Places
from .command_start import CommandStart, can_run
from .launcher import Launcher
from .output_ring import State, look
from .provenance import Whose, whose
from .shim import cells
from .shim_event_pipe import ShimEventPipe
from .shim_watch import End, ShimWatch, is_locked, tell

QUICK = 1 << 16  # bytes of output that are read on the event loop
# Seconds after which a shim that was told to kill, and did not, is killed itself, and after which a close no
# longer waits for a command to begin.
UNANSWERED = 4.0
UNLIMITS, UNLIMIT_AGAIN = 50, 0.1  # tries, and seconds between them, to remove a limit that is still in use
STEPS = 10  # of the event loop
OUTPUT_FILES = (cells.STATE_FILE, cells.OUT_FILE, cells.ERR_FILE, cells.WHOLE_FILE)
OPENS, OPEN_AGAIN = 30, 1.0  # tries to open the files of a command that may be running, and seconds between


class ShellRunner:
    kind = "shell"
    abilities = Abilities(adopt=True, output=True, input=True)

    def __init__(
        self,
        root: Path | None,
        *,
        grace: float = 5.0,
        head: int = 1 << 20,
        ring: int = 4 << 20,
        inline: int = InlineLimits().max_bytes,
        umask: int = -1,
    ) -> None:
        """`root`: where commands keep their files; None is a folder of our own, and they end with us.
        `umask`: theirs; -1 is ours."""
        self._places = Places(root)
        self._grace = grace
        self._inline = inline
        self._launcher = Launcher(self._open_shim_events, umask)
        given = {"grace": grace, "head": head, "ring": ring, "boot": provenance.this_boot()}
        self._starting = CommandStart(self._launcher, given)
        self._shim_events = ShimEventPipe()
        self._watches: dict[str, ShimWatch] = {}
        self._attending = BackgroundTasks()

    # -- life

    def open(self) -> None:
        self._places.open()

    async def close(self) -> None:
        self._launcher.close()
        self._shim_events.close()
        self._places.close()

    def check(self, task: Task, assignment: Assignment) -> None:
        if shim_order.process_limit(task) is not None:
            process_limit.check()

    def can_run(self, task: Task) -> bool:
        return can_run(task)

    async def exists(self, task: Task) -> bool:
        return False

    # -- one run

    def prepare(self, task: Task) -> None:
        if task.id in self._watches and self._places.of(task) == self._watches[task.id].base:
            raise Duplicate(f"A command with the id {task.id!r} runs already.", task.id, code="duplicate_id")
        try:
            self._places.make(task)
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Degraded(
                    f"The disk is full: the files of a command could not be made: {problem}.",
                    hint=f"Make room for {self._places.root}.",
                ) from None
            raise Refused(
                f"The files of a command could not be made: {problem}.",
                code="no_files",
                hint=f"Make room, or make {self._places.root} writable.",
            ) from None

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task = assignment.task
        try:
            watch = await self._watch(self._places.of(task), patient=assignment.again)
        except OSError as problem:
            if assignment.again:
                return await asyncio.to_thread(_vanished, self._places.of(task), problem)
            return Report(error=Failed(f"Its files could not be opened: {problem}.", "no_files"))
        if assignment.again and self._places.same_boot and watch.is_damaged(task.id):
            del self._shim_events.watches[watch.base.name.encode()]
            watch.close()
            return Report(lost=exit_report.DAMAGED)
        self._watches[task.id] = watch
        attend = self._starting.attend(
            watch, assignment, same_boot=self._places.same_boot, lasts=self._places.lasts
        )
        self._attending.start(attend)  # it is not stopped with us: half an order must not be given
        try:
            end, asked = await self._outlast(watch, context)
            if end is End.DETACHED:
                return Report(detached=True)
            return await self._uninterrupted(self._conclude(watch, end, asked, assignment, context), context)
        finally:
            if self._watches.get(task.id) is watch:  # not that of a later run, which has taken it up already
                del self._watches[task.id]
                del self._shim_events.watches[watch.base.name.encode()]
            watch.close()

    async def _watch(self, base: Path, *, patient: bool) -> ShimWatch:
        """`patient`: it may be running, so that we lack descriptors for the moment must not end it."""
        tries = OPENS if patient else 1
        while True:
            try:
                watch = ShimWatch(base)
                break
            except OSError as problem:
                tries -= 1
                if isinstance(problem, FileNotFoundError) or not tries:
                    raise
            await asyncio.sleep(OPEN_AGAIN)
        if not self._shim_events.are_open:
            self._open_shim_events()
        self._shim_events.watches[base.name.encode()] = watch
        return watch

    def _open_shim_events(self) -> Path:
        """Before anybody can speak; returns where the pipe is."""
        self._shim_events.open(self._places.events())
        return self._places.root

    async def _outlast(self, watch: ShimWatch, context: Context) -> tuple[End, int]:
        """How it ended, and how often we asked it to stop. A stop is a request to the shim; what
        becomes of it is for the shim to say."""
        me = asyncio.current_task()
        assert me is not None
        asked = 0
        while True:
            try:
                return await asyncio.shield(watch.over), asked
            except asyncio.CancelledError:
                if watch.over.done():
                    return watch.over.result(), asked
                if me.cancelling() > context.stops:
                    return End.DETACHED, asked  # our loop is going down; the command is not ours to end
                asked += 1
                if asked == 1:
                    watch.stop(self._grace)
                else:
                    watch.kill()
                    asyncio.get_running_loop().call_later(UNANSWERED, self._put_down, watch)

    async def _uninterrupted(self, conclusion: Coroutine[Any, Any, Report], context: Context) -> Report:
        """A further stop changes nothing any more: what the command said is read, and what is left of it is
        ended, before anybody is told that it is over."""
        me = asyncio.current_task()
        assert me is not None
        concluding = asyncio.ensure_future(conclusion)
        while True:
            try:
                return await asyncio.shield(concluding)
            except asyncio.CancelledError:
                if concluding.done():
                    return concluding.result()
                if me.cancelling() > context.stops:
                    return Report(detached=True)  # our loop is going down: the next owner concludes

    def _put_down(self, watch: ShimWatch) -> None:
        state = None if watch.over.done() else watch.look()
        if state is not None and state[cells.PHASE] != cells.ENDED:
            orphan_processes.put_down(watch.base, state, followed=watch.followed)

    async def _conclude(
        self, watch: ShimWatch, end: End, asked: int, assignment: Assignment, context: Context
    ) -> Report:
        base, state = watch.base, watch.look()
        if watch.failed is not None:
            return Report(error=watch.failed)
        if watch.lost:
            return Report(lost=watch.lost)
        if end is End.SPARED:
            return await asyncio.to_thread(exit_report.copied, base, state, self._inline_of(assignment.task))
        if state is None:
            return Report(error=Failed("Its supervisor could not begin: is the disk full?", "not_started"))
        given = cast("dict[str, Any]", assignment.task.work.input)
        inline = None if assignment.foreground and not watch.kept else self._inline_of(assignment.task)
        if end is End.ENDED:
            if state.left:
                context.emit(LEFT_RUNNING, state.left)
            told = await self._aside(state, exit_report.report, base, state, given, inline)
        else:
            told = await asyncio.to_thread(_abandoned, watch, state, asked, inline)
        if shim_order.process_limit(assignment.task) is not None:
            self._unlimit(base, UNLIMITS)
        return told

    def _unlimit(self, base: Path, tries: int) -> None:
        if not cgroup.remove(base) and tries:
            asyncio.get_running_loop().call_later(UNLIMIT_AGAIN, self._unlimit, base, tries - 1)

    def _inline_of(self, task: Task) -> int:
        """More than this could not stay in a message, so it is not even taken into memory."""
        return max(self._inline, task.inline.max_bytes if task.inline else 0)

    async def _aside(self, state: State, make: Callable[..., Report], *args: Any) -> Report:
        if state[cells.OUT_TOTAL] + state[cells.ERR_TOTAL] <= QUICK:
            return make(*args)
        return await asyncio.to_thread(make, *args)

    # -- what outlives us

    def age(self, task: Task) -> float:
        """How long the command has been running. Not `ports.clock.age`: the shim reads the machine's clock,
        in nanoseconds, whatever ours is; and no command outlives the machine, so no wall clock is needed."""
        state = look(self._places.of(task))
        if state is None or not self._places.same_boot or not state[cells.BEGAN]:
            return 0.0
        return max(0.0, (time.monotonic_ns() - state[cells.BEGAN]) / 1e9)

    async def detach(self, task: Task) -> bool:
        """Leaves the command to the next owner. False where it would not outlive us. One that is still
        being started is not waited for for ever: whoever takes its order, it is started once."""
        for _ in range(STEPS):
            if task.id in self._watches:
                break
            await asyncio.sleep(0)  # its run was launched just now, and has not taken its first step
        watch = self._watches.get(task.id)
        if not self._places.lasts or watch is None:
            return False
        begun = {watch.begun, watch.over}
        await asyncio.wait(begun, timeout=UNANSWERED, return_when=asyncio.FIRST_COMPLETED)
        watch.finish(End.DETACHED)
        return True

    def keep(self, task: Task, kept: bool) -> None:
        """A call that becomes a task outlives us from now on; one that does not, does not."""
        watch = self._watches.get(task.id)
        if watch is not None and self._places.lasts:
            watch.keep(kept)

    def runs(self, task: Task) -> bool:
        """Whether it runs, even if we do not follow it. A shim that stays with what an ended command has
        left does not count."""
        base = self._places.of(task)
        return is_locked(base) and not _has_ended(base) and whose(base) is not Whose.ANOTHERS

    def knows_whose(self, task: Task) -> bool:
        return whose(self._places.of(task)) is not Whose.UNSAID

    async def end_leftovers(self, task: Task) -> Leftovers:
        killed, left = 0, set[int]()
        for attempt in range(1, task.run.attempt + 1):
            base = self._places.of(task, attempt)
            hunted = await asyncio.to_thread(orphan_processes.kill_orphans, base, look(base))
            killed += hunted.killed - len(hunted.left)
            left.update(hunted.left)
        return Leftovers(killed, tuple(sorted(left)))

    def forget(self, task: Task) -> None:
        for attempt in range(1, task.run.attempt + 1):
            base = self._places.of(task, attempt)
            self._places.remove(base)
            if shim_order.process_limit(task) is not None:
                cgroup.remove(base)  # else it was kept by what the command left behind

    async def sweep(
        self, active: Iterable[Task], known: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None:
        """Removes what belongs to no task. A command that nobody knows of is stopped. Files whose state is
        gone or damaged stay: they may be all that is left of an output."""
        spared = {self._places.of(task) for task in active} if self._places.lasts else set[Path]()
        for base, id in self._places.all():
            if base in spared or id in self._watches or await known(id) or not self._places.is_of(base, id):
                continue
            with contextlib.suppress(OSError):
                if time.time() - os.stat(f"{base}{cells.STATE_FILE}").st_mtime < older_than:
                    continue
            if is_locked(base) and not _has_ended(base) and whose(base) is not Whose.ANOTHERS:
                # A shim lives: it ends its command now, and is gone the next time.
                with contextlib.suppress(Refused):
                    tell(base, cells.KILL)
            else:
                self._places.remove(base)

    # -- what it says, and what it is told

    async def read(self, task: Task, stream: str, offset: int, most: int) -> Chunk:
        return output_ring.read(self._places.of(task), stream, offset, most, ended=task.ended)

    async def tail(self, task: Task, stream: str, lines: int, most: int) -> Chunk:
        return output_ring.tail(self._places.of(task), stream, lines, most, ended=task.ended)

    async def changed(self, task: Task, stream: str, seen: int) -> bool:
        watch = self._watches.get(task.id)
        return watch is not None and await watch.changed(stream, seen)

    async def whole(self, path: str) -> bytes:
        if not self._places.holds(Path(path)):
            raise NotFound(f"{path} is not the output of a command here.")
        return await asyncio.to_thread(Path(path).read_bytes)

    def output_files(self, task: Task) -> dict[str, Path]:
        """The files that hold its output, by their endings: a copy of them elsewhere can be read as these."""
        base = self._places.of(task)
        return {ending: Path(f"{base}{ending}") for ending in OUTPUT_FILES}

    def interrupt(self, task: Task) -> bool:
        """As Ctrl-C at its terminal would. False if nothing can receive it."""
        watch = self._watches.get(task.id)
        return watch is not None and watch.interrupt()

    async def write(self, task: Task, data: bytes, *, eof: bool) -> None:
        watch = self._watches.get(task.id)
        if watch is None:
            raise NotFound(f"Task {task.id} does not run here, so it cannot be sent anything.")
        given = cast("dict[str, Any]", task.work.input)
        if not (given.get("open_stdin") or given.get("pty")):
            raise Refused(
                "The stdin of this command is closed.",
                code="stdin_closed",
                hint="Start it with Shell(…, open_stdin=True), or on a terminal with pty=True.",
            )
        await watch.write(data, eof=eof)


def _has_ended(base: Path) -> bool:
    state = look(base)
    return state is not None and state[cells.PHASE] == cells.ENDED


def _vanished(base: Path, problem: OSError) -> Report:
    """Nothing can be known of it any more, and nobody can follow it: what still runs of it is ended."""
    why = (
        exit_report.VANISHED
        if isinstance(problem, FileNotFoundError)
        else f"{exit_report.UNREADABLE} {problem}."
    )
    state = look(base)
    if state is not None:
        orphan_processes.put_down(base, state)
    count = orphan_processes.kill_orphans(base, state).killed
    return Report(lost=why + (f" {count} of its processes still ran and were killed." if count else ""))


def _abandoned(watch: ShimWatch, state: State, asked: int, inline: int | None) -> Report:
    """The shim was killed. Its leftovers are nobody's any more, so they are ended, and reported."""
    base = watch.base
    hunted = orphan_processes.kill_orphans(base, state, followed=watch.followed)
    if hunted.spared:
        return exit_report.copied(base, state, inline)
    why = exit_report.GONE
    if hunted.killed:
        why += f" {hunted.killed} of its processes still ran and were killed."
    if hunted.left:
        why += f" These could not be: {', '.join(map(str, hunted.left))}."
    told = exit_report.lost(base, state, why, inline)
    return Report(stopped=True, partial=told.partial, spill=told.spill) if asked and not hunted.left else told
