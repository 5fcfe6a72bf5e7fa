"""The unix socket: private from its first moment, whole or not there, taken away only if it is ours."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
from pathlib import Path

from meantime.kernel.errors import InvalidInput
from meantime.link.unix_address import address


class UnixSocket:
    """A socket that listens at a path."""

    def __init__(self, path: Path, listening: socket.socket, inode: tuple[int, int]) -> None:
        self.path = path
        self.listening = listening
        self._inode = inode

    def remove(self) -> None:
        """Only ours: somebody may have started after us."""
        with contextlib.suppress(OSError):
            if _inode(self.path) == self._inode:
                self.path.unlink()


def bind_unix(path: Path) -> UnixSocket:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_free(path)
        return _bound(path)
    except OSError as problem:
        raise InvalidInput(
            f"The socket {path} cannot be opened: {problem.strerror or problem}.",
            hint="Name a path in a folder of yours.",
        ) from problem


def _bound(path: Path) -> UnixSocket:
    """Bound under a name that nobody knows, made private, and only then given its own name: whoever
    finds it there finds it ready, and a socket that was left behind is replaced in the same moment."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    new = path.parent / f".{secrets.token_hex(4)}"
    try:
        os.fchmod(made.fileno(), 0o600)  # the file is born with it, whatever the umask says
        with address(new) as place:
            made.bind(place)
        os.chmod(new, 0o600)  # where a system does not do that
        made.listen(128)
        made.setblocking(False)
        inode = _inode(new)
        os.rename(new, path)
    except BaseException:
        made.close()
        new.unlink(missing_ok=True)
        raise
    return UnixSocket(path, made, inode)


def _check_free(path: Path) -> None:
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise InvalidInput(f"{path} is there, and is not a socket.", hint="Name another path for it.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, address(path) as place:
        probe.setblocking(False)
        try:
            probe.connect(place)
        except (ConnectionRefusedError, FileNotFoundError):
            return  # left behind by somebody who is gone
        except BlockingIOError:
            pass  # somebody listens, and is busy
    raise InvalidInput(f"Another program listens at {path}.", hint="Stop it, or name another path.")


def _inode(path: Path) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino
