"""Agents that the daemon of these tests imports: each asks, listens or works, as its name says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from tests.waiting import until_async

from meantime.kernel.lines import Kind, Line


async def paint(talk: Any) -> str:
    reply = await talk.ask("Which colour?", "red", "blue")
    return f"Painted {', '.join(reply.choices)}. {reply.text}"


async def christen(talk: Any) -> str:
    return f"Its name is {await talk.ask('What is it called?')}."


async def repeat(talk: Any) -> str:
    """Asks its order back, and offers it as a choice."""
    order = talk.messages[-1].text
    return f"{order} {await talk.ask(order, order[:200], 'no')}"


async def push(talk: Any) -> str:
    order = {"command": "git push origin main", "cwd": "/srv/app"}
    return "Pushed." if await talk.allowed("shell", order) else "Not pushed."


async def look(talk: Any) -> AsyncIterator[Line | str]:
    """Its order is the name of its tool."""
    tool = talk.messages[-1].text
    yield "I look around."
    yield Line(role="assistant", kind=Kind.CALL, tool=tool, arguments={"at": "src"}, call="1")
    yield Line(role="tool", kind=Kind.RESULT, tool=tool, text="three files", call="1")
    yield f"There are three files for {tool}."


async def listen(talk: Any) -> str:
    """Until it is told something while it works."""
    heard = await until_async(talk.heard, "it is told something")
    return f"Heard: {heard[-1].text}"
