"""An ended agent goes on in its session; what is said to a running one is steered in, or is its next run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import until_async

from meantime import InvalidInput, NotResumable, Refused
from meantime.kernel.model import Failed
from meantime.ports.session import Turned
from meantime.testing.scripted_host import ScriptedHost
from outcomes import completed, failed

from .stage import NAME, STEER, echo_host, events, never, start, working

pytestmark = pytest.mark.anyio


class Held:
    """A turn that waits until the test lets it go."""

    def __init__(self) -> None:
        self.began, self.gate = asyncio.Event(), asyncio.Event()
        self.prompts: list[str] = []

    async def __call__(self, prompt, hearer) -> str:
        self.prompts.append(prompt.text)
        self.began.set()
        await self.gate.wait()
        return f"heard: {prompt.text}"


@pytest.mark.behaviour("L16")
async def test_a_resume_goes_on_with_all_that_was_said(tmp_path: Path):
    host = echo_host()
    async with working(tmp_path, host) as mt:
        handle = await start(mt, "one")
        await handle.wait()
        again = await mt.thread("conv-1").resume(handle, "two")
        assert completed(await again.wait()).result == "heard: two"
        assert again.id == handle.id
        said = [line.text for line in host.sessions[f"s-{handle.id}"]]
        assert said == ["one", "heard: one", "two", "heard: two"]


@pytest.mark.behaviour("L16", "R12")
@pytest.mark.parametrize("ending", ["failed", "cancelled", "timed_out", "lost"])
async def test_any_ending_can_be_resumed(tmp_path: Path, ending: str):
    began = asyncio.Event()

    async def turn(prompt, hearer):
        if prompt.text == "more":
            return "went on"
        began.set()
        if ending == "failed":
            return Turned(error=Failed("it broke"))
        if ending == "lost":
            return Turned(lost="its process vanished")
        return await never()

    async with working(tmp_path, turn, last_turn=0) as mt:
        handle = await start(mt, timeout=0.2 if ending == "timed_out" else -1)
        await began.wait()
        if ending == "cancelled":
            await handle.cancel()
        assert (await handle.wait()).status == ending
        again = await mt.thread("conv-1").resume(handle, "more")
        assert completed(await again.wait()).result == "went on"


@pytest.mark.behaviour("L18")
async def test_a_second_resume_is_refused_while_the_first_goes_on(tmp_path: Path):
    held = Held()
    held.gate.set()
    async with working(tmp_path, held) as mt:
        thread = mt.thread("conv-1")
        handle = await start(mt)
        await handle.wait()
        held.gate.clear()
        tries = await asyncio.gather(
            *(thread.resume(handle, f"try {n}") for n in range(5)), return_exceptions=True
        )
        refused = [one for one in tries if isinstance(one, NotResumable)]
        assert len(refused) == 4
        assert {(str(one), one.code) for one in refused} == {
            ("This task is currently being resumed. Wait until that run has ended.", "being_resumed")
        }
        held.gate.set()
        assert (await handle.wait()).resume_count == 1


@pytest.mark.behaviour("L19")
async def test_a_session_that_is_gone_is_an_error_with_a_suggestion(tmp_path: Path):
    host = echo_host()
    async with working(tmp_path, host) as mt:
        handle = await start(mt)
        ended = await handle.wait()
        host.sessions.clear()
        with pytest.raises(NotResumable) as caught:
            await mt.thread("conv-1").resume(handle, "more")
        assert (caught.value.code, caught.value.hint) == ("session_gone", "Start a new task instead.")
        assert await handle.get() == ended


@pytest.mark.behaviour("L16")
async def test_a_resume_needs_words(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        handle = await start(mt)
        await handle.wait()
        with pytest.raises(InvalidInput, match="must say something"):
            await mt.thread("conv-1").resume(handle, "  ")


@pytest.mark.behaviour("F12")
async def test_fork_and_resume_exclude_each_other(tmp_path: Path):
    from meantime import Agent

    async with working(tmp_path, echo_host()) as mt:
        handle = await start(mt)
        before = await handle.wait()
        with pytest.raises(InvalidInput, match="exclude each other"):
            await mt.thread("conv-1").start(Agent(NAME, "more"), fork=True, resume=handle.id)
        assert [await handle.get()] == [before] == list(await mt.list())


@pytest.mark.behaviour("L20", "L21")
async def test_runs_are_counted_kept_and_told_one_by_one(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        thread = mt.thread("conv-1")
        handle = await start(mt, "one")
        await handle.wait()
        for prompt in ("two", "three"):
            await (await thread.resume(handle, prompt)).wait()
        assert (await handle.get()).resume_count == 2
        assert [completed(task).result for task in await thread.runs(handle)] == [
            "heard: one", "heard: two", "heard: three",
        ]  # fmt: skip
        async with thread.turn() as turn:
            assert [notice.id for notice in turn.notices] == [f"{handle.id}.{run}" for run in (1, 2, 3)]
            await turn.ack()


@pytest.mark.behaviour("L17")
async def test_what_is_said_to_a_running_agent_is_steered_where_it_can_be(tmp_path: Path):
    held = Held()
    host = ScriptedHost(held, STEER)
    async with working(tmp_path, host) as mt:
        handle = await start(mt)
        await held.began.wait()
        assert await handle.send("look left") == "steered"
        assert host.steered == ["look left"]
        held.gate.set()
        assert (await handle.wait()).resume_count == 0
        assert [line.text for line in await mt.lines(handle.id, roles=["user"])] == ["do it", "look left"]


@pytest.mark.behaviour("L17", "F13")
async def test_a_blank_text_is_not_sent_to_an_agent(tmp_path: Path):
    held = Held()
    async with working(tmp_path, held) as mt:
        handle = await start(mt)
        await held.began.wait()
        with pytest.raises(InvalidInput, match="nothing to say"):
            await handle.send(" \n")
        assert (await handle.get()).follow_up == ""
        held.gate.set()
        await handle.wait()


@pytest.mark.behaviour("L17", "R12")
async def test_one_follow_up_is_queued_and_runs_where_an_agent_cannot_be_steered(tmp_path: Path):
    held = Held()
    async with working(tmp_path, held) as mt:
        handle = await start(mt)
        await held.began.wait()
        assert await handle.send("and then this") == "queued"
        assert (await handle.get()).follow_up == "and then this"
        with pytest.raises(Refused, match="has a follow-up already") as caught:
            await handle.send("and that")
        assert caught.value.code == "follow_up_queued"
        held.gate.set()

        async def second() -> bool:
            task = await handle.get()
            return task.ended and task.resume_count == 1

        await until_async(second, "the follow-up has ended")
        assert held.prompts == ["do it", "and then this"]
        assert completed(await handle.get()).result == "heard: and then this"
        assert [kind for kind in await events(mt, handle.id) if kind != "progress"] == [
            "submitted", "follow_up", "ended", "resumed", "started", "ended",
        ]  # fmt: skip
        async with mt.thread("conv-1").turn() as turn:
            assert [notice.id for notice in turn.notices] == [f"{handle.id}.1", f"{handle.id}.2"]


@pytest.mark.behaviour("L17")
async def test_a_cancelled_task_drops_its_follow_up_and_takes_no_new_one(tmp_path: Path):
    held = Held()
    stopping, gone = asyncio.Event(), asyncio.Event()

    async def turn(prompt, hearer):
        try:
            return await held(prompt, hearer)
        except asyncio.CancelledError:
            stopping.set()
            await gone.wait()
            raise

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        await held.began.wait()
        await handle.send("and then this")
        await handle.cancel()
        await stopping.wait()
        with pytest.raises(Refused, match="being cancelled"):
            await handle.send("or this")
        gone.set()
        task = await handle.wait()
        assert (task.status, task.follow_up, task.resume_count) == ("cancelled", "", 0)
        assert held.prompts == ["do it"]


@pytest.mark.behaviour("L17", "R12")
async def test_a_follow_up_survives_a_close_and_runs_with_the_next_owner(tmp_path: Path):
    """Who closes the process does not cancel the task."""
    held = Held()
    host = ScriptedHost(held)
    async with working(tmp_path, host) as mt:
        handle = await start(mt)
        await held.began.wait()
        await handle.send("and then this")
    held.gate.set()
    async with working(tmp_path, host) as mt:

        async def second() -> bool:
            task = await mt.get(handle.id)
            return task.ended and task.resume_count == 1

        await until_async(second, "the follow-up has ended")
        runs = await mt.thread("conv-1").runs(handle.id)
        assert [(task.status, task.run.number) for task in runs] == [("cancelled", 1), ("completed", 2)]
        assert held.prompts == ["do it", "and then this"]


@pytest.mark.behaviour("L17")
async def test_a_follow_up_whose_session_is_gone_is_that_runs_error_and_is_told(tmp_path: Path):
    held = Held()
    host = ScriptedHost(held)
    async with working(tmp_path, host) as mt:
        handle = await start(mt)
        await held.began.wait()
        await handle.send("and then this")
        session = host.sessions

        async def forgetful(session: str, settings: object) -> bool:
            return False

        host.exists = forgetful
        held.gate.set()

        async def second() -> bool:
            task = await handle.get()
            return task.ended and task.resume_count == 1

        await until_async(second, "the follow-up has ended")
        assert failed(await handle.get()).code == "session_gone"
        assert session
        async with mt.thread("conv-1").turn() as turn:
            assert len(turn.notices) == 2
