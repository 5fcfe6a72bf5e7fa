"""An owner of a ledger whose agent works in OpenCode: `python working.py PLACE LEDGER SETTINGS PROMPT`. It is
killed from outside, or kills itself at a place (see telling.py)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent))
from telling import dying

from meantime import Agent, Meantime
from meantime.ports.session import AgentSettings


async def main(place: str, ledger: str, settings: str, prompt: str) -> None:
    dying(place)
    agents = {"worker": msgspec.json.decode(settings, type=AgentSettings)}
    async with Meantime.open(ledger, agents=agents) as mt:
        handle = await mt.thread("conv-1").start(Agent("worker", prompt))
        print(handle.id, flush=True)
        await handle.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
