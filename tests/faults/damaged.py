"""Ledgers for damage: an owner that is killed, and its files, which are damaged in place and put back.

In place, because a ledger with another inode is a copy, and what was claimed of the original does not count.

`python -m tests.faults.damaged <folder> <durability> <bytes>` is the owner: it works, says so and waits to be
killed. It performs a checkpoint whenever so many bytes of the WAL are not in the database.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from meantime import Call, Degraded, Meantime
from meantime.stores.sqlite import wal_index, wal_mark, writer

from .strace import ROOT

TASKS = 40
STARTS = 24  # of `start_until_refused`


async def work(number: int) -> int:
    return number


class Killed:
    """What a killed owner has left. `early` is its WAL after a part of the work."""

    def __init__(self, folder: Path, durability: str = "full", checkpoint: int = 4 << 20) -> None:
        self.ledger = folder / "ledger.db"
        self.wal = folder / "ledger.db-wal"
        self.mark = folder / "ledger.db.mark"
        line = [sys.executable, "-m", "tests.faults.damaged", str(folder), durability, str(checkpoint)]
        owner = subprocess.Popen(line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert owner.stdin is not None
        assert owner.stdout is not None
        try:
            assert owner.stdout.readline() == b"half\n"
            self.early, self.early_mark = self.wal.read_bytes(), self.mark.read_bytes()
            owner.stdin.write(b"go on\n")
            owner.stdin.flush()
            assert owner.stdout.readline() == b"done\n"
        finally:
            owner.kill()
            owner.communicate()
        self.claimed = wal_mark.WalMark(self.ledger).claimed()
        # Of the WAL. Frames of an earlier one may be behind that.
        self.used = wal_index.WAL_HEADER + self.claimed.frames * (wal_index.FRAME_HEADER + 4096)
        self._inode = self.ledger.stat().st_ino
        self._files = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def put_back(self) -> None:
        """Undoes the damage, and whatever was made of it."""
        for aside in self.ledger.parent.glob("ledger.db.*ed-*/ledger.db"):
            if aside.stat().st_ino == self._inode:
                aside.rename(self.ledger)
        for path in self.ledger.parent.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path not in self._files:
                path.unlink()
        for path, content in self._files.items():
            with path.open("r+b" if path.exists() else "wb") as file:
                file.truncate(0)
                file.write(content)
        assert self.ledger.stat().st_ino == self._inode


async def ids(ledger: Path, **options: Any) -> set[str]:
    async with Meantime.open(ledger, **options) as meantime:
        return {task.id for task in await meantime.list(limit=1_000)}


def found(ledger: Path, **options: Any) -> set[str]:
    return asyncio.run(ids(ledger, **options))


EVERY = {f"a-{number}" for number in range(TASKS)}


async def own(folder: Path, durability: str) -> None:
    async with Meantime.open(folder / "ledger.db", durability=durability) as meantime:  # type: ignore[arg-type]
        for number in range(TASKS):
            if number == TASKS // 2:
                print("half", flush=True)
                sys.stdin.readline()
            handle = await meantime.thread("a").start(Call(work, number), id=f"a-{number}")
            await handle.wait()
        async with meantime.thread("a").turn() as turn:
            assert len(turn.notices) > 1
            await turn.ack()
        print("done", flush=True)
        await asyncio.Event().wait()


async def start_until_refused(folder: Path) -> None:
    """Says what was accepted and what was not, and dies as it stands."""
    async with Meantime.open(folder / "ledger.db") as meantime:
        home = meantime.thread("a")
        for number in range(STARTS):
            try:
                await home.start(Call(asyncio.Event().wait), id=f"a-{number}")
                said = "accepted"
            except Degraded:
                said = "refused"
            print(said, f"a-{number}", (await meantime.stats()).get("degraded", 0), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[2] == "until refused":
        asyncio.run(start_until_refused(Path(sys.argv[1])))
    else:
        writer.WAL_IDLE = writer.WAL_FULL = int(sys.argv[3])
        asyncio.run(own(Path(sys.argv[1]), sys.argv[2]))
