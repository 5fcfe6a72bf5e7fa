"""Agents of the OpenAI Agents SDK: as working agents, and as the side that talks and is told (`Talk`).

Nothing here loads the SDK before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meantime.integrations.openai_agents.openai_talk import Talk

__all__ = ["Talk"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from meantime.integrations.openai_agents.openai_talk import Talk

    return Talk
