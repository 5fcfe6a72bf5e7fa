"""MCP tasks, by the extension (SEP-2663) and by 2025-11-25: they are the ledger's own tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from tests.waiting import LIMIT, until_async

from meantime import Meantime, Shell

from .conftest import MODERN, OLDER, Direct, code, notices, texts
from .tasking import ANY, EXTENSION, Following, ask, call_as_task, over, result

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(direct: Direct, era: str) -> AsyncIterator[Client]:
    async with Client(direct.door.server, mode=era, extensions=[advertise(EXTENSION)]) as client:
        yield client


@pytest.fixture
async def modern(direct: Direct) -> AsyncIterator[Client]:
    async with Client(direct.door.server, mode=MODERN, extensions=[Following()]) as client:
        yield client


async def test_it_is_said(client: Client, era: str):
    capabilities = client.server_capabilities
    assert capabilities is not None
    if era == MODERN:
        assert EXTENSION in (capabilities.extensions or {})
    else:
        assert capabilities.tasks is not None
        start = (await client.list_tools()).tools[0]
        assert start.execution is not None
        assert start.execution.task_support == "optional"


async def test_a_call_becomes_a_task_and_has_its_result(client: Client, era: str, mt: Meantime):
    task = await call_as_task(client, era, "start", {"command": "echo out", "description": "say it"})
    id = task["taskId"]
    assert task["status"] == "working"
    assert len(id) >= 28
    assert (await mt.get(id)).thread == "conv-1"  # it is on record before the answer
    state = await over(client, id)
    assert state["status"] == "completed"
    found = await result(client, era, id)
    assert found["content"][0]["text"] == "out\n"
    assert not found["isError"]


async def test_a_client_of_the_sdk_follows_it_by_itself(modern: Client):
    answer = await modern.call_tool("start", {"command": "echo followed"})
    assert texts(answer) == ["followed\n"]


async def test_a_command_that_fails(client: Client, era: str):
    task = await call_as_task(client, era, "start", {"command": "echo why; exit 3"})
    state = await over(client, task["taskId"])
    assert state["status"] == ("completed" if era == MODERN else "failed")
    found = await result(client, era, task["taskId"])
    assert found["isError"]
    assert "exit code 3" in found["content"][0]["text"]
    assert "why" in found["content"][0]["text"]


async def test_a_task_of_mcp_is_cancelled_once(client: Client, era: str):
    id = (await call_as_task(client, era, "start", {"command": "sleep 600"}))["taskId"]
    answer = await ask(client, "tasks/cancel", taskId=id)
    assert answer.get("taskId") == (None if era == MODERN else id)
    assert (await over(client, id))["status"] == "cancelled"
    if era == MODERN:
        await ask(client, "tasks/cancel", taskId=id)
    else:
        with pytest.raises(MCPError, match="has ended"):
            await ask(client, "tasks/cancel", taskId=id)


async def test_others_are_not_found(client: Client, era: str, mt: Meantime):
    """Another conversation's, one that was no task of MCP, the beginning of an id, an id that is none."""
    theirs = Direct(mt, "other")
    await theirs.held.start("start", {"command": "sleep 600"})
    other = (await mt.thread("other").list())[0].id
    plain = await mt.thread("conv-1").start(Shell("sleep 600"))
    own = (await call_as_task(client, era, "start", {"command": "sleep 600"}))["taskId"]
    for id in (other, plain.id, own[:-1], "no such id!", "x" * 10_000):
        for method in ("tasks/get", "tasks/cancel"):
            with pytest.raises(MCPError) as refused:
                await ask(client, method, taskId=id)
            assert (refused.value.code, refused.value.message) == (-32602, "Task not found.")
    assert (await mt.get(other)).status == "running"


async def test_they_outlive_the_door(direct: Direct, era: str, mt: Meantime):
    extensions = [advertise(EXTENSION)]
    async with Client(direct.door.server, mode=era, extensions=extensions) as client:
        id = (await call_as_task(client, era, "start", {"command": "echo late"}))["taskId"]
    await direct.held.close()
    async with Client(Direct(mt).door.server, mode=era, extensions=extensions) as client:
        assert (await result(client, era, id))["content"][0]["text"] == "late\n"


async def test_who_follows_a_task_is_not_told_as_well(client: Client, direct: Direct, era: str, mt: Meantime):
    id = (await call_as_task(client, era, "start", {"command": "true"}))["taskId"]
    await (mt.thread("conv-1")).wait(id)
    assert notices(await client.call_tool("list", {})) == []
    await result(client, era, id)
    await until_async(lambda: _all_told(mt), "all are told")


async def _all_told(mt: Meantime) -> bool:
    return not await mt.notices("unread", "leased", thread="conv-1")


async def test_who_declares_tasks_and_never_asks_is_told(
    client: Client, direct: Direct, era: str, mt: Meantime
):
    id = (await call_as_task(client, era, "start", {"command": "true"}))["taskId"]
    await mt.thread("conv-1").wait(id)
    direct.held.inbox._followed.clear()  # a minute later
    assert notices(await client.call_tool("list", {})) == [f"{id}.1"]


async def test_without_the_extension_there_are_none(direct: Direct):
    async with Client(direct.door.server, mode=MODERN) as client:
        answer = await client.call_tool("start", {"command": "sleep 600"})
        assert texts(answer)[0].startswith("Started t_")
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as refused:
                await ask(client, method, taskId="t_any")
            assert refused.value.code == -32021


async def test_a_start_that_is_refused(client: Client, era: str):
    if era == OLDER:
        with pytest.raises(MCPError, match="no command"):
            await call_as_task(client, era, "start", {"command": ""})
        with pytest.raises(MCPError, match="cannot be called as a task"):
            await call_as_task(client, era, "list", {})
    else:
        answer = await client.session.call_tool("start", {"command": ""}, allow_claimed=True)
        assert code(answer) == "invalid_input"  # type: ignore[arg-type]


async def test_methods_of_the_other_protocol(client: Client, era: str):
    id = (await call_as_task(client, era, "start", {"command": "true"}))["taskId"]
    if era == MODERN:
        assert (await ask(client, "tasks/update", taskId=id, inputResponses={}))["resultType"] == "complete"
    else:
        assert [task["taskId"] for task in (await ask(client, "tasks/list"))["tasks"]] == [id]
    for method in ("tasks/result", "tasks/list") if era == MODERN else ("tasks/update",):
        with pytest.raises(MCPError) as refused:
            await ask(client, method, taskId=id)
        assert refused.value.code == -32601


async def test_a_client_that_listens_hears_the_end(direct: Direct):
    """And nothing of what it may not know."""
    following = Following()
    async with Client(direct.door.server, mode=MODERN, extensions=[following]) as client:
        task = await direct.held.start("start", {"command": ["cat"], "stdin": True})
        wanted = types.SubscriptionFilter.model_validate({"taskIds": [task.id, "t_other"]})
        params = types.SubscriptionsListenRequestParams(notifications=wanted)
        request = types.SubscriptionsListenRequest(params=params)
        listening = asyncio.create_task(client.session.send_request(request, ANY))
        async with asyncio.timeout(LIMIT):
            assert (await following.heard.get())["status"] == "working"
            await client.call_tool("send", {"id": task.id, "eof": True})
            while (told := await following.heard.get())["status"] == "working":
                pass
        assert (told["taskId"], told["status"]) == (task.id, "completed")
        assert told["result"]["isError"] is False
        assert not listening.done()
        listening.cancel()
        await until_async(lambda: direct.door.listening._streams == 0, "the stream is closed")
