"""GET /v1/tasks/:id and /v1/tasks/:id/logs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from meantime import Agent, Call, HttpDoor, InlineLimits, Meantime, Shell, Thread, current
from meantime.testing import FakeClock, FakeSessionRunner, Reply

pytestmark = pytest.mark.anyio


@pytest.fixture
def agents() -> FakeSessionRunner:
    found = Reply("found it", tools=("read", "read", "grep"))
    return FakeSessionRunner({"explore": found, "talker": lambda session: f"answer {len(session.history)}"})


async def add(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b}


async def broken() -> None:
    raise ValueError("no such file")


# Ours, of one task alone.
DETAILS = ("row", "actions", "delivery", "budget", "family", "usual", "rules", "queuePosition")


@pytest.mark.behaviour("H8")
@pytest.mark.scenario("001", "Returns full task object for valid ID")
async def test_a_task_is_a_full_object_with_the_seeds_names(http: httpx.AsyncClient, thread: Thread):
    order = Agent("explore", "look around")
    handle = await thread.start(order, description="Explore", message_id="m-1", batch="b-1")
    await handle.wait()
    task = (await http.get(f"/v1/tasks/{handle.id}")).json()
    started, completed = task["startedAt"], task["completedAt"]
    assert started.endswith("Z")
    assert completed >= started
    apart = ("progress", "startedAt", "completedAt", "createdAt", "updatedAt")
    told = {name: task[name] for name in task if name not in (*apart, *DETAILS)}
    assert task.keys() >= set(DETAILS)
    assert told == {
        "sessionID": handle.id, "parentSessionID": "conv-1", "parentMessageID": "m-1",
        "description": "Explore", "prompt": "look around", "agent": "explore", "status": "completed",
        "batchId": "b-1", "resumeCount": 0, "isForked": False, "retrievedAt": None, "result": "found it",
        "error": None, "id": handle.id, "kind": "agent", "state": "completed", "parentTaskID": None,
        "toolCallID": None, "duration": 0, "resultTruncated": False, "outputFile": None, "errorDetail": None,
        "exitCode": None, "restartable": True, "question": None, "followUp": None,
        "place": None, "worker": None, "notBefore": None,
    }  # fmt: skip
    assert task["progress"]["toolCalls"] == 3
    assert task["progress"]["toolCallsByName"] == {"read": 2, "grep": 1}
    assert task["progress"]["lastTools"][-1] == "grep"
    assert task["progress"]["lastUpdate"].endswith("Z")


@pytest.mark.behaviour("H8", "R17")
async def test_the_id_is_the_tasks_or_the_sessions_or_a_prefix(http: httpx.AsyncClient, thread: Thread):
    handle = await thread.start(Agent("explore", "look"), id="t_abcdefgh")
    await handle.wait()
    for id in ("t_abcdefgh", "s-t_abcdefgh", "abcde"):
        assert (await http.get(f"/v1/tasks/{id}")).json()["id"] == "t_abcdefgh"


@pytest.mark.behaviour("H8", "R14")
async def test_an_ambiguous_prefix_lists_the_candidates(http: httpx.AsyncClient, thread: Thread):
    for id in ("t_aa1", "t_aa2"):
        await thread.start(Call(add, 1, 2), id=id)
    answer = await http.get("/v1/tasks/t_aa")
    assert answer.status_code == 409
    assert sorted(answer.json()["candidates"]) == ["t_aa1", "t_aa2"]


@pytest.mark.behaviour("H8", "H9")
@pytest.mark.scenario("001", "Returns 404 for unknown ID", "Returns 404 for unknown task ID")
@pytest.mark.parametrize("id", ["nobody", "t_0000000000", "%2e%2e%2fetc", "a%20b", "ü", "x" * 300])
@pytest.mark.parametrize("suffix", ["", "/logs"])
async def test_an_unknown_id_is_a_json_404(http: httpx.AsyncClient, id: str, suffix: str):
    answer = await http.get(f"/v1/tasks/{id}{suffix}")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.behaviour("H8")
async def test_an_error_keeps_its_detail(http: httpx.AsyncClient, thread: Thread):
    handle = await thread.start(Call(broken))
    await handle.wait()
    task = (await http.get(f"/v1/tasks/{handle.id}")).json()
    assert (task["status"], task["state"]) == ("error", "failed")
    assert "no such file" in task["error"]
    assert "Traceback" in task["errorDetail"]


@pytest.mark.behaviour("H8")
async def test_a_long_result_is_whole_here_and_cut_in_lists(http: httpx.AsyncClient, thread: Thread):
    text = "x" * 10_000
    handle = await thread.start(Call(lambda: text))
    await handle.wait()
    assert (await http.get(f"/v1/tasks/{handle.id}")).json()["result"] == text
    (listed,) = (await http.get("/v1/tasks")).json()["tasks"]
    assert listed["resultTruncated"]
    assert len(listed["result"]) < 2_100


@pytest.mark.behaviour("H9")
@pytest.mark.scenario(
    "001", "Returns message history for a running task", "Returns message history for a completed task"
)
async def test_a_function_tells_its_input_progress_and_result(
    http: httpx.AsyncClient, thread: Thread, clock: FakeClock
):
    go = asyncio.Event()

    async def work(folder: str) -> str:
        current().progress(50, message="half of it")
        current().emit("files", 3)
        await go.wait()
        return "secret-token-123"

    handle = await thread.start(Call(work, "src"))
    await clock.advance(1)
    running = (await http.get(f"/v1/tasks/{handle.id}/logs")).json()
    assert [message["type"] for message in running] == ["prompt", "progress", "emitted"]
    go.set()
    await handle.wait()
    ended = (await http.get(f"/v1/tasks/{handle.id}/logs")).json()
    told = [(message["role"], message["type"], message["text"]) for message in ended]
    assert told == [
        ("user", "prompt", '{"args":["src"]}'),
        ("system", "progress", "half of it"),
        ("system", "emitted", "3"),
        ("assistant", "result", "secret-token-123"),  # H25: unmasked, for who may read it
    ]


@pytest.mark.behaviour("H9")
async def test_a_spilled_result_is_whole(http: httpx.AsyncClient, thread: Thread):
    text = "line\n" * 100
    handle = await thread.start(Call(lambda: text), inline=InlineLimits(max_bytes=20))
    await handle.wait()
    assert (await http.get(f"/v1/tasks/{handle.id}/logs")).json()[-1]["text"] == text


@pytest.mark.behaviour("H9")
async def test_a_failure_is_in_its_history(http: httpx.AsyncClient, thread: Thread):
    handle = await thread.start(Call(broken))
    await handle.wait()
    last = (await http.get(f"/v1/tasks/{handle.id}/logs")).json()[-1]
    assert (last["type"], "no such file" in last["text"]) == ("error", True)
    assert "Traceback" in last["detail"]


@pytest.mark.behaviour("H9")
@pytest.mark.scenario("001", "Returns message history for a completed task")
async def test_every_run_is_told(http: httpx.AsyncClient, thread: Thread):
    handle = await thread.start(Agent("talker", "look around"))
    await handle.wait()
    await (await thread.resume(handle, "and then?")).wait()
    messages = (await http.get(f"/v1/tasks/{handle.id}/logs")).json()
    told = [(message["run"], message["text"]) for message in messages]
    assert told == [(1, "look around"), (1, "answer 1"), (2, "and then?"), (2, "answer 3")]


class TestCommands:
    """A command's log, by absolute offset. Commands run in real time, so the clock is the system's."""

    @pytest.fixture
    async def mt(self):
        async with Meantime.open(":memory:") as mt:
            yield mt

    @pytest.fixture
    async def door(self, mt: Meantime, tmp_path: Path):
        async with mt.serve(port=0, folder=tmp_path) as door:
            yield door

    @pytest.mark.behaviour("H9")
    async def test_the_output_of_a_command_is_read_by_offset(
        self, http: httpx.AsyncClient, thread: Thread, door: HttpDoor
    ):
        handle = await thread.start(Shell("printf 'äbc'; printf err >&2; exit 3"))
        await handle.wait()
        messages = (await http.get(f"/v1/tasks/{handle.id}/logs?stream=stdout")).json()
        assert [message["type"] for message in messages] == ["prompt", "output", "error"]
        output = messages[1]
        assert (output["text"], output["offset"], output["next"], output["total"]) == ("äbc", 0, 4, 4)
        assert messages[2]["text"] == "It ended with exit code 3."
        rest = (await http.get(f"/v1/tasks/{handle.id}/logs?stream=stdout&offset=2")).json()[1]
        assert (rest["text"], rest["offset"]) == ("bc", 2)
        err = (await http.get(f"/v1/tasks/{handle.id}/logs?stream=stderr")).json()[1]
        assert err["text"] == "err"
        both = (await http.get(f"/v1/tasks/{handle.id}/logs")).json()[1]
        assert both["total"] == 7

    @pytest.mark.behaviour("H9")
    async def test_a_part_of_the_output_never_ends_inside_a_character(
        self, http: httpx.AsyncClient, thread: Thread
    ):
        handle = await thread.start(Shell("printf 'aäb'"))
        await handle.wait()
        part = (await http.get(f"/v1/tasks/{handle.id}/logs?stream=stdout&limit=2")).json()[1]
        assert (part["text"], part["next"]) == ("a", 1)

    @pytest.mark.behaviour("H9")
    @pytest.mark.scenario("001", "Returns message history for a running task")
    async def test_the_output_of_a_running_command_is_seen(self, http: httpx.AsyncClient, thread: Thread):
        handle = await thread.start(Shell("echo ready; read line", open_stdin=True))
        await anext(handle.log.follow())
        messages = (await http.get(f"/v1/tasks/{handle.id}/logs")).json()
        assert [message["text"] for message in messages] == ["echo ready; read line", "ready\n"]
        await handle.send(eof=True)

    @pytest.mark.behaviour("H9")
    async def test_a_wrong_stream_is_a_400(self, http: httpx.AsyncClient, thread: Thread):
        handle = await thread.start(Shell("true"))
        await handle.wait()
        assert (await http.get(f"/v1/tasks/{handle.id}/logs?stream=stdin")).status_code == 400
