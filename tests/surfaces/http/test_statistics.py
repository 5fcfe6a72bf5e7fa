"""Task groups, health and stats: the numbers of seed 001."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from meantime import Agent, Call, Meantime, Thread
from meantime.testing import FakeClock, FakeSessionRunner, Reply

from .conftest import over_tcp

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner({"explore": Reply("found it", tools=("read", "grep"))})


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("no")


async def batch_of_four(thread: Thread, clock: FakeClock, agents: FakeSessionRunner) -> None:
    """Two agents complete after one and three seconds; a function fails; one is cancelled."""
    agents.hold()
    for id in ("one", "two"):
        await thread.start(Agent("explore", "look"), id=id, batch="b-1")
    await (await thread.start(Call(broken), id="bad", batch="b-1")).wait()
    await (await thread.start(Call(forever), id="gone", batch="b-1")).cancel(wait=True)
    await clock.advance(3)
    agents.release()
    await thread.wait("one", "two")


@pytest.mark.behaviour("H10")
@pytest.mark.scenario("001", "Returns group with all member tasks and aggregate stats")
async def test_a_group_has_its_members_and_statistics(
    http: httpx.AsyncClient, thread: Thread, clock: FakeClock, agents: FakeSessionRunner
):
    await batch_of_four(thread, clock, agents)
    group = (await http.get("/v1/task-groups/b-1")).json()
    assert {task["id"] for task in group.pop("tasks")} == {"one", "two", "bad", "gone"}
    assert group == {
        "batchId": "b-1", "completed": 2, "running": 0, "error": 1, "cancelled": 1, "total": 4,
        "completionRate": 0.5, "totalToolCalls": 4, "duration": 3_000,
    }  # fmt: skip


@pytest.mark.behaviour("H10")
async def test_what_is_resumed_counts_as_running(
    http: httpx.AsyncClient, thread: Thread, clock: FakeClock, agents: FakeSessionRunner
):
    await batch_of_four(thread, clock, agents)
    agents.hold()
    await thread.resume("one", "go on")
    await clock.advance(5)
    group = (await http.get("/v1/task-groups/b-1")).json()
    assert (group["running"], group["completed"], group["duration"]) == (1, 1, 8_000)


@pytest.mark.behaviour("H10")
async def test_a_cleared_member_still_counts(http: httpx.AsyncClient, thread: Thread):
    await (await thread.start(Agent("explore", "look"), batch="b-1")).wait()
    await thread.clear()
    assert (await http.get("/v1/task-groups/b-1")).json()["total"] == 1


@pytest.mark.behaviour("H10")
async def test_a_big_group_is_whole(http: httpx.AsyncClient, thread: Thread):
    for number in range(350):
        await thread.start(Call(int, "1"), id=f"n{number}", batch="big")
    group = (await http.get("/v1/task-groups/big")).json()
    assert group["total"] == len({task["id"] for task in group["tasks"]}) == 350


@pytest.mark.behaviour("H10")
@pytest.mark.scenario("001", "Returns 404 for unknown group ID")
async def test_an_unknown_group_is_a_json_404(http: httpx.AsyncClient):
    answer = await http.get("/v1/task-groups/nothing")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.behaviour("H11")
@pytest.mark.scenario("001", "Health endpoint returns ok status with uptime")
async def test_health_is_ok_and_has_the_uptime(http: httpx.AsyncClient, thread: Thread, clock: FakeClock):
    await (await thread.start(Agent("explore", "look"))).wait()
    await clock.advance(12.5)
    health = (await http.get("/v1/health")).json()
    assert health == {"status": "ok", "uptime": 12.5, "version": "0.1.0", "taskCount": 1}


@pytest.mark.behaviour("H11")
@pytest.mark.scenario(
    "001", "Stats endpoint returns counts by status and agent", "Stats endpoint returns duration statistics"
)
async def test_stats_count_by_status_and_agent_and_have_durations(
    http: httpx.AsyncClient, thread: Thread, clock: FakeClock, agents: FakeSessionRunner
):
    await batch_of_four(thread, clock, agents)
    await thread.start(Call(forever))
    stats = (await http.get("/v1/stats")).json()
    assert stats == {
        "totalTasks": 5,
        "activeTasks": 1,
        "byStatus": {"running": 1, "resumed": 0, "completed": 2, "error": 1, "cancelled": 1},
        "byAgent": {"call": 3, "explore": 2},
        "duration": {"avg": 1_500, "max": 3_000, "min": 0},
        "degraded": False,
        "restingThreads": 0,
        "notices": {"unread": 4},
        "workers": {},
    }


@pytest.mark.behaviour("H11")
async def test_stats_of_an_empty_ledger_are_zero(http: httpx.AsyncClient):
    stats = (await http.get("/v1/stats")).json()
    assert stats["totalTasks"] == stats["activeTasks"] == 0
    assert stats["duration"] == {"avg": 0, "max": 0, "min": 0}


@pytest.mark.behaviour("H1")
@pytest.mark.scenario(
    "001",
    "Tasks persist across plugin restarts",
    "Historical tasks appear in task list responses",
    "Task detail accessible for completed tasks after restart",
)
@pytest.mark.parametrize(
    "path", ["/v1/tasks?search=look", "/v1/tasks/kept", "/v1/stats", "/v1/task-groups/b-1"]
)
async def test_history_survives_a_restart_with_all_fields(tmp_path: Path, path: str):
    """Seed 001's Task History Persistence: the same answers before and after."""
    answers: list[object] = []
    agents = FakeSessionRunner({"explore": Reply("found it", tools=("read",))})
    for restarted in (False, True):
        async with Meantime.open(tmp_path / "work.db", runners=[agents]) as mt:
            if not restarted:
                order = Agent("explore", "look around")
                handle = await mt.thread("a").start(order, id="kept", description="Look", batch="b-1")
                await handle.wait()
            async with mt.serve(port=0) as door, over_tcp(door.url) as http:
                answers.append((await http.get(path)).json())
    assert answers[0] == answers[1]
    assert "kept" in str(answers[0]) or "byStatus" in str(answers[0])
