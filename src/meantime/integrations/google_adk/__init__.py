"""Agents of Google's Agent Development Kit: as working agents, and as the side that talks and is told.

`App(plugins=[Background(thread)])` gives an app background work; `Talk` takes an agent's turns and wakes it.
Nothing here loads the kit before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meantime.integrations.google_adk.adk_plugin import Background
    from meantime.integrations.google_adk.adk_talk import Talk

__all__ = ["Background", "Talk"]


def __getattr__(name: str) -> Any:
    if name == "Background":
        from meantime.integrations.google_adk.adk_plugin import Background

        return Background
    if name == "Talk":
        from meantime.integrations.google_adk.adk_talk import Talk

        return Talk
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
