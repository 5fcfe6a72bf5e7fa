"""Agents of Microsoft's agent-framework: as working agents, and as the side that talks and is told (`Talk`,
or `Background` among the context providers of an agent).

Nothing here loads the framework before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meantime.integrations.agent_framework.agent_framework_talk import Talk
    from meantime.integrations.agent_framework.background_provider import Background

__all__ = ["Background", "Talk"]


def __getattr__(name: str) -> Any:
    if name == "Talk":
        from meantime.integrations.agent_framework.agent_framework_talk import Talk

        return Talk
    if name == "Background":
        from meantime.integrations.agent_framework.background_provider import Background

        return Background
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
