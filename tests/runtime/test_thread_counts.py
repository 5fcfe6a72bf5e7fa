"""The counts of a thread: a task is active, untold or both, and never neither before it was told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from meantime import Call, Meantime
from meantime.ports.tasks import ThreadCount
from meantime.runtime.runtime import Runtime
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


async def of_one(runtime: Runtime) -> ThreadCount:
    return await runtime.thread("a")


async def of_all(runtime: Runtime) -> ThreadCount:
    (found,) = await runtime.threads(10)
    return found


@pytest.mark.parametrize("look", [of_one, of_all])
async def test_a_task_that_ends_during_the_look_is_counted(look: Any, monkeypatch: pytest.MonkeyPatch):
    async with Meantime.open(":memory:") as mt:
        runtime, go = runtime_of(mt), asyncio.Event()
        handle = await mt.thread("a").start(Call(go.wait))
        owed = runtime.store.owed

        async def owed_before_the_ending(*given: Any) -> Sequence[Any]:
            found = await owed(*given)
            go.set()
            await handle.wait()
            return found

        monkeypatch.setattr(runtime.store, "owed", owed_before_the_ending)
        count = await look(runtime)
        assert count.active + count.unread == 1
        monkeypatch.undo()
        assert ((found := await look(runtime)).active, found.unread) == (0, 1)
