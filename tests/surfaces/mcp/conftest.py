"""A door without a wire, and clients of both protocols at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client
from mcp_types import CallToolResult
from msgspec.structs import replace
from tests.waiting import LIMIT

from daemon.conftest import Place, place  # noqa: F401  a fixture
from meantime import Meantime, Settings
from meantime.app.ledger_owner import LedgerOwner
from meantime.surfaces.mcp.client_conversation import ClientConversation
from meantime.surfaces.mcp.notice_delivery import Ride
from meantime.surfaces.mcp.sdk_server import Context, ToolServer
from meantime.toolset.owner_catalog import OwnerCatalog

MODERN, OLDER = "auto", "legacy"  # how the SDK calls its two ways to begin
QUICK = Settings(stop_grace=0.5, stop_deadline=LIMIT)


class Direct:
    """A carrier whose answers arrive at once, unless it is told otherwise."""

    def __init__(self, mt: Meantime, thread: str = "conv-1", dialect: str = "meantime") -> None:
        self.taken: bool | None = None
        self.arrives = True
        self.rides: list[Ride] = []
        self.tasks = mt._runtime
        works = OwnerCatalog(self.tasks, LedgerOwner(mt._owner.about))
        self.held = ClientConversation(self.tasks, works, thread, lambda: self.taken, dialect)
        guidance = self.held.toolset.dialect.guidance(["start", f"{dialect}_task"])
        self.door = ToolServer(self, "0.1.0", guidance)

    async def conversation(self, ctx: Context) -> ClientConversation:
        return self.held

    def carries(self, ctx: Context, conversation: ClientConversation, ride: Ride) -> None:
        self.rides.append(ride)
        if self.arrives:
            conversation.inbox.sent(ride)


def texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content]  # type: ignore[union-attr]


def code(result: CallToolResult) -> str:
    assert result.is_error
    return (result.meta or {})["meantime/code"]


def notices(result: CallToolResult) -> list[str]:
    return (result.meta or {}).get("meantime/notices", [])


def id_in(result: CallToolResult) -> str:
    """Of the task that a start speaks of."""
    assert not result.is_error, texts(result)
    return texts(result)[0].split()[1].rstrip(":")


@pytest.fixture
async def mt(tmp_path: Path) -> AsyncIterator[Meantime]:
    async with Meantime.open(tmp_path / "work.db", settings=replace(QUICK, on_close="stop")) as mt:
        yield mt


@pytest.fixture
async def direct(mt: Meantime) -> AsyncIterator[Direct]:
    made = Direct(mt)
    yield made
    await made.held.close()


@pytest.fixture(params=[OLDER, MODERN])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def client(direct: Direct, era: str) -> AsyncIterator[Client]:
    async with Client(direct.door.server, mode=era) as client:
        yield client
