"""A model that does what the prompts of the session host suite ask for, and streams what it says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents.models.interface import Model
from agents.testing import ScriptedModel, assistant_message
from pupil_answers import pupil_answer

from agents import ModelResponse
from meantime.integrations.openai_agents.session_items import spoken


class Pupil(Model):
    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        raise NotImplementedError("a session host streams")

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        given = options.get("input") or args[1]
        items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        said = [spoken(item) for item in items if item.get("role") == "user"]
        inner = ScriptedModel([[assistant_message(await pupil_answer(said))]])
        async for event in inner.stream_response(*args, **options):
            yield event
