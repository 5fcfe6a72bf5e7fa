"""How a shim gets its order, and how it makes sure that nobody else carries it out."""

from __future__ import annotations

import fcntl
import marshal
import mmap
import os
import select

from . import cells

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module itself would be one more to share with every fork
    from typing import Any

LENGTH = 4  # bytes that say how long an order is


class Intake:
    def __init__(self, orders: int) -> None:
        self._orders = orders
        self.order: dict[str, Any] = {}
        self.more_wait = False  # another order is there already: who takes it is to be forked at once
        self.lock = -1

    def receive(self) -> bool:
        """Waits for an order; False if our owner is gone. Half an order was cut off by a kill, and was
        never given. Afterwards the socket is the next one's: who has an order reads no other."""
        head = self._exactly(LENGTH)
        data = self._exactly(int.from_bytes(head, "little")) if head else b""
        if data:
            self.order = marshal.loads(data)
            waiting = select.poll()
            waiting.register(self._orders, select.POLLIN)
            self.more_wait = bool(waiting.poll(0))
        os.close(self._orders)
        return bool(data)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = os.read(self._orders, min(count - len(data), 1 << 20))
            if not part:
                return b""
            data += part
        return data

    def claim(self, pid: int, started: int) -> memoryview | None:
        """The state, if we are the one that starts the command. The lock shows that we live; the mark
        stays when we do not, so that nobody ever starts it again."""
        fd = os.open(self.order["base"] + cells.STATE_FILE, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        self.lock = fd  # held until we end
        state = memoryview(mmap.mmap(fd, cells.SIZE)).cast("B").cast("Q")
        if state[cells.FORMAT]:
            return None
        state[cells.SHIM_PID], state[cells.SHIM_START] = pid, started
        state[cells.BOOT] = self.order.get("boot", 0)  # an owner that is being upgraded may not say it
        state[cells.HEAD], state[cells.RING] = self.order["head"], self.order["ring"]
        state[cells.FORMAT] = cells.VERSION
        return state
