"""Owns a ledger with an agent until it is killed: `owner.py LEDGER SETTINGS PROMPT`, settings as JSON. It
says the id of the task as soon as that is running."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from meantime import Agent, Meantime
from meantime.ports.session import AgentSettings


async def main(ledger: str, settings: str, prompt: str) -> None:
    agent = msgspec.json.decode(settings, type=AgentSettings)
    async with Meantime.open(ledger, agents={"one": agent}) as mt:
        handle = await mt.thread("conv-1").start(Agent("one", prompt))
        sys.stdout.write(f"{handle.id}\n")
        sys.stdout.flush()
        await handle.wait()


asyncio.run(main(*sys.argv[1:]))
