"""The SDK's client, once with a server and once with the same server behind a wrap: the same answers."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from pydantic import FileUrl
from tests.waiting import LIMIT, until_async

from daemon.conftest import Place

from .conftest import NEVER_SOON, RICH_SERVER, SENTENCE, SOON

pytestmark = [pytest.mark.anyio, pytest.mark.servers]
SUBSCRIBED = "2026-07-28"  # from this protocol on, a client is notified of what it has subscribed to
GREETING = types.PromptReference(type="ref/prompt", name="greet")
MEMO = "memo://one"
CHANGES = types.ToolListChangedNotification | types.ResourceUpdatedNotification
Said = list[Any]


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    """How the SDK calls the protocols with a handshake, and the one without."""
    return request.param


@asynccontextmanager
async def client(target: Any, era: str, said: Said) -> AsyncIterator[Client]:
    async def sampled(context: Any, params: Any) -> types.CreateMessageResult:
        asked = params.messages[0].content.text
        text = types.TextContent(type="text", text=f"you said: {asked}")
        return types.CreateMessageResult(role="assistant", content=text, model="scripted")

    async def elicited(context: Any, params: Any) -> types.ElicitResult:
        said.append(("asked", params.message))
        return types.ElicitResult(action="accept", content={"colour": "blue"})

    async def listed_roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///project"), name="project")])

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        said.append(("logged", params.level, params.data))

    async def noticed(message: Any) -> None:
        if era == "legacy" and isinstance(message, CHANGES):  # otherwise they come to those who listen
            said.append(message.model_dump(mode="json", by_alias=True))

    async with (
        asyncio.timeout(2 * LIMIT),
        Client(
            target,
            mode=era,
            sampling_callback=sampled,
            elicitation_callback=elicited,
            list_roots_callback=listed_roots,
            logging_callback=logged,
            message_handler=noticed,
        ) as made,
    ):
        yield made


Ask = Callable[[Client, Said], Awaitable[Any]]


async def progressed(client: Client, said: Said) -> Any:
    async def note(progress: float, total: float | None, message: str | None) -> None:
        said.append((progress, total, message))

    return await client.call_tool("steps", {"count": 3}, progress_callback=note)


async def paged(client: Client, said: Said) -> Any:
    page = await client.list_prompts()
    while page.next_cursor:
        said.append(page.model_dump(mode="json", by_alias=True))
        page = await client.list_prompts(cursor=page.next_cursor)
    return page


async def cancelled(client: Client, said: Said) -> Any:
    waiting = asyncio.ensure_future(client.call_tool("waits", {}))
    await client.call_tool("is_waiting", {})
    waiting.cancel()
    await asyncio.wait([waiting])
    said.append(("cancelled", waiting.cancelled()))
    return await client.call_tool("was_stopped", {})


async def changed(client: Client, said: Said, tool: str, **wanted: Any) -> Any:
    """With a handshake over HTTP, this notification comes on a stream of its own, which no order ties to the
    stream of the answer."""
    if client.protocol_version < SUBSCRIBED:
        answer = await client.call_tool(tool, {})
        await until_async(lambda: said, "the client is told of the change")
        return answer
    async with client.listen(**wanted) as changes:
        answer = await client.call_tool(tool, {})
        said.append(str(await anext(aiter(changes))))
    return answer


async def subscribed(client: Client, said: Said) -> Any:
    if client.protocol_version >= SUBSCRIBED:
        return await changed(client, said, "touches", resource_subscriptions=[MEMO])
    begin = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=MEMO))
    await client.session.send_request(begin, types.EmptyResult)
    said.append((await changed(client, said, "touches")).model_dump(mode="json", by_alias=True))
    end = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=MEMO))
    await client.session.send_request(end, types.EmptyResult)
    return await client.call_tool("touches", {})


ASKED: dict[str, Ask] = {
    "structured content": lambda c, _: c.call_tool("weather", {"city": "Graz"}),
    "images": lambda c, _: c.call_tool("picture", {}),
    "audio": lambda c, _: c.call_tool("sound", {}),
    "embedded resources and links": lambda c, _: c.call_tool("embedded", {}),
    "errors of tools": lambda c, _: c.call_tool("breaks", {}),
    "unknown tools": lambda c, _: c.call_tool("no-such-tool", {}),
    "bad arguments": lambda c, _: c.call_tool("weather", {"town": 1}),
    "progress": progressed,
    "logging": lambda c, _: c.call_tool("logs", {}),
    "sampling": lambda c, _: c.call_tool("samples", {}),
    "elicitation": lambda c, _: c.call_tool("elicits", {}),
    "roots": lambda c, _: c.call_tool("roots", {}),
    "resources": lambda c, _: c.list_resources(),
    "resource templates": lambda c, _: c.list_resource_templates(),
    "reading a resource": lambda c, _: c.read_resource(MEMO),
    "reading by a template": lambda c, _: c.read_resource("memo://two/page"),
    "unknown resources": lambda c, _: c.read_resource("memo://none"),
    "prompts": lambda c, _: c.list_prompts(),
    "pagination": paged,
    "a prompt": lambda c, _: c.get_prompt("greet", {"name": "Ada"}),
    "completion": lambda c, _: c.complete(GREETING, {"name": "name", "value": "A"}),
    "cancellation": cancelled,
    "subscriptions": subscribed,
    "list-changed": lambda c, said: changed(c, said, "grows", tools_list_changed=True),
    "tools": lambda c, _: c.list_tools(),
}  # fmt: skip


async def answers(target: Any, era: str) -> dict[str, Any]:
    """Everything that the client was told, by what it asked."""
    said: Said = []
    found: dict[str, Any] = {}
    async with client(target, era, said) as made:
        found["the server's name and abilities"] = (
            made.server_info and made.server_info.model_dump(),
            made.server_capabilities and made.server_capabilities.model_dump(),
            made.instructions,
            made.protocol_version,
        )
        for name, ask in ASKED.items():
            try:
                answer: Any = (await ask(made, said)).model_dump(mode="json", by_alias=True)
            except Exception as problem:  # what a client is told of an error is compared, too
                answer = f"{type(problem).__name__}: {problem}"
            found[name] = (answer, list(said))
            said.clear()
    return found


def through_the_wrap(served: Place, thread: str, threshold: float, *words: str) -> StdioServerParameters:
    args = [
        "-m",
        "meantime",
        "mcp",
        "--wrap",
        "--threshold",
        str(threshold),
        "--thread",
        thread,
        "--",
        *words,
    ]
    return StdioServerParameters(command=sys.executable, args=args, env=served.environ)


def assert_the_same(seen: dict[str, Any], own: dict[str, Any]) -> None:
    assert list(seen) == list(own)
    assert len(own["pagination"][1]) == 2, "there was more than one page"
    assert own["cancellation"][0]["content"][0]["text"] == "stopped: True"
    assert own["subscriptions"][1], "it was told of a change"
    assert own["list-changed"][1], "it was told of a change"
    for name in own:
        assert seen[name] == own[name], name


async def test_a_stdio_server_gives_the_same_answers_behind_a_wrap(served: Place, era: str, thread: str):
    words = [sys.executable, str(RICH_SERVER), "stdio"]
    own = await answers(StdioServerParameters(command=words[0], args=words[1:]), era)
    seen = await answers(through_the_wrap(served, thread, -1, *words), era)
    assert_the_same(seen, own)


async def test_a_server_over_http_gives_the_same_answers_behind_a_wrap(
    served: Place, era: str, address: str, thread: str
):
    own = await answers(address, era)
    own = await answers(address, era)  # its list of tools has grown meanwhile
    seen = await answers(through_the_wrap(served, thread, -1, address), era)
    assert_the_same(seen, own)


async def test_tools_that_may_go_to_the_background_promise_no_structured_content(served: Place, thread: str):
    words = [sys.executable, str(RICH_SERVER), "stdio"]
    async with client(StdioServerParameters(command=words[0], args=words[1:]), "legacy", []) as made:
        own = (await made.list_tools()).tools
    async with client(through_the_wrap(served, thread, NEVER_SOON, *words), "legacy", []) as made:
        seen = (await made.list_tools()).tools
        answer = await made.call_tool("weather", {"city": "Graz"})
    assert own[0].output_schema is not None
    said = SENTENCE.format(NEVER_SOON)
    for tool in own:
        tool.output_schema, tool.description = None, f"{tool.description}\n\n{said}"
        tool.execution = types.ToolExecution(task_support="optional")
    assert seen == own
    assert answer.structured_content == {"city": "Graz", "degrees": 21.5}


async def test_a_slow_call_over_http_becomes_a_task(
    served: Place, address: str, era: str, tmp_path: Path, thread: str
):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with client(through_the_wrap(served, thread, SOON, address), era, []) as made:
        answer = await made.call_tool("opens", {"gate": str(gate)})
        task = (answer.meta or {})["meantime/task"]
        await asyncio.to_thread(gate.write_text, "")
        done = await asyncio.to_thread(served.wait, task)
        assert (done["state"], done["result"]) == ("completed", '{"result":"through"}')
