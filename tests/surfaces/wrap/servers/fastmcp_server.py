"""A server as its author writes one with fastmcp, which knows nothing of us."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastmcp import Context, FastMCP  # pyright: ignore[reportMissingImports]

server = FastMCP("shop", instructions="Ask for a price.")


@server.tool
def price(article: str, count: int = 1) -> dict[str, object]:
    """What it costs."""
    return {"article": article, "total": 2.5 * count}


@server.tool
async def counted(context: Context, count: int) -> str:
    """Counts, and says how far it is."""
    for at in range(count):
        await context.report_progress(at + 1, count)
        await context.info(f"at {at + 1}")
    return f"counted to {count}"


@server.tool
async def bake(article: str, oven: str) -> str:
    """Bakes until `done` is there, in the folder that is the oven."""
    with Path(oven, "orders").open("a") as orders:  # noqa: ASYNC230  it is short
        print(article, file=orders)
    while not Path(oven, "done").exists():  # noqa: ASYNC110  nobody tells it
        await asyncio.sleep(0.1)
    return f"baked: {article}"


@server.tool
def broken() -> str:
    """Fails."""
    raise ValueError("out of stock")


@server.resource("shop://articles")
def articles() -> list[str]:
    return ["tea", "cake"]


@server.prompt
def offer(article: str) -> str:
    return f"Offer me some {article}."


if __name__ == "__main__":
    server.run("stdio", show_banner=False)
