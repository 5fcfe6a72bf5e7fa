"""Reminders over HTTP: created, listed, cancelled, told; and every wrong body says what is wrong."""

from __future__ import annotations

import httpx
import pytest

from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio
PATH = "/v1/threads/conv-1/schedules"


async def test_a_reminder_is_created_listed_and_cancelled(write: httpx.AsyncClient, clock: FakeClock) -> None:
    made = await write.post(PATH, json={"text": "look", "delay": "20m"})
    assert made.status_code == 201
    found = made.json()
    assert (found["thread"], found["kind"], found["state"]) == ("conv-1", "delay", "pending")
    at = await write.post("/v1/threads/other/schedules", json={"text": "first", "at": clock.now() + 60})
    listed = (await write.get("/v1/schedules")).json()["schedules"]
    assert [one["text"] for one in listed] == ["first", "look"]
    of_one = (await write.get("/v1/schedules", params={"thread": "other"})).json()["schedules"]
    assert [one["id"] for one in of_one] == [at.json()["id"]]
    for _ in range(2):  # asked again, the answer is the same
        gone = await write.post(f"/v1/schedules/{found['id']}/cancel", json={})
        assert (gone.status_code, gone.json()["state"]) == (200, "cancelled")
    assert len((await write.get("/v1/schedules")).json()["schedules"]) == 1


async def test_an_alarm_is_a_notice_without_a_task(write: httpx.AsyncClient) -> None:
    made = (await write.post(PATH, json={"text": "look", "delay": 0})).json()
    wake = await write.get("/v1/threads/conv-1/wake", params={"timeout": 20})
    assert wake.status_code == 200
    (notice,) = (await write.get("/v1/notices")).json()["notices"]
    assert (notice["id"], notice["kind"], notice["text"]) == (f"{made['id']}.1", "alarm", "look")
    assert (notice["task"], notice["status"], notice["taskId"]) == (None, None, made["id"])
    (entry,) = (await write.get("/v1/threads/conv-1/inbox")).json()["notices"]
    assert (entry["kind"], entry["text"]) == ("alarm", "look")
    turn = (await write.post("/v1/threads/conv-1/turns", json={})).json()
    acked = await write.post(f"/v1/turns/{turn['turn']}/ack", json={"notices": [notice["id"]]})
    assert acked.json() == {"told": [notice["id"]]}
    refused = await write.post(f"/v1/schedules/{made['id']}/cancel", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "ended")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "text"),
        ({"text": "x"}, "at= or delay="),
        ({"text": "x", "delay": 1, "at": 1}, "at= or delay="),
        ({"text": "x", "delay": -1}, "delay=-1"),
        ({"text": "x", "delay": "soon"}, "duration"),
        ({"text": "x", "at": "2030-01-01T10:00"}, "time zone"),
        ({"text": "x" * 4_001, "delay": 1}, "4001"),
        ({"text": "x", "delay": 1, "when": 1}, "when"),
    ],
)
async def test_a_wrong_body_says_what_is_wrong(
    write: httpx.AsyncClient, body: dict[str, object], names: str
) -> None:
    answer = await write.post(PATH, json=body)
    assert answer.status_code == 400
    assert names in answer.json()["error"]
    assert (await write.get("/v1/schedules")).json() == {"schedules": []}


async def test_a_tool_call_reminds_once(write: httpx.AsyncClient) -> None:
    body = {"text": "look", "delay": 60, "toolCallId": "call-1"}
    first = await write.post(PATH, json=body)
    again = await write.post(PATH, json=body)
    assert (first.status_code, again.status_code) == (201, 409)
    assert again.json()["code"] == "duplicate_tool_call"
