"""Agents of the OpenAI Agents SDK: as working agents, and as the side that talks and is told (`Talk`).

Nothing here loads the SDK before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from meantime.integrations.lazy_names import lazy_names

if TYPE_CHECKING:
    from meantime.integrations.openai_agents.openai_talk import Talk

__all__ = ["Talk"]
__getattr__ = lazy_names(__name__, {"Talk": "openai_talk"}, "The OpenAI Agents SDK", "openai-agents")
