"""One task in detail: its actions, who was told, its spending, its family, its usual duration."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from meantime import Call, HttpDoor, Meantime, Thread
from meantime.runtime.announce import MAX_INBOX
from meantime.surfaces.hooks.hook_delivery import Boundary
from meantime.surfaces.http.hook_hosts import MOST_KNOWN, HookHosts
from meantime.testing import FakeClock, FakeHost

pytestmark = [pytest.mark.anyio, pytest.mark.embedded]


async def never() -> None:
    await asyncio.Event().wait()


async def detail(http: httpx.AsyncClient, id: str) -> dict[str, Any]:
    answer = await http.get(f"/v1/tasks/{id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_task_says_what_can_be_done_with_it_and_why_the_rest_cannot(
    http: httpx.AsyncClient, tasks: None
):
    found = {action["name"]: action for action in (await detail(http, "mine"))["actions"]}
    assert {name for name, action in found.items() if action["legal"]} == {"clear", "purge"}
    assert {name for name, action in found.items() if action["destroys"]} == {"cancel", "purge"}
    assert found["cancel"]["reason"] == "It has ended: completed."
    assert found["resume"]["reason"].startswith("Functions cannot be resumed")
    assert found["purge"]["cli"] == "meantime prune mine"


async def test_a_task_says_whether_its_conversation_was_told(
    http: httpx.AsyncClient, thread: Thread, tasks: None
):
    (unread,) = (await detail(http, "mine"))["delivery"]
    assert (unread["state"], unread["turn"], unread["toldAt"], unread["attempts"]) == (
        "unread",
        None,
        None,
        0,
    )
    async with thread.turn() as turn:
        (leased,) = (await detail(http, "mine"))["delivery"]
        assert (leased["state"], leased["turn"], leased["turnNumber"]) == ("leased", turn.id, 1)
        assert leased["leasedAt"] is not None
        await turn.ack()
    (told,) = (await detail(http, "mine"))["delivery"]
    assert (told["state"], told["turn"], told["turnNumber"], told["attempts"]) == ("told", turn.id, 1, 1)
    assert told["toldAt"] is not None
    assert told["leasedAt"] is None


async def test_an_inbox_is_a_line_of_notices_with_their_states(
    http: httpx.AsyncClient, thread: Thread, clock: FakeClock
):
    for at in range(4):
        await (await thread.start(Call(int, "1"), id=f"t-{at}", description=f"work {at}")).wait()
    async with thread.turn(limit=2) as turn:
        await turn.ack()
    first = (await http.get("/v1/threads/conv-1/inbox", params={"limit": 3})).json()
    assert [(one["number"], one["title"], one["state"]) for one in first["notices"]] == [
        (4, "work 3", "unread"),
        (3, "work 2", "unread"),
        (2, "work 1", "told"),
    ]
    assert (first["counts"], first["exact"], first["before"]) == ({"unread": 2, "told": 2}, True, 2)
    rest = (await http.get("/v1/threads/conv-1/inbox", params={"limit": 3, "before": 2})).json()
    assert ([one["number"] for one in rest["notices"]], rest["before"]) == ([1], None)
    for given in ({"limit": MAX_INBOX + 1}, {"limit": 0}, {"before": 0}):
        assert (await http.get("/v1/threads/conv-1/inbox", params=given)).status_code == 400


async def test_a_task_knows_its_usual_duration_and_how_it_compares(
    http: httpx.AsyncClient, mt: Meantime, thread: Thread, clock: FakeClock
):
    task = await thread.start(Call(never), description="Index the repository")
    assert (await detail(http, task.id))["usual"] is None
    runtime: Any = mt._runtime
    name = (await mt.get(task.id)).work.name
    for seconds in (10.0, 20.0, 30.0):
        runtime.usual.estimates.learn(("call", name), seconds)
    await clock.advance(60)
    assert (await detail(http, task.id))["usual"] == {"ms": 20_000, "runs": 3, "ratio": 3.0}
    for seconds in (100.0, 120.0):
        runtime.usual.estimates.learn(("call", name, "title", "Index the repository"), seconds)
    assert (await detail(http, task.id))["usual"] == {"ms": 110_000, "runs": 2, "ratio": 0.55}


async def test_a_task_knows_its_family_and_its_budget(
    http: httpx.AsyncClient, write: httpx.AsyncClient, door: HttpDoor, mt: Meantime, thread: Thread
):
    async def family() -> None:
        for at in range(3):
            await mt.thread("below").start(Call(int, "1"), id=f"child-{at}")

    parent = await thread.start(Call(family), id="parent", batch="b", timeout=60)
    await parent.wait()
    found = await detail(http, "parent")
    children = [child["id"] for child in found["family"]["children"]]
    assert (children, found["family"]["moreChildren"]) == (["child-0", "child-1", "child-2"], False)
    assert found["family"]["batch"]["total"] == 1
    assert (await detail(http, "child-1"))["family"]["parent"]["id"] == "parent"
    asked = {"name": "q", "access": "write", "question": "parent"}
    of_question = (await write.post("/v1/tokens", json=asked)).json()["token"]
    for token in (door.thread_token("conv-1"), of_question):  # the children are of another thread
        seen = await http.get("/v1/tasks/parent", headers={"Authorization": f"Bearer {token}"})
        assert (seen.status_code, seen.json()["family"]["children"]) == (200, [])
    (time,) = found["budget"]
    assert (time["name"], time["limit"]) == ("seconds", 60.0)


async def test_a_conversation_says_who_is_connected_and_which_turn_is_open(
    http: httpx.AsyncClient, write: httpx.AsyncClient, thread: Thread, mt: Meantime, tasks: None
):
    idle = (await http.get("/v1/threads/conv-1")).json()
    assert (idle["hosts"], idle["turn"]) == ([], None)
    async with thread.turn() as turn:
        busy = (await http.get("/v1/threads/conv-1")).json()
        assert (busy["turn"]["id"], busy["turn"]["held"]) == (turn.id, 1)
        (host,) = busy["hosts"]
        assert (host["name"], host["delivery"], host["connected"]) == ("turns", None, True)
    body = {"moment": "user-prompt", "host": "claude-code", "transcript": "/nowhere.jsonl"}
    assert (await write.post("/v1/threads/conv-1/tell", json=body)).status_code == 200
    (hook,) = (await http.get("/v1/threads/conv-1")).json()["hosts"]
    assert (hook["name"], hook["delivery"]) == ("claude-code", "B")
    mt.attach("other", FakeHost())
    (pushed,) = (await http.get("/v1/threads/other")).json()["hosts"]
    assert (pushed["delivery"], pushed["connected"]) == (FakeHost().delivery.grade, True)


def test_hooks_are_remembered_up_to_a_bound():
    hosts = HookHosts()
    for at in range(MOST_KNOWN + 1):
        hosts.seen(Boundary(f"t-{at}", "stop"), float(at))
    assert hosts.of("t-0") is None
    assert hosts.of(f"t-{MOST_KNOWN}") is not None


async def test_usual_durations_are_learned_from_the_ledger_at_the_open(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        for _ in range(3):
            await (await mt.thread("a").start(Call(int, "1"), description="count")).wait()
    async with Meantime.open(tmp_path / "work.db") as mt:
        runtime: Any = mt._runtime
        await runtime.usual.remembering.wait()
        task = await (await mt.thread("a").start(Call(int, "1"), description="count")).wait()
        assert runtime.usual.estimates.usual(task).runs == 4
