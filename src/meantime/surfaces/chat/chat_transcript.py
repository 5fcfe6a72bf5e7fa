"""The chat's own transcript, in the ledger: what was said, what was told, and what the model needs of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from meantime.conversation.turn import Turn
from meantime.kernel.errors import Disconnected, LeaseLost
from meantime.kernel.ids import crockford
from meantime.kernel.notices import Message, Notice, Part, Renderer
from meantime.ports.store import Entry
from meantime.system.process import Process, process
from meantime.thread import Thread

USER, ASSISTANT, TOOL, SETTING = "user", "assistant", "tool", "setting"
TYPED = "typed"  # a line as it was typed, and hidden, by which process; in its turn it is said, by the person
ASIDE = frozenset({SETTING, TYPED})  # what is kept here and is no part of what was said
SAID = "said"  # a setting: a turn began, hidden in which process, with these lines, by their ids


class ChatTranscript:
    """Read once, then kept in step: what is saved is added here. `data` of an entry is for the model only."""

    def __init__(self, thread: Thread, words: Renderer, me: Process | None = None) -> None:
        self._transcript = thread.transcript
        self._beside = thread.transcript.apart()  # lines come at any time, also while a turn is being written
        self._words = words
        self._me = me or process(os.getpid())
        self._mark = msgspec.json.encode(self._me).decode()
        self._added: list[Entry] = []
        self._typed: dict[str, str] = {}  # lines that were not said yet, by their ids
        self._others = 0  # entries that are answered by a chat in another terminal, if they are not yet
        self.entries: list[Entry] = []

    async def load(self) -> None:
        self.entries = list(await self._transcript.entries())
        turns = [entry for entry in self.entries if _name(entry) == SAID]
        if turns and self._is_anothers(turns[-1]):
            self._others = len(self.entries)
        # Found first: a line that could not be kept at once stands behind its own saying.
        said = {id for turn in turns for id in turn.message.visible.split()[1:]}
        for entry in self.entries:
            id, _, text = entry.message.visible.partition(" ")
            if entry.message.role == TYPED and id not in said and not self._is_anothers(entry):
                self._typed[id] = text

    @property
    def unsaid(self) -> list[str]:
        """Lines that somebody typed while the agent was busy, before the chat was killed."""
        return list(self._typed.values())

    async def typed(self, text: str) -> None:
        """Kept before it is sent: the agent may be busy for long, and the chat may be killed. It is sent all
        the same if it cannot be kept now.
        """
        id = crockford(os.urandom(8))
        self._typed[id] = text
        self._beside.add(None, Message(TYPED, (Part(f"{id} {text}"), Part(self._mark, hidden=True))))
        with suppress(Disconnected):
            await self._beside.save()

    @property
    def is_owed(self) -> bool:
        """Somebody spoke, or something was told, and it was killed before it answered."""
        said = [entry for entry in self.entries[self._others :] if entry.message.role not in ASIDE]
        return bool(said) and said[-1].message.role in (USER, TOOL)

    def unanswered(self) -> list[Entry]:
        """Messages and notices since the last answer."""
        found: list[Entry] = []
        for entry in reversed(self.entries[self._others :]):
            if entry.message.role == ASSISTANT:
                break
            if entry.message.role == USER:
                found.append(entry)
        return found[::-1]

    def setting(self, name: str) -> str | None:
        for entry in reversed(self.entries):
            if _name(entry) == name:
                return entry.message.visible.partition(" ")[2]
        return None

    def add(self, role: str, text: str, data: str = "", *, notice: str | None = None) -> None:
        parts = (Part(text), Part(data, hidden=True)) if data else (Part(text),)
        self._put(Message(role, parts), notice)

    async def save(self) -> None:
        await self._transcript.save()
        self._keep()

    async def hold(self, turn: Turn, notices: Sequence[Notice], said: Iterable[str] = ()) -> None:
        """Told, and saved, in one transaction: a kill before it has told nothing, one after it all."""
        for notice in notices:
            self._put(notice.message(self._words), notice.id)
        ids, lines = list[str](), list(said)
        for text in lines:
            self.add(USER, text)
            ids += [id for id, typed in self._typed.items() if typed == text and id not in ids][:1]
        if notices or lines:
            self.add(SETTING, " ".join([SAID, *ids]), self._mark)
        try:
            if notices:
                await turn.ack(*notices, transcript=self._transcript)
            else:
                await self._transcript.save()
        except LeaseLost:  # another owner of the ledger: nothing was written, and they come again
            self._added = []
            raise
        self._keep()
        for id in ids:
            del self._typed[id]

    def _put(self, message: Message, notice: str | None) -> None:
        self._transcript.add(notice, message)
        self._added.append(Entry(message, notice))

    def _keep(self) -> None:
        self.entries += self._added
        self._added = []

    def _is_anothers(self, entry: Entry) -> bool:
        """Whether it is of a chat in another terminal, which still runs, and sees to it."""
        by = next((part.text for part in entry.message.parts if part.hidden), "")
        if not by:
            return False
        one = msgspec.json.decode(by, type=Process)
        return one != self._me and one.is_alive


def _name(entry: Entry) -> str:
    """The name of a setting."""
    return entry.message.visible.partition(" ")[0] if entry.message.role == SETTING else ""
