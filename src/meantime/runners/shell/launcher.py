"""The owner's side of the zygote: it is started with the first command, and again should it be gone."""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .shim.command import LENGTH
from .shim.zygote import NUMBER

HERE = Path(__file__).parent  # the shims are loaded from here, without the rest of us
CODE = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from shim.zygote import main; main(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])"
)
REPLY = 12  # bytes: the number of an order, and the errno of what kept its shim from being forked


class Launcher:
    def __init__(self, root: Callable[[], Path]) -> None:
        self._root = root
        self._socket: socket.socket | None = None
        self._life = -1  # hangs up when the zygote is gone
        self._retired: list[socket.socket] = []  # of zygotes that were killed; their shims still listen
        self._number = 0
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._sending = asyncio.Lock()

    async def launch(self, order: dict[str, Any]) -> asyncio.Future[int]:
        """Hands the order in. The future gets an errno if no shim came of it, or 0 if the zygote was
        killed; it stays open otherwise, and whoever follows the command drops it with `forget`."""
        async with self._sending:
            owned = self._socket or await self._start()
            self._number += 1
            failed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._waiting[self._number] = failed
            data = marshal.dumps(order)
            head = len(data).to_bytes(LENGTH, "little") + self._number.to_bytes(NUMBER, "little")
            try:
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(owned, head + data)
            except OSError:
                self._gone()
            return failed

    def forget(self, failed: asyncio.Future[int]) -> None:
        for number, waiting in list(self._waiting.items()):
            if waiting is failed:
                del self._waiting[number]

    async def _start(self) -> socket.socket:
        """Nothing of ours but one socket; our stdin, our terminal and our imports stay here."""
        ours, theirs = socket.socketpair()
        self._life, life = os.pipe()
        with theirs:
            try:
                await asyncio.to_thread(_start_zygote, theirs.fileno(), life, self._root())
            finally:
                os.close(life)
        ours.setblocking(False)
        self._socket = ours
        asyncio.get_running_loop().add_reader(ours, self._hear)
        asyncio.get_running_loop().add_reader(self._life, self._gone)
        return ours

    def _hear(self) -> None:
        assert self._socket is not None
        try:
            reply = self._socket.recv(REPLY)
        except BlockingIOError:
            return
        except OSError:
            reply = b""
        if len(reply) < REPLY:
            self._gone()
            return
        failed = self._waiting.pop(int.from_bytes(reply[:8], "little"), None)
        if failed is not None and not failed.done():
            failed.set_result(int.from_bytes(reply[8:], "little"))

    def _gone(self) -> None:
        """It was killed. Its shims live on; orders that were not taken up are given again by their runs.
        The socket stays open, as its end would mean ours, but nobody waits for an order there."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self._retired.append(self._socket)
        self._leave()
        waiting, self._waiting = self._waiting, {}
        for failed in waiting.values():
            if not failed.done():
                failed.set_result(0)

    def close(self) -> None:
        """The zygote ends by itself once it has no shims."""
        if self._socket is not None:
            self._retired.append(self._socket)
        self._leave()
        for retired in self._retired:
            retired.close()
        self._retired.clear()

    def _leave(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket = None
        if self._life >= 0:
            asyncio.get_running_loop().remove_reader(self._life)
            os.close(self._life)
            self._life = -1


def _start_zygote(descriptor: int, life: int, root: Path) -> None:
    """It forks itself away from us: we wait for the first half only, and never have it as a zombie."""
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", CODE, str(HERE), str(descriptor), str(life), str(root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        pass_fds=[descriptor, life],
        check=True,
    )
