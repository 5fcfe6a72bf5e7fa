"""Work that the owner starts by its name: agents and registered tools go over the link like every verb."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.waiting import LIMIT, until_async

from meantime import NotFound, background
from meantime.app.connected_catalog import ConnectedWorks
from meantime.kernel.limits import Limits, PluginDefaults
from meantime.link.frame_connection import Wire
from meantime.link.frames import Frame, Request, Welcome
from meantime.ports.tasks import Options
from meantime.toolset.toolset import Toolset
from outcomes import completed

from .pair import Pair

pytestmark = pytest.mark.anyio


@background
def halved(number: int) -> float:
    return number / 2


async def test_a_connected_process_is_told_the_agents_and_tools_of_its_owner(pair: Pair):
    works = ConnectedWorks(pair.client)
    assert await works.agents() == {}, "its runner of agents takes any name"
    assert "halved" in await works.registered_tools()


async def test_a_registered_tool_runs_at_the_owner(pair: Pair):
    options = Options(tool_call_id="call_1", meta={"by": "us"}, description="halve it")
    task = await ConnectedWorks(pair.client).start_tool("a", "halved", {"number": 5}, options)
    (ended,) = await pair.client.wait([task.id], "a")
    assert (completed(ended).result, ended.executor) == (2.5, None)
    assert (ended.tool_call_id, ended.meta, ended.title) == ("call_1", {"by": "us"}, "halve it")


async def test_an_unknown_tool_is_refused_in_the_owners_words(pair: Pair):
    with pytest.raises(NotFound, match="No tool 'nope' is registered here") as refused:
        await ConnectedWorks(pair.client).start_tool("a", "nope", {}, Options())
    assert "halved" in refused.value.hint


async def test_a_start_whose_answer_is_lost_is_one_task(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    """It has an id of the client's own, so that it can be asked again."""
    sends, lost = Wire.send, 0

    def cut_after(wire: Wire[object], frame: Frame) -> None:
        nonlocal lost
        sends(wire, frame)
        if isinstance(frame, Request) and frame.verb == "start_tool" and not lost:
            lost += 1
            asyncio.get_running_loop().call_soon(pair.cut)

    monkeypatch.setattr(Wire, "send", cut_after)
    async with asyncio.timeout(LIMIT):
        task = await ConnectedWorks(pair.client).start_tool("a", "halved", {"number": 5}, Options())
    assert lost == 1
    assert [one.id for one in await pair.owner.list("all")] == [task.id]


async def test_while_the_owner_is_away_nobody_waits_to_learn_what_it_has(pair: Pair):
    works = ConnectedWorks(pair.client)
    await pair.owner.close()
    await until_async(lambda: not pair.is_up(), "the connection is lost")
    async with asyncio.timeout(LIMIT / 2):  # less than a connection is waited for
        assert (await works.agents(), await works.registered_tools()) == ({}, ())
    await pair.open_owner()


async def test_a_toolset_starts_them_in_one_request(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    toolset = Toolset(pair.client, ConnectedWorks(pair.client), "a")
    await toolset.tools()
    sends, asked = Wire.send, list[str]()

    def counted(wire: Wire[object], frame: Frame) -> None:
        if isinstance(frame, Request):
            asked.append(frame.verb)
        sends(wire, frame)

    monkeypatch.setattr(Wire, "send", counted)
    said = await toolset.call("start_tool", {"name": "halved", "arguments": {"number": 8}})
    assert said.code == "", said.text
    assert asked == ["start_tool"]


# -- two versions


class OlderWelcome(Frame, frozen=True, tag="welcome"):
    version: str
    instance: str
    lease: float
    limits: Limits
    plugins: PluginDefaults = PluginDefaults()


def test_an_older_client_reads_the_welcome_of_today():
    said = msgspec.json.encode(Welcome("1", "i", 60.0, Limits(), has_catalog=True))
    assert msgspec.json.decode(said, type=OlderWelcome).instance == "i"


def test_an_older_owner_has_no_catalog():
    said = msgspec.json.encode(OlderWelcome("1", "i", 60.0, Limits()))
    assert not msgspec.json.decode(said, type=Welcome).has_catalog
