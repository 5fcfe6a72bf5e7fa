"""A chat client of agent-framework for the scripted model: its core has none of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
)
from openai import AsyncOpenAI
from workbench import model_url


class HttpChatClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    def __init__(self) -> None:
        super().__init__()
        self._api = AsyncOpenAI(base_url=f"{model_url()}/v1", api_key="none")

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Any:
        if not stream:
            return self._answer(messages, options)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            for message in (await self._answer(messages, options)).messages:
                yield ChatResponseUpdate(role="assistant", contents=message.contents)

        return self._build_response_stream(updates())

    async def _answer(self, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatResponse:
        said = [part for message in messages for part in _wire(message)]
        if options.get("instructions"):
            said.insert(0, {"role": "system", "content": options["instructions"]})
        tools: Any = [_tool(tool) for tool in options.get("tools") or ()]
        more: Any = {"tools": tools} if tools else {}
        got = (await self._api.chat.completions.create(model="m", messages=said, **more)).choices[0].message
        contents = [Content.from_text(got.content)] if got.content else []
        for call in got.tool_calls or ():
            function: Any = call.function  # pyright: ignore
            contents.append(
                Content.from_function_call(call.id, function.name, arguments=json.loads(function.arguments))
            )
        return ChatResponse(messages=[Message("assistant", contents)])


def _tool(tool: Any) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": tool.parameters()}
    return {"type": "function", "function": about}


def _wire(message: Message) -> list[Any]:
    results = [content for content in message.contents if content.type == "function_result"]
    if results:
        return [
            {"role": "tool", "tool_call_id": each.call_id, "content": str(each.result)} for each in results
        ]
    calls = [
        {
            "id": each.call_id,
            "type": "function",
            "function": {"name": each.name, "arguments": _text(each.arguments)},
        }
        for each in message.contents
        if each.type == "function_call"
    ]
    return [{"role": str(message.role), "content": message.text, **({"tool_calls": calls} if calls else {})}]


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
