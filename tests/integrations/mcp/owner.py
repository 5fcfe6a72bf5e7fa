"""An owner to be killed: `python -m tests.integrations.mcp.owner <ledger> <peer's folder> <era>`, then one
line of JSON for every tool on its stdin: [name, arguments]. It answers with the task's id."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from meantime import Meantime, Tool

from .conftest import PATIENT, Peer


async def main(ledger: str, folder: str, era: str) -> None:
    loop = asyncio.get_running_loop()
    servers = {"s": Peer(Path(folder)).server("clings", modern=era == "modern")}
    async with Meantime.open(ledger, settings=PATIENT, servers=servers) as mt:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            handle = await mt.thread("a").start(Tool(*json.loads(line)))
            print(handle.id, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
