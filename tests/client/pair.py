"""An owner, a process that is connected to it, and the ways in which their connection can break."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until_async

from meantime import Meantime
from meantime.ports.clock import Clock
from meantime.testing import FakeSessionRunner
from runtimes import client_of, runtime_of


@asynccontextmanager
async def impatient(link: Path) -> AsyncIterator[Meantime]:
    """Once it is connected it does not wait for an owner that is away."""
    async with Meantime.connect(link, patience=LIMIT) as mt:
        client_of(mt)._connection._patience = 0.05
        yield mt


class Pair:
    """Both in one event loop: the socket between them is real."""

    def __init__(self, folder: Path) -> None:
        self.ledger = folder / "work.db"
        self.link = folder / "link"
        self.owner: Meantime
        self.mt: Meantime

    async def open(self) -> None:
        await self.open_owner()
        self.mt = await Meantime.connect(self.link, patience=LIMIT)

    async def open_owner(self, clock: Clock | None = None) -> None:
        self.owner = await Meantime.open(
            self.ledger, runners=[FakeSessionRunner()], link=self.link, clock=clock
        )

    async def close(self) -> None:
        await self.mt.close()
        await self.owner.close()

    # -- the insides, which is what these tests are about

    @property
    def client(self) -> Any:
        return self.mt._runtime

    @property
    def executors(self) -> Any:
        assert self.owner._link is not None
        return self.owner._link.executors

    @property
    def turns(self) -> Any:
        return runtime_of(self.owner).announcing._turns

    def held(self) -> list[str]:
        """Functions that the client keeps."""
        return list(self.client._executor._held)

    def runs(self) -> list[str]:
        """Runs that the owner waits for."""
        return [id for executor in self.executors._known.values() for id in executor.runs]

    def cut(self) -> None:
        """The connection breaks; both processes live."""
        self.client._connection._wire.abort()

    def is_up(self) -> bool:
        return self.client._connection.is_up

    async def cut_and_back(self) -> None:
        was = self.client._connection._wire
        self.cut()
        await until_async(lambda: self.client._connection._wire not in (was, None), "it is connected again")
