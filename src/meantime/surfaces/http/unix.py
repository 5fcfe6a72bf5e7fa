"""The unix socket: private from its first moment, whole or not there, taken away only if it is ours."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
from collections.abc import Generator
from pathlib import Path

from meantime.kernel.errors import InvalidInput

LONGEST = 107  # bytes of an address that the kernel takes


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
    """Bound under a name that nobody knows, made private, and only then given its own name: whoever
    finds it there finds it ready, and a socket that was left behind is replaced in the same moment."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    new = path.parent / f".{secrets.token_hex(4)}"
    try:
        _check_free(path)
        os.fchmod(made.fileno(), 0o600)  # the file is born with it, whatever the umask says
        with _address(new) as address:
            made.bind(address)
        os.chmod(new, 0o600)  # where a system does not do that
        made.listen(128)
        made.setblocking(False)
        inode = _inode(new)
        os.rename(new, path)
    except BaseException as problem:
        made.close()
        new.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise InvalidInput(
                f"The socket {path} cannot be opened: {problem.strerror or problem}.",
                hint="Name a path in a folder of yours.",
            ) from problem
        raise
    return UnixSocket(path, made, inode)


def _check_free(path: Path) -> None:
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise InvalidInput(f"{path} is there, and is not a socket.", hint="Name another path for it.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, _address(path) as address:
        probe.setblocking(False)
        try:
            probe.connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            return  # left behind by somebody who is gone
        except BlockingIOError:
            pass  # somebody listens, and is busy
    raise InvalidInput(f"Another program listens at {path}.", hint="Stop it, or name another path.")


@contextlib.contextmanager
def _address(path: Path) -> Generator[bytes]:
    """A path that is too long for the kernel is named through its open folder."""
    whole = os.fsencode(path)
    if len(whole) <= LONGEST:
        yield whole
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = os.fsencode(f"/proc/self/fd/{folder}/{path.name}")
        if len(short) > LONGEST or not os.path.isdir(f"/proc/self/fd/{folder}"):
            raise InvalidInput(
                f"{path} is too long for a socket.", hint=f"Name a path of at most {LONGEST} bytes."
            )
        yield short
    finally:
        os.close(folder)


def _inode(path: Path) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino
