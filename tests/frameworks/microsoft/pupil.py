"""A model that does what the prompts of the session host suite ask for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import ChatResponse, Content, Message

from meantime.testing.session_host.host_fixture import ODD

from .scripted_client import ScriptedClient


class Pupil(ScriptedClient):
    async def _answer(self, messages: Sequence[Message], options: Mapping[str, Any]) -> ChatResponse:
        said = [message.text for message in messages if message.role == "user"]
        return ChatResponse(messages=[Message("assistant", [Content.from_text(await answer(said))])])


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
