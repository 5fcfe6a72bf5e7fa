"""GET /v1/tasks: every scenario of seed 001's Task List API, and what we add to it."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from meantime import Agent, Call, Meantime, Shell, Thread
from meantime.kernel.ids import batch_id
from meantime.testing import FakeClock, FakeSessionRunner

pytestmark = pytest.mark.anyio

# What seed 001 says that a BackgroundTask has. The rest of the object is ours.
SEED_FIELDS = {
    "sessionID", "parentSessionID", "parentMessageID", "description", "prompt", "agent", "status", "batchId",
    "resumeCount", "isForked", "startedAt", "completedAt", "progress", "result", "error",
}  # fmt: skip


async def ids(http: httpx.AsyncClient, **params: object) -> list[str]:
    answer = await http.get("/v1/tasks", params={name: str(value) for name, value in params.items()})
    assert answer.status_code == 200, answer.text
    return [task["id"] for task in answer.json()["tasks"]]


async def nothing() -> None:
    return None


async def broken() -> None:
    raise ValueError("no such file")


async def forever() -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def five(thread: Thread, mt: Meantime, agents: FakeSessionRunner, clock: FakeClock) -> None:
    """One of each of the seed's statuses, a second apart."""
    done = await thread.start(Agent("explore", "look around"), id="done", description="Explore the Repo")
    await done.wait()
    await clock.advance(1)
    await (await thread.start(Call(broken), id="broken", description="read it")).wait()
    await clock.advance(1)
    gone = await thread.start(Call(forever), id="gone", description="100% sure")
    await gone.cancel(wait=True)
    await clock.advance(1)
    await mt.thread("other").start(Call(forever), id="busy", description="ÄRGER im repo")
    again = await thread.start(Agent("plan", "make a plan"), id="again", description="plan")
    await again.wait()
    agents.hold("plan")
    await thread.resume("again", "and now?")
    await clock.until(lambda: agents.at_gate == ["again"])


@pytest.mark.behaviour("H7")
@pytest.mark.scenario("001", "Returns all tasks when no filters applied")
async def test_all_tasks_are_returned_with_total_limit_and_offset(http: httpx.AsyncClient, five: None):
    body = (await http.get("/v1/tasks")).json()
    assert {task["id"] for task in body["tasks"]} == {"again", "busy", "gone", "broken", "done"}
    assert (body["total"], body["limit"], body["offset"]) == (5, 50, 0)
    assert all(set(task) >= SEED_FIELDS for task in body["tasks"])


@pytest.mark.behaviour("H7")
@pytest.mark.scenario("001", "Filters by status parameter")
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("running", ["busy"]),
        ("resumed", ["again"]),
        ("completed", ["done"]),
        ("error", ["broken"]),
        ("cancelled", ["gone"]),
        ("running,resumed", ["again", "busy"]),
        ("error,completed", ["broken", "done"]),
    ],
)
async def test_tasks_are_filtered_by_status(
    http: httpx.AsyncClient, five: None, status: str, expected: list[str]
):
    body = (await http.get("/v1/tasks", params={"status": status})).json()
    assert [task["id"] for task in body["tasks"]] == expected
    assert {task["status"] for task in body["tasks"]} <= set(status.split(","))
    assert body["total"] == len(expected)


@pytest.mark.behaviour("H7")
@pytest.mark.scenario("001", "Filters by agent parameter")
async def test_tasks_are_filtered_by_agent(http: httpx.AsyncClient, five: None):
    body = (await http.get("/v1/tasks?agent=explore")).json()
    assert [(task["id"], task["agent"]) for task in body["tasks"]] == [("done", "explore")]
    assert body["total"] == 1
    assert await ids(http, agent="call") == ["busy", "gone", "broken"]  # work without an agent: its kind


@pytest.mark.behaviour("H7")
@pytest.mark.scenario("001", "Searches description by keyword")
async def test_descriptions_are_searched_whatever_the_case(http: httpx.AsyncClient, five: None):
    assert await ids(http, search="REPO") == ["busy", "done"]
    assert await ids(http, search="ärger") == ["busy"]
    assert await ids(http, search="%") == ["gone"]  # a letter, not a wildcard
    assert (await http.get("/v1/tasks?search=nothing")).json() == {
        "tasks": [], "total": 0, "limit": 50, "offset": 0,
    }  # fmt: skip


@pytest.mark.behaviour("H7")
@pytest.mark.scenario("001", "Paginates with limit and offset", "Returns total count alongside results")
async def test_total_is_counted_before_paging(http: httpx.AsyncClient, thread: Thread):
    for number in range(27):
        await thread.start(Call(nothing), id=f"n{number:02}", description="many")
    body = (await http.get("/v1/tasks?limit=10&offset=20&search=many")).json()
    assert [task["id"] for task in body["tasks"]] == [f"n{number:02}" for number in range(6, -1, -1)]
    assert (body["total"], body["limit"], body["offset"]) == (27, 10, 20)
    assert (await http.get("/v1/tasks?limit=5")).json()["total"] == 27
    assert (await http.get("/v1/tasks?offset=100")).json()["total"] == 27


@pytest.mark.behaviour("H7")
@pytest.mark.scenario("001", "Paginates with limit and offset")
async def test_limit_is_50_and_at_most_200(http: httpx.AsyncClient, thread: Thread):
    for _ in range(210):
        await thread.start(Call(nothing))
    assert len((await http.get("/v1/tasks")).json()["tasks"]) == 50
    body = (await http.get("/v1/tasks?limit=100000")).json()
    assert (len(body["tasks"]), body["limit"], body["total"]) == (200, 200, 210)


@pytest.mark.behaviour("H7")
async def test_tasks_are_sorted_only_by_the_listed_fields(http: httpx.AsyncClient, five: None):
    assert await ids(http, sort="oldest") == ["done", "broken", "gone", "busy", "again"]
    assert (await ids(http, sort="newest"))[-1] == "done"
    assert (await ids(http, sort="updated"))[0] == "again"
    assert len(await ids(http, sort="longest")) == 5
    refused = await http.get("/v1/tasks?sort=body;drop")
    assert refused.status_code == 400
    assert "newest" in refused.json()["hint"]


@pytest.mark.behaviour("H7")
async def test_tasks_are_filtered_by_thread_and_batch(http: httpx.AsyncClient, thread: Thread, mt: Meantime):
    batch = batch_id(b"0123456789")
    await thread.start(Call(nothing), id="mine", batch=batch)
    await mt.thread("other").start(Call(nothing), id="theirs")
    assert await ids(http, thread="other") == ["theirs"]
    assert await ids(http, batch=batch) == ["mine"]
    assert await ids(http, batch=batch, thread="other") == []


@pytest.mark.behaviour("H7")
async def test_cleared_tasks_are_listed_on_request(http: httpx.AsyncClient, thread: Thread):
    await (await thread.start(Call(nothing), id="old")).wait()
    await thread.clear()
    assert await ids(http) == []
    assert await ids(http, cleared="true") == ["old"]


@pytest.mark.behaviour("H7")
@pytest.mark.parametrize(
    "query",
    ["status=lost", "limit=0", "limit=-1", "limit=ten", "offset=-1", "cleared=maybe", "search=" + "x" * 1001],
)
async def test_a_wrong_parameter_is_a_400_that_says_what_to_do(http: httpx.AsyncClient, query: str):
    answer = await http.get(f"/v1/tasks?{query}")
    assert answer.status_code == 400
    assert answer.json()["code"] == "invalid_input"
    assert answer.json()["error"]


@pytest.mark.behaviour("H7")
async def test_commands_say_their_command(http: httpx.AsyncClient, thread: Thread):
    await thread.start(Shell(["true", "it's fine"]), id="cmd")
    (task,) = (await http.get("/v1/tasks")).json()["tasks"]
    assert (task["agent"], task["kind"]) == ("shell", "shell")
    assert task["prompt"] == "true 'it'\"'\"'s fine'"
