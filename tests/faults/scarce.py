"""A daemon without descriptors to spare: its limit is lowered to what it has open, and some. What it cannot
do it refuses, or ends in words; nothing hangs; with descriptors again everything is as before."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
from pathlib import Path

from tests.waiting import LIMIT

from meantime import Call, Meantime, MeantimeError, Refused, Shell

from .adoption import clear
from .filling import THREAD, Starving
from .judge import Fact, Tally, Verdict, judge
from .served import Daemon
from .trial import trial


def run(seed: int, rounds: int, reproduce: str) -> Tally:
    tally = Tally("a daemon without descriptors (EMFILE)", reproduce)
    judged = Verdict()

    def make(folder: Path) -> int:
        nonlocal judged
        daemon = Daemon(folder)
        try:
            daemon.up()
            judged = asyncio.run(
                asyncio.wait_for(_starve(daemon, random.Random(seed), rounds), (rounds + 2) * LIMIT)
            )
        finally:
            daemon.end(signal.SIGKILL)
        return rounds

    trial(tally, f"seed {seed}, {rounds} times", make, lambda folder: judged, clear)
    return tally


async def _starve(daemon: Daemon, rng: random.Random, rounds: int) -> Verdict:
    async with Meantime.connect(daemon.home.link_socket, start=False) as mt:
        scarce = Scarce(daemon, mt, rng)
        for number in range(rounds):
            await scarce.without(spare=number % 4)
        await scarce.tell()
        assert scarce.refused, "nothing was refused: there were descriptors enough"
        return judge(scarce.facts, {THREAD: scarce.told})


class Scarce(Starving):
    """The same two doors, and the same ledger outside, as with a full disk."""

    refused = 0

    async def without(self, spare: int) -> None:
        self.gate = asyncio.Event()
        await self.start()
        limits = resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE)
        few = len(os.listdir(f"/proc/{self.daemon.pid}/fd")) + spare
        resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, (few, limits[1]))
        knocking = [self._line() for _ in range(5)]
        try:
            for line in knocking:
                line.request("GET", "/v1/health")
            async with asyncio.timeout(LIMIT):
                for _ in range(4):
                    await self._ask_for_a_command()
                    await self._ask_for_a_function()
                assert await self.thread.list() is not None, "what is connected is served"
        finally:
            resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, limits)
        self.gate.set()
        for line in knocking:  # whoever could not be let in is, as soon as there is room
            assert (await asyncio.to_thread(line.getresponse)).status == 200
            line.close()
        await self._until_accepted()

    async def _ask_for_a_command(self) -> None:
        """Over the connection that there is: another one could not be opened."""
        task = self._new()
        try:
            await self.thread.start(Shell("sleep 0.1"), id=task)
        except MeantimeError as problem:
            self._refused(task, problem)
        else:
            self.facts.append(Fact("accepted", THREAD, f"{task}.1"))

    async def _ask_for_a_function(self) -> None:
        task = self._new()
        try:
            await self.thread.start(Call(sum, [1, 2]), id=task)
        except MeantimeError as problem:
            self._refused(task, problem)
        else:
            self.facts.append(Fact("accepted", THREAD, f"{task}.1"))

    def _refused(self, task: str, problem: MeantimeError) -> None:
        """An error of the ledger leaves it open whether it is there; a refusal does not."""
        assert problem.message, repr(problem)
        self.refused += 1
        if isinstance(problem, Refused):
            self.facts.append(Fact("refused", THREAD, f"{task}.1"))
