"""Agents of LangChain, LangGraph and deepagents: as working agents, and as the side that talks and is told.

`create_agent(model, middleware=[Background(thread)])` gives an agent background work; `Talk` takes its turns
and wakes it. Nothing here loads LangChain before its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meantime.integrations.langchain.background_middleware import Background, TalkBackground
    from meantime.integrations.langchain.langchain_talk import Talk

__all__ = ["Background", "Talk", "TalkBackground"]


def __getattr__(name: str) -> Any:
    if name in ("Background", "TalkBackground"):
        from meantime.integrations.langchain import background_middleware

        return getattr(background_middleware, name)
    if name == "Talk":
        from meantime.integrations.langchain.langchain_talk import Talk

        return Talk
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
