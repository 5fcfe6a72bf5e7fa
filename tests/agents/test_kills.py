"""kill -9 of the owner at the moments that matter: nothing is told twice to an agent, nothing is lost."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Meantime, Task
from meantime.runners.agent import checkpoint
from outcomes import completed, lost, unfinished
from runtimes import runtime_of

from .owner import Host
from .stage import working

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
ROOT = Path(__file__).parents[2]
ID = "t_one"


async def killed_at(place: str, folder: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agents.owner", place, str(folder), cwd=ROOT
    )
    assert await asyncio.wait_for(process.wait(), LIMIT) == -signal.SIGKILL


async def ended(mt: Meantime, run: int = 1) -> Task:
    async def over() -> Task | None:
        task = await mt.get(ID)
        return task if task.ended and task.run.number == run else None

    return await until_async(over, f"run {run} has ended", lambda: mt.get(ID))


def prompted(host: Host) -> list[str]:
    """Every prompt that the agent ever got, by its key."""
    return [line.id.partition(".")[2] for line in host.sessions.get(f"s-{ID}", []) if line.id]


async def told(mt: Meantime) -> list[str]:
    async with mt.thread("conv-1").turn() as turn:
        found = [notice.id for notice in turn.notices]
        await turn.ack()
        return found


@pytest.mark.behaviour("L27", "P1")
async def test_what_was_accepted_and_never_begun_is_begun(tmp_path: Path):
    await killed_at("begin", tmp_path)
    host = Host()
    async with working(tmp_path, host) as mt:
        assert completed(await ended(mt)).result == "heard: go"
        assert prompted(host) == ["1.prompt"]
        assert await told(mt) == [f"{ID}.1"]


@pytest.mark.behaviour("L27", "P3")
async def test_what_was_in_a_turn_is_lost_with_its_words_and_can_be_resumed(tmp_path: Path):
    await killed_at("speak", tmp_path)
    host = Host()
    async with working(tmp_path, host) as mt:
        task = await ended(mt)
        assert (task.status, unfinished(task).partial) == ("lost", "half of the work")
        assert lost(task).reason.endswith("Its session is kept.")
        assert prompted(host) == ["1.prompt"]  # never a second time
        again = await mt.thread("conv-1").resume(ID, "go on")
        assert await again.result() == "heard: go on"
        assert await told(mt) == [f"{ID}.1", f"{ID}.2"]
        said = [line.text for line in await mt.lines(ID)]
        assert said == ["speak and die", "half of the work", "go on", "heard: go on"]


@pytest.mark.behaviour("L28")
async def test_a_question_is_still_open_after_a_kill_and_its_answer_goes_on(tmp_path: Path):
    await killed_at("ask", tmp_path)
    host = Host()
    async with working(tmp_path, host) as mt:
        assert (await mt.get(ID)).question.text == "May I?"
        await mt.answer(ID, "allow")
        task = await ended(mt)
        assert "The answer: allow" in completed(task).result
        assert prompted(host) == ["1.prompt", "1.answer.p1"]
        assert await told(mt) == [f"{ID}.1"]


@pytest.mark.behaviour("L28")
async def test_an_answer_given_at_once_after_a_kill_is_heard(tmp_path: Path):
    """Before the run has asked again."""
    await killed_at("ask", tmp_path)

    host, gate = Host(), asyncio.Event()

    async def exists(session: str, settings: object) -> bool:
        await gate.wait()
        return session in host.sessions

    host.exists = exists
    async with working(tmp_path, host) as mt:
        await mt.answer(ID, "no: too dangerous")
        gate.set()
        assert "It was refused. too dangerous" in completed(await ended(mt)).result


@pytest.mark.behaviour("L28")
async def test_an_answer_that_was_recorded_and_not_heard_is_not_asked_for_again(tmp_path: Path):
    await killed_at("answered", tmp_path)
    host = Host()
    async with working(tmp_path, host) as mt:
        assert "The answer: allow" in completed(await ended(mt)).result
        assert prompted(host) == ["1.prompt", "1.answer.p1"]


@pytest.mark.behaviour("L28")
async def test_an_agent_goes_on_when_nobody_answers_after_a_kill(tmp_path: Path):
    await killed_at("ask", tmp_path)
    async with working(tmp_path, Host(), answer_within=0.05) as mt:
        assert "It was refused. Nobody answered within" in completed(await ended(mt)).result


@pytest.mark.behaviour("L28")
async def test_a_question_of_a_session_that_is_gone_is_lost(tmp_path: Path):
    await killed_at("ask", tmp_path)
    for path in tmp_path.glob("work.db.agents/Host/*.jsonl"):
        path.unlink()
    async with working(tmp_path, Host()) as mt:
        task = await ended(mt)
        assert (task.status, "Its session is gone, too" in lost(task).reason) == ("lost", True)


@pytest.mark.behaviour("L17")
async def test_a_follow_up_runs_after_a_kill_between_the_ending_and_the_next_run(tmp_path: Path):
    await killed_at("follow", tmp_path)
    host = Host()
    async with working(tmp_path, host) as mt:
        assert completed(await ended(mt, 2)).result == "heard: and then this"
        assert prompted(host) == ["1.prompt", "2.prompt"]
        assert await told(mt) == [f"{ID}.1", f"{ID}.2"]


@pytest.mark.behaviour("L17")
async def test_a_follow_up_runs_after_a_kill_while_it_waited(tmp_path: Path):
    await killed_at("follow_asked", tmp_path)
    host = Host()
    async with working(tmp_path, host) as mt:
        await mt.answer(ID, "allow")
        assert completed(await ended(mt, 2)).result == "heard: and then this"
        assert prompted(host) == ["1.prompt", "1.answer.p1", "2.prompt"]


@pytest.mark.behaviour("L16")
async def test_a_resume_that_was_recorded_and_not_begun_is_begun(tmp_path: Path):
    await killed_at("resumed", tmp_path)
    host = Host()
    async with working(tmp_path, host) as mt:
        assert completed(await ended(mt, 2)).result == "heard: more"
        assert prompted(host) == ["1.prompt", "2.prompt"]


@pytest.mark.behaviour("L27")
async def test_a_cancelled_wait_stays_cancelled_after_a_kill(tmp_path: Path):
    await killed_at("ask", tmp_path)
    async with working(tmp_path, Host()) as mt:
        answer = await mt.cancel(ID, wait=True)
        assert answer.task.status == "cancelled"


@pytest.mark.behaviour("P9")
async def test_the_time_that_a_question_waited_counts_over_a_kill(tmp_path: Path):
    await killed_at("ask", tmp_path)
    async with working(tmp_path, Host()) as mt:
        task = await mt.get(ID)
        runner: Any = runtime_of(mt).engine.runner("agent")
        assert runner.age(task) > 0
        mark = checkpoint.load(tmp_path / "work.db.agents" / f"@{ID}", task)
        assert mark is not None
        assert (mark.session, mark.question.id) == (f"s-{ID}", "p1")
