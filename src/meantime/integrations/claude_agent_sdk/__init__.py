"""Claude agents of the Claude Agent SDK: as working agents, and as the side that talks and is told (`Talk`,
or `Background` in options of your own).

Nothing here loads the SDK before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meantime.integrations.claude_agent_sdk.background_hooks import Background
    from meantime.integrations.claude_agent_sdk.claude_talk import Talk

__all__ = ["Background", "Talk"]


def __getattr__(name: str) -> Any:
    if name == "Talk":
        from meantime.integrations.claude_agent_sdk.claude_talk import Talk

        return Talk
    if name == "Background":
        from meantime.integrations.claude_agent_sdk.background_hooks import Background

        return Background
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
