"""Questions of a wrapped server whose calls run in the background: a task waits for the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Raw

from meantime.execution.elicited_answers import elicitations, question_id, question_of, result_of
from meantime.kernel.errors import MeantimeError
from meantime.kernel.questions import Question, Reply
from meantime.ports.runner import Context, Stopped

from .open_requests import OpenToolCall
from .raw_messages import NOTHING, RawMessage, parts, raw, value
from .server_without_handshake import LONGEST_PAUSE, asks_for_input

LOG = logging.getLogger("meantime.wrap")


class BackgroundQuestions:
    """Elicitations. The protocols with a handshake do not say which call asks, so that of several calls the
    newest without a question is taken for it. The answer reaches the server whichever task has waited for it;
    where that task ends before it is answered, the next one asks.
    """

    def __init__(self, running: Mapping[int, OpenToolCall], reply: Callable[[Raw, Raw], None]) -> None:
        """`reply` answers a request of the server."""
        self._running = running
        self._reply = reply
        self._count = 0
        self._moved = asyncio.Event()
        self._open: dict[bytes, tuple[OpenToolCall, str]] = {}  # by the server's ids

    def on_move(self) -> None:
        """A call has become a task, or has ended."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def ask(self, id: Raw, params: dict[str, Any]) -> None:
        self._count += 1
        question = question_of(f"elicitation-{self._count}", params)
        result: dict[str, Any] = {"action": "cancel"}
        tried: list[OpenToolCall] = []
        while (call := await self._asker(tried)) is not None:
            tried.append(call)
            reply = await self._asked(call, question, bytes(id))
            if reply is not None:
                result = result_of(params, reply)
                break
        self._reply(id, raw(result))

    def withdraw(self, params: Raw) -> bool:
        """The server does not want the answer any more. False: it was never asked here."""
        call, question = self._open.get(bytes(parts(params).get("requestId", NOTHING)), (None, ""))
        if call is None or call.context is None:
            return False
        call.context.withdraw(question)
        return True

    async def _asker(self, tried: Iterable[OpenToolCall]) -> OpenToolCall | None:
        """None where no other call is left. One that is being recorded is waited for."""
        while left := [call for call in self._running.values() if call not in tried]:
            asking = [call for call, _ in self._open.values()]
            tasks = [call for call in reversed(left) if call.context is not None]
            if tasks:
                return next((call for call in tasks if call not in asking), tasks[0])
            await self._moved.wait()
        return None

    async def _asked(self, call: OpenToolCall, question: Question, id: bytes) -> Reply | None:
        """None where its task ends first."""
        assert call.context is not None
        self._open[id] = (call, question.id)
        try:
            return await call.context.ask(question)
        except (MeantimeError, Stopped) as problem:
            LOG.info("The question of %s has no answer: %s", call.tool, problem)
            return None
        finally:
            del self._open[id]


class InputAsked(NamedTuple):
    """A result of the protocol without a handshake that asks for input. The call is made again with it."""

    requests: dict[str, dict[str, Any]]  # the params of elicitations, by name
    state: dict[str, Raw]

    async def answers(self, context: Context) -> dict[str, Raw]:
        """The members that the call has then."""
        if not self.requests:
            await asyncio.sleep(LONGEST_PAUSE)  # it only wants to be called again
            return self.state
        given: dict[str, Any] = {}
        for name, params in self.requests.items():
            reply = await context.ask(question_of(question_id(name), params))
            given[name] = result_of(params, reply)
        return {**self.state, "inputResponses": raw(given)}


def input_asked(message: RawMessage) -> InputAsked | None:
    """None for a result that is whole, for one that asks for more than a person's answers, and for errors."""
    found = parts(message.result) if asks_for_input(message.result) else {}
    requests = elicitations(value(found.get("inputRequests")))
    if not found or requests is None:
        return None
    return InputAsked(requests, {name: found[name] for name in ("requestState",) if name in found})
