"""Interrupts of a graph as questions: LangChain's reviews of tool calls, and those of a graph's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.types import Interrupt

from meantime.integrations.agent_host.json_values import mapping, mappings
from meantime.kernel.payloads import as_text, jsonable
from meantime.kernel.questions import Question, Reply, permission
from meantime.ports.session import Hearer


class GraphQuestions:
    """One after the other: a person is asked one thing at a time."""

    def __init__(self, session: str, hearer: Hearer, known: Reply | None) -> None:
        self._session = session
        self._hearer = hearer
        self._known = known  # an answer from before a restart

    async def resume(self, interrupts: Sequence[Interrupt[Any]]) -> dict[str, Any]:
        """The answers, as `Command(resume=…)` takes them."""
        return {one.id: await self._answer(one) for one in interrupts}

    async def _answer(self, interrupt: Interrupt[Any]) -> Any:
        value: Any = interrupt.value
        given = mapping(value)
        if "action_requests" in given:  # HumanInTheLoopMiddleware
            actions = enumerate(mappings(given["action_requests"]))
            return {"decisions": [await self._reviewed(interrupt, place, one) for place, one in actions]}
        if given.get("type") == "tool_approval":
            return await self._reviewed(interrupt, 0, given)
        text = next((str(given[name]) for name in ("question", "message", "text") if name in given), "")
        asked = text or as_text(jsonable(value).value)
        return (await self._ask(Question(id=self._id(interrupt, 0), text=asked))).text

    async def _reviewed(self, interrupt: Interrupt[Any], place: int, action: Mapping[str, Any]) -> Any:
        arguments = jsonable(action.get("args")).value
        question = permission(
            self._id(interrupt, place), str(action["name"]), verb="call", arguments=arguments
        )
        reply = await self._ask(question)
        if reply.allows is True:
            return {"type": "approve"}
        return {"type": "reject", "message": reply.text or "The call was not allowed."}

    async def _ask(self, question: Question) -> Reply:
        if self._known is not None and self._known.question == question.id:
            if self._known.allows is not True:
                return self._known
            # What was allowed once waits to be asked for again: so it is, or the next call would be let
            # through.
            self._known = None
        return await self._hearer.ask(question)

    def _id(self, interrupt: Interrupt[Any], place: int) -> str:
        """The same after a restart."""
        return f"{self._session}.{interrupt.id}.{place}"
