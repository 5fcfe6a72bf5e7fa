"""Records which functions of the package are called, in which order, by whom, and on which path.

A path is what runs in one line: an asyncio task, one callback of the event loop, or a thread. Calls of
different paths interleave, so an order is read along one path only. A coroutine counts once, when it is first
entered: going on after an await is not another call. Comprehensions, class bodies and the bodies of
modules are not calls.

`Recorder` works inside a process; `traced_process.py` installs one in another process.
"""

from __future__ import annotations

import asyncio
import dis
import json
import socket
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, TextIO

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "meantime"
_SCHEDULES = frozenset({"create_task", "call_soon", "call_soon_threadsafe", "call_at", "run_in_executor"})
_SENDS = frozenset({"send", "sendall", "sendmsg"})  # of a socket: something leaves this process
_LAMBDA = "<lambda>"


class Call(NamedTuple):
    """One call of a function of the package."""

    at: int  # nanoseconds of the monotonic clock, which all processes of a machine share
    path: str
    file: str  # below the package
    name: str  # qualified: Class.method
    caller: tuple[str, str] | None  # file and name; None for a call that comes from outside the package
    how: str  # "call"; "task" or "callback": what the caller has scheduled; "outside"; "sends": by a socket


class _Known(NamedTuple):
    file: str
    name: str
    begins: int  # the offset at which a frame of this code is first entered


class Recorder:
    """Install it before the threads that it is to see are started; it records from `start` to `stop`."""

    def __init__(self, stream: TextIO | None = None, *, package: Path = PACKAGE) -> None:
        """`stream` is given each call as a line of JSON, at once; otherwise `calls` keeps them."""
        self.calls: list[Call] = []
        self._stream = stream
        self._package = f"{package}/"
        self._codes: dict[CodeType, _Known | None] = {}
        self._scheduled: dict[int, tuple[Any, tuple[str, str] | None]] = {}  # by id, with the object itself
        self._paths: dict[int, tuple[Any, str]] = {}
        self._lock = threading.Lock()
        self.is_recording = False

    def install(self) -> None:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def remove(self) -> None:
        self.is_recording = False
        sys.setprofile(None)
        threading.setprofile(None)

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self.is_recording:
            return
        code = frame.f_code
        if event == "call":
            known = self._known(code)
            if known is not None and frame.f_lasti <= known.begins:
                self._entered(frame, known)
        elif event == "return":
            if code.co_name in _SCHEDULES and "asyncio" in code.co_filename and arg is not None:
                self._scheduled.setdefault(id(arg), (arg, self._caller(frame)))
        elif event == "c_call" and getattr(arg, "__name__", "") in _SENDS:
            is_socket = isinstance(getattr(arg, "__self__", None), socket.socket)
            sender = self._sender(frame) if is_socket else None
            if sender is not None:
                self._keep(Call(time.monotonic_ns(), "", *sender, sender, "sends"))

    def _known(self, code: CodeType) -> _Known | None:
        try:
            return self._codes[code]
        except KeyError:
            found = self._codes[code] = _known(code, self._package)
            return found

    def _sender(self, frame: FrameType) -> tuple[str, str] | None:
        if frame.f_code.co_name == "_write_to_self":  # the event loop wakes itself
            return None
        known = self._known(frame.f_code)
        return self._caller(frame) if known is None else (known.file, known.name)

    def _caller(self, frame: FrameType) -> tuple[str, str] | None:
        """The nearest function of the package that is waiting for this frame. The functions that run
        the event loop are not: they wait for everything."""
        outer = frame.f_back
        while outer is not None and not _is_turn_of_loop(outer):
            known = self._known(outer.f_code)
            if known is not None:
                return known.file, known.name
            outer = outer.f_back
        return None

    def _entered(self, frame: FrameType, known: _Known) -> None:
        at, caller, how = time.monotonic_ns(), self._caller(frame), "call"
        task = _running_task()
        if task is not None:
            path = self._path(task, "task")
            if caller is None:
                _, caller = self._scheduled.get(id(task), (None, None))
                how = "task" if caller else "outside"
        else:
            handle = _handle(frame)
            path = self._path(threading.current_thread() if handle is None else handle, "callback")
            if caller is None:
                _, caller = self._scheduled.get(id(handle), (None, None))
                how = "callback" if caller else "outside"
        self._keep(Call(at, path, known.file, known.name, caller, how))

    def _path(self, runs: Any, kind: str) -> str:
        with self._lock:
            if id(runs) not in self._paths:
                kind = "thread" if isinstance(runs, threading.Thread) else kind
                self._paths[id(runs)] = (runs, f"{kind} {len(self._paths) + 1}")
            return self._paths[id(runs)][1]

    def _keep(self, call: Call) -> None:
        if self._stream is None:
            self.calls.append(call)
        else:
            with self._lock:
                self._stream.write(json.dumps(call) + "\n")
                self._stream.flush()


def read(lines: Iterable[str]) -> list[Call]:
    """The calls that a stream was given. A line that is not finished yet is left out."""
    found: list[Call] = []
    for line in lines:
        if line.endswith("\n"):
            at, path, file, name, caller, how = json.loads(line)
            found.append(Call(at, path, file, name, None if caller is None else (caller[0], caller[1]), how))
    return found


def room_of(file: str) -> str:
    """The folder of a file, at most two levels deep: surfaces/cli, runners/shell, kernel. A module that lies
    loose at the top, such as the public API, is in the package `top`."""
    return "/".join(file.split("/")[:-1][:2]) or "top"


def _known(code: CodeType, package: str) -> _Known | None:
    if not code.co_filename.startswith(package):
        return None
    if code.co_name.startswith("<") and code.co_name != _LAMBDA:
        return None
    if "__qualname__" in code.co_names and not code.co_flags & 2:  # the body of a class
        return None
    return _Known(code.co_filename.removeprefix(package), code.co_qualname, _begins(code))


def _begins(code: CodeType) -> int:
    resumes = (each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")
    return next(resumes, 0)


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _is_turn_of_loop(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name == "_run" and code.co_filename.endswith("asyncio/events.py")


def _handle(frame: FrameType) -> object | None:
    """The event loop's own name for the callback that this frame belongs to."""
    outer: FrameType | None = frame
    while outer is not None:
        if _is_turn_of_loop(outer):
            return outer.f_locals.get("self")
        outer = outer.f_back
    return None
