"""Against fastmcp-tasks, which made its tasks without us, in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.client import ClientSession
from tests.waiting import LIMIT, until_async

from meantime import Failed, HttpServer, Meantime, Status, StdioServer, Tool
from outcomes import completed

from . import foreign
from .conftest import PATIENT, Peer, ended, http_server, seen

pytestmark = [pytest.mark.anyio, foreign.needed, pytest.mark.servers]
SERVER = str(Path(__file__).parent / "peers" / "foreign.py")
WAIT = "mcp.client.session.DISCOVER_TIMEOUT_SECONDS"


@pytest.fixture
def http() -> Iterator[HttpServer]:
    with http_server([foreign.PYTHON, SERVER, "http"]) as url:
        yield HttpServer(url=url, start_timeout=LIMIT)


@pytest.fixture
def stdio() -> StdioServer:
    return StdioServer(command=[foreign.PYTHON, SERVER, "stdio"], start_timeout=LIMIT)


@pytest.mark.parametrize("wire", ["stdio", "http"])
async def test_its_tasks_are_followed_and_cancelled(peer: Peer, wire: str, request: pytest.FixtureRequest):
    server: StdioServer | HttpServer = request.getfixturevalue(wire)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": server}) as mt:
        thread = mt.thread("a")
        broken = (await ended(thread, "s/breaks")).outcome
        assert isinstance(broken, Failed)
        assert "this one is broken" in broken.message
        folder = str(peer.folder)
        unwanted, wanted = [
            await thread.start(Tool("s/gate", {"mark": mark, "folder": folder})) for mark in ("no", "m")
        ]
        for handle in (unwanted, wanted):
            await seen(handle, lambda task: task.session)
        await until_async(lambda: len(peer.lines("calls")) == 2, "both calls are under way")
        assert (await thread.cancel(unwanted, wait=True)).task.status is Status.CANCELLED
        await until_async(lambda: peer.lines("stopped") == ["no"], "it is cancelled there, too")
        peer.open_gate()
        (task,) = await thread.wait(wanted, timeout=LIMIT)
        assert completed(task).result == {"result": "through m"}


async def test_a_server_that_begins_slowly_is_asked_again(
    stdio: StdioServer, monkeypatch: pytest.MonkeyPatch
):
    """The SDK gives up its first question after 10 seconds, as a server that npx downloads first may take. It
    reads that question after all, and then the handshake that we made instead, which it refuses."""
    shake_hands = ClientSession.initialize

    async def once_patient(session: ClientSession) -> object:
        monkeypatch.setattr(WAIT, LIMIT)
        return await shake_hands(session)

    monkeypatch.setattr(WAIT, 0.01)
    monkeypatch.setattr(ClientSession, "initialize", once_patient)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": stdio}) as mt:
        broken = (await ended(mt.thread("a"), "s/breaks")).outcome
        assert isinstance(broken, Failed)
        assert "this one is broken" in broken.message


async def test_its_task_is_taken_up_by_our_next_owner(tmp_path: Path, peer: Peer, http: HttpServer):
    given = {"mark": "m", "folder": str(peer.folder)}
    async with Meantime.open(tmp_path / "work.db", settings=PATIENT, servers={"s": http}) as mt:
        handle = await mt.thread("a").start(Tool("s/gate", given))
        await seen(handle, lambda task: task.session)
        await until_async(lambda: peer.lines("calls"), "the call is under way")
    peer.open_gate()
    async with Meantime.open(tmp_path / "work.db", settings=PATIENT, servers={"s": http}) as mt:
        (task,) = await mt.thread("a").wait(handle.id, timeout=LIMIT)
        assert completed(task).result == {"result": "through m"}
    assert peer.lines("calls") == ["m"]
