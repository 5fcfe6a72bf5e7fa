"""Each request to a model, wherever in a graph: it passes the gate, and what it used is counted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult

from meantime.ports.session import Hearer


class ModelPace(AsyncCallbackHandler):
    raise_error = True
    run_inline = True  # before the request, and not beside it

    def __init__(self, hearer: Hearer) -> None:
        self._hearer = hearer
        self._inside: set[UUID] = set()
        self.problem: BaseException | None = None  # the last error of a model

    async def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **more: Any) -> None:
        self._hearer.phase("thinking")
        await self._hearer.gate.enter()
        self._inside.add(run_id)

    async def on_llm_new_token(self, token: Any, **more: Any) -> None:
        self._hearer.alive()

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **more: Any) -> None:
        self._leave(run_id)
        self._hearer.spent(turns=1, tokens=_tokens(response))

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        self.problem = error
        self._leave(run_id)

    def leave_all(self) -> None:
        """Including requests that a stop cut off."""
        for run in list(self._inside):
            self._leave(run)

    def _leave(self, run: UUID) -> None:
        if run in self._inside:
            self._inside.remove(run)
            self._hearer.gate.leave()


def _tokens(response: LLMResult) -> int:
    found = 0
    for generations in response.generations:
        for one in generations:
            message = getattr(one, "message", None)
            if isinstance(message, AIMessage) and message.usage_metadata:
                found += message.usage_metadata["total_tokens"]
    return found
