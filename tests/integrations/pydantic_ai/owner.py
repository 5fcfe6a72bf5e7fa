"""An owner to be killed: `python -m tests.integrations.pydantic_ai.owner <ledger> <what>`. It says "now" when
its agent is in the middle of something, and then never ends."""

from __future__ import annotations

import asyncio
import sys

from pydantic_ai import Agent as PydanticAgent

from meantime import Agent, Meantime

from .scripted import Script, call, until_said, until_waiting

SCRIPTS = {
    "tool": [[call("quick", "c1"), call("slow", "c2")]],
    "model": [call("quick", "c1"), asyncio.Event()],
    "asks": [[call("quick", "c1"), call("delete", "c2", name="x")]],
    "steered": [call("slow", "c1")],
}


def agent_of(script: Script, *, hangs: bool = False) -> PydanticAgent[None, str]:
    agent = PydanticAgent(script.model)

    @agent.tool_plain
    async def quick() -> str:
        return "quick is done"

    @agent.tool_plain
    async def slow() -> str:
        if hangs:
            await asyncio.Event().wait()
        return "slow is done"

    @agent.tool_plain(requires_approval=True)
    async def delete(name: str) -> str:
        return f"deleted {name}"

    return agent


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main(ledger: str, what: str) -> None:
    script = Script(*SCRIPTS[what])
    async with Meantime.open(ledger, agents={"explore": agent_of(script, hangs=True)}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("explore", "go"), id="t_explore")
        if what in ("tool", "asks"):
            await until_said(thread, handle, "quick is done")
        if what == "model":
            await script.waits.wait()
        if what == "asks":
            await until_waiting(mt, handle.id)
        if what == "steered":
            await until_said(thread, handle, "slow")
            assert await thread.send(handle, "and be quick") == "steered"
        say("now")
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
