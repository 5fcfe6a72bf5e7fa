"""A process with functions, to be killed: `python executing.py LINK`. In each dialect it hands one off that
never ends, by the dialect's own tool where there is one, and it is in the middle of a turn that tells of
another one, which has ended. It says the ids of both as JSON, by dialect."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))

from conversations import DIALECTS, Conversation
from meantime import Call, Meantime


async def never() -> None:
    await asyncio.Event().wait()


async def handed_off(conversation: Conversation) -> str:
    match conversation.dialect:
        case "meantime":
            said = await conversation.toolset.call("start_tool", {"name": "never"})
            return said.data["id"]
        case "jaato":
            given = {"plugin_name": "tools", "tool_name": "never", "arguments": {}}
            return (await conversation.toolset.call("startBackgroundTask", given)).data["task_id"]
        case "psi":
            given = {"tool": "never", "background": True}
            return (await conversation.toolset.call("run_tool", given)).data["job_id"]
        case _:
            return (await conversation.thread.start(Call(never))).id


async def main(link: str) -> None:
    async with Meantime.connect(link) as mt:
        ids: dict[str, list[str]] = {}
        for dialect in DIALECTS:
            conversation = Conversation(mt, dialect, tools={"never": never})
            done = await conversation.thread.start(Call(int, "7"), description="a quick one")
            await done.wait()
            turn = await conversation.thread.turn().__aenter__()
            assert [notice.task_id for notice in turn.notices] == [done.id]
            ids[dialect] = [done.id, await handed_off(conversation)]
        sys.stdout.write(json.dumps(ids) + "\n")
        sys.stdout.flush()
        await never()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
