"""Four subagents in the background of one OpenCode session: under OpenCode's own background tasks, and under
Meantime. What the parent's model was told of them, counted in what it was asked; also when the server is
killed, or a child is stopped, in the middle."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from meantime import Agent, Handle, Meantime, OpenCodeHost
from meantime.ports.session import AgentSettings

from .measure import UNLIMITED, folder, p50, table
from .scripted import Asked, Model, Running, needs_opencode, script

CHILDREN = 4
THINKS = 2.0  # seconds, of each child's model
PATIENCE = 60.0  # seconds that a notice is waited for after the last child ended
NATIVE = {"OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS": "true"}
NOTICES = re.compile(r'<task-notification id="([^"]+)"|<task id="([^"]+)"')


class Told(NamedTuple):
    notices: int
    doubled: int
    delay: float | None  # seconds, the median


class Stage:
    """One parent on a server of its own, and what its model was asked."""

    def __init__(self, path: Path, model: Model, environ: dict[str, str]) -> None:
        path.mkdir()
        self.path = path
        self.model = model
        self.server = Running(path, model, environ)
        self.ended: dict[int, float] = {}  # when a child's model said its last word
        self.heard: dict[str, list[float]] = {}  # when the parent's model was asked with a notice first
        model.before_answer = self._asked

    def _asked(self, asked: Asked) -> None:
        said = asked.answer.get("text", "")
        if said.startswith("child-"):
            self.ended[int(said[6])] = time.monotonic() + THINKS
        users = [part.text for part in asked.said if part.role == "user"]
        if not any("the-parent" in text for text in users):
            return
        found = [id for text in users for id in _ids(text)]
        for id in set(found):
            self.heard.setdefault(id, []).append(time.monotonic())
        for id in set(found):
            if found.count(id) > 1:
                self.heard[f"{id} again"] = []

    def child(self, number: int) -> str:
        """In a file: the script of its parent has it in a script."""
        path = self.path / f"child-{number}.json"
        path.write_text(json.dumps([{"text": f"child-{number} is done", "delay": THINKS}]))
        return f"%%{path}%%"

    async def wait(self, count: int) -> None:
        """Until so many were told, or it is clear that they never will be."""
        until = time.monotonic() + THINKS + PATIENCE
        while len(self.heard) < count and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    def told(self) -> Told:
        again = [id for id in self.heard if id.endswith(" again")]
        first = sorted(times[0] for times in self.heard.values() if times)
        last = sorted(self.ended.values())
        late = [heard - ended for heard, ended in zip(first, last, strict=False)]
        return Told(len(self.heard) - len(again), len(again), p50(late) if late else None)


def _ids(text: str) -> list[str]:
    return [ours or theirs for ours, theirs in NOTICES.findall(text)]


async def _native(stage: Stage, meddle: Callable[[Stage, list[str]], Awaitable[None]]) -> None:
    """The parent's own model launches them, with its tool `task`."""
    calls = [
        {
            "tool": "task",
            "arguments": {
                "description": f"child {number}", "prompt": stage.child(number),
                "subagent_type": "general", "background": True,
            },
        }
        for number in range(CHILDREN)
    ]  # fmt: skip
    server = stage.server
    parent = await asyncio.to_thread(server.session)
    server.prompt(parent, "the-parent " + script({"tools": calls}, {"text": "They run."}))
    while len(stage.model.turns) < CHILDREN + 2:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    children = [child["id"] for child in server.http.get(f"/session/{parent}/children").json()]
    await meddle(stage, children)
    await stage.wait(CHILDREN)


async def _ours(stage: Stage, meddle: Callable[[Stage, list[str]], Awaitable[None]]) -> None:
    server = stage.server
    parent = await asyncio.to_thread(server.session, "the-parent " + script({"text": "They run."}))
    settings = AgentSettings(runner="opencode", url=server.url, cwd=str(server.project))
    agents = {"worker": settings}
    async with Meantime.open(stage.path / "work.db", settings=UNLIMITED, agents=agents) as mt:
        mt.attach(parent, OpenCodeHost(server.url, parent))
        thread = mt.thread(parent)
        handles = [await thread.start(Agent("worker", stage.child(n))) for n in range(CHILDREN)]
        while len(stage.model.turns) < CHILDREN + 1:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await meddle(stage, [await _session(handle) for handle in handles])
        await stage.wait(CHILDREN)


async def _session(handle: Handle) -> str:
    while not (session := (await handle.get()).session):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return session


async def _nothing(stage: Stage, children: list[str]) -> None:
    pass


async def _crash(stage: Stage, children: list[str]) -> None:
    await asyncio.to_thread(stage.server.kill)
    await asyncio.to_thread(stage.server.start)


async def _stop(stage: Stage, children: list[str]) -> None:
    await asyncio.to_thread(stage.server.http.post, f"/session/{children[0]}/abort")


WAYS = {"OpenCode's own": (_native, NATIVE), "Meantime": (_ours, {})}
TIMES: dict[str, Any] = {
    "all goes well": _nothing,
    "the server is killed": _crash,
    "one child is stopped": _stop,
}


async def run() -> None:
    if not needs_opencode():
        return
    rows: list[list[str]] = []
    with folder() as path:
        for when, meddle in TIMES.items():
            for who, (launch, environ) in WAYS.items():
                model = Model()
                stage = await asyncio.to_thread(Stage, path / f"{len(rows)}", model, environ)
                try:
                    await launch(stage, meddle)
                finally:
                    stage.server.kill()
                    model.close()
                told = stage.told()
                late = "" if told.delay is None or meddle is not _nothing else f"{told.delay * 1e3:.0f} ms"
                rows.append([when, who, f"{told.notices} of {CHILDREN}", f"{told.doubled}", late])
    head = ["", "background tasks", "the parent was told of", "doubled", "after the child's last word, p50"]
    table(f"{CHILDREN} subagents in the background of one OpenCode session", head, rows)
