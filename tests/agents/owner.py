"""An owner of agents that dies by `kill -9` at a chosen place: `python -m tests.agents.owner PLACE FOLDER`.

Its agent keeps its sessions in files, as a real one does; a second owner finds them there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from tests.runtimes import runtime_of

from meantime import Meantime
from meantime.ports.session import Brief
from meantime.runtime.follow_ups import FollowUps
from meantime.testing.scripted_host import ScriptedHost

from .stage import permission, start, text, waits, working


def die(*_: object, **__: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead")


async def turn(prompt, hearer) -> str:
    """What it does is what it is told."""
    if "speak and die" in prompt.text:
        hearer.line(text("half of the work"))
        die()
    if "ask" in prompt.text and not prompt.text.startswith("You were interrupted"):
        reply = await hearer.ask(permission())
        return f"{reply.allows} by {reply.by}"
    return f"heard: {prompt.text}"


class Host(ScriptedHost):
    dies_in_begin = False

    def __init__(self) -> None:
        super().__init__(turn, kept=True)

    async def begin(self, brief: Brief) -> str:
        if self.dies_in_begin:
            die()
        return await super().begin(brief)


async def begin(mt: Meantime, host: Host) -> None:
    """Accepted, and dead before the agent was told anything."""
    host.dies_in_begin = True
    await start(mt, "go", id="t_one")
    await asyncio.Event().wait()


async def speak(mt: Meantime, host: Host) -> None:
    await start(mt, "speak and die", id="t_one")
    await asyncio.Event().wait()


async def ask(mt: Meantime, host: Host) -> None:
    """Dead while it waits for an answer."""
    await start(mt, "ask", id="t_one")
    await waits(mt, "t_one")
    die()


async def answered(mt: Meantime, host: Host) -> None:
    """The answer is on record, and the agent has not heard it."""
    await start(mt, "ask", id="t_one")
    await waits(mt, "t_one")
    stages: list[Any] = runtime_of(mt).record.change_listeners
    stages.insert(0, lambda change, committed: die() if change.event.kind == "answered" else None)
    await mt.answer("t_one", "allow")


async def follow(mt: Meantime, host: Host) -> None:
    """The ending is on record, and its next run is not."""
    FollowUps._go_on = die
    handle = await start(mt, "ask", id="t_one")
    await waits(mt, "t_one")
    await handle.send("and then this")
    await mt.answer("t_one", "allow")
    await asyncio.Event().wait()


async def follow_asked(mt: Meantime, host: Host) -> None:
    """Dead while it waits, with something said to it for afterwards."""
    handle = await start(mt, "ask", id="t_one")
    await waits(mt, "t_one")
    await handle.send("and then this")
    die()


async def resumed(mt: Meantime, host: Host) -> None:
    """A resume is on record, and has not begun."""
    handle = await start(mt, "go", id="t_one")
    await handle.wait()
    runtime_of(mt).admission.closed = True
    await mt.thread("conv-1").resume(handle, "more")
    die()


async def main(place: str, folder: Path) -> None:
    host = Host()
    async with working(folder, host) as mt:
        await globals()[place](mt, host)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
