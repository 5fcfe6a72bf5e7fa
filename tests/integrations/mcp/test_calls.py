"""F4: an MCP tool is a task like any other, with its result, its failure, its progress."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Failed, InvalidInput, Meantime, Thread, Tool
from meantime.testing import FakeClock
from outcomes import completed, failed

from .conftest import PATIENT, Peer, ended, seen

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("F4")
async def test_text_is_the_result(thread: Thread):
    assert completed(await ended(thread, "s/echo", text="hello")).result == "hello"


@pytest.mark.behaviour("F4")
async def test_structured_content_is_the_result_where_there_is_any(thread: Thread):
    assert completed(await ended(thread, "s/add", a=1, b=2)).result == {"sum": 3}


@pytest.mark.behaviour("F4")
async def test_bytes_are_kept_as_a_label(thread: Thread):
    task = await ended(thread, "s/picture")
    text, image, link, blob = completed(task).result
    assert text == {"type": "text", "text": "look"}
    assert image == {"type": "image", "mimeType": "image/png", "bytes": 3_000_000, "omitted": True}
    assert link["uri"] == "file:///a.txt"
    assert blob == {"type": "resource", "uri": "file:///b", "mimeType": "x/y", "bytes": 3, "omitted": True}
    assert task.outcome.spill is None


@pytest.mark.behaviour("F4")
async def test_is_error_is_failed_with_its_text(thread: Thread):
    outcome = (await ended(thread, "s/fails")).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.message) == ("tool_error", "the file is not there")


@pytest.mark.behaviour("F4")
async def test_arguments_that_the_server_does_not_take(thread: Thread):
    outcome = (await ended(thread, "s/wrong")).outcome
    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_arguments"
    assert "path is missing" in outcome.message
    assert outcome.partial == {"field": "path"}


@pytest.mark.behaviour("F4")
async def test_an_error_of_the_servers_own_is_no_lost_connection(thread: Thread, peer: Peer):
    """-32000 is also what a closed connection looks like."""
    outcome = (await ended(thread, "s/own_error")).outcome
    assert isinstance(outcome, Failed)
    assert outcome.code == "server_error"
    assert "the database is away" in outcome.message
    assert len(peer.pids) == 1


@pytest.mark.behaviour("F4")
async def test_an_unknown_tool_names_near_ones(thread: Thread, peer: Peer):
    outcome = (await ended(thread, "s/ehco")).outcome
    assert isinstance(outcome, Failed)
    assert outcome.code == "unknown_tool"
    assert "Did you mean echo?" in outcome.message
    assert peer.lines("calls") == []


@pytest.mark.behaviour("F4")
async def test_an_unknown_server_is_refused_before_anything_is_recorded(mt: Meantime, thread: Thread):
    with pytest.raises(InvalidInput, match=r"Did you mean s\?") as refused:
        await thread.start(Tool("ss/echo"))
    assert refused.value.code == "unknown_server"
    assert await thread.list("all") == []


@pytest.mark.behaviour("F4")
async def test_a_tool_that_asks_for_input_fails_clearly(thread: Thread):
    assert failed(await ended(thread, "s/asks")).code == "input_required"


@pytest.mark.behaviour("F4")
async def test_a_server_that_asks_its_client_is_refused_and_not_left_waiting(thread: Thread):
    assert completed(await ended(thread, "s/samples")).result == "refused"


@pytest.mark.behaviour("F4")
async def test_progress_notifications_are_progress(thread: Thread, peer: Peer):
    handle = await thread.start(Tool("s/gate"))
    progress = await seen(handle, lambda task: task.progress)
    assert (progress.percent, progress.message) == (25.0, "at the gate")
    peer.open_gate()
    assert await handle.result() == "through"


@pytest.mark.breadth
@pytest.mark.behaviour("F4")
async def test_a_flood_of_progress_is_bounded_work(peer: Peer, era: bool):
    servers = {"s": peer.server(modern=era)}
    async with Meantime.open(":memory:", settings=PATIENT, servers=servers, clock=FakeClock()) as mt:
        task = await ended(mt.thread("a"), "s/flood", count=100_000)
        assert completed(task).result == "dry again"
        assert task.progress.percent == pytest.approx(100.0, abs=0.01)
        # The runtime writes at most four times a second, however much is said; and time stands still.
        assert len(await mt._runtime.events(0, 1_000)) < 20


@pytest.mark.behaviour("F4")
async def test_replies_are_never_crossed(thread: Thread, peer: Peer):
    """Sixty calls at once, let go in another order than they came."""
    await thread._tasks.set_limits(thread._tasks.limits().__class__(per_thread=100, total=100))
    handles = [
        await thread.start(Tool("s/gate", {"mark": str(n), "gate": f"gate{n % 7}"})) for n in range(60)
    ]
    await until_async(lambda: len(peer.lines("waiting")) == 60, "all sixty are at their gates")
    for gate in (3, 0, 6, 1, 5, 2, 4):
        peer.open_gate(f"gate{gate}")
    tasks = await thread.wait(*handles, timeout=LIMIT)
    assert [completed(task).result for task in tasks] == [f"through {n}" for n in range(60)]
    assert len(peer.pids) == 1


@pytest.mark.behaviour("F4")
async def test_the_tools_are_listed_and_a_change_is_noticed(mt: Meantime, thread: Thread, peer: Peer):
    assert "echo" in [tool.name for tool in await mt.tools("s")]
    assert completed(await ended(thread, "s/grow", new="fresh", drop="echo")).result == "grown"
    assert completed(await ended(thread, "s/fresh", text="new here")).result == "new here"
    assert failed(await ended(thread, "s/echo", text="?")).code == "unknown_tool"


@pytest.mark.behaviour("F4")
async def test_a_change_that_the_server_keeps_to_itself_is_found_when_it_matters(thread: Thread):
    await ended(thread, "s/grow", new="fresh", quietly=True)
    assert completed(await ended(thread, "s/fresh", text="found")).result == "found"


@pytest.mark.behaviour("F4")
async def test_the_list_is_not_fetched_for_every_call(thread: Thread, peer: Peer):
    await asyncio.gather(*(ended(thread, "s/echo") for _ in range(5)))
    await ended(thread, "s/echo")
    assert len(peer.lines("listings")) == 1


@pytest.mark.behaviour("F4")
async def test_input_that_is_too_big_to_keep_is_still_sent(thread: Thread):
    task = await ended(thread, "s/echo", text="x" * 1_200_000)
    assert task.outcome.spill.bytes == 1_200_000
    assert not task.work.faithful
