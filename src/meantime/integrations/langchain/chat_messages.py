"""Messages of LangChain: notices among them, calls that were cut off, and whether an answer is missing."""

# LangGraph's types are not complete.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from meantime.integrations.agent_host.append_log import INTERRUPTED
from meantime.kernel.notices import Notice


def told(notices: Iterable[Notice]) -> list[HumanMessage]:
    """A message whose id the conversation holds already is replaced by the same, and not told again."""
    return [HumanMessage(notice.message().text, id=notice.id) for notice in notices]


def ids(messages: Iterable[AnyMessage]) -> set[str]:
    return {message.id for message in messages if message.id}


def ends_open(messages: Sequence[AnyMessage]) -> bool:
    """Something was said to the agent, or a tool has answered, and the agent has not said anything since."""
    return bool(messages) and not (isinstance(messages[-1], AIMessage) and not messages[-1].tool_calls)


def cut(messages: Sequence[AnyMessage]) -> list[ToolMessage]:
    """Results for the calls that a crash or a stop cut off: a provider refuses a call without its result."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    return [
        ToolMessage(INTERRUPTED, tool_call_id=call["id"], name=call["name"], status="error")
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] is not None and call["id"] not in answered
    ]


def placed(
    messages: Sequence[AnyMessage], notices: Sequence[HumanMessage]
) -> list[AnyMessage | RemoveMessage]:
    """An update of the state that puts the notices before the prompt, and a result behind each call that was
    cut off. Messages are only ever added at the end, so a change before it takes them all anew."""
    results = {message.tool_call_id: message for message in cut(messages)}
    has_prompt = bool(messages) and isinstance(messages[-1], HumanMessage)
    if not results and not (has_prompt and notices):
        return list(notices)
    whole: list[AnyMessage | RemoveMessage] = [RemoveMessage(REMOVE_ALL_MESSAGES)]
    for message in messages[:-1] if has_prompt else messages:
        whole.append(message)
        calls = message.tool_calls if isinstance(message, AIMessage) else ()
        whole += [results[call["id"]] for call in calls if call["id"] in results]
    whole += notices
    return [*whole, messages[-1]] if has_prompt else whole
