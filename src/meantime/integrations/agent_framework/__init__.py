"""Agents of Microsoft's agent-framework: as working agents, and as the side that talks and is told (`Talk`,
or `Background` among the context providers of an agent).

Nothing here loads the framework before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from meantime.integrations.lazy_names import lazy_names

if TYPE_CHECKING:
    from meantime.integrations.agent_framework.agent_framework_talk import Talk
    from meantime.integrations.agent_framework.background_provider import Background

__all__ = ["Background", "Talk"]
__getattr__ = lazy_names(
    __name__,
    {"Background": "background_provider", "Talk": "agent_framework_talk"},
    "agent-framework",
    "agent-framework",
)
