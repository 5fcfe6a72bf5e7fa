"""Messages of LangChain as lines of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from langchain.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from meantime.kernel.lines import Kind, Line
from meantime.kernel.payloads import jsonable


def lines(messages: Iterable[AnyMessage]) -> Iterator[Line]:
    for message in messages:
        if isinstance(message, HumanMessage):
            yield Line(role="user", text=message.text)
        else:
            yield from of_agent(message)


def of_agent(message: object) -> Iterator[Line]:
    """The agent's words and calls, or a tool's answer; nothing for other messages."""
    if isinstance(message, AIMessage):
        for block in message.content_blocks:
            if block["type"] == "reasoning" and block.get("reasoning"):
                yield Line(role="assistant", kind=Kind.THOUGHT, text=str(block.get("reasoning")))
        if message.text:
            yield Line(role="assistant", text=message.text)
        for call in message.tool_calls:
            given = jsonable(call["args"]).value
            yield Line(
                role="assistant", kind=Kind.CALL, tool=call["name"], call=call["id"] or "", arguments=given
            )
    elif isinstance(message, ToolMessage):
        yield Line(
            role="tool",
            kind=Kind.RESULT,
            tool=message.name or "",
            call=message.tool_call_id,
            text=message.text,
            failed=message.status == "error",
        )
