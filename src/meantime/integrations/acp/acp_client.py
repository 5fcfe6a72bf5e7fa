"""Our side of ACP for one running agent: the handshake, its abilities, requests, and its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from meantime.integrations.agent_host.json_values import mapping
from meantime.integrations.guarded_process import GOES
from meantime.kernel.errors import Refused
from meantime.kernel.outcomes import SESSION_KEPT
from meantime.ports.clock import Alarm, Clock
from meantime.ports.session import Turned

from .agent_subprocess import AgentSubprocess
from .profiles import Profile
from .turn_result import AgentError, answered_with_error, ended, tokens
from .turn_updates import TurnUpdates

if TYPE_CHECKING:
    from .json_rpc import JsonRpcConnection

LOST = "The agent is gone in the middle of its turn. {session} {how}"
SESSION_GONE = "It cannot load sessions, so its own is gone."
LOOK = 1.0  # seconds between looks at a process that says nothing
OURS: dict[str, Any] = {
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
    "clientInfo": {"name": "meantime", "title": "Meantime", "version": "1"},
}


class AcpClient:
    def __init__(self, profile: Profile, clock: Clock, on_idle: Callable[[AcpClient], None]) -> None:
        self.profile = profile
        self.sessions: set[str] = set()  # those that it has in memory
        self._clock = clock
        self._on_idle = on_idle
        self._turns: dict[str, TurnUpdates] = {}
        self._costs: dict[str, float] = {}
        self._can: dict[str, Any] = {}
        self._alarm: Alarm | None = None
        self._held = 0
        self._idle = 0.0
        self._process: AgentSubprocess
        self._wire: JsonRpcConnection

    # -- life

    async def start(self, process: AgentSubprocess, patience: float, idle: float) -> None:
        """Raises Refused where it does not speak the protocol, in time."""
        self._process = process
        self._idle = idle
        wire = await asyncio.to_thread(
            import_module, "meantime.integrations.acp.json_rpc"
        )  # it takes a second
        self._wire = wire.JsonRpcConnection(self, process.stdin, process.stdout)
        answer = await self.request("initialize", {"protocolVersion": wire.VERSION, **OURS}, patience)
        if answer.get("protocolVersion") != wire.VERSION:
            spoken = answer.get("protocolVersion")
            raise Refused(
                f"The agent speaks version {spoken} of ACP, and not {wire.VERSION}.", code="agent_not_started"
            )
        process.look()
        self._can = mapping(answer.get("agentCapabilities"))

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and not self._process.stdin.is_closing()

    def can(self, ability: str) -> bool:
        """One of session/…: list, resume, fork, close; or load, which has another place."""
        if ability == "load":
            return bool(self._can.get("loadSession"))
        return mapping(self._can.get("sessionCapabilities")).get(ability) is not None

    def hold(self) -> None:
        """It is in use: it is not stopped."""
        self._held += 1
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def release(self) -> None:
        self._held -= 1
        if not self._held:
            self._alarm = self._clock.call_later(self._idle, lambda: self._on_idle(self))

    async def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        with suppress(AttributeError):  # it was not yet connected
            await self._wire.close()
        await self._process.close()

    async def request(self, method: str, params: dict[str, Any], patience: float) -> dict[str, Any]:
        """Raises AgentError; and Refused when the agent is gone, or is silent for too long."""
        asking = asyncio.ensure_future(self._wire.request(method, params))
        try:
            if not await self._done_within(asking, patience):
                self._process.kill()
                raise Refused(
                    f"The agent did not answer {method} within {patience:g} seconds. {self._said()}".strip(),
                    code="agent_not_started",
                    hint="Try its command by hand: it must speak ACP on stdin and stdout.",
                )
            return asking.result()
        except ConnectionError:
            self._process.kill()
            await self._process.wait_ended(GOES)
            raise Refused(
                f"{self._process.ended()} {self._printed()}".strip(), code="agent_not_started"
            ) from None
        finally:
            asking.cancel()

    def _said(self) -> str:
        said = self._process.log.tail()
        return f"It said on stderr: {said} {self._printed()}".strip() if said else self._printed()

    def _printed(self) -> str:
        return (
            f"It printed a line that is not a message: {self._wire.garbage!r}." if self._wire.garbage else ""
        )

    async def _done_within(self, future: asyncio.Future[Any], seconds: float) -> bool:
        """By our own clock. A caller that is cancelled meanwhile is cancelled."""
        over = asyncio.Event()
        alarm = self._clock.call_later(seconds, over.set)
        waiting = asyncio.ensure_future(over.wait())
        try:
            await asyncio.wait({future, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            waiting.cancel()
        return future.done()

    # -- what the agent says

    def on_update(self, params: dict[str, Any]) -> None:
        """Outside of a turn it is a history that we have ourselves, or not for us."""
        session = str(params.get("sessionId") or "")
        update = mapping(params.get("update"))
        turn = self._turns.get(session)
        if turn is not None:
            turn.on_update(update)
        if cost := mapping(update.get("cost")):  # of the whole session, so far
            amount = float(cost.get("amount") or 0.0)
            more = amount - self._costs.get(session, 0.0)
            self._costs[session] = amount
            if turn is not None and more > 0:
                turn.hearer.spent(cost=more)

    async def on_request(self, params: dict[str, Any]) -> dict[str, Any]:
        turn = self._turns.get(str(params.get("sessionId") or ""))
        if turn is None:
            return {"outcome": {"outcome": "cancelled"}}
        return await turn.ask(params)

    # -- turns

    def turns_in(self, session: str) -> bool:
        return session in self._turns

    async def take_turn(self, session: str, turn: TurnUpdates, text: str, grace: float) -> Turned:
        self._turns[session] = turn
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        answering = asyncio.ensure_future(self._wire.request("session/prompt", prompt))
        try:
            await self._answered(answering)
            return await self._judged(turn, answering)
        except asyncio.CancelledError:
            await self._stop(session, turn, answering, grace)
            return Turned(stopped=True)
        finally:
            answering.cancel()
            turn.asking.end()
            del self._turns[session]

    async def _answered(self, answering: asyncio.Future[Any]) -> None:
        """Or the process has ended: where its guard was killed, the agent may still hold the pipes."""
        while not answering.done():
            gone = self._process.returncode is not None
            await asyncio.wait({answering}, timeout=LOOK)
            if gone and not answering.done():
                await self._wire.close()

    async def steer(self, session: str, text: str, patience: float) -> bool:
        turn = self._turns.get(session)
        if turn is None or not turn.run:
            return False
        said = {"sessionId": session, "prompt": [{"type": "text", "text": text}], "expectedRunId": turn.run}
        try:
            await self.request(self.profile.steer, said, patience)
        except (AgentError, Refused):
            return False  # it has just ended
        return True

    async def _judged(self, turn: TurnUpdates, answering: asyncio.Future[dict[str, Any]]) -> Turned:
        try:
            answer = answering.result()
        except AgentError as problem:
            turn.end_message()
            return answered_with_error(self.profile, problem)
        except ConnectionError:
            turn.end_message()
            await self.end_now()
            session = SESSION_KEPT if self.can("load") or self.can("resume") else SESSION_GONE
            return Turned(lost=LOST.format(session=session, how=self._process.ended()))
        spent = tokens(answer)
        if spent:
            turn.hearer.spent(tokens=spent)
        return ended(self.profile, turn, answer)

    async def _stop(
        self, session: str, turn: TurnUpdates, answering: asyncio.Future[dict[str, Any]], grace: float
    ) -> None:
        """Asks, waits a little, and ends the process. A second caller does not wait."""
        turn.asking.end()
        obeyed = False
        with suppress(asyncio.CancelledError, ConnectionError):
            await self._wire.notify("session/cancel", {"sessionId": session})
            obeyed = await self._done_within(answering, grace)
        if answering.done() and not answering.cancelled():
            answering.exception()  # an error is one way to say that it has stopped
        turn.end_message()
        if not obeyed or self.profile.leaves_children:
            await self.end_now()

    async def end_now(self) -> None:
        self._process.kill()
        await self.close()
