"""An owner to be killed: `python -m tests.shell.owner <ledger> <seconds of grace>`, then one line of
JSON a command on its stdin: {"thread": …, "shell": {…}, "options": {…}}. It answers with the task's id,
and lives until it is killed, or told "close"."""

from __future__ import annotations

import asyncio
import json
import sys

from tests.waiting import LIMIT

from meantime import Call, Limits, Meantime, Settings, Shell


async def main(ledger: str, grace: float) -> None:
    settings = Settings(stop_grace=grace, stop_deadline=LIMIT, limits=Limits(per_thread=4))
    loop = asyncio.get_running_loop()
    async with Meantime.open(ledger, settings=settings) as mt:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            if line == "close\n":
                break
            wanted = json.loads(line)
            thread = mt.thread(wanted.get("thread", "conv-1"))
            if "cancel" in wanted:
                answer = (await thread.cancel(wanted["cancel"])).disposition
            elif "call" in wanted:
                answer = "calling"
                calling = asyncio.ensure_future(thread.call(Shell(**wanted["call"])))
                calling.add_done_callback(lambda done: done.exception())
            elif "sleep" in wanted:
                answer = (await thread.start(Call(asyncio.sleep, wanted["sleep"]))).id
            else:
                handle = await thread.start(Shell(**wanted["shell"]), **wanted.get("options", {}))
                answer = handle.id
            print(answer, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
