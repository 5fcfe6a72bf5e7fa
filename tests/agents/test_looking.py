"""What an agent does can be seen while it does it, and afterwards: counts, words, lines, partial work."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import InvalidInput
from meantime.kernel.lines import Kind, Line
from meantime.runners.agent import session_log
from meantime.runners.agent.segmented_log import SIZE, Segments
from meantime.runners.agent.session_log import SessionLog
from meantime.testing import FakeClock
from outcomes import unfinished

from .stage import call, echo_host, never, result, start, text, working

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("I1")
async def test_tool_calls_last_tools_phase_and_spending_are_seen_while_it_runs(tmp_path: Path):
    gate = asyncio.Event()

    async def turn(prompt, hearer):
        for tool in ("read", "read", "grep", "bash"):
            hearer.line(call(tool, path=tool))
            hearer.line(result(tool, "ok"))
        hearer.spent(turns=2, tokens=1_200, cost=0.25)
        hearer.spent(turns=1, tokens=300, cost=0.25)
        hearer.phase("thinking")
        await gate.wait()
        return "done"

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)

        async def thinks() -> bool:
            progress = (await handle.get()).progress
            return progress is not None and progress.phase == "thinking"

        await until_async(thinks, "the agent thinks", handle.get)
        progress = (await handle.get()).progress
        assert progress.tool_calls == {"read": 2, "grep": 1, "bash": 1}
        assert (progress.last_tools, progress.calls) == (("read", "read", "grep", "bash"), 4)
        assert (progress.turns, progress.tokens, progress.cost) == (3, 1_500, 0.5)
        assert progress.updated_at > 0
        gate.set()
        assert (await handle.wait()).progress.tokens == 1_500


async def test_the_key_argument_of_the_tool_is_seen_until_the_agent_goes_on(tmp_path: Path):
    gate, seen = asyncio.Event(), asyncio.Event()

    async def turn(prompt, hearer):
        hearer.line(call("grep", pattern="refresh_token", path="src"))
        seen.set()
        await gate.wait()
        hearer.line(result("grep", "31 matches"))
        hearer.phase("thinking")
        return "done"

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        await asyncio.wait_for(seen.wait(), LIMIT)
        progress = (await handle.get()).progress
        assert (progress.phase, progress.message) == ("grep", "src")
        gate.set()
        ended = (await handle.wait()).progress
        assert (ended.phase, ended.message) == ("thinking", "")


@pytest.mark.behaviour("I7")
async def test_live_output_can_be_followed_and_is_there_afterwards(tmp_path: Path):
    heard, gate = asyncio.Event(), asyncio.Event()

    async def turn(prompt, hearer):
        for piece in ("Let me ", "see: ", "größe"):
            hearer.said(piece)
        await gate.wait()
        hearer.line(text("Let me see: größe."))
        hearer.line(call("bash", command="ls"))
        hearer.line(result("bash", "a\nb"))
        return "done"

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        seen: list[str] = []

        async def follow() -> None:
            async for chunk in mt.thread("conv-1").log(handle).follow():
                seen.append(chunk.text)
                if "größe" in "".join(seen):
                    heard.set()

        following = asyncio.create_task(follow())
        await asyncio.wait_for(heard.wait(), LIMIT)
        assert (await handle.output()).value.endswith("Let me see: größe")
        assert (await handle.output()).partial
        gate.set()
        await asyncio.wait_for(following, LIMIT)
        shown = '> do it\nLet me see: größe.\n→ bash {"command":"ls"}\n← bash a\nb\ndone\n'
        assert "".join(seen) == shown
        assert (await handle.log.tail(2)).text == "b\ndone\n"


@pytest.mark.behaviour("I7")
async def test_partial_words_are_kept_when_it_is_stopped(tmp_path: Path):
    spoke = asyncio.Event()

    async def turn(prompt, hearer):
        hearer.line(text("The first half."))
        hearer.said("And of the sec")
        spoke.set()
        return await never()

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        await spoke.wait()
        answer = await handle.cancel(wait=True)
        assert unfinished(answer.task).partial == "The first half.\n\nAnd of the sec"
        assert (await handle.output()).value == "The first half.\n\nAnd of the sec"


@pytest.mark.behaviour("I6")
async def test_the_history_of_all_runs_with_filters(tmp_path: Path):
    async def turn(prompt, hearer):
        hearer.line(Line(role="assistant", kind=Kind.THOUGHT, text="hm"))
        hearer.line(call("read", path="a"))
        hearer.line(result("read", "contents"))
        return f"answer to {prompt.text}"

    async with working(tmp_path, turn) as mt:
        thread = mt.thread("conv-1")
        handle = await start(mt, "one")
        await handle.wait()
        await (await thread.resume(handle, "two")).wait()
        lines = await thread.lines(handle)
        assert [(line.run, line.role, line.kind.value) for line in lines] == [
            (run, *said)
            for run in (1, 2)
            for said in (
                ("user", "text"), ("assistant", "thought"), ("assistant", "call"), ("tool", "result"),
                ("assistant", "text"),
            )
        ]  # fmt: skip
        said = await thread.lines(handle, roles=["user", "assistant"], kinds=["text"])
        assert [line.text for line in said] == ["one", "answer to one", "two", "answer to two"]
        assert [line.text for line in await thread.lines(handle, last=1)] == ["answer to two"]
        assert await thread.lines(handle, last=0) == []
        assert [line.tool for line in await mt.lines(handle.id, kinds=["call"])] == ["read", "read"]
        with pytest.raises(InvalidInput, match="no kind 'loud'"):
            await thread.lines(handle, kinds=["loud"])


@pytest.mark.behaviour("I6")
async def test_the_history_is_there_after_a_restart(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        handle = await start(mt, "one")
        await handle.wait()
    async with working(tmp_path, echo_host()) as mt:
        assert [line.text for line in await mt.lines(handle.id)] == ["one", "heard: one"]
        assert "heard: one" in (await mt.log(handle.id).read()).text


async def test_hostile_output_harms_nobody(tmp_path: Path):
    """What a host says is somebody else's: no kind of value ends the run or breaks the journal."""
    deep: list[object] = []
    for _ in range(1_000):
        deep = [deep]

    async def turn(prompt, hearer):
        hearer.said("\ud800 half a character \x00 \x1b[31m")
        hearer.line(Line(role="assistant", kind=Kind.CALL, tool="x" * 10_000, arguments=deep))
        hearer.line(
            Line(role="assistant", kind=Kind.CALL, tool="t", arguments={"n": float("nan"), "o": object()})
        )
        hearer.line(Line(role="tool", kind=Kind.RESULT, tool="t\ud800", text="\udfff" * 10))
        hearer.line(Line(role="assistant", text="y" * 1_000_000))
        return "done \ud800"

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        assert (await handle.wait()).status == "completed"
        lines = await mt.lines(handle.id)
        assert [line.kind.value for line in lines] == ["text", "call", "call", "result", "text", "text"]
        assert len(lines[4].text) < 300_000
        assert (await handle.log.read()).text.startswith("> do it")


def test_a_line_that_a_crash_cut_is_left_out_and_harms_no_other(tmp_path: Path):
    journal = SessionLog(tmp_path, FakeClock(), 1)
    journal.line(text("first"))
    with (tmp_path / "lines.jsonl").open("ab") as file:
        file.write(b'{"role":"assistant","text":"hal')
    SessionLog(tmp_path, FakeClock(), 2).line(text("second"))
    assert [(line.text, line.run) for line in session_log.lines(tmp_path)] == [("first", 1), ("second", 2)]


@pytest.mark.behaviour("I4")
def test_a_long_text_keeps_its_ends_by_absolute_offset(tmp_path: Path):
    segments = Segments(tmp_path, "text")
    unit = "ä" * 512 + "\n"
    for _ in range(9 * SIZE // len(unit.encode())):
        segments.append(unit.encode())
    assert segments.total > 8 * SIZE
    assert Segments(tmp_path, "text").total == segments.total
    assert segments.read(0, 10).data == "äääää".encode()
    gap = segments.read(SIZE, 1_000)
    assert gap.lost_bytes == gap.offset - SIZE > 0
    assert segments.read(3, 1).data  # even half a character is something
    tail = segments.tail(2, 10_000)
    assert (tail.text, tail.next) == (unit * 2, segments.total)
    assert len(list(tmp_path.glob("text.*"))) <= 6
