"""Objects for the family `verbs`: what a user can hold, open, closed, ended, or of another Meantime."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT

import meantime
from meantime import Agent, Call, Meantime, Notice, Settings, Shell, Thread, Tool, Watch, blocking
from meantime.dialects import names
from meantime.ports.dialect import Offer
from meantime.ports.dialect import Tool as DialectTool

from .verb_values import Agreeable, Maker, kept, never, noop

KINDS = ("memory", "sqlite", "linked", "memory", "blocking")
CONSTRUCTED = (Agent, Call, Shell, Tool, Watch)
# Every class whose objects are held has a blocking twin.
HELD = (*(getattr(meantime, name) for name in vars(blocking)["__all__"] if name[0].isupper()), Notice)
QUICK = Settings(stop_grace=0.02, stop_deadline=0.05, reconcile_every=0.5)
FUNCTIONS = {"background": meantime.background, "dialect": meantime.dialect, "current": meantime.current}
PORTS = {"clock", "store", "runners"}  # code of the caller's own, which is called as it is
DIALECTS = names()
WORK = {
    "Agent": Agent("a", "b"),
    "Call": Call(noop),
    "Shell": Shell("true"),
    "Tool": Tool("a/b"),
    "Watch": Watch(port=1),
}


def every_tool() -> list[tuple[str, DialectTool]]:
    """The tools of each dialect, as it would offer them where everything can be started."""
    offer = Offer(agents=(), tools=("noop",))
    return [(name, tool) for name in DIALECTS for tool in meantime.dialect(name).tools(offer)]


def checked_only(command: Any, **options: Any) -> Call[Any]:
    """In place of Shell: a command that was drawn is looked at, and not run."""
    Shell(command, **options)
    return Call(noop)


class Round:
    """One Meantime and what hangs on it. `blocks` gives the same objects as blocking ones."""

    def __init__(self, mt: Any) -> None:
        self.mt = mt
        self.objects: dict[str, list[tuple[str, Any]]] = {}
        self.ids: list[str] = []
        self.toolsets: dict[str, Any] = {}

    def add(self, label: str, *objects: Any) -> None:
        for one in objects:
            self.objects.setdefault(type(one).__name__, []).append((label, one))

    def offer(self, label: str, thread: Any, turn: Any) -> None:
        for name in DIALECTS:
            made = thread.toolset(name, tools={"noop": noop}, commands=checked_only, turn=turn)
            self.toolsets[name] = made
            self.add(label, made)

    def target(self, kind: str, name: str, pick: int) -> tuple[Any, str]:
        """The function or the class itself, or one of the objects."""
        if not name:
            return FUNCTIONS.get(kind) or getattr(meantime, kind), ""
        found = self.objects.get(kind)
        if kind in DIALECTS:
            return self.toolsets[kind], ""
        if found is None:
            return WORK[kind], ""
        label, one = found[pick % len(found)]
        return one, label

    def good(self, name: str) -> list[Maker]:
        if name in ("ref", "refs", "fork_of", "resume"):
            return [kept(one) for one in (*self.ids, *self._held("Handle"))]
        if name in ("notices", "notice", "read"):
            return [kept(f"{id}.1") for id in self.ids] + [kept(one) for one in self._held("Notice")]
        if name in ("id", "ids", "task_id", "agent_id", "task_ids"):
            return [kept(id) for id in self.ids] + [kept(self.ids)]
        if name == "line":
            said = [command.name for dialect in DIALECTS for command in meantime.dialect(dialect).commands()]
            return [
                kept(f"/{one}{rest}") for one in said for rest in ("", " zebra", " -1", " \ud800", " all")
            ]
        by_class = {"turn": "Turn", "transcript": "Transcript", "batch": "Batch", "thread": "Thread"}
        if name in by_class:
            return [kept(one) for one in self._held(by_class[name])] + [kept("a"), kept("b1")]
        return []

    def _held(self, kind: str) -> list[Any]:
        return [one for _, one in self.objects.get(kind, ())]

    def tame(self, title: str, named: dict[str, Any]) -> None:
        """What would reach beyond this round, or is code that the caller brings."""
        if title == "Meantime.connect":
            named["start"] = False  # never a daemon of the machine
        for name in PORTS & named.keys():
            if isinstance(named[name], Agreeable):
                del named[name]

    async def works(self) -> None:
        """A task still runs, and is told once."""
        await self.mt.set_limits(per_thread=10, total=1_000, on_limit="queue", depth=-1, per_kind={})
        thread = self.mt.thread("afterwards")
        assert await (await thread.start(Call(noop))).result(LIMIT) == "done"
        async with thread.turn() as turn:
            assert len(turn.notices) == 1, f"told {len(turn.notices)} times"
            await turn.ack()
        async with thread.turn() as turn:
            assert not turn.notices, "told again"

    def works_blocking(self) -> None:
        self.mt.set_limits(per_thread=10, total=1_000, on_limit="queue", depth=-1, per_kind={})
        thread = self.mt.thread("afterwards")
        assert thread.start(Call(noop)).result(LIMIT) == "done"
        with thread.turn() as turn:
            assert len(turn.notices) == 1, f"told {len(turn.notices)} times"
            turn.ack()
        with thread.turn() as turn:
            assert not turn.notices, "told again"


@contextlib.asynccontextmanager
async def opened(kind: str) -> AsyncIterator[Round]:
    async with contextlib.AsyncExitStack() as stack:
        mt = await stack.enter_async_context(_meantime(kind, stack))
        world = Round(mt)
        await _fill(world, mt.thread("a"), "open")
        gone = await Meantime.open(":memory:", settings=QUICK)
        elsewhere = Round(gone)
        await _fill(elsewhere, gone.thread("a"), "closed")
        await gone.close()
        for found in elsewhere.objects.values():
            for label, one in found:
                if not isinstance(one, Meantime):
                    world.add(label, one)
        yield world
        for turn in world._held("Turn"):
            with contextlib.suppress(meantime.MeantimeError):
                await turn.close()


def _meantime(kind: str, stack: contextlib.AsyncExitStack) -> Any:
    if kind == "memory":
        return Meantime.open(":memory:", settings=QUICK)
    folder = Path(tempfile.mkdtemp(dir=os.getcwd()))
    if kind == "sqlite":
        return Meantime.open(folder / "work.db", durability="fast", settings=QUICK)
    return _connected(folder)


@contextlib.asynccontextmanager
async def _connected(folder: Path) -> AsyncIterator[Meantime]:
    async with (
        Meantime.open(folder / "work.db", durability="fast", settings=QUICK, link=folder / "link"),
        Meantime.connect(folder / "link", patience=LIMIT) as mt,
    ):
        yield mt


async def _fill(world: Round, thread: Thread, label: str) -> None:
    ended = await thread.start(Call(noop), batch="b1")
    await ended.wait(LIMIT)
    running = await thread.start(Call(never))
    turn, over = thread.turn(), thread.turn()
    await turn.open()
    world.add("open turn", turn)
    world.add(label, *turn.notices)
    await over.open()
    await over.close()
    world.add("closed turn", over)
    world.add("turn that was not opened", thread.turn())
    world.add(label, world.mt, thread, ended, running, thread.batch("b1"), thread.transcript)
    world.add(label, thread.log(ended), thread.loop())
    world.offer(label, thread, turn)
    with contextlib.suppress(meantime.MeantimeError):  # only an owner serves
        world.add(label, world.mt.serve(port=0))
    world.ids += [ended.id, running.id]


@contextlib.contextmanager
def opened_blocking() -> Iterator[Round]:
    with blocking.Meantime.open(":memory:", settings=QUICK) as mt:
        world = Round(mt)
        thread = mt.thread("a")
        ended = thread.start(Call(noop), batch="b1")
        ended.wait(LIMIT)
        turn = thread.turn()
        turn.open()
        world.add("open", mt, thread, ended, thread.start(Call(never)), turn, thread.turn(), *turn.notices)
        world.add("open", thread.batch("b1"), thread.transcript, thread.log(ended), thread.loop())
        world.add("open", mt.serve(port=0))
        world.offer("open", thread, turn)
        world.ids.append(ended.id)
        yield world
