"""A model that does what the prompts of the session host suite ask for, and streams what it says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from langchain.messages import AIMessageChunk, HumanMessage
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pupil_answers import pupil_answer


class Pupil(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "pupil"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, *args: Any, **options: Any) -> ChatResult:
        raise NotImplementedError("a session host streams")

    async def _astream(self, messages: Any, *args: Any, **options: Any) -> AsyncIterator[ChatGenerationChunk]:
        said = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
        for piece in re.findall(r"\s*\S+\s*", await pupil_answer(said)):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
