"""Eight bugs, planted from outside, never in the source. Each breaks a promise that the judge must see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from meantime.kernel.notice_sources import notice_id
from meantime.runtime.runtime import Runtime
from meantime.thread import Turn

from .judge import Verdict
from .lagging import LaggingStore
from .machine import Life
from .schedules import Scenario
from .world import World, line

Cut = Callable[[], None]  # called between two steps of a delivery: the process may be cut off there


class CutOff(Exception):
    """The process ended here."""


# -- deliveries of a host, right and wrong, with the places where a crash can fall


async def in_one_transaction(world: World, thread: str, cut: Cut) -> None:
    home = world.thread(thread)
    async with home.turn() as turn:
        transcript = home.transcript
        for notice in turn.notices:
            transcript.add(notice.id, line(notice.id, notice.task.status))
        cut()
        await turn.ack(transcript=transcript)
        cut()


async def told_before_sending(world: World, thread: str, cut: Cut) -> None:
    home = world.thread(thread)
    async with home.turn() as turn:
        await turn.ack()
        cut()
        for notice in turn.notices:
            transcript = home.transcript
            transcript.add(notice.id, line(notice.id, notice.task.status))
            await transcript.save()
        cut()


async def sent_before_marked(world: World, thread: str, cut: Cut) -> None:
    """As a webhook has it: nothing in the conversation carries the id, so nobody can look for it."""
    home = world.thread(thread)
    async with home.turn() as turn:
        for notice in turn.notices:
            transcript = home.transcript
            transcript.add(None, line(notice.id, notice.task.status))
            await transcript.save()
        cut()
        await turn.ack()
        cut()


def cut_at(place: int) -> Cut:
    passed = iter(range(place + 1))

    def cut() -> None:
        if next(passed, None) == place:
            raise CutOff

    return cut


def delivered_with_cuts(deliver: Callable[[World, str, Cut], Any]) -> Iterator[Verdict]:
    """The same small story, cut off at every place of the delivery, then delivered again by the next life."""
    for place in range(3):
        life = Life("fast")
        try:
            yield life.run(_deliver(life, deliver, cut_at(place)))
            life.crash()
            life.run(deliver(life.world, "a", lambda: None))
            yield life.run(life.world.drain(life.settle))
        finally:
            life.end()


async def _deliver(life: Life, deliver: Callable[[World, str, Cut], Any], cut: Cut) -> Verdict:
    ids = [await life.world.start("a") for _ in range(3)]
    for id in ids:
        life.world.finish(id)
        await life.settle()
        await life.world.observe()
    try:
        await deliver(life.world, "a", cut)
    except CutOff:
        life.world.store._writer._pending.clear()  # the turn's own farewell is not written any more
    return Verdict()


# -- bugs of the library


def ack_on_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    async def leave(self: Turn, kind: Any, problem: Any, trace: Any) -> None:
        if self.notices:
            await self.ack()
        await self._tasks.close_turn(self.id, failed=problem is not None)

    monkeypatch.setattr(Turn, "__aexit__", leave)


def a_persons_read_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Runtime.output

    async def output(self: Runtime, ref: str, thread: str | None, **options: Any) -> Any:
        found = await read(self, ref, thread, **options)
        task = found.task
        if thread is None and task.ended and await self.store.read("person", task.id, task.run.number, 0.0):
            await self.store.settle(task.thread, "person", [notice_id(task.id, task.run.number)], (), 0.0)
        return found

    monkeypatch.setattr(Runtime, "output", output)


def edge_only_wake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits hears an ending at the moment it happens, or never: no level, no reconciler."""

    async def wait_wake(self: Runtime, thread: str, seen: int) -> int:
        edge: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def heard(change: Any, committed: Any) -> None:
            if change.ends and change.task.thread == thread and not edge.done():
                edge.set_result(None)

        self.record.listeners.append(heard)
        try:
            await edge
        finally:
            self.record.listeners.remove(heard)
        return seen + 1

    monkeypatch.setattr(Runtime, "wait_wake", wait_wake)


def no_compare_and_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LaggingStore, "_refuse", lambda self, change: None)


def clock_order(scenario: Scenario) -> None:
    lease = scenario.store.lease

    async def by_the_clock(*args: Any) -> Any:
        return sorted(await lease(*args), key=lambda notice: notice.task.run.ended_at or 0.0)

    scenario.store.lease = by_the_clock  # type: ignore[method-assign]


def retention_evicts_the_untold(scenario: Scenario) -> None:
    async def forget(retention: Any, now: float) -> int:
        return await scenario.store.purge(list(scenario.world.over_tasks()))

    scenario.store.forget = forget  # type: ignore[method-assign]
    scenario.world.settings = replace(scenario.world.settings, upkeep_every=0.0, reconcile_every=0.1)
