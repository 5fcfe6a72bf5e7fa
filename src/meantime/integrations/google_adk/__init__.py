"""Agents of Google's Agent Development Kit: as working agents, and as the side that talks and is told.

`App(plugins=[Background(thread)])` gives an app background work; `Talk` takes an agent's turns and wakes it.
Nothing here loads the kit before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from meantime.integrations.lazy_names import lazy_names

if TYPE_CHECKING:
    from meantime.integrations.google_adk.adk_plugin import Background
    from meantime.integrations.google_adk.adk_talk import Talk

__all__ = ["Background", "Talk"]
__getattr__ = lazy_names(
    __name__, {"Background": "adk_plugin", "Talk": "adk_talk"}, "Google's ADK", "google-adk"
)
