"""An end of a carrier with a server: connects, reconnects with back-off, and sends what is buffered.

Subclasses know their server: how to connect, and how to write a batch. While the server is gone, sends are
dropped, and so is everything that was buffered: callers repeat, and nothing stale arrives hours later.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from meantime.carriers.ends.callback_guard import call_back
from meantime.carriers.ends.send_buffer import SendBuffer
from meantime.kernel.errors import Closed
from meantime.kernel.plain_text import cut
from meantime.ports.carrier import CarrierState, StateChanged

logger = logging.getLogger("meantime")

Item = TypeVar("Item")
OPEN_WAIT = 5.0  # seconds that `open` waits for the first connection
CONNECT_LIMIT = 10.0  # seconds that one attempt may take
FIRST_DELAY, MOST_DELAY = 0.05, 2.0  # seconds between attempts: doubled each time
WRITE_LIMIT = 10.0  # seconds for one batch; a server that takes nothing for so long is given up
CLOSE_LIMIT = 2.0  # seconds for the server to take its leave
FLUSH_LIMIT = 1.0  # seconds that a close waits for what is buffered
MOST_BATCH = 256  # items that are written together
REASON = 300  # characters of a server's own words


class CarrierEnd(ABC, Generic[Item]):
    def __init__(self) -> None:
        self._state = CarrierState(up=False, reason="The carrier was not opened.")
        self._changed: StateChanged | None = None
        self._buffer: SendBuffer[Item] = SendBuffer()
        self._dropped = 0
        self._keeping: asyncio.Task[None] | None = None
        self._is_up = asyncio.Event()
        self._is_down = asyncio.Event()
        self._is_closed = False

    @property
    def state(self) -> CarrierState:
        return self._state

    @property
    def dropped(self) -> int:
        return self._dropped

    @abstractmethod
    async def _connect(self) -> None:
        """Makes one attempt. Raises what went wrong; leaves nothing behind then."""

    @abstractmethod
    async def _until_lost(self) -> str:
        """Waits until the connection is lost, and returns why."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Lets go of the connection, or of what is left of it."""

    @abstractmethod
    async def _write(self, batch: list[Item]) -> None:
        """Hands a batch to the server, or raises."""

    def _was_dropped(self, item: Item) -> None:
        """An item that was buffered will not be written."""

    async def _open(self, changed: StateChanged) -> None:
        if self._is_closed:
            raise Closed()
        self._changed = changed
        self._keeping = asyncio.get_running_loop().create_task(self._keep_connected())
        await self.until_up(OPEN_WAIT)

    async def until_up(self, seconds: float) -> bool:
        """Waits until it is connected; False if that takes longer than so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._is_up.wait()
        except TimeoutError:
            pass
        return self._state.up

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._changed = None
        if self._state.up:
            await self._buffer.drain(FLUSH_LIMIT)
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        self._set_state(CarrierState(up=False, reason="The carrier is closed."))

    def _send(self, item: Item, size: int) -> bool:
        was_sent = self._state.up and not self._is_closed and self._buffer.put(item, size)
        self._dropped += not was_sent
        return was_sent

    async def _keep_connected(self) -> None:
        delay = FIRST_DELAY
        while True:
            try:
                async with asyncio.timeout(CONNECT_LIMIT):
                    await self._connect()
            except Exception as problem:
                self._set_state(CarrierState(up=False, reason=_reason(problem)))
                await asyncio.sleep(delay)
                delay = min(delay * 2, MOST_DELAY)
                continue
            delay = FIRST_DELAY
            await self._stay_connected()
            await asyncio.sleep(delay)

    async def _stay_connected(self) -> None:
        writing = asyncio.get_running_loop().create_task(self._keep_writing())
        losing = asyncio.get_running_loop().create_task(self._until_lost())
        reason = "The carrier is closed."
        try:
            self._set_state(CarrierState(up=True))
            await asyncio.wait((writing, losing), return_when=asyncio.FIRST_COMPLETED)
            reason = losing.result() if losing.done() else _reason(writing.exception())
        except Exception as problem:
            reason = _reason(problem)
        finally:
            writing.cancel()
            losing.cancel()
            self._set_state(CarrierState(up=False, reason=reason))
            self._drop_buffered()
            await asyncio.gather(writing, losing, return_exceptions=True)
            await self._let_go()

    async def _let_go(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_LIMIT):
                await self._disconnect()
        except Exception as problem:  # it is gone already, or does not answer: there is nothing left to do
            logger.debug("The carrier's connection did not close: %s", _reason(problem))

    async def _keep_writing(self) -> None:
        while True:
            batch = await self._buffer.take(MOST_BATCH)
            async with asyncio.timeout(WRITE_LIMIT):
                await self._write(batch)

    def _drop_buffered(self) -> None:
        for item in self._buffer.clear():
            self._dropped += 1
            self._was_dropped(item)

    def _set_state(self, state: CarrierState) -> None:
        if state == self._state:
            return
        self._state = state
        (self._is_up if state.up else self._is_down).set()
        (self._is_down if state.up else self._is_up).clear()
        if self._changed is not None:
            call_back(self._changed, state)


def _reason(problem: BaseException | None) -> str:
    """The text for people. Messages of clients and servers name no passwords."""
    text = " ".join(str(problem or "").split()) or type(problem).__name__
    return cut(text, REASON)
