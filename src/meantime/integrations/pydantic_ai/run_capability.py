"""Ties a run to its task: its model is paced, its tools are restricted, and tools that need permission ask
for it.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.tools import (
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolDefinition,
    ToolDenied,
)

from meantime.kernel.payloads import as_text
from meantime.kernel.questions import Question, Reply, declined, permission
from meantime.ports.session import Hearer

from .model_lines import of_call
from .paced_model import PacedModel, RequestState


class RunCapability(AbstractCapability[Any]):
    def __init__(
        self, session: str, hearer: Hearer, request: RequestState, tools: tuple[str, ...] | None
    ) -> None:
        self._session = session
        self._hearer = hearer
        self._request = request
        self._tools = tools

    def get_wrapper_model(self, model: Model) -> Model:
        return PacedModel(model, self._request)

    async def prepare_tools(
        self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]
    ) -> list[ToolDefinition]:
        return [tool for tool in tool_defs if self._tools is None or tool.name in self._tools]

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        """One after the other: a person is asked one thing at a time."""
        results = DeferredToolResults()
        place = len(ctx.messages)
        for call in requests.approvals:
            results.approvals[call.tool_call_id] = await self.permitted(place, call)
        for call in requests.calls:
            results.calls[call.tool_call_id] = await self.answered(place, call)
        return results

    async def permitted(self, place: int, call: ToolCallPart) -> bool | ToolDenied:
        id = self._id(place, call, "allow")
        question = permission(id, call.tool_name, verb="call", arguments=of_call(call).arguments)
        return _permission(await self._hearer.ask(question))

    async def answered(self, place: int, call: ToolCallPart) -> Any:
        """A tool that is carried out elsewhere: its result is what somebody answers."""
        text = f"{call.tool_name} {as_text(of_call(call).arguments)}".strip()
        return _answer(await self._hearer.ask(Question(id=self._id(place, call, "answer"), text=text)))

    async def resolved(self, place: int, call: ToolCallPart, reply: Reply) -> DeferredToolResults | None:
        """This call with an answer from before a restart; None if the answer is not to it."""
        if reply.question == self._id(place, call, "answer"):
            return DeferredToolResults(calls={call.tool_call_id: _answer(reply)})
        if reply.question != self._id(place, call, "allow"):
            return None
        # What was allowed once waits to be asked for again: so it is, or the next call would be let through.
        permitted = await self.permitted(place, call) if reply.allows else _permission(reply)
        return DeferredToolResults(approvals={call.tool_call_id: permitted})

    def _id(self, place: int, call: ToolCallPart, what: str) -> str:
        """The same after a restart, and never that of another call: some models use the same id again."""
        return f"{self._session}.{place}.{what}.{call.tool_call_id}"


def _permission(reply: Reply) -> bool | ToolDenied:
    return True if reply.allows is True else ToolDenied(reply.text or "The call was not allowed.")


def _answer(reply: Reply) -> Any:
    if declined(reply):
        return ToolFailed(reply.text or "Nobody answered.")
    return reply.text
