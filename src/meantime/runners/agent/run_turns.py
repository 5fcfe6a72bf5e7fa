"""The turns of a run: each to its end, paced, tried again where the provider failed, stopped when asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import cast

from msgspec.structs import replace

from meantime.execution.containment import Escape, contained
from meantime.kernel.model import Failed
from meantime.kernel.provider_errors import pause
from meantime.ports.clock import Clock
from meantime.ports.runner import Stopped
from meantime.ports.session import Brief, LastingHost, Prompt, SessionHost, Turned

from .run_monitor import RunMonitor

LONGEST = 3600.0  # seconds, whatever the provider names


class RunTurns:
    def __init__(self, host: SessionHost, brief: Brief, monitor: RunMonitor, clock: Clock) -> None:
        self._host = host
        self._brief = brief
        self._monitor = monitor
        self._clock = clock
        self._turning: asyncio.Future[Turned] | None = None
        self._stopped = False  # somebody asked for it: nothing is tried again

    @property
    def is_turning(self) -> bool:
        return self._turning is not None and not self._turning.done()

    async def persist(self, session: str, prompt: Prompt, *, follows: bool = False) -> Turned:
        """A provider's troubles are waited out, and nobody is told of them."""
        while True:
            turned = await self._paced(session, prompt, follows=follows)
            if (
                turned.error is None
                or not turned.retryable
                or self._monitor.halt is not None
                or self._stopped
            ):
                return turned
            self._monitor.speech.cut()
            self._monitor.phase(f"waits for the provider (try {prompt.again + 2})")
            after = turned.retry_after
            await self._sleep(pause(prompt.again) if after is None else after)
            if self._monitor.halt is not None:
                return turned
            prompt, follows = replace(prompt, again=prompt.again + 1), False

    async def _paced(self, session: str, prompt: Prompt, *, follows: bool) -> Turned:
        if self._host.abilities.paced:
            return await self.take(session, prompt, follows=follows)
        await self._monitor.enter()
        turned = Turned()
        try:
            turned = await self.take(session, prompt, follows=follows)
            return turned
        finally:
            self._monitor.leave(limited=turned.rate_limited, retry_after=turned.retry_after)

    async def take(self, session: str, prompt: Prompt, *, follows: bool = False) -> Turned:
        """To its end, or to a halt. A stop of ours is passed on, and a second one again: harder."""
        say = cast("LastingHost", self._host).follow if follows else self._host.prompt
        turning = asyncio.ensure_future(_contained(say(session, prompt, self._brief, self._monitor)))
        halting = asyncio.ensure_future(self._monitor.halted.wait())
        self._turning = turning
        try:
            if not prompt.last:
                await asyncio.wait({turning, halting}, return_when=asyncio.FIRST_COMPLETED)
                if not turning.done():
                    turning.cancel()
            await _outlast(turning)
        except asyncio.CancelledError:
            self._stopped = True
            turning.cancel()
            await _outlast(turning)
        finally:
            halting.cancel()
            self._turning = None
        return _turned(turning)

    def end(self) -> None:
        if self._turning is not None:
            self._turning.cancel()

    async def leave(self, session: str) -> bool:
        """True where nothing goes on, too: then there is nothing to stop."""
        return not self.is_turning or await cast("LastingHost", self._host).leave(session)

    async def _sleep(self, seconds: float) -> None:
        """Until then, or until the run is to end."""
        halting = asyncio.ensure_future(self._monitor.halted.wait())
        alarm = self._clock.call_later(min(LONGEST, max(0.0, seconds)), halting.cancel)
        try:
            with self._monitor.at_rest():
                await asyncio.wait({halting})
        finally:
            alarm.cancel()
            halting.cancel()


async def _contained(saying: Awaitable[Turned]) -> Turned:
    with contained():
        return await saying


async def _outlast(turning: asyncio.Future[Turned]) -> None:
    while not turning.done():
        try:
            await asyncio.wait({turning})
        except asyncio.CancelledError:
            turning.cancel()


def _turned(turning: asyncio.Future[Turned]) -> Turned:
    """A host is somebody else's code: what it raises is how the turn ended."""
    if turning.cancelled():
        return Turned(stopped=True)
    problem = turning.exception()
    if problem is None:
        return turning.result()
    if isinstance(problem, Stopped):
        return Turned(stopped=True)
    if not isinstance(problem, Exception):
        raise problem
    if isinstance(problem, Escape):
        return Turned(error=Failed(str(problem), "agent_error"))
    name = type(problem).__name__
    return Turned(error=Failed(f"The agent's host failed: {name}: {problem}", name))
