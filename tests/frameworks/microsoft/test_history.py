"""The history of a Talk copies less than the framework's own. The model is shown the same by both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from agent_framework import (
    Agent,
    ChatResponse,
    Content,
    InMemoryHistoryProvider,
    Message,
    SlidingWindowStrategy,
    ToolResultCompactionStrategy,
    tool,
)

from meantime import Meantime
from meantime.integrations.agent_framework import Talk
from meantime.testing.talk import ToolCall

from .scripted_client import ScriptedClient

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.*experimental.*"),
]


class SeeingClient(ScriptedClient):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[tuple[str, list[str]]]] = []

    async def _answer(self, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatResponse:
        self.seen.append(
            [(message.role, [_said(content) for content in message.contents]) for message in messages]
        )
        return await super()._answer(messages, options)


def _said(content: Content) -> str:
    return f"{content.type} {content.text or content.result or content.call_id}"


@tool
def look(at: str) -> str:
    """Looks at something."""
    return f"{at} is fine"


@tool(approval_mode="always_require")
def push(to: str) -> str:
    """Pushes."""
    return f"pushed to {to}"


async def _seen(thread: str, given: list[Any], compaction: Any) -> list[list[tuple[str, list[str]]]]:
    client = SeeingClient()
    for turn in range(3):
        client.steps += [ToolCall("look", {"at": f"{turn}{n}"}, f"call-{turn}-{n}") for n in range(4)]
        client.steps += [ToolCall("push", {"to": str(turn)}, f"push-{turn}"), f"done {turn}"] * (turn == 1)
        client.steps += [f"all is well {turn}"] * (turn != 1)
    agent = Agent(
        client, "Be helpful.", tools=[look, push], context_providers=given, compaction_strategy=compaction
    )
    async with Meantime.open(":memory:") as mt:
        talk = Talk(agent, mt.thread(thread))
        await talk.say("first")
        asked = await talk.say("second")
        (request,) = asked.user_input_requests
        answer = Message("user", [request.to_function_approval_response(True)])
        await talk.say(answer)  # pyright: ignore[reportArgumentType]
        await talk.say("third")
    return client.seen


@pytest.mark.parametrize(
    "compaction",
    [
        None,
        ToolResultCompactionStrategy(keep_last_tool_call_groups=1),
        SlidingWindowStrategy(keep_last_groups=3),
    ],
    ids=["all", "summaries", "window"],
)
async def test_the_model_is_shown_what_the_frameworks_own_history_shows(compaction: Any):
    theirs = await _seen("theirs", [InMemoryHistoryProvider()], compaction)
    ours = await _seen("ours", [], compaction)
    assert len(ours) == len(theirs) == 16
    assert ours == theirs


async def test_a_message_is_copied_once_in_a_turn(monkeypatch: pytest.MonkeyPatch):
    copied: list[Message] = []
    copy = Message.__copy__

    def counted(message: Message) -> Any:
        copied.append(message)
        return copy(message)

    client = SeeingClient()
    calls = 20
    async with Meantime.open(":memory:") as mt:
        talk = Talk(Agent(client, "Be helpful.", tools=[look]), mt.thread("t"))
        client.steps = [*(ToolCall("look", {"at": "x"}, f"call-{n}") for n in range(calls)), "done"]
        monkeypatch.setattr(Message, "__copy__", counted)
        assert await talk.say("go") == "done"
    assert len(copied) < 8 * calls  # copied with each request they would be 400 and more
