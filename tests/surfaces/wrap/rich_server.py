"""An MCP server of the SDK that has one of everything: `python rich_server.py stdio|http [port]`."""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.mcpserver import Audio, Context, Image, MCPServer
from pydantic import BaseModel

server = MCPServer("rich", instructions="One of everything.")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

MEMO = "memo://one"
SUBSCRIBED = set[str]()  # by those who have made a handshake
WAITING, STOPPED = asyncio.Event(), asyncio.Event()


class Weather(BaseModel):
    city: str
    degrees: float


class Colour(BaseModel):
    colour: str


@server.tool()
def weather(city: str) -> Weather:
    """Structured content, with a schema."""
    return Weather(city=city, degrees=21.50)


@server.tool()
def picture() -> Image:
    """An image."""
    return Image(data=PIXEL, format="png")


@server.tool()
def sound() -> Audio:
    """Audio."""
    return Audio(data=b"RIFFsound", format="wav")


@server.tool()
def embedded() -> list[Any]:
    """An embedded resource, and a link."""
    inner = types.TextResourceContents(uri="memo://inside", text="inside", mime_type="text/plain")
    return [
        types.EmbeddedResource(type="resource", resource=inner),
        types.ResourceLink(type="resource_link", uri="memo://linked", name="linked"),
    ]


@server.tool()
def breaks() -> str:
    """Raises."""
    raise ValueError("this tool is broken")


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Reports progress."""
    for step in range(count):
        await ctx.report_progress(step + 1, count, f"step {step + 1}")
    return f"{count} steps"


@server.tool()
async def logs(ctx: Context) -> str:
    """Writes to the client's log."""
    await ctx.info("from the tool")
    return "logged"


@server.tool()
async def samples(ctx: Context) -> str:
    """Asks the client's model."""
    asked = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="say something"))
    found = await ctx.session.create_message(messages=[asked], max_tokens=10)
    return f"the model said {found.content.text}"  # type: ignore[union-attr]


@server.tool()
async def elicits(ctx: Context) -> str:
    """Asks the client's person."""
    found = await ctx.elicit("Which colour?", Colour)
    return f"{found.action} {getattr(found, 'data', None)}"


@server.tool()
async def roots(ctx: Context) -> str:
    """Asks for the client's folders."""
    found = await ctx.session.list_roots()
    return ", ".join(str(root.uri) for root in found.roots)


@server.tool()
async def grows(ctx: Context) -> str:
    """Has one tool more afterwards."""

    def grown() -> str:
        """New."""
        return "new"

    server.add_tool(grown)
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
async def touches(ctx: Context) -> str:
    """Tells those who have subscribed to a resource that it has changed, in both ways of the protocol."""
    await ctx.notify_resource_updated(MEMO)
    if MEMO in SUBSCRIBED:
        await ctx.session.send_resource_updated(MEMO)
    return f"touched: {sorted(SUBSCRIBED)}"


@server.tool()
async def opens(gate: str) -> str:
    """Waits for the other end of a FIFO."""
    await anyio.to_thread.run_sync(Path(gate).read_text)
    return "through"


@server.tool()
async def waits() -> str:
    """Until it is cancelled."""
    WAITING.set()
    try:
        await anyio.sleep_forever()
    finally:
        STOPPED.set()
    return "not cancelled"


@server.tool()
async def is_waiting() -> str:
    """Answers when `waits` does."""
    await WAITING.wait()
    return "waiting"


@server.tool()
async def was_stopped() -> str:
    """Answers when `waits` was cancelled."""
    with anyio.move_on_after(120):
        await STOPPED.wait()
    stopped = STOPPED.is_set()
    STOPPED.clear()
    WAITING.clear()
    return f"stopped: {stopped}"


@server.resource(MEMO)
def one() -> str:
    """A text."""
    return "the first memo"


@server.resource("memo://{name}/page")
def page(name: str) -> str:
    """By name."""
    return f"the page of {name}"


@server.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Greet {name}."


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
    return types.Completion(values=[f"{argument.value}{end}" for end in ("a", "b")], total=2, has_more=False)


async def in_pages(ctx: Any, params: Any) -> types.ListPromptsResult:
    """One prompt a page."""
    at = int(getattr(params, "cursor", None) or 0)
    names = ["greet", "second", "third"]
    more = str(at + 1) if at + 1 < len(names) else None
    return types.ListPromptsResult(prompts=[types.Prompt(name=names[at])], next_cursor=more)


async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    SUBSCRIBED.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    SUBSCRIBED.discard(str(params.uri))
    return types.EmptyResult()


low: Any = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]  the one way to pages and subscriptions
low.add_request_handler("prompts/list", types.PaginatedRequestParams, in_pages)
low.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
low.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
