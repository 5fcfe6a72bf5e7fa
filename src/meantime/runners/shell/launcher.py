"""The owner's side of the zygote: it is started with the first command, and again should it be gone."""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from meantime.system import bare_python
from meantime.system.platform import inherited

from .shim.intake import LENGTH

STARTS = 3  # of a zygote that is killed while it starts
CODE = (
    f"{bare_python.BEGIN}; from meantime.runners.shell.shim.zygote import main; "
    "main(int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])"
)


class ZygoteConnection:
    """The way to one zygote. It never says anything: what can be read there is that it is gone."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(orders, self._on_readable)

    async def send(self, data: bytes) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._orders, data)
        except OSError:
            self.close()

    def _on_readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            with contextlib.suppress(ConnectionError):
                self._orders.recv(1)
            self.close()

    def close(self) -> None:
        if not self.gone.done():
            asyncio.get_running_loop().remove_reader(self._orders)
            self.gone.set_result(None)
            self._orders.close()

    def drop(self) -> None:
        self._orders.close()


class Launcher:
    def __init__(self, root: Callable[[], Path], umask: int) -> None:
        self._root = root
        self._umask = umask
        self._line: ZygoteConnection | None = None
        self._lifeline = self._hangs_up = -1  # a pipe: the other end hangs up when we are gone
        self._hanging: list[ZygoteConnection] = []
        self._sending = asyncio.Lock()
        _launchers.add(self)

    async def launch(self, order: dict[str, Any]) -> ZygoteConnection:
        """Hands the order in. The line is gone when nobody is left there to carry it out."""
        async with self._sending:
            line = self._line
            if line is None or line.gone.done():
                line = self._line = await self._start()
            data = marshal.dumps(order)
            await line.send(len(data).to_bytes(LENGTH, "little") + data)
            return line

    def go_round(self, line: ZygoteConnection) -> None:
        """A zygote whose spare hangs: it stays, for what it has, but gets no more orders."""
        if self._line is line:
            self._line = None
            self._hanging.append(line)

    async def _start(self) -> ZygoteConnection:
        if self._lifeline < 0:
            self._hangs_up, self._lifeline = os.pipe()
        for _ in range(STARTS):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            with theirs:
                try:
                    started = await asyncio.to_thread(
                        _start_zygote, theirs.fileno(), self._hangs_up, self._root(), self._umask
                    )
                except BaseException:
                    ours.close()
                    raise
            if started:
                return ZygoteConnection(ours)
            ours.close()  # so that a half of it that was not killed ends by itself
        raise OSError(f"{sys.executable} was killed {STARTS} times while it started as a launcher")

    def close(self) -> None:
        """The zygote ends by itself once it has no shims; what is not to outlive us ends with us."""
        for line in (self._line, *self._hanging):
            if line is not None:
                line.close()
        self._line = None
        self._hanging.clear()
        self.hang_up()

    def hang_up(self) -> None:
        for fd in (self._lifeline, self._hangs_up):
            if fd >= 0:
                os.close(fd)
        self._lifeline = self._hangs_up = -1

    def drop(self) -> None:
        """In a forked child of ours, which must not keep up the appearance that we live."""
        for line in (self._line, *self._hanging):
            if line is not None:
                line.drop()
        self.hang_up()


_launchers: weakref.WeakSet[Launcher] = weakref.WeakSet()


def _drop_in_child() -> None:
    for launcher in list(_launchers):
        launcher.drop()


os.register_at_fork(after_in_child=_drop_in_child)


def _start_zygote(orders: int, lifeline: int, root: Path, umask: int) -> bool:
    """Nothing of ours but these: our stdin, our terminal, our imports stay here. It forks itself away
    from us: we wait for the first half only, and never have it as a zombie. False: a signal killed it."""
    begun = subprocess.run(
        [*bare_python.command(CODE), str(orders), str(lifeline), str(root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        env=inherited(),
        pass_fds=[orders, lifeline],
        umask=umask,
        check=False,
    )
    if begun.returncode > 0:
        why = begun.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][-300:]
        raise OSError(f"{sys.executable} did not start as a launcher: {why or begun.returncode}")
    return begun.returncode == 0
