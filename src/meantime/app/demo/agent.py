"""The scripted agent: a real loop on a thread, with words that are fixed. No model, no key, no network.

It wakes when it is idle and there is something to tell, takes a turn, puts what is new into its
transcript and acknowledges it in the same transaction. A line that a person types is a turn, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing

from meantime.api import Thread
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.kernel.notices import Notice

from .answers import Answers
from .layout import told
from .pieces import Piece
from .screen import Screen

QUIT = ("quit", "exit", "q")


class ScriptedAgent:
    def __init__(self, thread: Thread, answers: Answers, screen: Screen) -> None:
        self.thread = thread
        self.tasks: list[Task] = []  # as they were handed off
        self.heard: list[Notice] = []  # every notice that a turn gave us: a doubled one is in it twice
        self.all_told = asyncio.Event()
        self._answers = answers
        self._screen = screen
        self._transcript = thread.transcript
        self._telling: dict[str, int] = {}
        self._turns = asyncio.Lock()  # one turn at a time: a conversation has one voice

    async def hand_off(self, pieces: Iterable[Piece], timeout: float) -> None:
        for piece in pieces:
            handle = await self.thread.start(piece.work, description=piece.name, timeout=timeout)
            self.tasks.append(handle.task)
            self._telling[handle.id] = piece.telling

    async def listen(self) -> None:
        """For ever: whoever runs this stops it when all is told."""
        async for _ in self.thread.wakeups():
            await self.take_turn()

    async def talk(self) -> None:
        """Answers what is typed, until nobody types any more."""
        async with aclosing(self._screen.lines()) as lines:
            async for line in lines:
                if line.strip().lower() in QUIT:
                    break
                if line.strip():
                    await self.take_turn(line)
        self._screen.agent("Stopping what still runs.")
        await self.thread.interrupt("all")

    async def take_turn(self, said: str | None = None) -> None:
        async with self._turns, self.thread.turn() as turn:
            for notice in turn.notices:
                self._transcript.add(notice.id, notice.message())
            answer: list[str] = []
            if said is not None:
                answer = await self._answers.to(said)
                self._transcript.add(None, said)
                self._transcript.add(None, "\n".join(answer), role="assistant")
            await turn.ack(transcript=self._transcript)
            self._tell(turn.notices)  # shown when it is saved: what comes again was never shown
            if answer:
                self._screen.agent(*answer)
        if {notice.task_id for notice in self.heard} >= {task.id for task in self.tasks}:
            self.all_told.set()

    def _tell(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            self.heard.append(notice)
            self._screen.notice(told(notice, self._telling.get(notice.task_id, 1)))
            if notice.task.status is Status.FAILED and notice.task.work.kind == "shell":
                self._screen.failed(notice.task)
