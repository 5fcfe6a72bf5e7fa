"""Meantime embedded in a program: functions of this process, on SQLite with synchronous=FULL. With `retried`
they may run again after a crash."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import facts
from meantime_telling import Telling

from meantime import Call, Limits, Meantime, Settings, WakeBudget

SETTINGS = Settings(limits=Limits(per_thread=-1, total=-1), wakes=WakeBudget(rounds=-1))
AGAIN: dict[str, Any] = {"retry": "idempotent"} if "retried" in sys.argv else {}


async def main() -> None:
    async with Meantime.open(Path(os.environ["QUEUE_FOLDER"]) / "work.db", settings=SETTINGS) as mt:
        thread = mt.thread("bench")

        async def submit(id: str, seconds: float) -> None:
            await thread.start(Call(facts.waited, id, seconds), id=id, **AGAIN)

        await facts.Commands(submit, Telling(thread).result).serve()


asyncio.run(main())
