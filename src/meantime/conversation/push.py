"""push: tells hosts that take messages instead of asking. Look, deliver, acknowledge; back off on failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from meantime.execution.containment import contained
from meantime.kernel.argument_checks import has_methods
from meantime.kernel.errors import Closed, InvalidInput
from meantime.kernel.ids import check_id
from meantime.kernel.notices import Notice
from meantime.ports.host import Delivery, Host
from meantime.ports.tasks import Tasks

BACK_OFF = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)  # seconds after the first, second, … failure in a row
AT_ONCE = 100


class Pushing:
    def __init__(self, tasks: Tasks, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._tasks = tasks
        self._sleep = sleep
        self._loops: dict[str, asyncio.Task[None]] = {}
        self.hosts: dict[str, Host] = {}

    def attach(self, thread: str, host: Host) -> None:
        """From now on the host is told; a host that was attached earlier to this thread is released."""
        if not has_methods(host, "has", "deliver") or not isinstance(host.delivery, Delivery):  # pyright: ignore[reportUnnecessaryIsInstance]  it comes from outside
            raise InvalidInput(
                f"A host has `delivery`, `has` and `deliver`; {type(host).__name__} has not.",
                hint="See meantime.Host.",
            )
        self.detach(thread)
        self.hosts[thread] = host
        self._loops[thread] = asyncio.get_running_loop().create_task(self._serve(thread, host))

    def detach(self, thread: str) -> None:
        thread = check_id(thread, "thread")
        self.hosts.pop(thread, None)
        loop = self._loops.pop(thread, None)
        if loop is not None:
            loop.cancel()

    async def _serve(self, thread: str, host: Host) -> None:
        seen, failures = -1, 0
        while True:
            try:
                seen = await self._tasks.wait_wake(thread, seen)
                told = await self._tell(thread, host)
            except Closed:
                return
            except Exception:  # the ledger itself fails for a while: it is tried again, like a host
                told = False
            if told:
                failures = 0
            else:
                await self._sleep(BACK_OFF[min(failures, len(BACK_OFF) - 1)])
                seen = -1  # our own back-off is over: look again, news or not
                failures += 1

    async def _tell(self, thread: str, host: Host) -> bool:
        turn = await self._tasks.open_turn(thread, lease=None, limit=AT_ONCE)
        told = False
        try:
            with contained():
                fresh = await _not_there_yet(thread, host, turn.notices)
                if fresh:
                    await host.deliver(thread, fresh)
            await self._tasks.ack(turn.id, [notice.id for notice in turn.notices], ())
            told = True
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise  # it is us who are stopped; else it was something of the host's own
        except Exception:
            told = False  # a host's failure is not ours: the notices go back, and come again
        finally:
            await self._tasks.close_turn(turn.id, failed=not told)
        return told

    async def close(self) -> None:
        loops = list(self._loops.values())
        for thread in list(self._loops):
            self.detach(thread)
        await asyncio.gather(*loops, return_exceptions=True)


async def _not_there_yet(thread: str, host: Host, notices: Sequence[Notice]) -> list[Notice]:
    """Look before sending: what the conversation holds already is only acknowledged."""
    return [notice for notice in notices if not await host.has(thread, notice.id)]
