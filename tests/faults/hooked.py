"""An owner whose only conversation is told by hooks, to be killed around the making and removing of its quiet
file.

    python -m tests.faults.hooked serve <folder> <seed> [plant]

It ends when its stdin is closed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from meantime import Meantime, background
from meantime.surfaces.hooks.quiet_files import QuietFiles

from . import works

SESSION = "s"
THREAD = f"mcp-{SESSION}"


@background
async def noted(id: str) -> str:
    works.say("ran", THREAD, id)
    return id


def file_stays() -> None:
    """Nobody removes the file: a conversation that was quiet once is never told again."""
    QuietFiles.remove = lambda self, thread: None  # type: ignore[method-assign]


def file_unchecked() -> None:
    """The file is made without a look at the ledger, and while a notice is being written."""
    make = QuietFiles.make

    async def made(self: QuietFiles, thread: str, count: Any) -> None:
        found = await count()
        await make(self, thread, lambda: _same(found._replace(unread=0, leased=0)))
        self._there.pop(thread, None)

    QuietFiles.make = made  # type: ignore[method-assign]


async def _same(found: Any) -> Any:
    return found


def file_trusted() -> None:
    """A new owner trusts the files of the last one, and the last one removed them too late."""
    QuietFiles.clear = lambda self: None  # type: ignore[method-assign]
    remove, before = QuietFiles.remove, {"next": True}

    def late(self: QuietFiles, thread: str) -> None:
        """Only the second of each two calls: the one that comes after the commit."""
        before["next"] = not before["next"]
        if before["next"]:
            remove(self, thread)

    QuietFiles.remove = late  # type: ignore[method-assign]


PLANTS = {"file_stays": file_stays, "file_unchecked": file_unchecked, "file_trusted": file_trusted}


async def main(folder: Path) -> None:
    works.open_ledger(folder)
    async with (
        Meantime.open(folder / "ledger.db") as mt,
        mt.serve(socket=folder / "http.sock", tcp=False, folder=folder),
    ):
        sys.stdout.write("begin\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    works.watch()
    if len(sys.argv) > 4:
        PLANTS[sys.argv[4]]()
    asyncio.run(main(Path(sys.argv[2])))
