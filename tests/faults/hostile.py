"""Family 6: hostile process trees. Cancelled, timed out, bereft of their shim or of their owner: none stays.
Neither do those that a command has left when it ended, whether its ledger is new, opened again or rebooted.

python -m tests.faults.hostile <folder>     the owner that is killed: starts what the folder's list says
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from tests.waiting import LIMIT, until, until_async

from meantime import Meantime, Settings, Shell, Thread
from meantime.app.system_clock import SystemClock
from meantime.kernel.limits import Limits
from meantime.ports.clock import Alarm
from meantime.runners.shell import provenance

from . import preload, strace
from .judge import Tally
from .trees import Tree, met, put_an_end_to, shim_of, survivors, trees
from .trial import new_folder

SETTINGS = Settings(
    stop_grace=0.3,
    stop_deadline=LIMIT,
    limits=Limits(per_thread=-1, total=-1),
    output_head=1 << 16,
    output_ring=1 << 16,
)
PATIENCE = LIMIT  # seconds after its end in which the last of a tree must be gone; it would live longer
TIMEOUT = 10_000.0  # seconds
Begin = Callable[["Thread", "Hostile"], Awaitable[None]]
End = Callable[["Thread", "Hostile"], Awaitable[str]]
FATES = ("cancel", "timeout", "shim", "restart", "left", "left-reopened", "left-rebooted")


class Hostile(NamedTuple):
    """One tree in one folder, and what is done to it."""

    tree: Tree
    mark: str
    fate: str
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / f"{self.mark}.up"

    @property
    def work(self) -> Shell:
        line = self.tree.line(self.mark, self.file)
        if self.is_left:
            return Shell(f"{{ {line}\n}} & exit 0", cwd=self.folder)
        return Shell(line, leftovers="kill" if self.tree.ends_itself else "keep", cwd=self.folder)

    @property
    def is_left(self) -> bool:
        return self.fate.startswith("left")

    @property
    def expected(self) -> tuple[str, ...]:
        if self.is_left:
            return ("completed",)
        if self.tree.ends_itself:
            return ("completed", "cancelled", "lost", "timed_out")  # it may end before anything is done to it
        return {"timeout": ("timed_out",), "shim": ("lost",)}.get(self.fate, ("cancelled",))

    def is_up(self) -> bool:
        try:
            return self.file.read_bytes().count(b"\n") >= self.tree.lines
        except OSError:
            return False


class TimeoutClock(SystemClock):
    """Real time, but timeouts pass when they are told to: not before their trees are up."""

    def __init__(self) -> None:
        self._timeouts: dict[int, Callable[[], object]] = {}
        self._count = 0

    def new_timeout(self) -> tuple[float, int]:
        """Another one for each task: its seconds, and its number."""
        self._count += 1
        return TIMEOUT * self._count, self._count

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        if seconds > TIMEOUT / 2:
            self._timeouts[round(seconds / TIMEOUT)] = callback
        return super().call_later(seconds, callback)

    def let_pass(self, number: int) -> None:
        self._timeouts[number]()


CLOCK = TimeoutClock()


class Trees(Tally):
    """Survivors are counted as lost: they are, to whoever asked for their end."""

    def __str__(self) -> str:
        without = f" (without LD_PRELOAD: {why})" if (why := preload.missing()) else ""
        return f"{self.family:<44}{self.faults:>5} hostile trees, {self.lost} survivors{without}"


def run(
    seed: int, count: int, reproduce: str, fates: tuple[str, ...] = FATES, only: tuple[str, ...] = ()
) -> Trees:
    """`count` trees, each with a fate by chance; 0 is all of them, or all that are named, and those that go
    out of sight with every way of being left, too."""
    tally = Trees("hostile process trees", reproduce)
    rng = random.Random(seed)
    chosen = [tree for tree in trees(rng) if not only or tree.name in only][: count or None]
    for fate in fates:
        folder = new_folder()
        by_chance = [tree for number, tree in enumerate(chosen) if fates[number % len(fates)] == fate]
        more = chosen if not count and fate.startswith("left") else []
        mine = by_chance + [tree for tree in more if tree.leaves and tree not in by_chance]
        mine = [tree for tree in mine if not (fate == "shim" and tree.sheds_its_mark)]
        hostiles = [
            Hostile(tree, f"tree-{seed}-{os.getpid()}-{fate}-{n}", fate, folder)
            for n, tree in enumerate(mine)
        ]
        try:
            _meet(tally, hostiles, folder)
        except Exception as problem:
            tally.broke(f"{type(problem).__name__}: {problem}", f"fate {fate}, files in {folder}")
        finally:
            for one in hostiles:
                put_an_end_to(one.mark, met(one.file))
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def _meet(tally: Trees, hostiles: list[Hostile], folder: Path) -> None:
    fate = hostiles[0].fate if hostiles else ""
    if fate == "left-reopened":
        asyncio.run(_all(tally, folder, hostiles, _started, _nothing))
        asyncio.run(_all(tally, folder, hostiles, _found_ended))
    elif fate == "left-rebooted":
        with mock.patch.object(provenance, "this_boot", return_value=7):  # what the shims wrote is another's
            asyncio.run(_all(tally, folder, hostiles, _started))
    elif fate == "restart":
        _kill_the_owner(hostiles, folder)
        asyncio.run(_all(tally, folder, hostiles, _found_again, at_once=len(hostiles)))
    else:
        asyncio.run(_all(tally, folder, hostiles, _started))


async def _all(
    tally: Trees,
    folder: Path,
    hostiles: list[Hostile],
    begin: Begin,
    end: End | None = None,
    *,
    at_once: int = 6,
) -> None:
    gate = asyncio.Semaphore(at_once)

    async def one(thread: Thread, hostile: Hostile) -> None:
        async with gate:
            where = f"{hostile.tree.name!r}, {hostile.fate}"
            try:
                await begin(thread, hostile)
                problem = await (end or _end)(thread, hostile)
            except Exception as failure:
                problem = f"{type(failure).__name__}: {failure}"
            if problem:
                tally.broke(problem, where)
            elif end is None:
                tally.count(where)

    async with Meantime.open(folder / "ledger.db", settings=SETTINGS, clock=CLOCK) as meantime:
        await asyncio.gather(*(one(meantime.thread("t"), hostile) for hostile in hostiles))


async def _started(thread: Thread, hostile: Hostile) -> None:
    timeout, number = CLOCK.new_timeout() if hostile.fate == "timeout" else (None, 0)
    await thread.start(hostile.work, id=hostile.mark, timeout=timeout)
    await until_async(hostile.is_up, "it is up")
    if number:
        CLOCK.let_pass(number)


async def _nothing(thread: Thread, hostile: Hostile) -> str:
    return ""


async def _found_ended(thread: Thread, hostile: Hostile) -> None:
    """It may have ended after its first owner, whose successor then hears of it in a moment."""
    await thread.wait(hostile.mark, timeout=LIMIT)
    task = await thread.get(hostile.mark)
    assert task.status == "completed", f"after the restart it is {task.status}"


async def _found_again(thread: Thread, hostile: Hostile) -> None:
    task = await thread.get(hostile.mark)
    assert task.status == "running" or hostile.tree.ends_itself, f"after the restart it is {task.status}"


async def _end(thread: Thread, hostile: Hostile) -> str:
    """What is wrong with its end, or nothing."""
    known = met(hostile.file)
    if hostile.fate == "shim":
        shim = shim_of(survivors(hostile.mark, known))
        if shim:
            os.kill(shim, signal.SIGKILL)
    elif hostile.is_left:
        await thread.wait(hostile.mark, timeout=LIMIT)
        await thread.cancel(hostile.mark)
    elif hostile.fate != "timeout" and not hostile.tree.ends_itself:
        await thread.cancel(hostile.mark)
    (task,) = await thread.wait(hostile.mark, timeout=LIMIT)
    known |= met(hostile.file)
    if task.status not in hostile.expected or getattr(task.outcome, "abandoned", False):
        return f"it is {task.status}: {task.outcome}"
    try:
        await until_async(lambda: not survivors(hostile.mark, known), "all are gone", limit=PATIENCE)
    except AssertionError:
        left = survivors(hostile.mark, known)
        return f"{len(left)} survivors: {left[:5]}, {task.outcome}"
    return ""


def _kill_the_owner(hostiles: list[Hostile], folder: Path) -> None:
    orders = [[one.mark, one.tree.name, one.tree.command, one.tree.lines] for one in hostiles]
    (folder / "orders").write_text(json.dumps(orders))
    owner = subprocess.Popen([sys.executable, "-m", "tests.faults.hostile", str(folder)], cwd=strace.ROOT)
    try:
        until(
            lambda: owner.poll() is not None or all(one.is_up() for one in hostiles),
            "all trees are up",
            lambda: [one.tree.name for one in hostiles if not one.is_up()],
        )
        assert owner.poll() is None, "the owner ended by itself"
    finally:
        owner.kill()
        owner.wait()


async def own(folder: Path) -> None:
    orders = json.loads((folder / "orders").read_text())
    async with Meantime.open(folder / "ledger.db", settings=SETTINGS) as meantime:
        thread = meantime.thread("t")
        for mark, *tree in orders:
            await thread.start(Hostile(Tree(*tree), mark, "restart", folder).work, id=mark)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(own(Path(sys.argv[1])))
