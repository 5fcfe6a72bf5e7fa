"""A model that does what the prompts of the session host suite ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import ChatResponse, Content, Message
from pupil_answers import pupil_answer

from .scripted_client import ScriptedClient


class Pupil(ScriptedClient):
    async def _answer(self, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatResponse:
        said = [message.text for message in messages if message.role == "user"]
        return ChatResponse(messages=[Message("assistant", [Content.from_text(await pupil_answer(said))])])
