"""A command that lasts: it keeps running when we are gone, and the next owner adopts it by its key.

For integrations whose far side is a program that they start. The runner of the command is handed to them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from msgspec import Struct

from meantime.kernel.model import Failed


class Command(Struct, frozen=True):
    """Nothing of it is stored: whoever adopts it before it has begun gives it once more."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]  # all of its environment
    stdin: bytes = b""
    leftovers: str = "kill"  # or "keep": what becomes of the processes that it leaves behind


class Piece(Struct, frozen=True):
    """Some of its stdout."""

    offset: int  # of the first byte; higher than where the last piece ended, if something was not kept
    data: bytes


class CommandEnd(Struct, frozen=True):
    """How it ended. One of these says it; an exit code of 0 is that it ended well."""

    exit_code: int | None = None
    signal: int | None = None  # what killed it, and it was not us
    stopped: bool = False  # because it was asked to
    left: bool = False  # it goes on, and we do not follow it any more
    lost: str = ""
    error: Failed | None = None  # it was never started, and why


class FollowedCommand(Protocol):
    """One command that we follow."""

    def stdout(self) -> AsyncIterator[Piece]:
        """From its first byte to its last, as it comes. Ends with the command."""
        ...

    async def ending(self) -> CommandEnd: ...

    async def stderr(self, most: int) -> str:
        """The last of it, so far."""
        ...

    async def stop(self) -> CommandEnd:
        """Interrupts it as a person would, then asks, then forces it: with everything that it started.
        Cancelling this coroutine forces it at once, and still waits until it is gone."""
        ...

    async def leave(self) -> bool:
        """Leaves it to the next owner. False if it would not outlive us."""
        ...


class Commands(Protocol):
    def open(self) -> None: ...

    async def close(self) -> None: ...

    def prepare(self, key: str) -> None:
        """Before anybody writes down that it is to run: then what was written down and never begun can be
        told from what has vanished. Raises Refused where there is no room."""
        ...

    def follow(self, key: str, command: Command, *, again: bool = False) -> FollowedCommand:
        """Begins it, if nobody has. `again`: a former owner may have."""
        ...

    def runs(self, key: str) -> bool:
        """Its follower, or nobody."""
        ...

    def forget(self, key: str) -> None:
        """It has ended, and nobody will read of it any more."""
        ...

    async def sweep(self, known: Callable[[str], bool]) -> None:
        """Stops and removes what nobody knows."""
        ...
