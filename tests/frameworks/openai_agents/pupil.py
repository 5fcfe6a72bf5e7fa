"""A model that does what the prompts of the session host suite ask for, and streams what it says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from agents.models.interface import Model
from agents.testing import ScriptedModel, assistant_message

from agents import ModelResponse
from meantime.integrations.openai_agents.session_items import spoken
from meantime.testing.session_host.host_fixture import ODD


class Pupil(Model):
    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        raise NotImplementedError("a session host streams")

    async def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        given = options.get("input") or args[1]
        items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else given
        said = [spoken(item) for item in items if item.get("role") == "user"]
        inner = ScriptedModel([[assistant_message(await answer(said))]])
        async for event in inner.stream_response(*args, **options):
            yield event


async def answer(said: list[str]) -> str:
    last = said[-1].rpartition("\n")[2]
    if last == "wait":
        await asyncio.Event().wait()
    if last == "odd":
        return ODD
    if last == "recall":
        return " ".join(re.findall(r"say (\w+)", " ".join(said)))
    if last.startswith("slowly"):
        await asyncio.sleep(0.5)
    return last.rpartition(" ")[2]
