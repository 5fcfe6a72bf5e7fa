"""task://inbox and task://<id>: to look at, and to hear of."""

from __future__ import annotations

import asyncio

import pytest
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification
from tests.waiting import LIMIT

from meantime import Meantime, Shell

from .conftest import MODERN, OLDER, Direct, notices

pytestmark = pytest.mark.anyio


async def read(client: Client, uri: str) -> str:
    return (await client.read_resource(uri, cache_mode="refresh")).contents[0].text  # type: ignore[union-attr]


async def test_looking_settles_nothing(client: Client, mt: Meantime):
    assert await read(client, "task://inbox") == "Nothing is unread."
    await (await mt.thread("conv-1").start(Shell("echo said"), id="one")).wait()
    inbox = await read(client, "task://inbox")
    assert 'id="one.1"' in inbox
    assert "Untrusted output:" in inbox
    task = await read(client, "task://one")
    assert "completed" in task
    assert "said" in task
    listed = [resource.uri for resource in (await client.list_resources()).resources]
    assert listed == ["task://inbox", "task://one"]
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "task://{id}"
    assert notices(await client.call_tool("list", {})) == ["one.1"]


@pytest.mark.parametrize("uri", ["task://nothing", "task://theirs", "task://", "file:///etc/passwd"])
async def test_what_is_not_there(client: Client, mt: Meantime, uri: str):
    await mt.thread("other").start(Shell("sleep 60"), id="theirs")
    with pytest.raises(MCPError) as refused:
        await read(client, uri)
    assert refused.value.code == -32602
    assert refused.value.error.data == {"code": "not_found"}


@pytest.mark.filterwarnings("ignore:resources/")
async def test_an_older_client_subscribes(direct: Direct, mt: Meantime):
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await heard.put(message.params.uri)

    async with Client(direct.door.server, mode=OLDER, message_handler=hear) as client:
        await client.subscribe_resource("task://inbox")
        await (await mt.thread("conv-1").start(Shell("true"), id="one")).wait()
        assert await asyncio.wait_for(heard.get(), LIMIT) == "task://inbox"
        handle = await mt.thread("conv-1").start(Shell(["cat"], open_stdin=True), id="two")
        await client.unsubscribe_resource("task://inbox")
        await client.subscribe_resource("task://two")
        await handle.send(eof=True)
        await handle.wait()
        assert await asyncio.wait_for(heard.get(), LIMIT) == "task://two"
    assert not direct.door.listening._subscribed


async def test_a_newer_client_listens(direct: Direct, mt: Meantime):
    async with (
        Client(direct.door.server, mode=MODERN) as client,
        client.listen(resource_subscriptions=["task://inbox"]) as events,
    ):
        await (await mt.thread("conv-1").start(Shell("true"), id="one")).wait()
        async with asyncio.timeout(LIMIT):
            assert await anext(aiter(events)) == ResourceUpdated("task://inbox")
