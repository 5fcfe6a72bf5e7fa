"""Messages of an agent-framework conversation: notices among them, and calls that were never answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent_framework import (
    AgentSession,
    Content,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    RawAgent,
)

from meantime.kernel.notices import Notice

INTERRUPTED = "The process ended before this call was answered. Its work may have been done."


class TalkHistory(InMemoryHistoryProvider):
    """A conversation whose caller passes only what is new, as a Talk does. For callers that pass all of it
    again with each run, the framework serializes and compares every message whenever it saves: more than half
    of the CPU of a request.
    """

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        if state is not None and messages:
            state["messages"] = [*state.get("messages", ()), *messages]


def notice_message(notice: Notice) -> Message:
    """Its id is the notice's: that is how it is found again."""
    return Message("user", [notice.message().text], message_id=notice.id)


async def kept_messages(agent: RawAgent[Any], session: AgentSession) -> list[Message]:
    """The messages of the conversation, wherever the agent keeps them."""
    messages: list[Message] = []
    for provider in agent.context_providers:
        if isinstance(provider, HistoryProvider):
            state = session.state.setdefault(provider.source_id, {})
            messages += await provider.get_messages(session.session_id, state=state)
    return messages


def message_ids(messages: Iterable[Message]) -> set[str]:
    return {message.message_id for message in messages if message.message_id}


def interrupted(messages: Sequence[Message]) -> list[Message]:
    """An answer for each call that a crash has left without one: a model refuses a conversation with such a
    call. A call that a person has yet to approve is not among them."""
    every = [content for message in messages for content in message.contents]
    settled = {content.call_id for content in every if content.type == "function_result"}
    settled |= {
        content.function_call.call_id
        for content in every
        if content.type == "function_approval_request" and content.function_call is not None
    }
    return [
        Message("tool", [Content.from_function_result(content.call_id, result=INTERRUPTED)])
        for content in every
        if content.type == "function_call"
        and content.call_id
        and content.call_id not in settled
        and not content.informational_only
    ]
