"""The life of one shim: start the command, keep what it says, stop it when asked, tell how it ended.

It depends on nobody: its owner may be killed at any moment, and another one may come.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import marshal
import mmap
import os
import select
import signal
import termios
import time

from . import cells, tree
from .pump import Order, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module itself would be one more to share with every fork
    from typing import Any

PR_SET_CHILD_SUBREAPER = 36
KILL_ROUND = 0.02  # seconds between two looks at what is left
SURVIVE = 3.0  # seconds after which what cannot be killed is listed as left
PATIENCE = 0.25  # seconds between looks while we wait for everything to stop by itself
BIG_PIPE = 1 << 18
NEVER = float("inf")
BRIEF = 0.002  # seconds: what is over by then is only told as over
LENGTH = 4  # bytes that say how long an order is
HEAD = LENGTH + 8  # and its number
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM)
_prctl = ctypes.CDLL(None).prctl


class Shim:
    """Made before there is an order for it: what can be done ahead is done ahead."""

    def __init__(self, owner: int, events: int, baton: int) -> None:
        self._baton = baton
        self._owner = owner  # orders come here; and it hangs up when our owner is gone
        self._events = events
        self._poll = select.poll()
        self._streams: dict[int, Stream] = {}
        self._unsaid = False  # our owner has not heard that it is over
        self._stdin = -1
        self._unread = b""  # for the command's stdin
        self._closes_stdin = True
        self._pid = 0
        self._stopping = 0
        self._kill_at = self._give_up_at = self._announce_at = NEVER
        self._control = -1
        self._me = os.getpid()
        self._started = tree.start_time(self._me)
        self._detach()

    def _detach(self) -> None:
        """A session of our own, so that no terminal's signals reach us, and the reaper of our command."""
        os.setsid()
        _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # at a shutdown we stay to see how it ends
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(self._owner, 0)

    # -- before the command

    def receive(self) -> bytes:
        """Waits for an order, and returns its number: nothing if our owner is gone. Half an order was
        cut off by a kill and was never given."""
        head = self._exactly(HEAD)
        data = self._exactly(int.from_bytes(head[:LENGTH], "little")) if head else b""
        if not data:
            return b""
        self._order: dict[str, Any] = marshal.loads(data)
        self._base: str = self._order["base"]
        timeout = self._order["timeout"]
        # Our owner stops it in time; this is for the case that there is none.
        self._deadline = time.monotonic() + timeout if timeout else NEVER
        self._number = head[LENGTH:]
        return self._number

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = os.read(self._owner, min(count - len(data), 1 << 20))
            if not part:
                return b""
            data += part
        return data

    def claim(self) -> bool:
        """Whether we are the one that starts the command. The lock shows that we live; the mark stays
        when we do not, so that nobody ever starts it again."""
        fd = os.open(self._base + cells.STATE_FILE, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._lock = fd  # held until we end
        self.state = memoryview(mmap.mmap(fd, cells.SIZE)).cast("B").cast("Q")
        state = self.state
        if state[cells.FORMAT]:
            return False
        state[cells.SHIM_PID], state[cells.SHIM_START] = self._me, self._started
        state[cells.HEAD], state[cells.RING] = self._order["head"], self._order["ring"]
        state[cells.KEPT] = self._order["kept"]
        state[cells.FORMAT] = cells.VERSION
        return True

    def run(self) -> None:
        try:
            os.chdir(self._order["cwd"])
        except OSError as problem:
            self._end_unstarted(problem, cells.FOLDER)
            return
        try:
            self._spawn()
        except OSError as problem:
            self._end_unstarted(problem, cells.PROGRAM)
            return
        os.chdir("/")  # so that nobody is kept from removing the folder
        self.state[cells.PHASE] = cells.RUNNING
        self._announce_at = time.monotonic() + BRIEF
        self._serve()

    def _listen(self) -> None:
        """For what an owner has to say. While the command begins: making a file takes longer than one
        would think. Opened for writing too, else it would hang up whenever an owner goes."""
        path = self._base + cells.CONTROL_PIPE
        try:
            os.mkfifo(path, 0o600)
            self._control = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self._poll.register(self._control, select.POLLIN)
        except OSError:
            return  # a full disk: it cannot be told anything, so an owner puts us down to stop it

    def _spawn(self) -> None:
        order = self._order
        self._turns = Order(self._base + cells.ORDER_FILE, self.state)
        actions, ours = self._terminal() if order["pty"] else self._pipes()
        began = time.monotonic_ns()
        group = order["cgroup"]
        if group:
            _enter(group)
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
            if group:
                _enter(order["cgroup_home"])
            for fd in ours:
                os.close(fd)
        self.state[cells.COMMAND_PID] = self._pid
        self.state[cells.COMMAND_START] = tree.start_time(self._pid)
        self.state[cells.BEGAN] = began

    def _pipes(self) -> tuple[list[Any], list[int]]:
        actions: list[Any] = []
        ours: list[int] = []
        out = self._new_stream(cells.OUT_FILE, cells.OUT_TOTAL, cells.OUT_GAP_FROM)
        err = out
        if not self._order["merge"]:
            err = self._new_stream(cells.ERR_FILE, cells.ERR_TOTAL, cells.ERR_GAP_FROM)
        for number, fd in ((1, out), (2, err)):
            actions.append((os.POSIX_SPAWN_DUP2, fd, number))
        ours += {out, err}
        data = self._order["stdin"]
        if data is not None:
            read, self._stdin = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self._stdin, False)
            actions.append((os.POSIX_SPAWN_DUP2, read, 0))
            ours.append(read)
            self._unread, self._closes_stdin = data, not self._order["open_stdin"]
            self._feed()
        return actions, ours

    def _new_stream(self, file: str, total: int, gap: int) -> int:
        read, write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(read, False)
        self._follow(Stream(read, self._base + file, total, gap, self.state, hasattr(os, "splice")))
        return write

    def _terminal(self) -> tuple[list[Any], list[int]]:
        """The command leads its session, so the first terminal that it opens becomes its own."""
        master, slave = os.openpty()
        os.set_inheritable(master, False)
        os.set_blocking(master, False)
        rows, columns = self._order["size"]
        size = b"".join(n.to_bytes(2, "little") for n in (rows, columns, 0, 0))
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        name = os.ttyname(slave)
        path = self._base + cells.OUT_FILE
        self._follow(Stream(master, path, cells.OUT_TOTAL, cells.OUT_GAP_FROM, self.state, False))
        actions: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, 0, number) for number in (1, 2)]
        self._stdin = os.dup(master)
        os.set_inheritable(self._stdin, False)
        self._unread, self._closes_stdin = self._order["stdin"] or b"", False
        self._feed()
        return actions, [slave]

    def _follow(self, stream: Stream) -> None:
        self._streams[stream.fd] = stream
        self._poll.register(stream.fd, select.POLLIN)

    # -- while it runs

    def _announce(self) -> None:
        """What lasts is announced, and can be told something. Many commands are over before that."""
        self._announce_at = NEVER
        self._listen()
        self._say(cells.BEGUN)
        self.pass_on()

    def pass_on(self) -> None:
        if self._baton >= 0:
            baton, self._baton = self._baton, -1
            try:
                os.write(baton, self._number)
            except OSError:
                return  # the zygote was killed; the command has us all the same
            os.close(baton)

    def _serve(self) -> None:
        while self._streams or self._unsaid or self.state[cells.PHASE] != cells.ENDED:
            for fd, _ in self._poll.poll(self._pause()):
                if fd in self._streams:
                    self._hear(self._streams[fd])
                elif fd == self._woken:
                    os.read(fd, 512)
                elif fd == self._control:
                    self._obey()
                elif fd == self._owner:
                    self._owner_is_gone()
                elif fd == self._stdin:
                    self._feed()
            self._reap()
            self._go_on_stopping()
            if self._unsaid:
                self._say_over()
            if self._announce_at != NEVER and time.monotonic() >= self._announce_at:
                self._announce()

    def _pause(self) -> int | None:
        """Milliseconds until something is due; None until something happens."""
        if self._unsaid:
            return 250
        if self._announce_at != NEVER:
            return 1
        if self.state[cells.PHASE] == cells.ENDED or (not self._stopping and self._deadline == NEVER):
            return None
        now = time.monotonic()
        if not self._stopping:
            pause = self._deadline - now
        elif now < self._kill_at:
            pause = min(self._kill_at - now, PATIENCE)
        else:
            pause = KILL_ROUND
        return max(1, round(1000 * pause))

    def _hear(self, stream: Stream) -> None:
        self._turns.note(stream)
        if not stream.pump():
            self._poll.unregister(stream.fd)
            del self._streams[stream.fd]
            stream.close()
        if self.state[cells.WANTS_WAKE]:
            self.state[cells.WANTS_WAKE] = 0
            self._say(cells.OUTPUT)

    def _feed(self) -> None:
        """As much of its stdin as the command takes now."""
        if self._stdin < 0:
            return
        try:
            while self._unread:
                self._unread = self._unread[os.write(self._stdin, self._unread[: 1 << 16]) :]
        except BlockingIOError:
            self._poll.register(self._stdin, select.POLLOUT)
        except OSError:
            self._unread, self._closes_stdin = b"", True  # it does not read any more
        self.state[cells.STDIN_PENDING] = len(self._unread)
        if not self._unread:
            self._unregister(self._stdin)
            if self._closes_stdin:
                os.close(self._stdin)
                self._stdin = -1

    def _obey(self) -> None:
        message = os.read(self._control, 1 << 16)
        while message:
            letter, size = message[:1], int.from_bytes(message[1 : cells.MESSAGE_HEAD], "little")
            data = message[cells.MESSAGE_HEAD : cells.MESSAGE_HEAD + size]
            message = message[cells.MESSAGE_HEAD + size :]
            if letter == cells.STOP:
                self._stop(cells.BY_OWNER, int(data) / 1000)
            elif letter == cells.KILL:
                self._stop(cells.BY_OWNER, 0)
            elif letter == cells.INPUT and self._stdin >= 0:
                self._unread += data
                self._feed()
            elif letter == cells.CLOSE_INPUT and self._stdin >= 0:
                if self._order["pty"]:
                    self._unread += b"\x04"
                else:
                    self._closes_stdin = True
                self._feed()

    def _owner_is_gone(self) -> None:
        self._poll.unregister(self._owner)
        if not self.state[cells.KEPT]:
            self._stop(cells.BY_ORPHANHOOD, self._order["grace"])

    def _reap(self) -> None:
        """Everything below us ends in our arms; only the command itself is what we wait for."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._pid = 0
                self._ended(os.waitstatus_to_exitcode(status))

    def _ended(self, code: int) -> None:
        state = self.state
        state[cells.ENDED_AT] = time.monotonic_ns()
        state[cells.EXIT_CODE], state[cells.SIGNAL] = (code, 0) if code >= 0 else (0, -code)
        state[cells.STOPPED], state[cells.STOPPED_BY] = bool(self._stopping), self._stopping
        if not self._stopping:
            if self._order["leftovers"] == "kill" and not tree.alone():
                self._stopping = cells.BY_OWNER  # of the rest; the command itself was not stopped
                self._kill_at = time.monotonic()
            else:
                self._finish()

    # -- stopping

    def _stop(self, by: int, grace: float) -> None:
        now = time.monotonic()
        self._deadline = NEVER
        if not self._pid:
            return
        if not self._stopping:
            self._stopping = by
            if grace:
                tree.ask_to_stop(self._me)
        self._kill_at = min(self._kill_at, now + grace)

    def _go_on_stopping(self) -> None:
        now = time.monotonic()
        if now >= self._deadline:
            self._stop(cells.BY_DEADLINE, self._order["grace"])
        if not self._stopping or self.state[cells.PHASE] == cells.ENDED:
            return
        if now >= self._kill_at:
            self._give_up_at = min(self._give_up_at, now + SURVIVE)
            tree.kill(self._me)
        self._reap()
        if not self._pid and (tree.alone() or now >= self._give_up_at):
            self._finish()
        elif now >= self._give_up_at:
            self._ended(-signal.SIGKILL)  # it cannot be killed: it is listed as left
            self._finish()

    # -- the end

    def _finish(self) -> None:
        """Publishes the ending. What the command has said is all there by now."""
        for stream in list(self._streams.values()):
            self._drain(stream)
        left = list(tree.descendants(self._me))
        self.state[cells.LEFT] = len(left)
        for place, pid in enumerate(left[: cells.MAX_LEFT]):
            self.state[cells.LEFT_PIDS + place] = pid
        self._kill_at = self._give_up_at = self._deadline = self._announce_at = NEVER
        self.state[cells.PHASE] = cells.ENDED
        self._say_over()
        self.pass_on()
        self._sync()
        if not left or self._stopping:
            self._streams.clear()  # nobody is there to say more
        if self._stopping == cells.BY_ORPHANHOOD:
            self._remove()

    def _say_over(self) -> None:
        self._unsaid = not self._say(cells.OVER) and self.state[cells.KEPT] == 1

    def _drain(self, stream: Stream) -> None:
        """What lies in the pipe. Not until it is closed: something that was left may hold it open."""
        before = -1
        while before != (before := self._said()):
            self._turns.note(stream)
            if not stream.pump():
                return

    def _said(self) -> int:
        return self.state[cells.OUT_TOTAL] + self.state[cells.ERR_TOTAL]

    def _end_unstarted(self, problem: OSError, what: int) -> None:
        self.state[cells.PROBLEM], self.state[cells.PROBLEM_WITH] = problem.errno or errno.EIO, what
        self.state[cells.BEGAN] = self.state[cells.ENDED_AT] = time.monotonic_ns()
        self._streams.clear()
        self._finish()

    def _sync(self) -> None:
        """For a power cut: the state outlives every kill, but until now only in the kernel's memory."""
        try:
            os.fsync(self._lock)
        except OSError:
            return  # then it is lost in a power cut, and only then

    def _remove(self) -> None:
        """It was nobody's task, and nobody is left to read of it."""
        for kind in cells.FILES:
            try:
                os.unlink(self._base + kind)
            except OSError:
                continue

    def _say(self, what: bytes) -> bool:
        """False if the pipe is full: our owner has not listened for long."""
        try:
            os.write(self._events, self._order["name"] + what)
        except BlockingIOError:
            return False
        except OSError:
            return True  # nobody to tell; whoever comes looks at the state first
        return True

    def _unregister(self, fd: int) -> None:
        try:
            self._poll.unregister(fd)
        except KeyError:
            return


def _enter(group: str) -> None:
    fd = os.open(f"{group}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(os.getpid()).encode())
    finally:
        os.close(fd)
