"""The operations of `tree.py` as Linux has them.

A supervisor is the reaper of everything its command starts, also of what was double-forked or moved to a
session of its own: whatever it does, it stays below us.
"""

from __future__ import annotations

import os
import time

from .linux import FLAGS, GROUP, PARENT, STARTED, is_gone, split_stat

TYPE_CHECKING = False
if TYPE_CHECKING:  # each module would be one more to share with every fork; `signal` loads ten
    import signal
    from collections.abc import Callable, Mapping

    from .tree import Found
else:
    import _signal as signal

PR_SET_CHILD_SUBREAPER = 36
PF_KTHREAD = 0x00200000  # in the flags of a process
LOOKS = 5  # at processes that show no environment
MOMENT = 0.002  # seconds between them
LOOK_AGAIN = float("inf")


def orphan_adopter() -> Callable[[], object]:
    import ctypes  # here, as a zygote needs it before it forks, and an owner does not

    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def follow(command: int, variable: str) -> None:
    """Everything that it starts stays below us, so nothing else has to be known of it."""


def import_paths() -> list[str]:
    return []


def with_mark(environ: Mapping[str, str], name: str, value: str) -> Mapping[str, str]:
    return environ


# -- looking


def stat(pid: int) -> list[bytes] | None:
    """The fields after the name; None if it is gone."""
    text = _read(f"/proc/{pid}/stat")
    return split_stat(text)[1] if text else None


def facts(pid: int) -> tuple[int, int, int] | None:
    fields = stat(pid)
    if fields is None or is_gone(fields):
        return None
    return int(fields[PARENT]), int(fields[GROUP]), int(fields[STARTED])


def start_time(pid: int) -> int:
    fields = stat(pid)
    return int(fields[STARTED]) if fields else 0


def alone() -> bool:
    """Exact, as everything that loses its parent becomes our child. A look at /proc can miss one that forks
    and goes while we look."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def childless_is_alone() -> bool:
    """A supervisor without a child has no descendant, for it is given every orphan."""
    return True


def descendants(of: int) -> Found:
    found: Found = {}
    todo = [of]
    while todo:
        for child in children(todo.pop()):
            fields = stat(child)
            if fields is None or child in found:
                continue
            todo.append(child)
            if not is_gone(fields):
                found[child] = (int(fields[STARTED]), int(fields[GROUP]))
    return found


def children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def marked(is_mark: Callable[[bytes], bool], since: int) -> Found:
    """One that is just becoming another program shows no environment for a moment, so those are looked at
    again: all of them together, as shims never show one, and a machine may have hundreds."""
    found: Found = {}
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]
    for look in range(LOOKS):
        if look:
            time.sleep(MOMENT)
        blank: list[int] = []
        for pid in pids:
            text = _environment(pid)
            if not text:
                if text is not None and _may_be_marked(pid, since):
                    blank.append(pid)
            elif any(map(is_mark, text.split(b"\0"))):
                fields = stat(pid)
                if fields is not None and not is_gone(fields):
                    found[pid] = (int(fields[STARTED]), int(fields[GROUP]))
        if not blank:
            break
        pids = blank
    return found


def _environment(pid: int) -> bytes | None:
    """The environment of a process; or of its other threads, where its first one has ended. None for one that
    is gone, or somebody else's."""
    text = _environ(f"/proc/{pid}/environ")
    return _of_other_threads(pid) if text == b"" else text


def _of_other_threads(pid: int) -> bytes:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return b""
    others = (thread for thread in threads if thread != str(pid))
    return b"".join(_environ(f"/proc/{pid}/task/{thread}/environ") or b"" for thread in others)


def _may_be_marked(pid: int, since: int) -> bool:
    """Whether a process that shows no environment may show the mark in a moment: not a thread of the
    kernel's, and not one that is older than the shim of the command."""
    fields = stat(pid)
    if fields is None or is_gone(fields):
        return False
    return int(fields[STARTED]) >= since and not int(fields[FLAGS]) & PF_KTHREAD


def _environ(path: str) -> bytes | None:
    """None for one that is gone, or somebody else's."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _read(path: str) -> bytes:
    """All of a small file of the kernel's, or nothing if it is gone."""
    parts: list[bytes] = []
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        while part := os.read(fd, 1 << 16):
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(parts)


# -- doing


def send(pid: int, started: int, number: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if start_time(pid) == started:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return
    finally:
        os.close(handle)


def exit_descriptor(child: int) -> int:
    return os.pidfd_open(child, 0)


def clear_exit(descriptor: int) -> None:
    """It can be read when that very child has ended, and not before."""


def hold_folder(folder: str) -> tuple[str, str | int]:
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # until we end
    return f"/proc/self/fd/{held}", "/"  # the root, so that nobody is kept from removing the folder


splices = hasattr(os, "splice")


def splice(source: int, file: int, most: int, place: int) -> int:
    return os.splice(source, file, most, offset_dst=place, flags=os.SPLICE_F_NONBLOCK)


# -- the number of processes


def enter_group(group: str) -> None:
    _write(f"{group}/cgroup.procs", os.getpid())


def leave_group(group: str, home: str, processes: int) -> None:
    _write(f"{home}/cgroup.procs", os.getpid())
    _write(f"{group}/pids.max", processes)


def _write(path: str, number: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(number).encode())
    finally:
        os.close(fd)
