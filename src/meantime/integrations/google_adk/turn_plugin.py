"""Ties a run to its task: each request passes the gate and is counted, its tools are restricted, and what is
said to the agent in the middle is read with the next one.
"""

from __future__ import annotations

from google.adk.agents.callback_context import CallbackContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.genai.types import Tool

from meantime.ports.session import Hearer

from .session_events import user


class TurnPlugin(BasePlugin):
    def __init__(self, hearer: Hearer, tools: tuple[str, ...] | None, steered: list[str]) -> None:
        super().__init__(name="meantime_turn")
        self.problem: Exception | None = None  # the last error of a model
        self._hearer = hearer
        self._tools = tools
        self._steered = steered
        self._inside = 0

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        await self._steer(callback_context, llm_request)
        if self._tools is not None:
            _restrict(llm_request, self._tools)
        self._hearer.phase("thinking")
        await self._hearer.gate.enter()
        self._inside += 1

    async def _steer(self, callback_context: CallbackContext, request: LlmRequest) -> None:
        context = callback_context.get_invocation_context()
        while self._steered:
            said = user(self._steered.pop(0))
            request.contents.append(said)
            event = Event(invocation_id=context.invocation_id, author="user", content=said)
            await context.session_service.append_event(session=context.session, event=event)

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        if llm_response.partial:
            self._hearer.alive()
            return
        self._leave()
        used = llm_response.usage_metadata
        self._hearer.spent(turns=1, tokens=(used.total_token_count or 0) if used is not None else 0)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        self.problem = error
        self._leave()

    def _leave(self) -> None:
        if self._inside:
            self._inside -= 1
            self._hearer.gate.leave()

    def leave_all(self) -> None:
        """Including requests that a stop cut off."""
        while self._inside:
            self._leave()


def _restrict(request: LlmRequest, allowed: tuple[str, ...]) -> None:
    """A tool of the provider's own has no name, and is left out."""
    request.tools_dict = {name: tool for name, tool in request.tools_dict.items() if name in allowed}
    kept = [
        declared
        for tool in request.config.tools or ()
        if isinstance(tool, Tool)
        for declared in tool.function_declarations or ()
        if declared.name in allowed
    ]
    request.config.tools = [Tool(function_declarations=kept)] if kept else []
