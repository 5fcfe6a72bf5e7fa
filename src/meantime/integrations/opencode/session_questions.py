"""The requests of a session: permissions and questions, shown by our own servers, and answered once."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from meantime.integrations.agent_host.turn_questions import TurnQuestions
from meantime.kernel.questions import Choice, Question, Reply, declined, permission
from meantime.ports.session import Hearer

from .errors import Away, Denied, Unknown

if TYPE_CHECKING:
    from .wire.api_client import ApiClient

NO = "It was refused. Go on without it, if you can."


class SessionQuestions:
    def __init__(self, client: ApiClient, directory: str, hearer: Hearer) -> None:
        self._client = client
        self._directory = directory
        self._hearer = hearer
        self._open = TurnQuestions(hearer)

    async def look(self, sessions: set[str]) -> None:
        """For what was asked while nobody listened. A request answered elsewhere is no longer open."""
        permissions = await self._client.permissions(self._directory)
        questions = await self._client.questions(self._directory)
        for request in permissions:
            if request["sessionID"] in sessions:
                self.permission(request)
        for request in questions:
            if request["sessionID"] in sessions:
                self.question(request)
        self._open.withdraw_all_but({request["id"] for request in (*permissions, *questions)})

    def permission(self, request: dict[str, Any]) -> None:
        self._open.begin(request["id"], lambda: self._once(self._permit(request)))

    def question(self, request: dict[str, Any]) -> None:
        self._open.begin(request["id"], lambda: self._once(self._answer(request)))

    def settled(self, id: str) -> None:
        """By us, or by somebody at OpenCode itself: then nobody else needs to answer."""
        self._open.withdraw(id)

    def close(self) -> None:
        self._open.end()

    async def _once(self, exchange: Awaitable[None]) -> None:
        with suppress(Away, Denied, Unknown):  # answered elsewhere, or gone with its server
            await exchange

    async def _permit(self, request: dict[str, Any]) -> None:
        """Never "always": that would hold for every session of the folder. An answer for all of a task is
        remembered by who asks for us."""
        patterns: list[str] = request.get("patterns") or []
        question = permission(
            request["id"],
            request["permission"],
            detail=", ".join(patterns),
            arguments={"patterns": patterns, **(request.get("metadata") or {})},
        )
        reply = await self._hearer.ask(question)
        if reply.allows:
            await self._client.permit(request["id"], self._directory, "once")
        else:  # with a message, or its turn would end here
            await self._client.permit(request["id"], self._directory, "reject", reply.text or NO)

    async def _answer(self, request: dict[str, Any]) -> None:
        answers = list[list[str]]()
        for number, asked in enumerate(request["questions"], 1):
            options: list[dict[str, Any]] = asked.get("options") or []
            question = Question(
                id=f"{request['id']}.{number}",
                text=asked["question"],
                choices=tuple(Choice(option["label"], option.get("description", "")) for option in options),
                several=bool(asked.get("multiple")),
            )
            reply = await self._hearer.ask(question)
            if declined(reply):
                await self._client.decline(request["id"], self._directory)
                return
            answers.append(_words(reply))
        await self._client.answer(request["id"], self._directory, answers)


def _words(reply: Reply) -> list[str]:
    return list(reply.choices) or [reply.text]
