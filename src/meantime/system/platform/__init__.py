"""Everything that Meantime asks of the operating system, and that not every system answers in the same way.

No other package touches /proc, pidfd, prctl, peer credentials, splice or cgroups: tests/meta/test_platform.py
looks. Each operation has one contract, here or in `tree.py`, and one implementation for each platform:

- `linux`: what the kernel of Linux offers.
- `posix`: what macOS and the BSDs share with Linux, with psutil for the table of processes.
- `macos`: the same, with the few calls of `macos.py`.

The system decides which one it is. `MEANTIME_PLATFORM=posix` asks for the second one, as the tests do on
Linux.

The operations:

- `boot()`: the id of this start of the machine, in hexadecimal digits and dashes; empty where nobody says.
- `FolderEvents`: calls when something in a folder changes; `listen` gives -1 where nothing is reported.
- `stat(pid)`: name, state, parent and start of a process; None for one that is gone. The state is "Z" for a
  zombie, "R" for any that lives, even if its first thread has ended.
- `program(pid)`: the path of the program that a process runs; empty where nobody says.
- `command_line(pid)`: its arguments, each followed by a NUL; empty for one that is gone or another user's.
- `environments()`: every process whose environment we may read, with that environment as NAME=value and NULs.
- `writes_into(pid, path)`: whether this file is the process's stdout.
- `lock_holder(path)`: the process that holds the flock of this file; 0 for none. It only looks. Its holder
  has written its pid into the file, as `{"pid": 17, …}`.
- `ProcessHandle(pid)`: one process, whatever takes its pid later. ProcessLookupError for one that is gone.
  `send(number)` signals it; `has_ended(seconds)` waits for its end; `on_exit(loop, call)` calls when it has
  ended, and `close()` lets go of it. It need not be a child of ours.
- `preallocate(fd, size)`: takes so many bytes of the disk; OSError where they are not there.
- `sync_file(fd)`, `sync_data(fd)`: what was written is on the disk; the second may leave out the times of the
  file.
- `close_files(kept)`: closes all files of this process, but for the first three and this one.
- `LONGEST_SOCKET`: bytes of a path that a socket may have. `short_socket_path(folder, name)`: another path of
  a socket in this open folder, which is short; empty where there is none. `names_long_sockets()`: whether
  there is.
- `peer_credentials(socket)`: pid and uid at the other end of a Unix socket; None for what is not known.
  `KNOWS_PEERS`: whether the uid ever is.
- `tcp_owner(pairs)`: the user of the local socket with one of these pairs of addresses, as (packed, port);
  None where nobody says.
  `KNOWS_TCP_PEERS`: whether anybody ever does.
- `unread_bytes(fd)`: bytes that the reader of this pipe or socket has not read; None where nobody says.
- `USED_CALLS`, `NEEDED_SYSTEM`: for people, what this platform uses, and what it needs.
- `missing_calls()`: what this platform needs and this machine does not have, in words.
- `kernel_name()`: what the kernel says of itself; empty where it says nothing.

`meantime mcp` asks here before its first answer, and a zygote loads it for its shims: it loads little.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "MEANTIME_PLATFORM"
SHORTEST = 12  # digits of a start's name: no two of one machine begin with the same

# What stands between an agent and what it starts is another process each time.
BETWEEN = frozenset({"sh", "bash", "dash", "zsh", "fish", "env", "uv", "uvx", "pipx", "npx"})


def chosen(asked: str, system: str) -> str:
    """The platform of a system, unless somebody asks for `posix`, which every system is.

    Raises ValueError for the name of any other: a typing error must not change what is promised.
    """
    own = "linux" if system == "linux" else "macos" if system == "darwin" else "posix"
    if asked not in ("", "posix", own):
        names = own if own == "posix" else f"{own} or posix"
        what = f"{VARIABLE}={asked!r} is not a platform of this system."
        raise ValueError(f"{what} Unset it, or set it to {names}.")
    return asked or own


NAME = chosen(os.environ.get(VARIABLE, ""), sys.platform)

if NAME == "linux":
    from .linux import (
        KNOWS_PEERS,
        KNOWS_TCP_PEERS,
        LONGEST_SOCKET,
        NEEDED_SYSTEM,
        USED_CALLS,
        ProcessHandle,
        boot,
        close_files,
        command_line,
        environments,
        kernel_name,
        lock_holder,
        missing_calls,
        names_long_sockets,
        peer_credentials,
        preallocate,
        program,
        short_socket_path,
        stat,
        sync_data,
        sync_file,
        tcp_owner,
        unread_bytes,
        writes_into,
    )
    from .linux_folders import FolderEvents
else:
    from .posix import (
        KNOWS_PEERS,
        KNOWS_TCP_PEERS,
        LONGEST_SOCKET,
        NEEDED_SYSTEM,
        USED_CALLS,
        ProcessHandle,
        boot,
        close_files,
        command_line,
        environments,
        kernel_name,
        lock_holder,
        missing_calls,
        names_long_sockets,
        peer_credentials,
        preallocate,
        program,
        short_socket_path,
        stat,
        sync_data,
        sync_file,
        tcp_owner,
        unread_bytes,
        writes_into,
    )
    from .posix_folders import FolderEvents

__all__ = [
    "BETWEEN",
    "KNOWS_PEERS",
    "KNOWS_TCP_PEERS",
    "LONGEST_SOCKET",
    "NAME",
    "NEEDED_SYSTEM",
    "SHORTEST",
    "USED_CALLS",
    "VARIABLE",
    "FolderEvents",
    "ProcessHandle",
    "boot",
    "close_files",
    "command_line",
    "environments",
    "is_this_boot",
    "kernel_name",
    "lock_holder",
    "missing_calls",
    "names_long_sockets",
    "peer_credentials",
    "preallocate",
    "program",
    "short_boot",
    "short_socket_path",
    "stat",
    "sync_data",
    "sync_file",
    "tcp_owner",
    "unread_bytes",
    "writes_into",
]


def is_this_boot(id: str) -> bool:
    """Whether `id`, or a beginning of it that `short_boot` gave, names this start of the machine: process ids
    and the monotonic clock mean something within one only. Where nobody says, nothing is known to be of
    it."""
    return len(_plain(id)) >= SHORTEST and _plain(boot()).startswith(_plain(id))


def short_boot(digits: int) -> str:
    """The beginning of this start's name, where there is little room; empty where nobody says."""
    return _plain(boot())[:digits]


def inherited() -> dict[str, str]:
    """The variable for a process that gets no other environment of ours, and has to make the same choice."""
    asked = os.environ.get(VARIABLE, "")
    return {VARIABLE: asked} if asked else {}


def _plain(id: str) -> str:
    return id.strip().replace("-", "")
