"""The chat: somebody types, an agent answers, and what ends in between is told once, in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from typing import Any, Protocol

from meantime.conversation.turn import Turn
from meantime.kernel.errors import InvalidInput, LeaseLost, MeantimeError, NotFound
from meantime.kernel.ids import display
from meantime.kernel.notice_sources import SourceKind, parse_notice_id
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.store import Entry
from meantime.ports.tasks import Tasks
from meantime.surfaces.terminal.screen import Keys, Screen
from meantime.surfaces.terminal.task_format import span
from meantime.thread import Thread
from meantime.toolset.work_catalog import Works

from . import chat_format
from .chat_transcript import ASSISTANT, USER, ChatTranscript
from .followed_tasks import FollowedTasks
from .slash_commands import MAX_ASYNC, SlashCommands, completions, limit
from .task_view import TaskView
from .work_handoff import WorkHandoff

RECALLED = 20  # entries of an earlier life that are shown
INTERRUPTED = "Interrupted."


class ChatAgent(Protocol):
    """The answering agent. `take` is one turn: what is new is in the conversation already."""

    name: str

    async def take(self, turn: Turn, conversation: ChatTranscript) -> None: ...


class Chat:
    def __init__(self, tasks: Tasks, thread: Thread, works: Works, where: str) -> None:
        self.thread = thread
        self.hands = WorkHandoff(tasks, thread, works)
        keys = Keys(
            background=lambda: self._aside(self.hands.to_background()),
            interrupt=self._interrupt,
            is_calling=lambda: self.hands.calling > 0,
        )
        self.screen = Screen(
            chat_format.prompt(), toolbar=self._toolbar, options=self._completions, keys=keys
        )
        self.view = TaskView(tasks, thread.id, self.screen.changed)
        self.conversation = ChatTranscript(thread, self.hands.speech)
        self._following = FollowedTasks(thread, self.screen.put)
        self._commands = SlashCommands(thread, self.hands, self._following, self.conversation)
        self._loop = thread.loop(reads_settle=False)
        self._where = where
        self._agent: ChatAgent
        self._taking: asyncio.Task[None] | None = None
        self._began = 0.0
        self._beside = BackgroundTasks()

    async def run(self, agent: ChatAgent) -> int:
        """Until somebody leaves: 0, or 128 and the signal's number."""
        self._agent = agent
        heard: list[int] = []
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, lambda number=number: (heard.append(number), self.screen.leave()))
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            await self._recall()
            await self.view.look()  # the first toolbar has the counts
            await self._side_by_side(self._listen(), self.view.watch(), self._read_and_leave())
        finally:
            await self._following.close()
            self._beside.cancel()
        await self._farewell()
        return 128 + heard[0] if heard else 0

    async def _side_by_side(self, *coroutines: Coroutine[Any, Any, None]) -> None:
        """Until the first ends; what goes wrong in any is raised here."""
        all_ = [asyncio.ensure_future(each) for each in coroutines]
        try:
            done, _ = await asyncio.wait(all_, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for each in all_:
                each.cancel()
            await asyncio.gather(*all_, return_exceptions=True)

    # -- the beginning and the end

    async def _recall(self) -> None:
        """The conversation of an earlier session, and the settings that it left."""
        await self.conversation.load()
        most = self.conversation.setting(MAX_ASYNC)
        if most is not None:
            with suppress(InvalidInput):  # an earlier version took any number
                self.hands.allow(limit(self.hands.speech, most))
        self.screen.put(chat_format.info(f"Meantime chat · {self._agent.name} · {self._where} · /help"))
        said = [entry for entry in self.conversation.entries if entry.message.role in (USER, ASSISTANT)]
        self.screen.remember(entry.message.visible for entry in said if _is_typed(entry))
        shown = said[-RECALLED:]
        if shown:
            self.screen.put(chat_format.info(f"— earlier in {self.thread.id} —"))
        for entry in shown:
            self.screen.put(await self._recalled(entry))
        if shown:
            self.screen.put(chat_format.info("— now —"))
        for text in self.conversation.unsaid:
            self.screen.put(chat_format.said(text))
            self._loop.say(text)

    async def _recalled(self, entry: Entry) -> list[str]:
        if entry.notice is None:
            text = entry.message.visible
            return (
                chat_format.said(text)
                if entry.message.role == USER
                else chat_format.agent(text)
                if text
                else []
            )
        told = parse_notice_id(entry.notice)
        if told is None or told.kind is not SourceKind.ENDING:
            return chat_format.info(entry.message.visible)
        try:
            runs = await self.thread.runs(told.of)
        except NotFound:  # it was deleted since
            return chat_format.info(entry.message.visible)
        return chat_format.ending(runs[min(told.run, len(runs)) - 1])

    async def _farewell(self) -> None:
        running = [
            f"  {display(task.id)}  {chat_format.name(task)}" for task in (await self.thread.list())[::-1]
        ]
        if running:
            left = "Still running; you are told when you are back:"
            self.screen.put(
                chat_format.info("\n".join([left, *running, "  meantime logs -f <id> follows one."]))
            )

    # -- turns

    async def _listen(self) -> None:
        if self.conversation.is_owed:
            await self._take(self.thread.turn(reads_settle=False))
        async for turn in self._loop.turns():
            try:
                await self._take(turn)
            except LeaseLost:  # the daemon was started again meanwhile: nothing of it was told or saved
                for text in turn.said:
                    self._loop.say(text)

    async def _take(self, turn: Turn) -> None:
        async with turn:
            await self.conversation.hold(turn, turn.notices, turn.said)
            for notice in turn.notices:  # shown when it is saved: what comes again was never shown
                self.screen.put(chat_format.told(notice))
            self._began = asyncio.get_running_loop().time()
            taking = self._taking = asyncio.ensure_future(self._agent.take(turn, self.conversation))
            try:
                await asyncio.wait([taking])
            finally:
                self._taking = None
                taking.cancel()
                await asyncio.gather(taking, return_exceptions=True)
            if taking.cancelled():
                self.screen.put(chat_format.info(INTERRUPTED))
                self.conversation.add(ASSISTANT, INTERRUPTED)
                await self.conversation.save()
            else:
                taking.result()
        self.screen.changed()

    def _interrupt(self) -> bool:
        """Ctrl+C: the agent stops; what it waits for goes on as a task. False where it is idle."""
        if self._taking is None:
            return False
        self._aside(self._stop(self._taking))
        return True

    async def _stop(self, taking: asyncio.Task[None]) -> None:
        for handle in await self.hands.to_background(leave=True):
            self.screen.put(chat_format.launched(self.hands.speech.launched(handle.task)))
        taking.cancel()

    def _aside(self, coroutine: Coroutine[Any, Any, object]) -> None:
        self._beside.start(coroutine).add_done_callback(self._put_aside)

    def _put_aside(self, done: asyncio.Task[Any]) -> None:
        if not done.cancelled() and (problem := done.exception()) is not None:
            self.screen.put(chat_format.error(str(problem)))

    # -- the person

    async def _read_and_leave(self) -> None:
        """A call that the agent waits for when somebody leaves goes on without it."""
        await self._read()
        await self.hands.to_background()

    async def _read(self) -> None:
        async with aclosing(self.screen.lines()) as lines:
            async for line in lines:
                text = line.strip()
                if text == "/quit":
                    return
                if text.startswith("/"):
                    said = await self._commands.do(text)
                    self.screen.put([*(chat_format.error if said.wrong else chat_format.info)(said.text), ""])
                elif text:
                    await self.conversation.typed(text)
                    self._loop.say(text)

    async def _completions(self, line: str) -> list[tuple[str, str]]:
        with suppress(MeantimeError):  # without an owner nobody knows what there is
            return await completions(line, self.hands.speech, self.view)
        return []

    def _toolbar(self) -> str:
        counted = chat_format.counts(self.view.active, len(self.view.ended), len(self._following))
        return f" {self._doing()}{counted} · {self._agent.name}"

    def _doing(self) -> str:
        if self._taking is None:
            return ""
        spent = span(asyncio.get_running_loop().time() - self._began)
        keys = "Ctrl+B background · " if self.hands.calling else ""
        return f"● {spent} · {keys}Ctrl+C interrupt · "


def _is_typed(entry: Entry) -> bool:
    return entry.message.role == USER and entry.notice is None
