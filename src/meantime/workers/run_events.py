"""Events of a run on their way to the owner: one at a time, numbered from 1, each repeated until the owner
has recorded it. So their order is kept, and the owner needs only the last number to know a repetition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from meantime.kernel.errors import MeantimeError, Refused
from meantime.kernel.event_notices import checked, in_use
from meantime.kernel.model import fence_of
from meantime.link import wire_errors
from meantime.system.event_spool import EventSpool

from .messages import FromWorker, GrantedMessage, NotedMessage, NotifiedMessage, UnsentEvent

AGAIN = 2  # ticks between two sends of the same event


class RunEvents:
    """`spool` is that of a command, whose `meantime notify` is another process; None for a function."""

    def __init__(
        self, granted: GrantedMessage, say: Callable[[FromWorker], None], spool: EventSpool | None
    ) -> None:
        self._granted = granted
        self._say = say
        self._spool = spool if granted.events else None
        self._one = asyncio.Lock()
        self._number = 0
        self._flying: NotifiedMessage | None = None
        self._answered: Callable[[NotedMessage], object] | None = None
        self._ticks = 0
        self._is_open = False
        self._left: list[str] = []  # names of events that the ending carries

    def open(self) -> None:
        """The run is under way."""
        self._is_open = True

    # -- of a function

    async def notify(self, text: str) -> str:
        """Returns when the event is on record. The owner may be away for long."""
        if not self._granted.events:
            raise Refused(
                "The owner of this task is of an earlier version: its conversation is told at the end only.",
                code="cannot_notify",
                hint="Update Meantime at the owner, or report it with current().progress(…).",
            )
        text = in_use(checked(text))
        async with self._one:
            answer: asyncio.Future[NotedMessage] = asyncio.get_running_loop().create_future()
            self._number += 1
            self._send(self._number, text, lambda noted: answer.done() or answer.set_result(noted))
            try:
                noted = await answer
            finally:
                self._flying = None
        if noted.error is not None:
            raise wire_errors.from_wire(noted.error)
        return noted.answer

    # -- of a command

    def _take_next(self) -> None:
        found = None if self._spool is None or not self._is_open else _first(self._spool)
        if found is not None:
            number, name, text = found
            self._send(number, text, lambda noted: self._pass_back(name, noted))

    def _pass_back(self, name: str, noted: NotedMessage) -> None:
        assert self._spool is not None
        error = noted.error
        answer = {"answer": noted.answer}
        if error is not None:
            answer = {"error": error.message, "hint": error.hint, "code": error.code}
        self._spool.answer(name, answer)
        self._flying = None
        self._take_next()

    # -- of both

    def _send(self, number: int, text: str, answered: Callable[[NotedMessage], object]) -> None:
        task = self._granted.task
        self._flying = NotifiedMessage(
            nonce=self._granted.nonce, task=task.id, fence=fence_of(task.run), number=number, text=text
        )
        self._answered, self._ticks = answered, 0
        self._say(self._flying)

    def noted(self, noted: NotedMessage) -> None:
        if self._flying is not None and self._flying.number == noted.number and self._answered is not None:
            self._answered(noted)

    def tick(self) -> None:
        self._ticks += 1
        if self._flying is None:
            self._take_next()
        elif self._ticks % AGAIN == 0 and self._is_open:
            self._say(self._flying)

    def left(self) -> tuple[UnsentEvent, ...]:
        """At the end of the run: the events that the owner has not acknowledged. The ending carries them.
        Raises OSError where they cannot be read now."""
        self._is_open = False
        if self._spool is not None:
            found = [one for one in self._spool.left() if one[2].strip()]
            self._left = [name for _, name, _ in found]
            return tuple(UnsentEvent(number, in_use(text)) for number, _, text in found)
        flying = self._flying
        return () if flying is None else (UnsentEvent(flying.number, flying.text),)

    def close(self) -> None:
        """The ending is written down, and with it what was left."""
        if self._spool is not None:
            self._spool.close(self._left, {"answer": "sent"})


def _first(spool: EventSpool) -> tuple[int, str, str] | None:
    """The next event of a command. One that says nothing, or too much, is answered here."""
    try:
        found = spool.first()
    except OSError:
        return None  # the disk is full, or too many files are open: the next tick tries again
    if found is None:
        return None
    number, name, text = found
    try:
        return number, name, in_use(checked(text))
    except MeantimeError as problem:
        spool.answer(name, {"error": problem.message, "hint": problem.hint, "code": problem.code})
        return None
