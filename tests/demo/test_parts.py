"""The count at the end and the lines to plug in, by themselves."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Meantime, Message, Shell
from meantime.app.demo.delivery_check import DeliveryCheck, compare, tally
from meantime.app.demo.demo_agent import ScriptedAgent
from meantime.app.demo.demo_screen import DemoScreen
from meantime.app.demo.demo_texts import PLUG_IN
from meantime.app.demo.demo_work import DemoPiece
from meantime.app.demo.replies import Answers


@pytest.mark.parametrize(
    ("ended", "held", "heard", "count"),
    [
        ("bac", "bac", "bac", DeliveryCheck(3, 3, 0, 0, True)),
        ("bac", "abc", "abc", DeliveryCheck(3, 3, 0, 0, False)),
        ("bac", "bac", "baca", DeliveryCheck(3, 3, 1, 0, False)),
        ("bac", "bac", "bbacc", DeliveryCheck(3, 3, 2, 0, False)),
        ("bac", "bc", "bc", DeliveryCheck(3, 2, 0, 1, True)),
        ("bac", "bc", "bac", DeliveryCheck(3, 2, 0, 1, False)),
        ("ba", "bac", "bac", DeliveryCheck(3, 3, 0, 0, False)),
        ("bac", "bacb", "bac", DeliveryCheck(3, 3, 1, 0, False)),
    ],
)
def test_the_count_finds_what_is_wrong(ended: str, held: str, heard: str, count: DeliveryCheck):
    found = compare("abc", ended, held, heard)
    assert found == count
    assert found.sound == (held == heard == ended)


@pytest.mark.anyio
async def test_the_count_believes_the_journal_and_not_the_agent(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        thread = mt.thread("demo")
        agent = ScriptedAgent(thread, Answers(mt), DemoScreen(io.StringIO()))
        await agent.hand_off([DemoPiece("one", Call(int)), DemoPiece("two", Call(str))], timeout=600)
        await asyncio.wait_for(agent.listen(), LIMIT)
        assert await tally(mt, "demo", agent.heard) == DeliveryCheck(2, 2, 0, 0, True)

        twice = [*agent.heard, agent.heard[0]]
        assert (await tally(mt, "demo", twice)).doubled == 1
        assert not (await tally(mt, "demo", agent.heard[::-1])).in_order

        await (await thread.start(Call(int), description="told to somebody else")).wait(LIMIT)
        async with thread.turn() as turn:
            await turn.ack()
        count = await tally(mt, "demo", agent.heard)
        assert (count.handed_off, count.told, count.lost, count.sound) == (3, 2, 1, False)
        assert str(count) == "3 handed off, 2 told, 0 twice, 1 LOST, in order"


@pytest.mark.anyio
async def test_the_lines_to_plug_in_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As they are printed, until the conversation holds what came."""
    monkeypatch.chdir(tmp_path)
    lines = [line for line in PLUG_IN.splitlines() if line.startswith("  ")]
    code = "\n".join(["async def loop(conversation):", *lines]).replace("make test", "echo 12 passed")
    names: dict[str, object] = {"Meantime": Meantime, "Shell": Shell}
    exec(code, names)
    conversation: list[Message] = []
    looping = asyncio.ensure_future(names["loop"](conversation))  # type: ignore[operator]
    await until_async(lambda: conversation or looping.done(), "the conversation holds what came")
    assert not looping.done(), looping.result()
    looping.cancel()
    await asyncio.wait([looping])
    assert "\n12 passed\n" in conversation[0].text
