"""An agent in one file, against any endpoint that speaks the OpenAI protocol. It never waits for slow work.

OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=qwen3 python examples/openai_loop.py

What makes it one that is told of its work, once and in order, are five lines, marked with (1) to (5).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import urllib.request
from typing import Any

from meantime import Loop, Meantime, Message, Shell, Thread

BASE_URL = os.environ.get("OPENAI_BASE_URL", "http://localhost:11434/v1")
MODEL = os.environ.get("OPENAI_MODEL", "default")
Json = dict[str, Any]


def ask(reminder: str, conversation: list[Json], tools: list[Json]) -> Json:
    """One question to the model: its answer is the next message. The reminder is not kept."""
    messages = [{"role": "system", "content": reminder}, *conversation]
    body = {"model": MODEL, "messages": messages, "tools": tools}
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{BASE_URL}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]


def wire(message: Message) -> Json:
    return {"role": message.role, "content": message.text}


async def agent(thread: Thread, loop: Loop) -> None:
    tools = thread.toolset(agents=None, commands=Shell)
    shapes = await tools.schemas("openai")
    conversation: list[Json] = []
    async for turn in loop.turns():  # (1) somebody said something, or work has ended and we are idle
        async with turn:  # busy from here on
            conversation += map(wire, turn.messages())  # (2) the endings in order, then what was said
            while True:
                reminder = await turn.reminder() or "Nothing is running."  # (3) for every question
                reply = await asyncio.to_thread(ask, reminder, conversation, shapes)
                conversation.append(reply)
                if not reply.get("tool_calls"):
                    break
                read: list[str] = []
                for call in reply["tool_calls"]:
                    function = call["function"]
                    said = await tools.call(function["name"], json.loads(function["arguments"] or "{}"))
                    read += said.reads
                    conversation.append({"role": "tool", "tool_call_id": call["id"], "content": said.text})
                conversation += [wire(notice.message()) for notice in await turn.boundary(read=read)]  # (4)
            await turn.ack()  # (5) told: the conversation holds them. Without it they come again
        print(f"agent > {reply.get('content') or ''}", flush=True)


async def main(ledger: str) -> None:
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("conversation-1")
        loop = thread.loop()
        working = asyncio.create_task(agent(thread, loop))
        while line := await asyncio.to_thread(sys.stdin.readline):
            loop.say(line.strip())
        loop.close()  # nobody types any more: what still runs is told, and that is the end
        await working


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ":memory:"))
