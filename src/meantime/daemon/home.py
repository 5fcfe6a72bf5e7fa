"""The home of one person's Meantime: the folder, and the names of the files in it.

The command line imports this on every call, so it loads nothing but what every Python has loaded.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Mapping
    from pathlib import Path

LONGEST_EVERYWHERE = 103  # bytes that every system takes for the path of a socket


class BadHome(Exception):
    """The folder cannot be ours. `message` says why, `hint` what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.message = message
        self.hint = hint


class Home:
    """One ledger, one daemon, one configuration."""

    __slots__ = ("_config", "_folder")

    def __init__(self, folder: str | Path, config: str | Path) -> None:
        self._folder = os.fspath(folder)
        self._config = os.fspath(config)

    @property
    def folder(self) -> Path:
        return _path(self._folder)

    @property
    def config(self) -> Path:
        return _path(self._config)

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"

    @property
    def http_socket(self) -> Path:
        """HTTP for programs of the same user."""
        return _path(self.http_address)

    @property
    def http_address(self) -> str:
        """The same, for whoever only connects: a path of `pathlib` takes longer to load than to ask."""
        return f"{self._folder}/http.sock"

    @property
    def link_socket(self) -> Path:
        """The library's own protocol."""
        return self.folder / "link.sock"

    @property
    def wrap_socket(self) -> Path:
        """For `meantime mcp --wrap`."""
        return _path(self.wrap_address)

    @property
    def wrap_address(self) -> str:
        """The same, for whoever only connects."""
        return f"{self._folder}/wrap.sock"

    @property
    def log(self) -> Path:
        return self.folder / "daemon.log"

    @property
    def discovery(self) -> Path:
        return self.folder / "server.json"

    @property
    def token(self) -> Path:
        return self.folder / "token"

    def check(self) -> None:
        """Refuses a folder that somebody else could read, or could have laid there for us."""
        if _is_too_long(self.http_socket):
            raise BadHome(
                f"{self.folder} is too long a path for a socket in it.", "Set MEANTIME_HOME to a shorter one."
            )
        try:
            found = os.stat(self.folder)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise _unusable(self.folder, problem) from problem
        if not stat.S_ISDIR(found.st_mode):
            raise BadHome(f"{self.folder} is not a folder.", "Set MEANTIME_HOME to one, or remove the file.")
        if found.st_uid != os.getuid():
            raise BadHome(
                f"{self.folder} belongs to user {found.st_uid}, and you are user {os.getuid()}.",
                "Set MEANTIME_HOME to a folder of your own.",
            )
        if found.st_mode & 0o077:
            # Not tightened here: somebody may have opened it on purpose, for other things that lie in it.
            raise BadHome(
                f"Other users may enter {self.folder} (its mode is {stat.S_IMODE(found.st_mode):04o}).",
                f"Close it with: chmod 700 {self.folder}",
            )

    def make(self) -> None:
        """Makes the folder, for us alone, where there is none."""
        self.check()
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise _unusable(self.folder, problem) from problem
        self.check()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Home) and (self.folder, self.config) == (other.folder, other.config)

    def __hash__(self) -> int:
        return hash((self.folder, self.config))

    def __repr__(self) -> str:
        return f"<Home {self.folder}>"


def reach(talk: socket, path: str | Path) -> None:
    """Connects to a socket in a home. A path that is too long for the kernel is named through its folder."""
    whole = os.fspath(path)
    if len(os.fsencode(whole)) <= LONGEST_EVERYWHERE:
        talk.connect(whole)
        return
    from meantime.system.platform import LONGEST_SOCKET, short_socket_path  # few homes are so deep

    if len(os.fsencode(whole)) <= LONGEST_SOCKET:
        talk.connect(whole)
        return
    parent, name = os.path.split(whole)
    folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        talk.connect(short_socket_path(folder, name))
    finally:
        os.close(folder)


def _is_too_long(path: Path) -> bool:
    size = len(os.fsencode(path))
    if size <= LONGEST_EVERYWHERE:
        return False
    from meantime.system.platform import LONGEST_SOCKET, names_long_sockets

    return size > LONGEST_SOCKET and not names_long_sockets()


def home(environ: Mapping[str, str] = os.environ) -> Home:
    """Taken from the environment; it touches no file."""
    folder = _named(environ, "MEANTIME_HOME") or _standard(environ, "XDG_STATE_HOME", ".local/state")
    config = _named(environ, "MEANTIME_CONFIG")
    return Home(folder, config or f"{_standard(environ, 'XDG_CONFIG_HOME', '.config')}/config.toml")


def _named(environ: Mapping[str, str], name: str) -> str:
    said = environ.get(name, "")
    if said and not os.path.isabs(said):
        raise BadHome(
            f"{name}={said!r} is not a whole path: it would be another one in every folder.",
            f"Set it to one that begins with a slash, such as {_path(os.getcwd()) / said}.",
        )
    if "\0" in said:
        raise BadHome(f"{name}={said!r} is not a path.", "Remove the NUL from it.")
    return said


def _standard(environ: Mapping[str, str], name: str, otherwise: str) -> str:
    """A relative one is passed over: so says the specification of these folders."""
    said = environ.get(name, "")
    if said and os.path.isabs(said):
        return f"{said}/meantime"
    user = environ.get("HOME", "")
    return f"{user if os.path.isabs(user) else os.path.expanduser('~')}/{otherwise}/meantime"


def _path(text: str) -> Path:
    from pathlib import Path  # when it is asked for: it loads `urllib`, and most calls only connect

    return Path(text)


def _unusable(folder: Path, problem: OSError) -> BadHome:
    return BadHome(
        f"{folder} cannot be used: {problem.strerror or problem}.",
        "Set MEANTIME_HOME to a folder that you may write to.",
    )
