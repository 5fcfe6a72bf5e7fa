"""What can be written: handing work off, stopping it, talking to it, putting it away, the limits."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs import Job
from meantime import Call, HttpDoor, Meantime, Thread, background
from meantime.kernel.errors import Degraded
from meantime.testing import FakeClock, FakeSessionRunner, Reply

from .conftest import over_tcp

pytestmark = pytest.mark.anyio


@background(name="http_add")
def add(one: int, other: int = 0) -> int:
    return one + other


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner({"explore": Reply("found it")})


async def start(write: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await write.post("/v1/tasks", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def ended(write: httpx.AsyncClient, id: str) -> dict[str, Any]:
    """Commands end in real time, whatever our clock says."""
    found = (await write.get(f"/v1/tasks/{id}/wait?timeout=600")).json()
    assert found["status"] != "running"
    return found


# -- starting


@pytest.mark.behaviour("F3")
async def test_a_command_string_is_started_by_the_shell(write: httpx.AsyncClient, tmp_path: Path):
    answer = await write.post(
        "/v1/tasks",
        json={
            "thread": "conv-1",
            "command": 'echo "$GREETING from $(pwd)"; cat',
            "cwd": str(tmp_path),
            "env": {"GREETING": "hello"},
            "stdin": "and more",
            "description": "greet",
            "batch": "b-1",
            "toolCallId": "call-1",
            "messageId": "message-1",
            "meta": {"why": "a test"},
            "timeout": 60,
        },
    )
    task = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/tasks/{task['id']}")
    assert task == {
        **task,
        "parentSessionID": "conv-1",
        "description": "greet",
        "batchId": "b-1",
        "toolCallID": "call-1",
        "parentMessageID": "message-1",
        "kind": "shell",
        "status": "running",
    }
    result = (await ended(write, task["id"]))["result"]
    assert result == f"hello from {tmp_path}\nand more"


@pytest.mark.behaviour("F3")
async def test_a_command_as_a_list_is_started_as_it_is(write: httpx.AsyncClient):
    task = await start(write, command=["echo", "$HOME; ls"], id="my-own-id")
    assert (task["id"], task["parentSessionID"], task["prompt"]) == (
        "my-own-id",
        "default",
        "echo '$HOME; ls'",
    )
    assert (await ended(write, "my-own-id"))["result"] == "$HOME; ls\n"


@pytest.mark.behaviour("F2")
async def test_a_registered_tool_is_started_by_its_name(write: httpx.AsyncClient):
    task = await start(write, tool="http_add", arguments={"one": 1, "other": 41})
    assert (await ended(write, task["id"]))["result"] == "42"
    assert "http_add" in (await write.get("/v1/info")).json()["tools"]


@pytest.mark.behaviour("F1")
async def test_an_unknown_tool_is_not_found_and_those_there_are_are_named(write: httpx.AsyncClient):
    answer = await write.post("/v1/tasks", json={"tool": "http_sub", "arguments": {}})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "http_add" in answer.json()["hint"]


@pytest.mark.behaviour("F1")
@pytest.mark.parametrize("arguments", [{}, {"one": 1, "two": 2}, {"a-b": 1}, {"self": 1}])
async def test_wrong_arguments_are_refused_before_anything_is_recorded(
    write: httpx.AsyncClient, arguments: dict[str, int]
):
    answer = await write.post("/v1/tasks", json={"tool": "http_add", "arguments": arguments})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert (await write.get("/v1/tasks")).json()["total"] == 0


@pytest.mark.behaviour("F1")
async def test_an_agent_is_started_and_resumed(write: httpx.AsyncClient):
    task = await start(write, agent="explore", prompt="look around", thread="conv-1")
    assert (await ended(write, task["id"]))["result"] == "found it"
    answer = await write.post(f"/v1/tasks/{task['id']}/resume", json={"prompt": "and now there"})
    assert (answer.status_code, answer.headers["location"]) == (201, f"/v1/tasks/{task['id']}")
    assert (await ended(write, task["id"]))["resumeCount"] == 1
    runs = (await write.get(f"/v1/tasks/{task['id']}/runs")).json()["runs"]
    assert [run["prompt"] for run in runs] == ["look around", "and now there"]


@pytest.mark.behaviour("F1")
async def test_a_command_cannot_be_resumed(write: httpx.AsyncClient):
    task = await start(write, command=["true"])
    await ended(write, task["id"])
    answer = await write.post(f"/v1/tasks/{task['id']}/resume", json={"prompt": "again"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_resumable")


@pytest.mark.behaviour("P1")
@pytest.mark.parametrize("same", [{"id": "one"}, {"toolCallId": "call-1"}])
async def test_a_second_start_of_the_same_is_refused_and_names_the_first(
    write: httpx.AsyncClient, same: dict[str, str]
):
    first = await start(write, tool="http_add", arguments={"one": 1}, **same)
    answer = await write.post("/v1/tasks", json={"tool": "http_add", "arguments": {"one": 1}, **same})
    assert (answer.status_code, answer.json()["existing"]) == (409, first["id"])
    assert (await write.get("/v1/tasks")).json()["total"] == 1


@pytest.mark.behaviour("M3")
async def test_over_the_limit_is_429_with_the_numbers(write: httpx.AsyncClient, thread: Thread):
    limits = await write.post("/v1/limits", json={"perThread": 1, "onLimit": "reject"})
    assert limits.json() == {"perThread": 1, "total": 50, "perKind": {"agent": 5}, "onLimit": "reject"}
    job = Job()
    await thread.start(job.call)
    answer = await write.post(
        "/v1/tasks", json={"thread": "conv-1", "tool": "http_add", "arguments": {"one": 1}}
    )
    found = answer.json()
    assert (answer.status_code, found["code"]) == (429, "limit_reached")
    assert (found["running"], found["limit"], answer.headers["retry-after"]) == (1, 1, "5")
    queued = await start(write, thread="conv-1", tool="http_add", arguments={"one": 1}, onLimit="queue")
    assert queued["state"] == "queued"
    job.finish()


@pytest.mark.behaviour("P11")
async def test_a_full_disk_is_507(write: httpx.AsyncClient, mt: Meantime, monkeypatch: pytest.MonkeyPatch):
    async def full(*_: object) -> None:
        raise Degraded("The disk is full.", hint="Make room.")

    monkeypatch.setattr(mt._runtime, "start", full)
    answer = await write.post("/v1/tasks", json={"command": "ls"})
    assert (answer.status_code, answer.json()["code"]) == (507, "degraded")


@pytest.mark.behaviour("M1")
@pytest.mark.parametrize(
    "limits", [{"perThread": 0}, {"total": -2}, {"perKind": {"shell": 0}}, {"onLimit": "x"}]
)
async def test_impossible_limits_change_nothing(write: httpx.AsyncClient, limits: dict[str, Any]):
    assert (await write.post("/v1/limits", json=limits)).status_code == 400
    before = {"perThread": 10, "total": 50, "perKind": {"agent": 5}, "onLimit": "queue"}
    assert (await write.get("/v1/info")).json()["limits"] == before


# -- stopping and talking


@pytest.mark.behaviour("L8")
async def test_cancel_says_what_it_did(write: httpx.AsyncClient, thread: Thread):
    job = Job()
    await thread.start(job.call, id="slow")
    await job.started.wait()
    answer = (await write.post("/v1/tasks/slow/cancel", json={"reason": "enough", "wait": True})).json()
    assert (answer["disposition"], answer["killed"], answer["task"]["status"]) == ("applied", 0, "cancelled")
    again = (await write.post("/v1/tasks/slow/cancel", json={})).json()
    assert again["disposition"] == "already_ended"
    assert (await thread.get("slow")).outcome.reason == "enough"  # type: ignore[union-attr]


@pytest.mark.behaviour("L8")
async def test_cancel_waits_no_longer_than_it_must(
    write: httpx.AsyncClient, thread: Thread, clock: FakeClock
):
    """`wait` has an end, too: the answer says that it is still being stopped."""
    job = Job(stubborn=True)
    await thread.start(job.call, id="stubborn")
    await job.started.wait()
    asked = asyncio.create_task(write.post("/v1/tasks/stubborn/cancel", json={"wait": True}))
    await job.asked_to_stop.wait()
    await clock.until(lambda: any(abs(left - 60.0) < 1e-6 for left in clock.due_in))
    job.finish("finished all the same")
    assert (await asked).json()["task"]["result"] == "finished all the same"


@pytest.mark.behaviour("L10")
async def test_all_of_a_thread_or_of_a_batch_are_cancelled(
    write: httpx.AsyncClient, thread: Thread, mt: Meantime
):
    jobs = [Job() for _ in range(3)]
    await thread.start(jobs[0].call, id="a", batch="b-1")
    await thread.start(jobs[1].call, id="b", batch="b-2")
    await mt.thread("other").start(jobs[2].call, id="c")
    first = (await write.post("/v1/cancel", json={"thread": "conv-1", "batch": "b-1"})).json()["answers"]
    assert [answer["task"]["id"] for answer in first] == ["a"]
    rest = (await write.post("/v1/cancel", json={"thread": "conv-1"})).json()["answers"]
    assert [answer["task"]["id"] for answer in rest if answer["disposition"] == "applied"] == ["b"]
    assert (await mt.get("c")).status == "running"
    assert (await write.post("/v1/cancel", json={})).status_code == 400


@pytest.mark.behaviour("F3")
async def test_a_command_is_sent_its_stdin(write: httpx.AsyncClient):
    task = await start(write, command=["cat"], openStdin=True)
    path = f"/v1/tasks/{task['id']}/send"
    assert (await write.post(path, json={"data": "größe "})).json() == {"sent": "written"}
    raw = base64.b64encode(b"\xff\n").decode()
    assert (await write.post(path, json={"dataBase64": raw, "eof": True})).json() == {"sent": "written"}
    await ended(write, task["id"])
    said = (await write.get(f"/v1/tasks/{task['id']}/output?encoding=base64")).json()
    assert base64.b64decode(said["dataBase64"]) == "größe ".encode() + b"\xff\n"
    answer = await write.post(path, json={"data": "late"})
    assert (answer.status_code, answer.json()["code"]) == (409, "ended")
    for wrong in ({"dataBase64": "*"}, {"data": "a", "dataBase64": "YQ=="}):
        assert (await write.post(path, json=wrong)).status_code == 400


async def test_an_answer_is_for_those_who_wait_for_one(write: httpx.AsyncClient, tasks: None):
    answer = await write.post("/v1/tasks/mine/answer", json={"answer": "yes"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not_waiting")


@pytest.mark.behaviour("F5")
async def test_a_call_that_runs_inline_is_promoted(write: httpx.AsyncClient, thread: Thread):
    job = Job()
    calling = asyncio.create_task(thread.call(job.call))
    await job.started.wait()
    (call,) = (await write.get("/v1/calls?thread=conv-1")).json()["tasks"]
    answer = await write.post(f"/v1/tasks/{call['id']}/promote", json={})
    assert (answer.status_code, answer.json()["id"]) == (200, call["id"])
    assert (await calling).task.id == call["id"]  # type: ignore[union-attr]
    assert (await write.get("/v1/calls")).json() == {"tasks": []}
    job.finish()
    again = await write.post(f"/v1/tasks/{call['id']}/promote", json={})
    assert again.status_code == 409


# -- putting away


@pytest.mark.behaviour("L10")
async def test_clear_hides_what_has_ended(write: httpx.AsyncClient, tasks: None, clock: FakeClock):
    assert (await write.post("/v1/clear", json={"thread": "conv-1", "olderThan": 60})).json() == {
        "cleared": 0
    }
    assert (await write.post("/v1/clear", json={"thread": "conv-1", "ids": ["mine"]})).json() == {
        "cleared": 1
    }
    assert [task["id"] for task in (await write.get("/v1/tasks")).json()["tasks"]] == ["theirs"]
    assert (await write.post("/v1/clear", json={"thread": "other", "ids": ["mine"]})).status_code == 404


@pytest.mark.behaviour("I14")
async def test_purge_deletes_for_good(write: httpx.AsyncClient, thread: Thread, clock: FakeClock):
    await (await thread.start(Call(int, "1"), id="old")).wait()
    await (await thread.start(Call(int, "x"), id="bad")).wait()
    await clock.advance(100)
    await (await thread.start(Call(int, "1"), id="new")).wait()
    job = Job()
    await thread.start(job.call, id="busy")
    purge = "/v1/purge"
    answer = await write.post(purge, json={"endedBefore": 50, "statuses": ["error"]})
    assert answer.json() == {"purged": 1}
    assert (await write.get("/v1/tasks/bad")).status_code == 404
    assert (await write.post(purge, json={"endedBefore": 50})).json() == {"purged": 1}
    assert (await write.post(purge, json={"ids": ["new", "busy"]})).json() == {"purged": 1}
    assert [task["id"] for task in (await write.get("/v1/tasks")).json()["tasks"]] == ["busy"]
    for wrong in (
        {},
        {"ids": [], "endedBefore": 1},
        {"endedBefore": -1},
        {"endedBefore": 1, "statuses": ["x"]},
    ):
        assert (await write.post(purge, json=wrong)).status_code == 400
    job.finish()


@pytest.mark.behaviour("I14")
async def test_purge_takes_more_than_one_page(write: httpx.AsyncClient, thread: Thread):
    handles = [await thread.start(Call(int, "1")) for _ in range(130)]
    for handle in handles:
        await handle.wait()
    assert (await write.post("/v1/purge", json={"endedBefore": 0})).json() == {"purged": 130}


# -- reading


async def test_the_whole_result_or_why_there_is_none(write: httpx.AsyncClient, thread: Thread):
    long = "x" * 200_000
    await (await thread.start(Call(str, long), id="long")).wait()
    assert (await write.get("/v1/tasks/long")).json()["resultTruncated"] is True
    assert (await write.get("/v1/tasks/long/result")).json() == {"result": long}
    await (await thread.start(Call(int, "x"), id="bad")).wait()
    answer = await write.get("/v1/tasks/bad/result")
    assert (answer.status_code, answer.json()["code"]) == (409, "task_failed")
    assert answer.json()["task"]["id"] == "bad"
    job = Job()
    await thread.start(job.call, id="busy")
    answer = await write.get("/v1/tasks/busy/result")
    assert (answer.status_code, answer.json()["code"]) == (409, "still_running")
    assert answer.json()["task"]["status"] == "running"
    job.finish()


async def test_threads_and_batches_in_numbers(write: httpx.AsyncClient, thread: Thread, tasks: None):
    job = Job()
    await thread.start(job.call, batch="b-1", description="busy")
    assert (await write.get("/v1/batches/b-1")).json() == {
        "id": "b-1", "ended": 1, "total": 2, "failed": 0, "active": 1,
    }  # fmt: skip
    found = (await write.get("/v1/threads")).json()["threads"]
    assert {one["id"]: (one["active"], one["unread"], one["parked"]) for one in found} == {
        "conv-1": (1, 1, 0),
        "other": (0, 1, 0),
    }
    one = (await write.get("/v1/threads/conv-1")).json()
    assert " 0s: busy" in one.pop("reminder")
    assert (one.pop("hosts"), one.pop("turn")) == ([], None)
    assert one in found
    nobody = (await write.get("/v1/threads/nobody")).json()
    assert nobody == {
        "id": "nobody", "active": 0, "unread": 0, "leased": 0, "parked": 0, "lastEventAt": None,
        "reminder": "", "hosts": [], "turn": None,
    }  # fmt: skip
    job.finish()


async def test_notices_that_are_not_told_yet(write: httpx.AsyncClient, tasks: None):
    notices = (await write.get("/v1/notices")).json()["notices"]
    assert [(notice["id"], notice["state"]) for notice in notices] == [
        ("mine.1", "unread"),
        ("theirs.1", "unread"),
    ]
    assert (await write.get("/v1/notices?thread=other&state=parked")).json() == {"notices": [], "total": 0}
    assert (await write.get("/v1/notices?state=lost")).status_code == 400


async def test_info_says_what_there_is(write: httpx.AsyncClient, door: HttpDoor, mt: Meantime):
    info = (await write.get("/v1/info")).json()
    assert (info["name"], info["url"], info["version"]) == ("meantime", door.url, "0.1.0")
    assert info["runners"] == ["agent", "call", "shell", "tool", "watch"]
    assert (info["ledger"], info["durability"], info["degraded"]) == ("", "memory", False)
    assert (info["hosts"], info["executors"], info["clients"]) == ([], [], 0)


async def test_info_of_a_ledger_on_disk(tmp_path: Path):
    async with (
        Meantime.open(tmp_path / "work.db") as mt,
        mt.serve(port=0) as door,
        over_tcp(door.url) as http,
    ):
        info = (await http.get("/v1/info")).json()
        assert (info["home"], info["ledger"]) == (str(tmp_path), str(tmp_path / "work.db"))
        assert info["durability"] == "full"


@pytest.mark.behaviour("H13", "H14")
async def test_reads_are_not_for_writing_and_writes_not_for_reading(write: httpx.AsyncClient, tasks: None):
    allowed = {
        ("GET", "/v1/tasks/mine/cancel"): "POST, OPTIONS",
        ("GET", "/v1/threads/a/turns"): "POST, OPTIONS",
        ("PUT", "/v1/tasks"): "GET, HEAD, POST, OPTIONS",
        ("POST", "/v1/stats"): "GET, HEAD, OPTIONS",
        ("DELETE", "/v1/tasks/mine"): "GET, HEAD, OPTIONS",
    }
    for (method, path), allow in allowed.items():
        answer = await write.request(method, path, json={})
        assert (answer.status_code, answer.headers["allow"]) == (405, allow), path
        assert answer.headers["access-control-allow-methods"] == "GET, OPTIONS"
