"""Claude agents of the Claude Agent SDK: as working agents, and as the side that talks and is told (`Talk`,
or `Background` in options of your own).

Nothing here loads the SDK before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from meantime.integrations.lazy_names import lazy_names

if TYPE_CHECKING:
    from meantime.integrations.claude_agent_sdk.background_hooks import Background
    from meantime.integrations.claude_agent_sdk.claude_talk import Talk

__all__ = ["Background", "Talk"]
__getattr__ = lazy_names(
    __name__,
    {"Background": "background_hooks", "Talk": "claude_talk"},
    "The Claude Agent SDK",
    "claude-agent-sdk",
)
