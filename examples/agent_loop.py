"""A whole agent loop: turns, reminders, tools that go to the background when they are slow.

python examples/agent_loop.py

The model is a function with a script, so that this runs without a key. Put your own in its place.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meantime import Meantime, Message, Part, Thread, Transcript, Turn, background

PERSON = ("Please test it.", "And what is in the README?", "How is it going?")
THRESHOLD = 0.2  # seconds that a tool may take before it becomes a background task


@background
async def run_tests(folder: str) -> str:
    """Runs the tests of a folder."""
    await asyncio.sleep(1)
    return f"{folder}: 128 passed"


@background
def read_file(name: str) -> str:
    """Reads a file."""
    return f"{name} says: be kind"


TOOLS = {tool.name: tool for tool in (run_tests, read_file)}


@dataclass
class ToolCall:
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass
class Reply:
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)


def model(conversation: list[Message], reminder: str) -> Reply:
    """The script. A real model gets the conversation, TOOLS as `tool.tool`, and the reminder."""
    last = conversation[-1]
    if "test it" in last.text:
        return Reply(calls=[ToolCall("call_1", "run_tests", {"folder": "src"})])
    if "README" in last.text and last.role == "user":
        return Reply(calls=[ToolCall("call_2", "read_file", {"name": "README"})])
    if last.role == "tool":
        return Reply(f"({last.text})")
    if "<task-notification" in last.text:
        return Reply("The tests are through: 128 passed.")
    return Reply(f"Still at it. {reminder.splitlines()[0]}" if reminder else "Nothing is running.")


class Agent:
    """One conversation. What it holds is kept in the ledger, so it survives the process."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.transcript: Transcript = thread.transcript
        self.conversation: list[Message] = []

    async def take(self, turn: Turn) -> None:
        """Everything between waking up and falling silent again."""
        async with turn:
            for notice in turn.notices:
                print(f"notice > {notice.task.title} {notice.task.status}")
                self.hold(notice.message(), notice.id)
            for said in turn.said:
                print(f"  user > {said}")
                self.hold(Message("user", (Part(said),)))
            reply = model(self.conversation, await turn.reminder())
            while reply.calls:
                for call in reply.calls:
                    self.hold(Message("tool", (Part(await self.use(call)),)))
                reply = model(self.conversation, await turn.reminder())
            print(f" agent > {reply.text}")
            self.hold(Message("assistant", (Part(reply.text),)))
            await turn.ack(transcript=self.transcript)  # told, and saved, in one transaction

    async def use(self, call: ToolCall) -> str:
        """Quick tools answer at once; slow ones go on in the background, as the same run."""
        work = TOOLS[call.name].work(**call.arguments)
        answer = await self.thread.call(
            work, threshold=THRESHOLD, tool_call_id=call.id, description=call.name
        )
        if answer.task is None:
            return str(answer.result)
        return f"{call.name} is slow and goes on in the background; you will be told"

    def hold(self, message: Message, notice: str | None = None) -> None:
        self.conversation.append(message)
        self.transcript.add(notice, message)


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="meantime-loop-") as folder:
        async with Meantime.open(Path(folder) / "work.db") as mt:
            agent = Agent(mt.thread("conversation-1"))
            loop, person = agent.thread.loop(), iter(PERSON)
            loop.say(next(person))
            async for turn in loop.turns():  # somebody said something, or something has ended
                await agent.take(turn)
                said = next(person, None)
                if said is not None:
                    loop.say(said)
                else:
                    loop.close()  # nobody types any more: it ends when everything is told


if __name__ == "__main__":
    asyncio.run(main())
