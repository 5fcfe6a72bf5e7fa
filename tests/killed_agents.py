"""One story for every host of agents: in each dialect at once, an agent's process is killed in the middle of
its turn; the conversation takes turns; the daemon is killed and comes back; the agent is resumed."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from conversations import DIALECTS, Conversation
from daemon.conftest import Place
from meantime import Meantime


class Host(Protocol):
    """The agent `one` of a daemon."""

    config: str  # its [agents.one]
    working: str  # a prompt with which it says something, and does not end
    follow_up: str

    def pids(self) -> list[int]:
        """Of its processes that are in the middle of such a turn."""
        ...

    async def until(self, count: int) -> None:
        """Until so many are."""
        ...


@dataclass
class Told:
    """What became of one dialect's task."""

    id: str
    told: list[str] = field(default_factory=list)
    word: str = ""
    after_restart: list[str] = field(default_factory=list)
    refused: tuple[str, str] = ("", "")  # the resume, by the dialect's tool and by the host
    resumed: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)


async def story(
    place: Place, host: Host, *, owner_dies: bool, dialects: Sequence[str] = DIALECTS
) -> dict[str, Told]:
    """`owner_dies`: the daemon is killed with the agents, before anybody has heard of their end."""
    place.configure(f"[http]\nport = 0\n{host.config}")
    place.up()
    async with Meantime.connect(place.home.link_socket) as mt:
        conversations = {dialect: Conversation(mt, dialect) for dialect in dialects}
        found = {
            dialect: Told(await conversation.start_agent("one", host.working))
            for dialect, conversation in conversations.items()
        }
        await host.until(len(found))
        if owner_dies:
            place.kill()
        for pid in host.pids():
            with suppress(ProcessLookupError):  # some go with their owner
                os.kill(pid, signal.SIGKILL)
        if owner_dies:
            place.up()
        for dialect, told in found.items():
            await conversations[dialect].ended(told.id)
            told.told = await conversations[dialect].told()
            told.word = await conversations[dialect].word(told.id)
        place.kill()
        place.up()
        for dialect, told in found.items():
            told.after_restart = await conversations[dialect].told()
            told.refused = await conversations[dialect].resume(told.id, host.follow_up)
        for dialect, told in found.items():
            await conversations[dialect].ended(told.id)
            told.resumed = await conversations[dialect].told()
            told.pending = await conversations[dialect].pending()
    return found
