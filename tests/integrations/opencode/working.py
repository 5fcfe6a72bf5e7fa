"""An owner of a ledger whose agent works in OpenCode:
`python -m tests.integrations.opencode.working PLACE LEDGER SETTINGS PROMPT`. It is killed from outside, or
kills itself at a place (see telling.py)."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from meantime import Agent, Meantime
from meantime.ports.session import AgentSettings

from .telling import dying


async def main(place: str, ledger: str, settings: str, prompt: str) -> None:
    dying(place)
    agents = {"worker": msgspec.json.decode(settings, type=AgentSettings)}
    async with Meantime.open(ledger, agents=agents) as mt:
        handle = await mt.thread("conv-1").start(Agent("worker", prompt))
        print(handle.id, flush=True)
        await handle.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
