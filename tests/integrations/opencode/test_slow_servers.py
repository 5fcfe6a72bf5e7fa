"""A server that is slow is not one that has ended. No real server is slow at will: this one is a stand-in,
behind the real stream of events and the real turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.waiting import LIMIT

from meantime.integrations.opencode import session_turn
from meantime.integrations.opencode.errors import Away
from meantime.integrations.opencode.wire.server_events import ServerEvents
from meantime.ports.session import AgentSettings, Brief, Prompt, Turned

pytestmark = [pytest.mark.anyio, pytest.mark.agents]
SESSION = "ses_slow"


class Server:
    """A session that is idle at once, and writes down how its turn ended some looks later."""

    def __init__(self, slow: int) -> None:
        self.looks_left = slow
        self.breaks_at = -1  # so many looks left
        self._broken = asyncio.Event()
        self._message: dict[str, Any] = {}

    async def session(self, id: str) -> dict[str, Any]:
        return {"id": id, "directory": "/"}

    async def message(self, id: str, message: str, directory: str) -> None:
        return None

    async def prompt(self, id: str, directory: str, body: Mapping[str, Any]) -> None:
        self._message = {"info": {"id": body["messageID"], "role": "user"}, "parts": body["parts"]}

    async def status(self, directory: str) -> dict[str, Any]:
        return {}

    async def messages(self, id: str, directory: str, limit: int | None = None) -> list[dict[str, Any]]:
        self.looks_left -= 1
        if self.looks_left == self.breaks_at:
            self._broken.set()
        ended = {"completed": 2} if self.looks_left < 0 else {}
        info = {"id": "msg_z", "role": "assistant", "time": {"created": 1, **ended}, "finish": "stop"}
        parts = [{"id": "prt_z", "messageID": "msg_z", "type": "text", "text": "Done."}]
        return [self._message, {"info": info, "parts": parts}] if self._message else []

    async def nothing(self, *_: object) -> list[Any]:
        return []

    children = permissions = questions = nothing

    @asynccontextmanager
    async def events(self) -> AsyncGenerator[AsyncGenerator[bytes]]:
        async def said() -> AsyncGenerator[bytes]:
            yield msgspec.json.encode({"type": "server.connected", "properties": {}})
            await self._broken.wait()
            self._broken.clear()
            raise Away("it broke")

        yield said()


class Reached:
    def __init__(self, server: Server) -> None:
        self._both: Any = (server, ServerEvents(server))  # type: ignore[arg-type]

    async def reach(self) -> Any:
        return self._both


class Nobody:
    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("BLIND", 0.01), ("GRACE", 0.05), ("CALM", 2 * LIMIT)):
        monkeypatch.setattr(session_turn, name, seconds)


async def turned(server: Server, folder: Path) -> Turned:
    brief = Brief("t_1", "any", AgentSettings(runner="opencode"), "/", "", "conv-1", folder)
    turn = session_turn.SessionTurn(Reached(server), SESSION, Prompt("go", "key"), brief, Nobody())  # type: ignore[arg-type]
    async with asyncio.timeout(LIMIT):
        return await turn.run()


async def test_one_that_was_heard_all_the_time_has_time(tmp_path: Path):
    assert (await turned(Server(slow=30), tmp_path)).text == "Done."


async def test_one_that_was_not_heard_for_a_moment_may_be_another(tmp_path: Path):
    server = Server(slow=1_000_000)
    server.breaks_at = 999_990
    assert (await turned(server, tmp_path)).lost == session_turn.LOST
