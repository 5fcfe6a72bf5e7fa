"""The file of `meantime mcp --wrap URL --headers FILE`: headers of HTTP, one a line, for nobody else's eyes.
Loads little: a host waits for the server's first answer."""

from __future__ import annotations

import os

from meantime.surfaces.terminal.errors import USAGE, CliError

MOST_BYTES = 65_536  # of the file


class HeadersFile:
    """Without a path there are no headers, and none are renewed."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._state: tuple[int, ...] = ()
        self.headers: dict[str, str] = {} if path is None else self._read(path)

    def renewed_login(self) -> str | None:
        """`Authorization`, where the file has another one since the last call. A file that is not there, or
        is being written, is looked at again with the next request; until then the former token counts."""
        if self._path is None:
            return None
        try:
            if _state(os.stat(self._path)) == self._state:
                return None
            fresh = self._read(self._path)
        except (OSError, CliError):
            return None
        before, self.headers = self.headers, fresh
        login = _login(fresh)
        return login if login and login != _login(before) else None

    def _read(self, path: str) -> dict[str, str]:
        try:
            with open(path, encoding="utf-8") as file:
                found = os.fstat(file.fileno())
                if found.st_mode & 0o077:
                    raise CliError(f"Other users may read {path}.", f"Close it with: chmod 600 {path}", USAGE)
                lines = [line for line in file.read(MOST_BYTES).splitlines() if line.strip()]
        except (OSError, ValueError) as problem:
            raise CliError(
                f"{path} cannot be read: {problem}", "Name a file with a header a line.", USAGE
            ) from None
        pairs = [line.partition(":") for line in lines]
        if not all(name.strip() and colon for name, colon, _ in pairs):
            raise CliError(f"A line of {path} is not a header.", "Write them as Name: value.", USAGE)
        self._state = _state(found)
        return {name.strip(): value.strip() for name, _, value in pairs}


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


def _login(headers: dict[str, str]) -> str:
    return next((value for name, value in headers.items() if name.lower() == "authorization"), "")
