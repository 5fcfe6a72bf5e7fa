"""Meantime embedded in a loop of one's own, with its transcript in the same ledger. The argument says what
the work is: `command`, `function`, or `retried`, a function that may run again."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from typing import Any

import workbench
from meantime_site import state
from workbench import converse, model_url, state_folder

from meantime import Call, Meantime, Shell, Thread

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("alpha", "beta")
]
KIND = sys.argv[1]


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    body = json.dumps({"model": "m", "messages": messages, "tools": TOOLS}).encode()
    request = urllib.request.Request(
        f"{model_url()}/v1/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]


async def start(thread: Thread, name: str) -> str:
    if KIND == "command":
        task = await thread.start(Shell([sys.executable, workbench.__file__, name]), description=name)
    else:
        retry: Any = {"retry": "idempotent"} if KIND == "retried" else {}
        task = await thread.start(Call(getattr(workbench, name)), description=name, **retry)
    return f"started {task.id}"


async def turns(thread: Thread, loop: Any, said: asyncio.Queue[str]) -> None:
    transcript = thread.transcript
    async for turn in loop.turns():
        async with turn:
            for notice in turn.notices:
                transcript.add(notice.id, notice.message())
            if turn.said:
                transcript.add(None, "\n".join(turn.said))
            kept = [*await transcript.messages(), *turn.messages()]
            spoken = await answer(thread, [{"role": each.role, "content": each.text} for each in kept])
            for role, text in spoken:
                transcript.add(None, text, role=role)
            await turn.ack(transcript=transcript)
        if turn.said:
            said.put_nowait(spoken[-1][1])


async def answer(thread: Thread, messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """All that was said, for the transcript: it keeps texts, so calls and their results are told as such."""
    spoken: list[tuple[str, str]] = []
    while True:
        reply = await asyncio.to_thread(ask, messages)
        messages.append(reply)
        if not reply.get("tool_calls"):
            return [*spoken, ("assistant", reply.get("content") or "")]
        for call in reply["tool_calls"]:
            name = call["function"]["name"]
            content = await start(thread, name)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
            spoken += [("assistant", f"I call {name}."), ("user", f"{name}: {content}")]


async def main() -> None:
    async with Meantime.open(state_folder() / "work.db") as mt:
        thread = mt.thread("main")
        loop, said = thread.loop(), asyncio.Queue[str]()

        async def say(text: str) -> str:
            loop.say(text)
            return await asyncio.wait_for(said.get(), 60)

        await converse(say, lambda: state(mt), turns(thread, loop, said))


asyncio.run(main())
