"""A model that does what the prompts of the session host suite ask for, and streams what it says."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai.types import Content, Part
from pupil_answers import pupil_answer

from .adk_site import asked


class Pupil(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = await pupil_answer(asked(llm_request).prompts)
        for piece in re.findall(r"\s*\S+\s*", said):
            yield LlmResponse(content=Content(role="model", parts=[Part(text=piece)]), partial=True)
        yield LlmResponse(content=Content(role="model", parts=[Part(text=said)]), partial=False)
