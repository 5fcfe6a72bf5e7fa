"""A Pydantic AI agent as the side that talks: it hands work off, is told once, and is woken when idle."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import ModelRequestNode
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from meantime.conversation.turn import Turn
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .message_log import MessageLog
from .task_tools import THRESHOLD, Function, tools

_TOLD = re.compile(r'^<task-notification id="([^"]+)"')


class Talk:
    """One conversation. The speaker waits for its answer, which `thread.loop()` cannot give: it hands out
    turns for a loop to take. So a turn is taken here where `say` is called.

    functions, agents, commands, threshold: the tools it gets; see `tools`.
    history: a file in which its messages are kept; a restart goes on with them, and tells nothing twice.
    """

    def __init__(
        self,
        agent: AbstractAgent[Any, Any],
        thread: Thread,
        *functions: Function,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        threshold: float | None = THRESHOLD,
        history: str | os.PathLike[str] | None = None,
    ) -> None:
        _check(agent)
        self._agent = agent
        self._thread = thread
        self._tools = tools(thread, *functions, agents=agents, commands=commands, threshold=threshold)
        self._record = None if history is None else MessageLog(Path(history))
        self.messages: list[ModelMessage] = [] if self._record is None else self._record.load().whole()
        self._told = set(_ids(self.messages))  # notices, by their ids
        self._one = asyncio.Lock()  # turn at a time

    async def say(self, text: str | None = None, **run: Any) -> Any:
        """One turn: what ended meanwhile is told first, then the text. Gives the agent's output; None where
        there was nothing to say. `run` is passed on to the agent."""
        async with self._one, self._thread.turn() as turn:
            self._tools.begin(turn)
            self._hold(turn.notices)
            if text is None and not self._unanswered:
                await self._settle(turn)
                return None
            output = await self._take(turn, text, run)
            await self._settle(turn)
            return output

    async def woken(self, **run: Any) -> AsyncIterator[Any]:
        """The agent's messages when work has ended and nobody talks to it, until its Meantime is closed."""
        async for _ in self._thread.wakeups():
            said = await self.say(**run)
            if said is not None:
                yield said

    @property
    def _unanswered(self) -> bool:
        """Something was told, and the agent has not answered it, even if that turn failed."""
        return bool(self.messages) and isinstance(self.messages[-1], ModelRequest)

    def _hold(self, notices: Iterable[Notice]) -> None:
        """Into the messages, once: one whose id is there has been told, and only the ack was lost."""
        for notice in self._fresh(notices):
            self.messages.append(ModelRequest(parts=[UserPromptPart(notice.message().text)]))
        self._keep(self.messages)

    def _fresh(self, notices: Iterable[Notice]) -> list[Notice]:
        known = {*self._told, *self._tools.reads}  # in the messages, or in the answer of a tool
        fresh = [notice for notice in notices if notice.id not in known]
        self._told.update(notice.id for notice in fresh)
        return fresh

    async def _take(self, turn: Turn, text: str | None, run: dict[str, Any]) -> Any:
        going: Any = None

        async def reminder() -> str:
            return await turn.reminder()

        try:
            async with self._agent.iter(
                text,
                message_history=self.messages or None,
                toolsets=[self._tools, *run.pop("toolsets", ())],
                instructions=reminder,
                **run,
            ) as going:
                async for node in going:
                    if isinstance(node, ModelRequestNode):
                        for notice in self._fresh(await turn.boundary()):
                            going.enqueue(notice.message().text)
            return going.result.output
        finally:
            if going is not None:  # what was said so far is kept, however it ended
                self._keep(going.all_messages())

    def _keep(self, messages: Sequence[ModelMessage]) -> None:
        self.messages = list(messages)
        self._told = set(_ids(self.messages))  # what a failed run never took in was not told
        if self._record is not None:
            self._record.grow(self.messages)

    async def _settle(self, turn: Turn) -> None:
        """The messages hold them now, on disk too where there is a file."""
        if self._record is not None and self.messages:
            await asyncio.to_thread(self._record.sync)
        await turn.ack()


def _check(agent: object) -> None:
    if not isinstance(agent, AbstractAgent):
        what = f"{agent!r:.100} is not an agent of Pydantic AI."
        raise InvalidInput(what, hint="The agent comes first: Talk(agent, thread, …).")


def _ids(messages: Iterable[ModelMessage]) -> Iterable[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                found = _TOLD.match(part.content)
                if found:
                    yield found[1]
