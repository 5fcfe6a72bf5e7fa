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
    SessionContext,
    SupportsAgentRun,
)

from meantime.kernel.notices import Notice

APPROVALS = ("function_approval_request", "function_approval_response")
ATTRIBUTED = {"_attribution"}  # the one mark of a copy that the framework makes
INTERRUPTED = "The process ended before this call was answered. Its work may have been done."


class TalkHistory(InMemoryHistoryProvider):
    """The conversation of one Talk, which passes only what is new. For callers that pass all of it again with
    each run, the framework serializes and compares every message whenever it saves: more than half of the CPU
    of a request.
    """

    def __init__(self, *, load_messages: bool) -> None:
        super().__init__(load_messages=load_messages)
        # Of this turn: messages, each with the copy of it that the model is shown.
        self._shown: dict[int, tuple[Message, Message]] = {}

    def begin_turn(self) -> None:
        self._shown = {}

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Copies what was added since the last request. The framework copies the whole conversation once for
        a run, but where it keeps the history with each answer, it does so for each request.
        """
        messages: list[Message] = [message for message in state.get("messages", ()) if message.contents]
        added = [message for message in messages if not self._is_shown(message)]
        if self.source_id in context.context_messages or _has_approvals(added):
            # The framework leaves out approvals that are over, wherever they stand.
            await super().before_run(agent=agent, session=session, context=context, state=state)
            return
        context.extend_messages(self, added)
        copies = context.context_messages[self.source_id]
        self._shown.update(
            (id(message), (message, copy)) for message, copy in zip(added, copies, strict=True)
        )
        context.context_messages[self.source_id] = [self._shown[id(message)][1] for message in messages]

    def _is_shown(self, message: Message) -> bool:
        """A message or a copy with marks, such as those of a compaction, which hold for one request alone, is
        copied again: otherwise the messages behind a summary stay left out when the summary is gone."""
        if id(message) not in self._shown or message.additional_properties:
            return False
        copy = self._shown[id(message)][1]
        return copy.contents is message.contents and copy.additional_properties.keys() == ATTRIBUTED

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


def _has_approvals(messages: Iterable[Message]) -> bool:
    return any(content.type in APPROVALS for message in messages for content in message.contents)


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
