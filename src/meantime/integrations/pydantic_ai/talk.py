"""A Pydantic AI agent as the side that talks: it hands work off, is told once, and is woken when idle."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import ModelRequestNode
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.framework_talk import FrameworkTalk, told_in
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, Function, TalkTools
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .message_log import MessageLog
from .task_tools import TaskTools, TaskToolsOfRun


class Talk(FrameworkTalk):
    """One conversation: `say` takes a turn, `woken` gives what the agent says by itself.

    functions, agents, commands, threshold, dialect: the tools it gets; see `tools`.
    history: a file in which its messages are kept; a restart goes on with them, and tells nothing twice.
    """

    def __init__(
        self,
        agent: AbstractAgent[Any, Any],
        thread: Thread,
        *functions: Function,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        threshold: float | str | None = THRESHOLD,
        history: str | os.PathLike[str] | None = None,
        dialect: Wording = OWN,
    ) -> None:
        _check(agent)
        super().__init__(
            TalkTools(
                thread, functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect
            )
        )
        self._agent = agent
        self._added = TaskToolsOfRun(TaskTools(self._tools))
        self._record = None if history is None else MessageLog(Path(history))
        self.messages: list[ModelMessage] = [] if self._record is None else self._record.load().whole()

    async def _reread(self) -> None:
        if self._record is not None:
            self._record = MessageLog(self._record.path)
            self.messages = (await asyncio.to_thread(self._record.load)).whole()

    async def _told(self) -> Collection[str]:
        return told_in(_texts(self.messages))

    async def _unanswered(self) -> bool:
        return bool(self.messages) and isinstance(self.messages[-1], ModelRequest)

    async def _take(self, turn: Turn, fresh: Sequence[Notice], text: str | None, run: dict[str, Any]) -> Any:
        told = [ModelRequest(parts=[UserPromptPart(notice.message().text)]) for notice in fresh]
        self._keep([*self.messages, *told])
        going: Any = None

        async def reminder() -> str:
            return await turn.reminder()

        try:
            async with self._agent.iter(
                text,
                message_history=self.messages or None,
                capabilities=[*(run.pop("capabilities", None) or ()), self._added],
                instructions=reminder,
                **run,
            ) as going:
                async for node in going:
                    if isinstance(node, ModelRequestNode):
                        for notice in await self._came_in(turn):
                            going.enqueue(notice.message().text)
            return going.result.output
        finally:
            if going is not None:  # what was said so far is kept, however it ended
                self._keep(going.all_messages())

    def _keep(self, messages: Sequence[ModelMessage]) -> None:
        self.messages = list(messages)
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


def _texts(messages: Iterable[ModelMessage]) -> Iterable[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                yield part.content
