"""Agents of LangChain, LangGraph and deepagents: as working agents, and as the side that talks and is told.

`create_agent(model, middleware=[Background(thread)])` gives an agent background work; `Talk` takes its turns
and wakes it. Nothing here loads LangChain before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from meantime.integrations.lazy_names import lazy_names

if TYPE_CHECKING:
    from meantime.integrations.langchain.background_middleware import Background, TalkBackground
    from meantime.integrations.langchain.langchain_talk import Talk

__all__ = ["Background", "Talk", "TalkBackground"]
__getattr__ = lazy_names(
    __name__,
    {
        "Background": "background_middleware",
        "Talk": "langchain_talk",
        "TalkBackground": "background_middleware",
    },
    "LangChain",
    "langchain",
)
