"""Changes in folders, as the system reports them (inotify). Where it does not, watches poll."""

from __future__ import annotations

import os
import threading

TYPE_CHECKING = False  # bare Pythons load this package: what is seldom used is loaded when it is
if TYPE_CHECKING:
    from collections.abc import Callable
    from ctypes import CDLL

CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # modified, made, moved, removed, …
ONLY_FOLDERS = 0x01000000
NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC


class FolderEvents:
    """One descriptor for all folders of this process. `listen` returns -1 where nothing is reported.

    `listen` takes long where a file system does not answer, and may be called in any thread. Callbacks are
    called in the event loop of `open`.
    """

    def __init__(self) -> None:
        self._fd = -1
        self._libc: CDLL | None = None
        self._lock = threading.Lock()  # for the next two, and never held during a call that may take long
        self._wakes: dict[int, list[Callable[[], object]]] = {}
        self._listening: list[set[int]] = []  # of each call in progress: what was forgotten meanwhile

    def listen(self, folder: str, wake: Callable[[], object]) -> int:
        """Calls `wake` when something in the folder changes. A number for `forget`; -1: nobody will call."""
        if self._fd < 0:
            return -1
        assert self._libc is not None
        forgotten: set[int] = set()
        with self._lock:
            self._listening.append(forgotten)
        number: int = self._libc.inotify_add_watch(self._fd, os.fsencode(folder), CHANGES | ONLY_FOLDERS)
        with self._lock:
            self._listening = [one for one in self._listening if one is not forgotten]
            if number < 0 or number in forgotten:
                return -1
            wakes = self._wakes.setdefault(number, [])
            if wake not in wakes:
                wakes.append(wake)
        return number

    def forget(self, number: int, wake: Callable[[], object]) -> None:
        with self._lock:
            wakes = self._wakes.get(number)
            if wakes is None or wake not in wakes:
                return
            wakes.remove(wake)
            if wakes:
                return
            del self._wakes[number]
            for forgotten in self._listening:
                forgotten.add(number)
            if self._libc is not None and self._fd >= 0:
                self._libc.inotify_rm_watch(self._fd, number)

    def open(self) -> None:
        """Before the first `listen`, in the event loop."""
        if self._fd >= 0:
            return
        import asyncio
        import ctypes

        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            fd: int = self._libc.inotify_init1(NONBLOCK)
        except (OSError, AttributeError):
            return
        if fd >= 0:
            asyncio.get_running_loop().add_reader(fd, self._read)
            self._fd = fd

    def _read(self) -> None:
        import struct

        head = struct.Struct("iIII")
        try:
            data = os.read(self._fd, 1 << 16)
        except (BlockingIOError, InterruptedError):
            return
        numbers: set[int] = set()
        at = 0
        while at + head.size <= len(data):
            number, _, _, length = head.unpack_from(data, at)
            at += head.size + length
            numbers.add(number)
        with self._lock:
            if -1 in numbers:  # some were dropped, because we were slow: anything may have changed
                numbers = set(self._wakes)
            wakes = [wake for number in numbers for wake in self._wakes.get(number, ())]
        for wake in wakes:
            wake()

    def close(self) -> None:
        import asyncio

        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        with self._lock:
            self._wakes.clear()
