"""The connection between a command and us: its pipes or its terminal, and its stdin."""

from __future__ import annotations

import fcntl
import os
import select
import termios

from meantime.system.platform import sync_data
from meantime.system.platform.tree import splices

from . import cells
from .output_writer import Order, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module itself would be one more to share with every fork
    from typing import Any

DRAINS = 64  # moves that empty any pipe; not more, for what was left behind may be filling it
END_OF_INPUT = b"\x04"  # what a terminal takes for it


class Plumbing:
    def __init__(self, order: dict[str, Any], state: memoryview, poll: select.poll) -> None:
        self._order = order
        self._base: str = order["base"]
        self._state = state
        self._poll = poll
        self._turns = Order(self._base + cells.ORDER_FILE, state)
        self.streams: dict[int, Stream] = {}
        self.stdin = -1
        self._unread = b""  # for the command's stdin
        self._closes = True

    def lay(self) -> tuple[list[Any], list[int]]:
        """The file actions for the command, and the descriptors to close once it has them."""
        return self._terminal() if self._order["pty"] else self._pipes()

    def _pipes(self) -> tuple[list[Any], list[int]]:
        out = err = self._new_pipe(cells.OUT_FILE, cells.OUT_TOTAL, cells.OUT_GAP_FROM)
        if not self._order["merge"]:
            err = self._new_pipe(cells.ERR_FILE, cells.ERR_TOTAL, cells.ERR_GAP_FROM)
        theirs = {out, err}
        actions: list[Any] = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)]
        if self._order["stdin"] is not None:
            read, self.stdin = os.pipe()
            os.set_blocking(self.stdin, False)
            theirs.add(read)
            actions.append((os.POSIX_SPAWN_DUP2, read, 0))
            self._closes = not self._order["open_stdin"]
            self.feed(self._order["stdin"])
        return actions, list(theirs)

    def _new_pipe(self, file: str, total: int, gap: int) -> int:
        read, write = os.pipe()
        os.set_blocking(read, False)
        self._follow(Stream(read, self._base + file, total, gap, self._state, splices))
        return write

    def _terminal(self) -> tuple[list[Any], list[int]]:
        """The command leads its session, so the first terminal that it opens becomes its own."""
        master, slave = os.openpty()
        rows, columns = self._order["size"]
        size = b"".join(number.to_bytes(2, "little") for number in (rows, columns, 0, 0))
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        os.set_blocking(master, False)
        path = self._base + cells.OUT_FILE
        self._follow(Stream(master, path, cells.OUT_TOTAL, cells.OUT_GAP_FROM, self._state, False))
        self.stdin = os.dup(master)
        self._closes = False
        given = self._order["stdin"]
        self.feed(b"" if given is None else given if self._order["open_stdin"] else given + END_OF_INPUT)
        actions: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, os.ttyname(slave), os.O_RDWR, 0)]
        return [*actions, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)], [slave]

    def _follow(self, stream: Stream) -> None:
        self.streams[stream.fd] = stream
        self._poll.register(stream.fd, select.POLLIN)

    # -- what it says

    def read_output(self, fd: int, event: int) -> None:
        stream = self.streams[fd]
        if event & select.POLLIN:  # else it is at its end, and has no turn
            self._turns.note(stream)
        if not stream.pump():
            self._poll.unregister(fd)
            del self.streams[fd]
            stream.close()

    def drain(self) -> None:
        """The bytes in the pipes. Not until they are closed: something that was left may hold them."""
        for fd, stream in self.streams.items():
            ready = select.poll()
            ready.register(fd, select.POLLIN)
            for _ in range(DRAINS):
                if not any(event & select.POLLIN for _, event in ready.poll(0)):
                    break
                self._turns.note(stream)
                if not stream.pump():
                    break

    def sync(self) -> None:
        """The output goes to the disk. By name: a stream that has ended has closed its file."""
        for kind in (cells.OUT_FILE, cells.ERR_FILE, cells.ORDER_FILE):
            try:
                file = os.open(self._base + kind, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                continue  # it said nothing there
            try:
                sync_data(file)
            except OSError:
                pass  # then it is lost in a power cut, and only then
            finally:
                os.close(file)

    # -- what it is told

    def feed(self, data: bytes = b"") -> None:
        """As much of its stdin as the command takes now; the rest waits."""
        if self.stdin < 0:
            return
        self._unread += data
        try:
            while self._unread:
                self._unread = self._unread[os.write(self.stdin, self._unread[: 1 << 16]) :]
        except BlockingIOError:
            self._poll.register(self.stdin, select.POLLOUT)
        except OSError:
            self._unread, self._closes = b"", True  # it does not read any more
        self._state[cells.STDIN_PENDING] = len(self._unread)
        if not self._unread:
            self._stop_feeding()

    def end_input(self) -> None:
        if self._order["pty"]:
            self.feed(END_OF_INPUT)
        else:
            self._closes = True
            self.feed()

    def _stop_feeding(self) -> None:
        try:
            self._poll.unregister(self.stdin)
        except KeyError:
            pass  # it took everything at once
        if self._closes:
            os.close(self.stdin)
            self.stdin = -1
