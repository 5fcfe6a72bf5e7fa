"""An owner to be killed: `python -m tests.integrations.cli_agents.owner LEDGER SETTINGS`, with settings of
the agent `one` as JSON; then a prompt as JSON on every line of its stdin. It answers with the task's id."""

from __future__ import annotations

import asyncio
import json
import sys

import msgspec

from meantime import Agent, Meantime
from meantime.ports.session import AgentSettings

from .conftest import QUICK


async def main(ledger: str, settings: str) -> None:
    loop = asyncio.get_running_loop()
    agents = {"one": msgspec.json.decode(settings, type=AgentSettings)}
    async with Meantime.open(ledger, settings=QUICK, agents=agents) as mt:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            handle = await mt.thread("a").start(Agent("one", json.loads(line)))
            sys.stdout.write(f"{handle.id}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
