"""The site of the checks: a framework's agent whose model follows a script, and a look at its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from meantime.conversation.handle import Handle
from meantime.kernel.model import Task
from meantime.kernel.notices import Notice
from meantime.runners.background_function import background
from meantime.thread import Thread

from ..suite.patience import within


class ToolCall(NamedTuple):
    """A step of the script: the model calls a tool."""

    tool: str
    arguments: dict[str, Any] | str  # a text is what it wrote, JSON or not
    id: str = "call-1"


Step: TypeAlias = str | ToolCall | Exception | asyncio.Event


class ModelRequest(NamedTuple):
    """One request to the model, as the model reads it."""

    prompts: list[str]  # every message of the user, oldest first: notices are among them
    results: list[str]  # every answer of a tool
    tools: list[str]  # the names of those it is offered
    instructions: str  # the system prompt

    @property
    def notices(self) -> list[str]:
        return [text for text in self.prompts if text.startswith("<task-notification id=")]


async def next_step(steps: list[Any]) -> Any:
    """The next answer of a script, taken out of it."""
    step = steps.pop(0)
    while isinstance(step, asyncio.Event):
        await within(step.wait())
        step = steps.pop(0)
    return step


class Talking(Protocol):
    """A framework's Talk."""

    async def say(self, text: str = ..., /) -> Any: ...

    def woken(self) -> AsyncIterator[Any]: ...


class Ledger(Protocol):
    """A Meantime that is open."""

    def thread(self, id: str) -> Thread: ...

    async def list(self) -> Sequence[Task]: ...

    async def notices(self) -> Sequence[Notice]: ...


class TalkSite(Protocol):
    requests: list[ModelRequest]

    def opened(self, **options: Any) -> AbstractAsyncContextManager[Ledger]:
        """`Meantime.open(…, **options)` with the same file each time."""
        ...

    def script(self, *steps: Step) -> None:
        """The next answers of the model: a text, a call, or an error of its provider. It is asked, and holds
        its answer back, where an event comes first, until that is set: see `next_step`."""
        ...

    def talk(self, thread: Thread, *functions: Any, **options: Any) -> Talking:
        """A new Talk, as after a restart: its conversation is kept under the thread's name in a folder of
        the site's own."""
        ...


class Gates:
    """Work that ends when it is told to."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Event] = {}
        self._entered: set[str] = set()

        @background
        async def crawl(site: str) -> str:
            """Crawls a site."""
            self._entered.add(site)
            gate = self._open.get(site)
            if gate is not None:
                await gate.wait()
            return f"{site} has 3 pages"

        self.crawl = crawl

    def shut(self, site: str) -> None:
        self._open[site] = asyncio.Event()

    def open(self, site: str) -> None:
        self._open[site].set()

    def entered(self, site: str) -> bool:
        return site in self._entered


class TalkFixture:
    """A site, and work for it."""

    def __init__(self, site: TalkSite) -> None:
        self.site = site
        self.gates = Gates()

    async def ended(self, thread: Thread, site: str = "a.org") -> Handle[Any]:
        task = await thread.start(self.gates.crawl.work(site))
        await within(thread.wait(task))
        return task


async def first(said: AsyncIterator[Any]) -> Any:
    return await within(anext(said), "the agent is woken")


def ids_in(notices: Sequence[str]) -> list[str]:
    return [text.split('"')[1] for text in notices]
