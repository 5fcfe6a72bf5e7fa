"""The life of one shim: start the command, keep what it says, stop it when asked, tell how it ended.

It depends on nobody: its owner may be killed at any moment, and another one may come.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time

from meantime.system.platform import sync_file, tree

from . import cells, process_tree
from .intake import Intake
from .stdio_pipes import Plumbing

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module itself would be one more to share with every fork
    from typing import Any

NEVER = float("inf")
BRIEF = 0.002  # seconds: what is over by then is only told as over
KILL_ROUND = 0.02  # seconds between two looks at what is left
PATIENCE = 0.25  # seconds between looks while we wait for something to happen that may not wake us
SURVIVE = 3.0  # seconds after which what cannot be killed is listed as left
LITTLE = 1_000  # bytes of output that the ledger itself keeps: nobody waits for their sync
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM)

_adopt_orphans = tree.orphan_adopter()


class Shim:
    """Made before there is an order for it: what can be done ahead is done ahead."""

    def __init__(self, lifeline: int, events: int, baton: int) -> None:
        self._lifeline = lifeline  # hangs up when our owner is gone
        self._events = events
        self._baton = baton  # passing it on lets the zygote fork the next of us
        self._me = os.getpid()
        self._started = process_tree.start_time(self._me)
        self._poll = select.poll()
        self._control = -1
        self._heard = b""  # the beginning of a message
        self._pid = 0
        self._unsaid = False  # our owner has not heard that it is over
        self._lingers = False  # it is over, and we stay with what it left running
        self._stopping = 0
        self._deadline = self._kill_at = self._give_up_at = self._announce_at = NEVER
        self._detach()

    def _detach(self) -> None:
        """A session of our own, so that no terminal's signals reach us, and the reaper of our command."""
        os.setsid()
        _adopt_orphans()
        self._woken, wake = os.pipe()
        for fd in (self._woken, wake):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # at a shutdown we stay to see how it ends
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(self._lifeline, select.POLLHUP)

    # -- the beginning

    def carry_out(self, intake: Intake) -> None:
        """Unless another shim has taken this very order before us."""
        if intake.more_wait:
            self._pass_on()
        self._order = intake.order
        folder, _, name = self._order["base"].rpartition("/")
        # Through the folder itself: it may be moved while we live, and something else may take its place.
        place, self._home = tree.hold_folder(folder)
        self._base = self._order["base"] = f"{place}/{name}"
        state = intake.claim(self._me, self._started)
        if state is None:
            self._pass_on()
            return
        self.state, self._lock = state, intake.lock
        # Our owner stops it in time; this is for the case that there is none.
        self._deadline = time.monotonic() + self._order["timeout"] if self._order["timeout"] else NEVER
        self._plumbing = Plumbing(self._order, state, self._poll)
        if self._begin():
            self._serve()

    def give_up(self) -> None:
        """Something kept us from supervising the command; it was not started."""
        self._say(cells.GAVE_UP)
        self._pass_on()

    def _begin(self) -> bool:
        what = cells.FOLDER
        try:
            os.chdir(self._order["cwd"])
            what = cells.PROGRAM
            self._spawn()
        except OSError as problem:
            self.state[cells.PROBLEM], self.state[cells.PROBLEM_WITH] = problem.errno or errno.EIO, what
            self.state[cells.BEGAN] = self.state[cells.ENDED_AT] = time.monotonic_ns()
            self._plumbing.streams.clear()
            self._finish()
            return False
        os.chdir(self._home)
        self.state[cells.PHASE] = cells.RUNNING
        self._announce_at = time.monotonic() + BRIEF
        return True

    def _spawn(self) -> None:
        order = self._order
        actions, theirs = self._plumbing.lay()
        began = time.monotonic_ns()
        if order["cgroup"]:
            tree.enter_group(order["cgroup"])
        try:
            self._pid = os.posix_spawn(
                order["program"],
                order["argv"],
                order["env"],
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=RESTORED,
            )
        finally:
            if order["cgroup"]:
                _leave(order)
            for fd in theirs:
                os.close(fd)
        self.state[cells.COMMAND_PID] = self._pid
        self.state[cells.COMMAND_START] = process_tree.start_time(self._pid)
        tree.follow(self._pid, f"{cells.MARK}={order['env'].get(cells.MARK, '')}")
        self.state[cells.BEGAN] = began

    # -- while it runs

    def _serve(self) -> None:
        plumbing = self._plumbing
        while plumbing.streams or self._lingers or self.state[cells.PHASE] != cells.ENDED:
            for fd, event in self._poll.poll(self._pause()):
                if fd in plumbing.streams:
                    plumbing.read_output(fd, event)
                    self._wake_followers()
                elif fd == self._woken:
                    os.read(fd, 512)
                elif fd == self._control:
                    self._obey()
                elif fd == self._lifeline:
                    self._owner_is_gone()
                elif fd == plumbing.stdin:
                    plumbing.feed()
            childless = self._reap()
            if self._lingers and childless and tree.childless_is_alone():
                self._lingers = False
            self._go_on_stopping()
            if time.monotonic() >= self._announce_at:
                self._announce()
            if self._unsaid:
                self._say_over()

    def _pause(self) -> int | None:
        """Milliseconds until something is due; None until something happens."""
        now = time.monotonic()
        due = min(self._deadline, self._announce_at)
        if self._unsaid:
            due = now + PATIENCE
        elif self._stopping and self.state[cells.PHASE] != cells.ENDED:
            due = min(self._kill_at, now + PATIENCE) if now < self._kill_at else now + KILL_ROUND
        if self._lingers:
            due = min(due, now + tree.LOOK_AGAIN)
        return None if due == NEVER else max(1, round(1000 * (due - now)))

    def _announce(self) -> None:
        """A lasting command is announced, and can receive input. Many commands are over before that. The pipe
        is opened for writing too, otherwise it would hang up whenever an owner goes.
        """
        self._announce_at = NEVER
        path = self._base + cells.CONTROL_PIPE
        try:
            os.mkfifo(path, 0o600)
            self._control = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._poll.register(self._control, select.POLLIN)
        except OSError:
            pass  # a full disk: we cannot be told anything, so an owner that wants to stop it puts us down
        self._say(cells.BEGUN)
        self._pass_on()

    def _wake_followers(self) -> None:
        if self.state[cells.WANTS_WAKE]:
            self.state[cells.WANTS_WAKE] = 0
            self._say(cells.OUTPUT)

    def _obey(self) -> None:
        message = self._heard + os.read(self._control, 1 << 16)
        while len(message) >= cells.MESSAGE_HEAD:
            letter, size = message[:1], int.from_bytes(message[1 : cells.MESSAGE_HEAD], "little")
            if len(message) < cells.MESSAGE_HEAD + size:
                break  # the rest of it did not fit into what we read
            data = message[cells.MESSAGE_HEAD : cells.MESSAGE_HEAD + size]
            message = message[cells.MESSAGE_HEAD + size :]
            if letter == cells.STOP:
                self._stop(cells.BY_OWNER, int(data) / 1000)
            elif letter == cells.KILL:
                self._stop(cells.BY_OWNER, 0)
            elif letter == cells.INPUT:
                self._plumbing.feed(data)
            elif letter == cells.CLOSE_INPUT:
                self._plumbing.end_input()
        self._heard = message

    def _owner_is_gone(self) -> None:
        self._poll.unregister(self._lifeline)
        if not self.state[cells.KEPT]:
            self._stop(cells.BY_ORPHANHOOD, self._order["grace"])

    def _reap(self) -> bool:
        """Everything below us ends in our arms; only the command itself is what we wait for. True if
        we have no child: on Linux that is sure to mean that nothing is left. A look at all processes cannot
        say that, since a parent may end, and hand its children to us, while we look."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._pid:
                self._ended(os.waitstatus_to_exitcode(status))

    # -- stopping

    def _stop(self, by: int, grace: float) -> None:
        self._reap()  # what has ended by now is not stopped: finished first wins
        if not self._pid:
            return
        if not self._stopping:
            self._stopping = by
            if grace:
                process_tree.terminate(self._me)
        self._deadline = NEVER
        self._kill_at = min(self._kill_at, time.monotonic() + grace)

    def _go_on_stopping(self) -> None:
        now = time.monotonic()
        if now >= self._deadline:
            self._stop(cells.BY_DEADLINE, self._order["grace"])
        if not self._stopping or self.state[cells.PHASE] == cells.ENDED:
            return
        if now >= self._kill_at:
            self._give_up_at = min(self._give_up_at, now + SURVIVE)
            process_tree.kill(self._me)
        alone = self._reap() and tree.childless_is_alone()
        if now >= self._give_up_at and self._pid:
            self._ended(-signal.SIGKILL)  # it cannot be killed; it will be listed as left
        if not self._pid and (alone or now >= self._give_up_at):
            self._finish()

    # -- the end

    def _ended(self, code: int) -> None:
        state = self.state
        self._pid = 0
        state[cells.ENDED_AT] = time.monotonic_ns()
        state[cells.EXIT_CODE], state[cells.SIGNAL] = (code, 0) if code >= 0 else (0, -code)
        state[cells.STOPPED], state[cells.STOPPED_BY] = bool(self._stopping), self._stopping
        if self._stopping:
            return  # until nothing of it is left
        if self._order["leftovers"] == "kill":
            self._stopping = cells.BY_OWNER  # the rest of it: the command itself was not stopped
            self._kill_at = time.monotonic()
        else:
            self._finish()

    def _finish(self) -> None:
        """Publishes the ending. All output of the command is there by now."""
        self._plumbing.drain()
        said = self.state[cells.OUT_TOTAL] + self.state[cells.ERR_TOTAL]
        if said > LITTLE:
            self._plumbing.sync()  # before anybody records an ending that points to its files
        left = {} if process_tree.alone() else process_tree.left_below(self._me)
        self.state[cells.LEFT] = len(left)
        for place, (pid, (started, _)) in enumerate(list(left.items())[: cells.MAX_LEFT]):
            self.state[cells.LEFT_PIDS + place] = pid
            self.state[cells.LEFT_STARTS + place] = started
        self._deadline = self._kill_at = self._give_up_at = self._announce_at = NEVER
        self._seal(bool(left))
        self.state[cells.PHASE] = cells.ENDED
        self._say_over()
        self._pass_on()
        if 0 < said <= LITTLE:
            self._plumbing.sync()
        self._sync()
        if not left or self._stopping:
            self._plumbing.streams.clear()  # nobody is there to say more
        else:
            # All of it stays below us for as long as we live, whatever it forks and however it disguises
            # itself. So a cancel finds it.
            self._lingers = True
        if self._stopping == cells.BY_ORPHANHOOD:
            self._remove()

    def _seal(self, left: bool) -> None:
        """So that damage to its files is known until somebody has recorded how it ended."""
        state = self.state
        state[cells.SUM] = cells.checksum(cells.ending_of(state))
        streams = (
            (cells.OUT_TOTAL, cells.OUT_SUM, cells.OUT_FILE),
            (cells.ERR_TOTAL, cells.ERR_SUM, cells.ERR_FILE),
        )
        for total, place, kind in streams:
            if 0 < state[total] <= min(cells.SUMMED, state[cells.HEAD]) and not left:
                try:
                    with open(self._base + kind, "rb") as file:
                        state[place] = cells.checksum(file.read())
                except OSError:
                    continue  # without one it is taken as it is

    def _sync(self) -> None:
        """For a power cut: the state outlives every kill, but until now only in the kernel's memory. After
        the output: whoever finds the ending finds all that was said."""
        try:
            sync_file(self._lock)
        except OSError:
            return  # then it is lost in a power cut, and only then

    def _remove(self) -> None:
        """It was nobody's task, and nobody is left to read of it."""
        for kind in cells.FILES:
            try:
                os.unlink(self._base + kind)
            except OSError:
                continue

    # -- telling others

    def _say_over(self) -> None:
        self._unsaid = not self._say(cells.OVER)

    def _say(self, what: bytes) -> bool:
        """False if the pipe is full: our owner has not listened for long."""
        try:
            os.write(self._events, self._order["name"] + what)
        except BlockingIOError:
            return False
        except OSError:
            return True  # nobody to tell; whoever comes looks at the state first
        return True

    def _pass_on(self) -> None:
        if self._baton >= 0:
            try:
                os.write(self._baton, b"!")
            except OSError:
                pass  # the zygote was killed; its owner starts another
            os.close(self._baton)
            self._baton = -1


def _leave(order: dict[str, Any]) -> None:
    """The command is in its group, and we are not: there was room for one more as long as we were."""
    try:
        tree.leave_group(order["cgroup"], order["cgroup_home"], order["processes"])
    except OSError:
        return  # then we count, too; the command runs, and that is what is told
