"""An agent of each framework that has an adapter, for a program that is killed: its model, and where its
conversation is kept. Each is imported in the environment that has the framework."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ROOT / ".frameworks"


class Site(NamedTuple):
    """site: with `opened` and `talk`. model: has its steps and its requests, by these names. keeping: the
    methods of a talk's parts that write the conversation down, each as an object and a name."""

    site: Any
    model: Any
    steps: str
    requests: str
    keeping: Callable[[Any], Iterator[tuple[Any, str]]]


class Adapter(NamedTuple):
    """deepest: how often a moment may have passed before the kill; a run of Claude Code takes seconds."""

    name: str
    module: str
    python: Path
    deepest: int = 5


ADAPTERS = {
    adapter.name: adapter
    for adapter in (
        Adapter("pydantic_ai", "tests.integrations.pydantic_ai.pydantic_site", Path(sys.executable)),
        *(
            Adapter(name, f"tests.frameworks.{module}", FRAMEWORKS / "bin" / "python", deepest)
            for name, module, deepest in (
                ("langchain", "langchain_agents.langchain_site", 5),
                ("openai_agents", "openai_agents.openai_site", 5),
                ("claude_agent_sdk", "claude_sdk.claude_site", 2),
                ("agent_framework", "microsoft.scripted_client", 5),
                ("google_adk", "google_adk.adk_site", 5),
            )
        ),
    )
}


@asynccontextmanager
async def opened(adapter: Adapter, folder: Path) -> AsyncIterator[Site]:
    module: Any = import_module(adapter.module)
    if adapter.name == "pydantic_ai":
        made = module.PydanticSite(folder)
        yield Site(made, made, "steps", "requests", lambda talk: iter([(talk, "_keep")]))
    elif adapter.name == "openai_agents":
        made = module.OpenAISite(folder)
        yield Site(made, made._model, "steps", "requests", lambda talk: iter([(talk.session, "add_items")]))
    elif adapter.name == "agent_framework":
        made = module.AgentFrameworkSite(folder)
        yield Site(made, made.client, "steps", "requests", lambda talk: iter([(talk._store, "set")]))
    elif adapter.name == "google_adk":
        made = module.AdkSite(folder)
        yield Site(
            made, made.model, "_steps", "_requests", lambda talk: iter([(talk._services, "append_event")])
        )
    elif adapter.name == "langchain":
        async with module.langchain_site(folder) as made:
            yield Site(
                made,
                made.model,
                "_steps",
                "_requests",
                lambda talk: iter([(made._saver, "aput"), (made._saver, "aput_writes")]),
            )
    else:
        with _claude(module, folder) as made:
            yield made


@contextmanager
def _claude(module: Any, folder: Path) -> Iterator[Site]:
    """Claude Code keeps the conversation itself, in a process of its own."""
    api = import_module("tests.frameworks.claude_sdk.scripted_api").ScriptedAPI()
    try:
        yield Site(module.ClaudeSite(folder, api), api, "steps", "requests", lambda talk: iter(()))
    finally:
        api.close()
