"""The agent without a model: it understands a few plain requests, and hands off real work."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from meantime.conversation.turn import Turn
from meantime.kernel.errors import NotFound
from meantime.kernel.ids import display
from meantime.surfaces.terminal.terminal_text import fitted

from . import chat_format, folder_survey
from .chat_transcript import ASSISTANT, ChatTranscript
from .work_handoff import WorkHandoff

NAMED = 40  # characters of a task's name
ERRANDS = str(Path(folder_survey.__file__))
WORDS = (
    "I am a script and know few words: run <command> hands it off, do <command> waits for it, "
    "index <folder> and explore <folder> look around, status says what runs. /help has the rest."
)
AGAIN = 'I was stopped before I answered "{said}". Ask again if you need it; /tasks shows what runs.'


class Scripted:
    name = "scripted, no model"

    def __init__(self, hands: WorkHandoff, show: Callable[[Sequence[str]], None]) -> None:
        self._hands = hands
        self._show = show
        self._doing: dict[str, Callable[[str], Awaitable[str]]] = {
            "run": self._run,
            "do": self._do,
            "index": lambda where: self._errand("index", where),
            "explore": lambda where: self._errand("explore", where),
            "status": lambda rest: self._status(),
        }

    async def take(self, turn: Turn, conversation: ChatTranscript) -> None:
        new = conversation.unanswered()
        told = [entry.notice for entry in new if entry.notice]
        said = [await self._told(told)] if told else []
        missed = [entry.message.visible for entry in new if not entry.notice][: -len(turn.said) or None]
        if missed:  # it was killed before it answered; what it did then may run
            said.append(AGAIN.format(said=missed[-1]))
        for line in turn.said:
            word, _, rest = line.strip().partition(" ")
            does = self._doing.get(word.lower())
            said.append(await does(rest.strip()) if does else WORDS)
        for text in said:
            conversation.add(ASSISTANT, text)
            self._show(chat_format.agent(text))
        await conversation.save()

    async def _run(self, command: str) -> str:
        return await self._launch("run", command, command) if command else "Run what?"

    async def _errand(self, name: str, where: str) -> str:
        folder = _folder(where)
        if folder is None:
            return f"There is no folder {where}."
        return await self._launch(name, f"{name} {folder}", [sys.executable, ERRANDS, name, folder])

    async def _launch(self, name: str, description: str, command: str | list[str]) -> str:
        self._show(chat_format.call(name, description.removeprefix(f"{name} ")))
        given = {"command": command, "description": description, "async": True}
        said = await self._hands.use("run", given)
        self._show(chat_format.came(said))
        if said.code:
            return "I could not hand it off."
        return f"It runs as {display(said.data['agentId'])}. I tell you when it has ended; go on."

    async def _do(self, command: str) -> str:
        if not command:
            return "Do what?"
        self._show(chat_format.call("do", command))
        said = await self._hands.use("run", {"command": command})
        self._show(chat_format.came(said))
        if "agentId" in said.data:
            return f"It goes on as {display(said.data['agentId'])}. I tell you when it has ended."
        if "output" not in said.data:
            return "I could not start it."
        return "It failed." if said.code else "Done."

    async def _told(self, notices: Sequence[str]) -> str:
        """Its words about endings: their results are shown above."""
        ended: list[str] = []
        for notice in notices:
            with suppress(NotFound):  # deleted since
                task = await self._hands.thread.get(notice)
                word = self._hands.speech.word(task)
                verb = "was" if word == "cancelled" else "has"
                ended.append(f"{fitted(chat_format.name(task), NAMED)} {verb} {word}")
        return f"{'; '.join(ended)}."

    async def _status(self) -> str:
        running = [
            f"{fitted(chat_format.name(task), NAMED)} ({display(task.id)})"
            for task in await self._hands.thread.list()
        ]
        return f"Still running: {', '.join(running[::-1])}." if running else "Nothing is running."


def _folder(where: str) -> str | None:
    folder = os.path.abspath(os.path.expanduser(where or "."))
    return folder if os.path.isdir(folder) else None
