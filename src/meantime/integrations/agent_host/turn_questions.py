"""From an agent's request to its answer: asked once, and withdrawn if nobody needs the answer any more.

A host translates: its wire's request becomes a `Question` (`kernel.questions.permission`), and the `Reply`
becomes what its wire answers. The Hearer decides by rule, by an earlier answer, or by asking a person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from meantime.kernel.questions import Question, Reply
from meantime.ports.session import Hearer


class TurnQuestions:
    """The requests of one turn, by their ids on the host's wire."""

    def __init__(self, hearer: Hearer) -> None:
        self._hearer = hearer
        self._exchanges: dict[str, asyncio.Future[Any]] = {}
        self.over = False

    async def ask(self, question: Question) -> Reply | None:
        """None: it was withdrawn, and needs no answer."""
        if self.over:
            return None
        asking = self.begin(question.id, lambda: self._hearer.ask(question))
        try:
            await asyncio.wait({asking})
        finally:
            asking.cancel()
        return None if asking.cancelled() or self.over else asking.result()

    def begin(self, id: str, exchange: Callable[[], Coroutine[Any, Any, Any]]) -> asyncio.Future[Any]:
        """Asks and answers in the background; once, however often the wire repeats the request."""
        if id not in self._exchanges:
            self._exchanges[id] = asyncio.ensure_future(exchange())
        return self._exchanges[id]

    def withdraw(self, id: str) -> None:
        """It was answered elsewhere: nobody else needs to answer it."""
        asking = self._exchanges.get(id)
        if asking is not None and asking is not asyncio.current_task():
            asking.cancel()

    def withdraw_all_but(self, ids: Collection[str]) -> None:
        """`ids` are the requests that the wire still has."""
        for id in self._exchanges.keys() - set(ids):
            self.withdraw(id)

    def end(self) -> None:
        """The turn is over, or is to be: nobody needs to answer any more."""
        self.over = True
        for asking in self._exchanges.values():
            asking.cancel()
