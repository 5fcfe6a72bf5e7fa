"""Telling at hooks, beside the daemon's door: moments that a process could not be made to hit."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, stays_async, until_async

from meantime import Call, Meantime, Thread
from meantime.surfaces.hooks import hook_delivery
from meantime.surfaces.hooks.hook_delivery import Boundary, HookDelivery
from meantime.surfaces.hooks.hook_events import CODEX, POST_TOOL, STOP, WAIT
from meantime.surfaces.hooks.idle_wait import QUEUED, IdleWaits
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def mt(tmp_path: Path) -> AsyncIterator[Meantime]:
    async with Meantime.open(tmp_path / "work.db") as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")


@pytest.fixture
def hooks(mt: Meantime, tmp_path: Path) -> HookDelivery:
    made = HookDelivery(mt._runtime, tmp_path, lambda thread: None)
    runtime_of(mt).record.notice_listeners.append(made.quiet.remove)
    return made


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a busy machine could outlast."""
    monkeypatch.setattr(hook_delivery, "SEARCH", LIMIT)
    monkeypatch.setattr(hook_delivery, "GRACE", 10 * LIMIT)


def boundary(path: Path, moment: str = POST_TOOL) -> Boundary:
    path.touch()
    return Boundary("conv-1", moment, "s", str(path))


async def test_at_the_end_of_a_turn_those_that_end_together_are_told_together(
    thread: Thread, hooks: HookDelivery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hook_delivery, "SETTLE", 10 * LIMIT)
    gate = asyncio.Event()
    first, second = await thread.start(Call(asyncio.sleep, 0)), await thread.start(Call(gate.wait))
    await first.wait()
    told = asyncio.create_task(hooks.tell(boundary(tmp_path / "t.jsonl", STOP)))
    await stays_async(lambda: not told.done(), "the second has not ended", 0.05)
    gate.set()
    text = (await told).text
    assert f"{first.id}.1" in text
    assert f"{second.id}.1" in text


async def test_one_that_ended_a_while_ago_is_told_at_once(
    thread: Thread, hooks: HookDelivery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hook_delivery, "SETTLE", 0.0)
    gate = asyncio.Event()
    first, second = await thread.start(Call(asyncio.sleep, 0)), await thread.start(Call(gate.wait))
    await first.wait()
    text = (await hooks.tell(boundary(tmp_path / "t.jsonl", STOP))).text
    assert f"{first.id}.1" in text
    assert f"{second.id}.1" not in text
    gate.set()
    await second.wait()


@pytest.mark.breadth
async def test_a_hook_that_was_cancelled_has_shown_nothing(
    thread: Thread, hooks: HookDelivery, tmp_path: Path
):
    """Its host went away, or did not wait."""
    handle = await thread.start(Call(asyncio.sleep, 0))
    await handle.wait()
    at = boundary(tmp_path / "t.jsonl")
    for rounds in range(12):
        telling = asyncio.create_task(hooks.tell(at))
        for _ in range(rounds):
            await asyncio.sleep(0)
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        await until_async(lambda: not hooks._beside, "nothing goes on beside")
    assert f"{handle.id}.1" in (await hooks.tell(at)).text


async def test_a_notice_that_comes_while_the_ledger_is_looked_at_is_not_hidden(
    mt: Meantime, thread: Thread, hooks: HookDelivery, tmp_path: Path
):
    """Its ending is committed after the count, and before the file would be made."""
    runtime = mt._runtime

    async def counted() -> object:
        found = await runtime.thread("conv-1")
        handle = await thread.start(Call(asyncio.sleep, 0))
        await handle.wait()
        return found

    await hooks.quiet.make("conv-1", counted)  # type: ignore[arg-type]
    assert not (tmp_path / "quiet" / "conv-1").exists()
    assert (await hooks.tell(boundary(tmp_path / "t.jsonl"))).text


async def test_a_file_that_is_made_while_an_ending_is_committed_goes_with_it(
    mt: Meantime, thread: Thread, hooks: HookDelivery, tmp_path: Path
):
    handle = await thread.start(Call(asyncio.sleep, 0))
    file = tmp_path / "quiet" / "conv-1"
    made = False

    def between(name: str) -> None:
        """After the first word of it, and before the second."""
        nonlocal made
        if not made:
            made = True
            file.parent.mkdir(exist_ok=True)
            file.touch()
            hooks.quiet._there[name] = None

    runtime_of(mt).record.notice_listeners.append(between)
    await handle.wait()
    assert made
    assert not file.exists()


async def test_a_transcript_that_cannot_be_read_in_time_tells_nobody_and_holds_nothing(
    thread: Thread, hooks: HookDelivery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    handle = await thread.start(Call(asyncio.sleep, 0))
    await handle.wait()
    is_read = threading.Event()
    with monkeypatch.context() as slow:
        slow.setattr(hook_delivery, "SEARCH", 0.01)
        slow.setattr(hook_delivery.transcript_search, "found", lambda *asked: is_read.wait(LIMIT))
        with pytest.raises(hook_delivery.Refused):
            await hooks.tell(boundary(tmp_path / "t.jsonl"))
        is_read.set()
    assert f"{handle.id}.1" in (await hooks.tell(boundary(tmp_path / "t.jsonl"))).text


async def test_a_wait_leaves_nothing_leased_that_came_while_it_looked(
    mt: Meantime, thread: Thread, hooks: HookDelivery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The host writes its transcript between two looks of one round."""
    await (await thread.start(Call(asyncio.sleep, 0))).wait()
    at = boundary(tmp_path / "t.jsonl")
    text = (await hooks.tell(at)).text
    real = hooks.missing

    async def written_first(*given: Any) -> bool:
        (tmp_path / "t.jsonl").write_text(json.dumps({"type": "user", "text": text}) + "\n")
        return await real(*given)

    monkeypatch.setattr(hooks, "missing", written_first)
    told = await asyncio.wait_for(IdleWaits(mt._runtime).wait(hooks, at), LIMIT)
    assert told.over
    assert (await mt.notices("leased")).total == 0


async def test_a_wait_tells_those_that_end_together_together(
    mt: Meantime, thread: Thread, hooks: HookDelivery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(hook_delivery, "SETTLE", 10 * LIMIT)
    gates = [asyncio.Event() for _ in range(5)]
    handles = [await thread.start(Call(gate.wait)) for gate in gates]
    waiting = asyncio.create_task(IdleWaits(mt._runtime).wait(hooks, boundary(tmp_path / "t.jsonl", WAIT)))
    for gate, handle in zip(gates, handles, strict=True):
        assert not waiting.done()
        gate.set()
        await handle.wait()
    text = (await asyncio.wait_for(waiting, LIMIT)).text
    assert all(f"{handle.id}.1" in text for handle in handles)


async def test_a_wait_for_codex_gives_a_prompt_and_leases_nothing(
    mt: Meantime, thread: Thread, hooks: HookDelivery, tmp_path: Path
):
    """The hook of that prompt tells it: a prompt that never arrives takes no notice with it."""
    await (await thread.start(Call(asyncio.sleep, 0))).wait()
    at = boundary(tmp_path / "t.jsonl", WAIT)._replace(host=CODEX)
    told = await asyncio.wait_for(IdleWaits(mt._runtime).wait(hooks, at), LIMIT)
    assert (told.text, told.turn) == (QUEUED, "")
    assert (await mt.notices("unread")).total == 1
    assert (await mt.notices("leased")).total == 0
