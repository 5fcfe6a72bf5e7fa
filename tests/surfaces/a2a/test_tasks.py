"""A2A over JSON-RPC: a task of A2A is a run, and its states are those of the run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT

from meantime.surfaces.http.issued_tokens import Grant

from .conftest import Site, call, result, saying

pytestmark = pytest.mark.anyio


async def test_an_agent_has_a_card_with_its_own_address(site: Site):
    card = (await site.client.get("/a2a/explore/.well-known/agent-card.json")).json()
    assert (card["name"], card["description"]) == ("explore", "Looks")
    (interface,) = card["supportedInterfaces"]
    assert interface == {
        "url": f"{site.door.url}/a2a/explore",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
    }
    missing = await site.client.get("/a2a/nobody/.well-known/agent-card.json")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_agent")


async def test_messages_of_one_context_are_tasks_in_one_session(site: Site):
    first = (await result(site, "SendMessage", saying("look")))["task"]
    assert first["status"]["state"] == "TASK_STATE_COMPLETED"
    assert first["artifacts"][0]["parts"] == [{"text": "done: look"}]
    second = (await result(site, "SendMessage", saying("again", contextId=first["contextId"])))["task"]
    assert (second["contextId"], second["id"] != first["id"]) == (first["contextId"], True)
    assert [one["parts"][0]["text"] for one in second["history"]] == ["again", "done: again"]
    assert len(site.host.sessions) == 1
    assert await result(site, "GetTask", {"id": first["id"]}) == first
    short = await result(site, "GetTask", {"id": first["id"], "historyLength": 0})
    assert "history" not in short
    listed = await result(site, "ListTasks", {"contextId": first["contextId"], "pageSize": 1})
    assert [one["id"] for one in listed["tasks"]] == [second["id"]]
    rest = {"contextId": first["contextId"], "pageSize": 1, "pageToken": listed["nextPageToken"]}
    last = await result(site, "ListTasks", rest)
    assert ([one["id"] for one in last["tasks"]], last["nextPageToken"]) == ([first["id"]], "")
    everything = await result(site, "ListTasks", {"status": "TASK_STATE_COMPLETED"})
    assert (len(everything["tasks"]), everything["totalSize"]) == (1, 1)


async def test_a_question_requires_input_and_a_message_answers_it(site: Site):
    asked = (await result(site, "SendMessage", saying("may I?")))["task"]
    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    text = asked["status"]["message"]["parts"][0]["text"]
    assert text == "May I run it?\nAnswer with one of: allow, always, reject."
    done = (await result(site, "SendMessage", saying("allow", taskId=asked["id"])))["task"]
    assert (done["id"], done["status"]["state"]) == (asked["id"], "TASK_STATE_COMPLETED")
    assert done["artifacts"][0]["parts"][0]["text"] == "allowed: True, by user"
    late = await call(site, "SendMessage", saying("x", taskId=asked["id"]))
    assert (late["error"]["code"], late["error"]["data"][0]["reason"]) == (-32004, "TASK_ENDED")


async def test_a_failure_is_failed_with_its_text(site: Site):
    task = (await result(site, "SendMessage", saying("fail")))["task"]
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert "it broke" in task["status"]["message"]["parts"][0]["text"]


async def test_a_task_is_canceled_once(site: Site):
    task = (await result(site, "SendMessage", saying("slow", at_once=True)))["task"]
    assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    done = await result(site, "CancelTask", {"id": task["id"]})
    assert done["status"]["state"] == "TASK_STATE_CANCELED"
    assert (await call(site, "CancelTask", {"id": task["id"]}))["error"]["code"] == -32002


async def events(answer: httpx.Response) -> list[dict[str, Any]]:
    lines = [line async for line in answer.aiter_lines()]
    return [json.loads(line[6:])["result"] for line in lines if line.startswith("data: ")]


def rpc(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


async def test_a_stream_has_the_task_its_words_its_result_and_its_state(site: Site):
    body = rpc("SendStreamingMessage", saying("call it"))
    async with site.client.stream("POST", "/a2a/explore", json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = await events(answer)
    assert "task" in found[0]
    said = [one["statusUpdate"]["status"] for one in found if "statusUpdate" in one]
    words = [one["message"]["parts"][0]["text"] for one in said if "message" in one]
    assert words in (["done: call it"], [])  # it may be part of the task already
    assert said[-1]["state"] == "TASK_STATE_COMPLETED"
    artifacts = [one["artifactUpdate"]["artifact"] for one in found if "artifactUpdate" in one]
    assert [one["parts"] for one in artifacts] == [[{"text": "done: call it"}]]


async def test_a_client_subscribes_to_a_task_that_runs(site: Site):
    task = (await result(site, "SendMessage", saying("slow", at_once=True)))["task"]
    await asyncio.wait_for(site.begun.wait(), LIMIT)
    body = rpc("SubscribeToTask", {"id": task["id"]})
    async with site.client.stream("POST", "/a2a/explore", json=body) as answer:
        reading = asyncio.ensure_future(events(answer))
        site.gate.set()
        found = await asyncio.wait_for(reading, LIMIT)
    assert found[0]["task"]["id"] == task["id"]
    assert found[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    ended = await call(site, "SubscribeToTask", {"id": task["id"]})
    assert ended["error"]["code"] == -32004


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("Nonsense", {}, -32601),
        ("SendMessage", {}, -32602),
        ("SendMessage", {"message": {"messageId": "m", "parts": []}}, -32602),
        ("SendMessage", saying(" "), -32602),
        ("SendMessage", saying("x", role="ROLE_AGENT"), -32602),
        ("SendMessage", saying("x", parts=[{"url": "file:///etc/passwd"}]), -32005),
        ("SendMessage", saying("x", contextId="a/b"), -32602),
        ("SendMessage", saying("x", taskId="t_none.1"), -32001),
        ("GetTask", {"id": "nope"}, -32001),
        ("GetTask", {"id": "x" * 5_000}, -32602),
        ("ListTasks", {"pageSize": 101}, -32602),
        ("ListTasks", {"pageToken": "nonsense"}, -32602),
        ("GetTaskPushNotificationConfig", {"taskId": "t_none.1", "id": "x"}, -32001),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_bad_input_gets_an_error_of_the_protocol(site: Site, method: str, params: Any, code: int):
    found = await call(site, method, params)
    assert (found["id"], found["error"]["code"]) == ("1", code), found
    assert found["error"]["message"]


async def test_what_is_not_json_rpc_gets_an_error_of_json_rpc(site: Site):
    headers = {"Content-Type": "application/json"}
    for body, code in ((b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"1.0","method":"x"}', -32600)):
        answer = await site.client.post("/a2a/explore", content=body, headers=headers)
        assert (answer.json()["id"], answer.json()["error"]["code"]) == (None, code)
    old = await call(site, "GetTask", {"id": "x"}, headers={"A2A-Version": "0.3"})
    assert old["error"]["code"] == -32009


async def test_writing_needs_a_token_and_a_thread_sees_no_other(site: Site):
    task = (await result(site, "SendMessage", saying("look", contextId="theirs")))["task"]
    _, read = await site.door._tokens.issued.issue(Grant("read"), "reader")
    reader = {"x-api-key": read}
    assert (await result(site, "GetTask", {"id": task["id"]}, headers=reader))["id"] == task["id"]
    refused = await site.client.post("/a2a/explore", json=rpc("SendMessage", saying("x")), headers=reader)
    assert (refused.status_code, refused.json()["code"]) == (403, "read_only_token")
    bound = {"x-api-key": site.door.thread_token("mine")}
    hidden = await call(site, "GetTask", {"id": task["id"]}, headers=bound)
    assert hidden["error"]["code"] == -32001
    mine = (await result(site, "SendMessage", saying("look"), headers=bound))["task"]
    assert mine["contextId"] == "mine"
    other = await call(site, "SendMessage", saying("look", contextId="theirs"), headers=bound)
    assert other["error"]["code"] == -32001
