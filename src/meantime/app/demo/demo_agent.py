"""The scripted agent: a real loop on a thread, with words that are fixed. No model, no key, no network.

`thread.loop()` says when to take a turn: somebody typed a line, or something has ended. New notices go into
its transcript and are acknowledged in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing

from meantime.conversation.turn import Turn
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.kernel.notices import Notice
from meantime.thread import Thread

from .demo_screen import DemoScreen
from .demo_work import DemoPiece
from .layout import told
from .replies import Answers

QUIT = ("quit", "exit", "q")


class ScriptedAgent:
    def __init__(self, thread: Thread, answers: Answers, screen: DemoScreen) -> None:
        self.thread = thread
        self.tasks: list[Task] = []  # as they were handed off
        self.heard: list[Notice] = []  # every notice that a turn gave us: a doubled one is in it twice
        self._answers = answers
        self._screen = screen
        self._transcript = thread.transcript
        self._loop = thread.loop()
        self._telling: dict[str, int] = {}

    async def hand_off(self, pieces: Iterable[DemoPiece], timeout: float) -> None:
        for piece in pieces:
            handle = await self.thread.start(piece.work, description=piece.name, timeout=timeout)
            self.tasks.append(handle.task)
            self._telling[handle.id] = piece.telling

    async def listen(self) -> None:
        """Until everything that was handed off is told."""
        async for turn in self._loop.turns():
            async with turn:
                await self._take(turn)
            if {notice.task_id for notice in self.heard} >= {task.id for task in self.tasks}:
                return

    async def talk(self) -> None:
        """Says what is typed, until nobody types any more."""
        async with aclosing(self._screen.lines()) as lines:
            async for line in lines:
                if line.strip().lower() in QUIT:
                    break
                if line.strip():
                    self._loop.say(line)
        self._screen.agent("Stopping what still runs.")
        await self.thread.interrupt("all")

    async def _take(self, turn: Turn) -> None:
        for notice in turn.notices:
            self._transcript.add(notice.id, notice.message())
        answers = [await self._answers.to(said) for said in turn.said]
        for said, answer in zip(turn.said, answers, strict=True):
            self._transcript.add(None, said)
            self._transcript.add(None, "\n".join(answer), role="assistant")
        await turn.ack(transcript=self._transcript)
        self._tell(turn.notices)  # shown when it is saved: what comes again was never shown
        for answer in answers:
            self._screen.agent(*answer)

    def _tell(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            self.heard.append(notice)
            self._screen.notice(told(notice, self._telling.get(notice.task_id, 1)))
            if notice.task.status is Status.FAILED and notice.task.work.kind == "shell":
                self._screen.failed(notice.task)
