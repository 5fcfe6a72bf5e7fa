"""GET /v1/tasks?format=rows and GET /v1/overview: what a page shows of many tasks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.waiting import until_async

from meantime import Call, Context, HttpDoor, Meantime, Shell, Thread, current
from meantime.kernel.limits import Limits
from meantime.testing import FakeClock

from .conftest import over_tcp

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]


async def forever() -> None:
    await asyncio.Event().wait()


def fail(text: str) -> None:
    raise ValueError(text)


async def rows(http: httpx.AsyncClient, **asked: Any) -> list[dict[str, Any]]:
    answer = await http.get("/v1/tasks", params={"format": "rows", **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


async def test_a_row_says_how_a_task_ended_and_whether_that_was_told(http: httpx.AsyncClient, thread: Thread):
    await (await thread.start(Call(fail, "no such file\nand more"), id="bad", description="Look")).wait()
    (row,) = await rows(http)
    assert (row["id"], row["title"], row["state"], row["thread"]) == ("bad", "Look", "failed", "conv-1")
    assert row["now"].endswith("no such file")
    assert (row["delivery"]["state"], row["delivery"]["notice"], row["delivery"]["number"]) == (
        "unread", "bad.1", 1,
    )  # fmt: skip
    async with thread.turn() as turn:
        (leased,) = await rows(http)
        assert (leased["delivery"]["state"], leased["delivery"]["turn"]) == ("leased", turn.id)
        await turn.ack()
    (told,) = await rows(http)
    assert (told["delivery"]["state"], told["delivery"]["turn"]) == ("told", turn.id)
    assert told["delivery"]["at"] is not None


async def test_a_row_says_what_runs_now(http: httpx.AsyncClient, thread: Thread, clock: FakeClock):
    contexts: list[Context] = []

    async def work() -> None:
        contexts.append(current())
        await forever()

    await thread.start(Call(work), id="busy", timeout=90)
    await clock.advance(5)
    contexts[0].progress(30, "half\nof it")
    (row,) = await rows(http)
    assert (row["now"], row["percent"], row["silentAfterMs"]) == ("half of it", 30.0, 60_000)
    assert row["lastEventAt"] > row["createdAt"]
    assert row["timeoutAt"] is not None
    for _ in range(3):
        contexts[0].progress(message="", tool="grep")
    assert (await rows(http))[0]["now"] == "grep ×3"
    contexts[0].progress(message="refresh_token", tool="grep", phase="grep")
    assert (await rows(http))[0]["now"] == "grep ×4 · refresh_token"
    contexts[0].progress(phase="thinking", message="")
    assert (await rows(http))[0]["now"] == "thinking"


async def test_a_row_says_why_a_task_is_queued(
    http: httpx.AsyncClient, thread: Thread, mt: Meantime, clock: FakeClock
):
    await mt._runtime.set_limits(Limits(per_thread=1))
    for id in ("first", "second", "third"):
        await thread.start(Call(forever), id=id)
    third, second, _ = await rows(http)
    assert second["now"] == third["now"] == "waits for a slot · 1 of 1 functions"
    assert (second["queuePosition"], third["queuePosition"]) == (1, 2)


async def test_the_last_line_of_a_running_command_is_on_its_row(
    http: httpx.AsyncClient, thread: Thread, tmp_path: Path
):
    done = tmp_path / "done"
    script = (
        f"echo one; printf '\\033[31mtwo\\033[0m\\n'; while [ ! -e {done} ]; do sleep 0.05; done; echo three"
    )
    handle = await thread.start(Shell(script), id="said")

    async def said_two() -> dict[str, Any]:
        (row,) = await rows(http)
        return row if row["now"] == "two" else {}

    row = await until_async(said_two, "its last line is on the row")
    assert row["lastEventAt"] is not None
    done.touch()
    await handle.wait()
    (row,) = await rows(http)
    assert (row["now"], row["exitCode"]) == ("three", 0)  # of a command that completed, its last line


async def test_pages_of_rows_go_on_by_a_cursor(http: httpx.AsyncClient, thread: Thread):
    for number in range(7):
        await (await thread.start(Call(int, "1"), id=f"n{number}")).wait()
    first = (await http.get("/v1/tasks?format=rows&limit=3")).json()
    assert ([row["id"] for row in first["rows"]], first["total"]) == (["n6", "n5", "n4"], 7)
    assert first["totalExact"]
    await thread.start(Call(forever), id="new")
    second = (await http.get(f"/v1/tasks?format=rows&limit=3&cursor={first['cursor']}")).json()
    assert [row["id"] for row in second["rows"]] == ["n3", "n2", "n1"]
    third = (await http.get(f"/v1/tasks?format=rows&limit=3&cursor={second['cursor']}")).json()
    assert ([row["id"] for row in third["rows"]], third["cursor"]) == (["n0"], None)


@pytest.mark.parametrize("cursor", ["x", "p", "p-1", "p1e9", "p" + "9" * 30, "pп"])
async def test_a_cursor_that_is_not_ours_is_refused(http: httpx.AsyncClient, cursor: str):
    answer = await http.get("/v1/tasks", params={"format": "rows", "cursor": cursor})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_cursor")


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "\x1b[31mred\n" * 500, "\u202eevil\x00", "<script>alert(1)</script>"]
)
async def test_every_text_of_a_row_is_one_short_line(http: httpx.AsyncClient, thread: Thread, text: str):
    described = text[:2_000]
    await (await thread.start(Call(fail, text), description=described)).wait()
    (row,) = await rows(http)
    for name in ("title", "now"):
        assert len(row[name]) <= 200
        assert not {"\n", "\x1b", "\x00", "\u202e"} & set(row[name])


async def test_the_overview_counts_everything(
    http: httpx.AsyncClient, thread: Thread, mt: Meantime, clock: FakeClock
):
    await (await thread.start(Call(int, "1"), batch="nightly")).wait()
    await (await thread.start(Call(fail, "no"), batch="nightly")).wait()
    await thread.start(Call(forever), batch="nightly")
    await mt.thread("other").start(Call(forever))
    found = (await http.get("/v1/overview")).json()
    counts = {name: count for name, count in found["counts"].items() if count}
    assert counts == {"all": 4, "running": 2, "completed": 1, "failed": 1}
    assert found["failedLastHour"] == {"failed": 1, "total": 2}
    assert found["running60"][-1] == 2
    assert len(found["running60"]) == 60
    assert found["slots"]["used"] == 2
    assert found["batches"] == [
        {"id": "nightly", "thread": "conv-1", "done": 1, "failed": 1, "active": 1, "total": 3}
    ]
    assert [one["id"] for one in found["threads"]] == ["other", "conv-1"]
    mine = found["threads"][1]
    assert (mine["active"], mine["unread"], mine["leased"], mine["parked"]) == (1, 2, 0, 0)
    assert found["late"] == {"lateOrParked": 0, "total": 2}
    await clock.advance(61)
    assert (await http.get("/v1/overview")).json()["late"] == {"lateOrParked": 2, "total": 2}
    await thread.clear()
    assert (await http.get("/v1/overview")).json()["counts"]["all"] == 2


async def test_the_token_of_a_thread_sees_its_own_numbers(
    door: HttpDoor, thread: Thread, mt: Meantime, tasks: None
):
    headers = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    async with over_tcp(door.url, headers=headers) as http:
        found = (await http.get("/v1/overview")).json()
        assert [row["id"] for row in await rows(http)] == ["mine"]
    assert (found["counts"]["all"], [one["id"] for one in found["threads"]]) == (1, ["conv-1"])
    assert found["running60"] == []
    assert found["slots"] == {"used": 0, "total": -1, "queued": 0}


async def test_threads_and_batches_of_the_overview_are_bounded(http: httpx.AsyncClient, mt: Meantime):
    for number in range(70):
        await mt.thread(f"c{number}").start(Call(int, "1"), batch="same")
    found = (await http.get("/v1/overview")).json()
    assert (len(found["threads"]), len(found["batches"])) == (50, 20)
    assert found["threads"][0]["id"] == "c69"


async def test_a_failed_command_says_its_exit_code_and_its_last_line(http: httpx.AsyncClient, thread: Thread):
    for id, command in (
        ("loud", "echo 409 passed; echo '3 failed, 409 passed'; echo; exit 3"),
        ("mute", "exit 3"),
    ):
        await (await thread.start(Shell(command), id=id)).wait()
    now = {row["id"]: row["now"] for row in await rows(http)}
    assert now == {"loud": "exit 3 · 3 failed, 409 passed", "mute": "It ended with exit code 3."}
