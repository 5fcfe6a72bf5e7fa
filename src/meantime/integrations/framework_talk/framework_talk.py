"""`say` and `woken` of every framework's Talk."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from meantime.conversation.turn import Turn
from meantime.kernel.argument_checks import shown
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice

from .talk_tools import TalkTools
from .turn_lock import turn_lock

_TOLD = re.compile(r'^<task-notification id="([^"]+)"')


class FrameworkTalk(ABC):
    """One conversation. The speaker waits for its answer, which `thread.loop()` cannot give: it hands out
    turns for a loop to take. So a turn is taken here where `say` is called.

    The framework's own conversation says what was told: it is looked into before anything is added to it, so
    that a crash between the model's answer and the ack tells nothing twice.
    """

    _sayable: ClassVar[tuple[type, ...]] = (str,)

    def __init__(self, tools: TalkTools) -> None:
        self._tools = tools
        self._thread = tools.thread
        self._lock = turn_lock(tools.thread)
        self._turns = self._lock.turns  # of the conversation, up to which the history here is known

    async def say(self, text: str | UnsetType = UNSET, **run: Any) -> Any:
        """One turn: what ended meanwhile is told first, then the text, if there is one. Gives the agent's
        output; None where there was nothing to say. `run` is passed on to the framework.

        Turns of one conversation in one process are taken one after the other, whichever Talk they come from.
        So a tool must not wait for a `say` of its own conversation."""
        return await self._turn(self._checked(text), run)

    async def _turn(self, text: Any, run: dict[str, Any]) -> Any:
        """`text` is None where nobody says anything."""
        async with self._lock.one, self._thread.turn() as turn:
            if self._turns != self._lock.turns:
                await self._reread()
            try:
                return await self._take_all(turn, text, run)
            finally:
                self._lock.turns += 1
                self._turns = self._lock.turns

    async def _take_all(self, turn: Turn, text: Any, run: dict[str, Any]) -> Any:
        self._tools.verbs.begin(turn)
        fresh = turn.fresh(await self._told())
        output = None
        if text is not None or fresh or await self._unanswered():
            output = await self._take(turn, fresh, text, run)
        await self._settle(turn)
        return output

    def _checked(self, text: object) -> Any:
        if text is UNSET:
            return None
        if not isinstance(text, self._sayable):
            kinds = " or a ".join(kind.__name__ for kind in self._sayable).replace("str", "text")
            raise InvalidInput(
                f"say takes a {kinds}, not {shown(text)}.",
                hint='Use talk.say("…"), or talk.say() to tell only what has ended.',
            )
        return text

    async def woken(self, **run: Any) -> AsyncIterator[Any]:
        """The agent's messages when work has ended and nobody talks to it, until its Meantime is closed."""
        async for _ in self._thread.wakeups():
            said = await self.say(**run)
            if said is not None:
                yield said

    async def _came_in(self, turn: Turn) -> list[Notice]:
        """Notices since the turn began, or since the last look: before each request to the model."""
        came = await turn.boundary()
        if not came:
            return []
        held = await self._told()
        return [notice for notice in came if notice.id not in held]

    async def _reread(self) -> None:  # noqa: B027  most hold nothing
        """Another Talk has taken a turn: a history that is held here is read again from where it is kept."""

    async def _settle(self, turn: Turn) -> None:
        """The conversation holds them now."""
        await turn.ack()

    @abstractmethod
    async def _told(self) -> Collection[str]:
        """The ids of the notices that the conversation holds."""

    @abstractmethod
    async def _unanswered(self) -> bool:
        """Something was told, and the agent has not answered it, even if that turn failed."""

    @abstractmethod
    async def _take(self, turn: Turn, fresh: Sequence[Notice], text: str | None, run: dict[str, Any]) -> Any:
        """The fresh notices, then the text, then the agent's work, which is told what comes in meanwhile.
        When it returns, the conversation holds all of it."""


def told_in(texts: Iterable[str]) -> set[str]:
    """The ids of the notices among the messages of a conversation."""
    return {found[1] for text in texts if (found := _TOLD.match(text))}
