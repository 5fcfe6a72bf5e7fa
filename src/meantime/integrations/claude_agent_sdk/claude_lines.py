"""Messages of a Claude agent as lines of a conversation, live and from a transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from meantime.kernel.lines import Kind, Line
from meantime.kernel.payloads import as_text, jsonable


class ClaudeLines:
    """It knows the names of the tools that were called."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def of_message(self, message: AssistantMessage | UserMessage) -> Iterator[Line]:
        """The words of its own subagents are not its answer."""
        within = message.parent_tool_use_id is not None
        for block in message.content if isinstance(message.content, list) else ():
            if isinstance(block, TextBlock) and isinstance(message, AssistantMessage) and block.text:
                yield Line(role="assistant", kind=Kind.THOUGHT if within else Kind.TEXT, text=block.text)
            elif isinstance(block, ThinkingBlock) and block.thinking:
                yield Line(role="assistant", kind=Kind.THOUGHT, text=block.thinking)
            elif isinstance(block, ToolUseBlock):
                yield self._called(block.id, block.name, block.input)
            elif isinstance(block, ToolResultBlock):
                yield self._answered(block.tool_use_id, block.content, failed=bool(block.is_error))

    def of_transcript(self, kept: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
        for entry in kept:
            if entry["type"] == "attachment" or entry.get("isMeta"):
                continue
            content = entry.get("message", {}).get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
            for block in blocks:
                yield from self._of_block(entry["type"], block)

    def _of_block(self, role: str, block: Mapping[str, Any]) -> Iterator[Line]:
        kind = block.get("type")
        if kind == "text" and block.get("text"):
            yield Line(role=role, text=str(block["text"]))
        elif kind == "thinking" and block.get("thinking"):
            yield Line(role="assistant", kind=Kind.THOUGHT, text=str(block["thinking"]))
        elif kind == "tool_use":
            yield self._called(str(block.get("id")), str(block.get("name")), block.get("input"))
        elif kind == "tool_result":
            failed = bool(block.get("is_error"))
            yield self._answered(str(block.get("tool_use_id")), block.get("content"), failed=failed)

    def _called(self, call: str, tool: str, arguments: object) -> Line:
        self._tools[call] = tool
        given = jsonable(arguments).value
        return Line(role="assistant", kind=Kind.CALL, tool=tool, call=call, arguments=given)

    def _answered(self, call: str, content: Any, *, failed: bool) -> Line:
        text = content if isinstance(content, str) else _text(content or ())
        tool = self._tools.get(call, "")
        return Line(role="tool", kind=Kind.RESULT, tool=tool, call=call, text=text, failed=failed)


def _text(blocks: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(
        str(block["text"]) if "text" in block else as_text(jsonable(block.get("type")).value)
        for block in blocks
    )
