"""A fork begins with what another conversation knows, or is an error: it never starts blank."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from meantime import Agent, Call, InvalidInput, NotFound, Refused
from meantime.kernel.fork_context import COPIED
from meantime.kernel.lines import Line
from meantime.ports.session import AgentSettings, SessionAbilities
from meantime.runners.agent.agent_run import HostedAgent
from meantime.surfaces.http.task_encoding import wire_task
from meantime.testing.scripted_host import ScriptedHost
from outcomes import failed

from .stage import NAME, call, echo_host, result, start, text, working

pytestmark = pytest.mark.anyio

NATIVE = SessionAbilities(fork=True)


async def reading(prompt, hearer):
    if prompt.text.endswith("read it"):
        hearer.line(call("read", path="secret.txt"))
        hearer.line(result("read", "the needle is in the barn"))
        return "I have read it"
    return "forked"


@pytest.mark.behaviour("L22")
async def test_a_fork_of_an_ended_task_knows_what_it_knew(tmp_path: Path):
    host = ScriptedHost(reading)
    async with working(tmp_path, host) as mt:
        source = await start(mt, "read it")
        await source.wait()
        fork = await mt.thread("conv-1").fork(source, "where is it?", description="look")
        assert await fork.result() == "forked"
        task = await fork.get()
        assert (task.forked, task.session != (await source.get()).session) == (True, True)
        given = host.prompts[-1].text
        assert given.endswith("where is it?")
        assert "[read answers] the needle is in the barn" in given
        assert "read again what you rely on" in given
        assert len(host.sessions[str((await source.get()).session)]) == 2  # it is a copy


@pytest.mark.behaviour("L22")
async def test_a_running_task_can_be_forked(tmp_path: Path):
    read, gate = asyncio.Event(), asyncio.Event()

    async def turn(prompt, hearer):
        if not prompt.text.endswith("read it"):
            return "forked"
        hearer.line(text("half way"))
        read.set()
        await gate.wait()
        return "done"

    host = ScriptedHost(turn)
    async with working(tmp_path, host) as mt:
        source = await start(mt, "read it")
        await read.wait()
        fork = await mt.thread("conv-1").fork(source, "and now?")
        assert await fork.result() == "forked"
        assert "[assistant] half way" in host.prompts[-1].text
        assert (await source.get()).status == "running"
        gate.set()
        assert await source.result() == "done"


@pytest.mark.behaviour("L22")
async def test_a_host_that_copies_sessions_does_it_itself(tmp_path: Path):
    host = ScriptedHost(reading, NATIVE)
    async with working(tmp_path, host) as mt:
        source = await start(mt, "read it")
        await source.wait()
        fork = await mt.thread("conv-1").fork(source, "where is it?")
        await fork.wait()
        said = [line.text for line in host.sessions[str((await fork.get()).session)]]
        assert said == ["read it", "I have read it", f"{COPIED}\n\nwhere is it?", "forked"]
        assert "may have been shortened" in COPIED
        assert "read again what you rely on" in COPIED


@pytest.mark.behaviour("L23")
async def test_a_fork_that_was_told_as_text_has_one_preamble_and_a_resume_has_none(tmp_path: Path):
    host = ScriptedHost(reading, NATIVE)
    async with working(tmp_path, host) as mt:
        source = await start(mt, "read it")
        await source.wait()
        fork = await mt.thread("conv-1").fork(source, "where is it?")
        await fork.wait()
        await (await mt.thread("conv-1").resume(fork, "really?")).wait()
        await (await start(mt, "sure?", context=[Line(role="user", text="hm")])).wait()
        native, resumed, as_text = (prompt.text for prompt in host.prompts[-3:])
        assert native.count("You go on from a copy") == 1
        assert resumed == "really?"
        assert as_text.count("You go on from a copy") == 1


@pytest.mark.behaviour("L22")
async def test_a_task_of_another_agent_is_told_as_text(tmp_path: Path):
    host, other = ScriptedHost(reading, NATIVE), ScriptedHost(reading, NATIVE)
    more = {"other": HostedAgent(AgentSettings(runner="python"), other)}
    async with working(tmp_path, host, more=more) as mt:
        source = await start(mt, "read it")
        await source.wait()
        fork = await mt.thread("conv-1").start(Agent("other", "where?"), fork_of=source)
        assert await fork.result() == "forked"
        assert "the needle is in the barn" in other.prompts[0].text
        assert host.prompts[-1].text == "read it"


@pytest.mark.behaviour("L22")
async def test_the_hosts_own_history_is_used_where_it_has_one(tmp_path: Path):
    host = ScriptedHost(reading, SessionAbilities(history=True))
    async with working(tmp_path, host) as mt:
        source = await start(mt, "read it")
        session = (await source.wait()).session
        assert session is not None
        host.sessions[session].append(text("said while nobody of us was here"))
        fork = await mt.thread("conv-1").fork(source, "where is it?")
        await fork.wait()
        assert "said while nobody of us was here" in host.prompts[-1].text
        other = await mt.thread("conv-1").start(Agent(NAME, "go"), fork=True, session=session)
        await other.wait()
        assert "said while nobody of us was here" in host.prompts[-1].text


@pytest.mark.behaviour("L22")
async def test_a_fork_begins_with_the_conversation_that_is_given(tmp_path: Path):
    host = echo_host()
    lines = [Line(role="user", text="what is the capital?"), Line(role="assistant", text="It is Paris.")]
    async with working(tmp_path, host) as mt:
        fork = await start(mt, "are you sure?", context=lines)
        await fork.wait()
        assert fork.task.forked
        assert "[assistant] It is Paris." in host.prompts[0].text


@pytest.mark.behaviour("L22")
async def test_a_fork_begins_with_the_threads_own_transcript(tmp_path: Path):
    host = echo_host()
    async with working(tmp_path, host) as mt:
        thread = mt.thread("conv-1")
        transcript = thread.transcript
        transcript.add(None, "remember the number 17")
        await transcript.save()
        fork = await start(mt, "which number?", fork=True)
        await fork.wait()
        assert "remember the number 17" in host.prompts[0].text


@pytest.mark.behaviour("L22")
async def test_what_is_kept_beside_the_conversation_is_no_part_of_a_fork(tmp_path: Path):
    """As the chat does: lines that wait for their turn, and settings."""
    host = echo_host()
    async with working(tmp_path, host) as mt:
        transcript = mt.thread("conv-1").transcript
        transcript.add(None, "3pzqxss3 hello", role="typed")
        transcript.add(None, "hello", role="user")
        transcript.add(None, "said 3pzqxss3", role="setting")
        transcript.add(None, "Good morning.", role="assistant")
        transcript.add(None, "21 degrees", role="tool")
        transcript.add("t_1.1", "It has ended.", role="event")
        await transcript.save()
        await (await start(mt, "go on", fork=True)).wait()
        said = "[user] hello\n\n[assistant] Good morning.\n\n[tool] 21 degrees\n\n[event] It has ended."
        assert f"<conversation>\n{said}\n</conversation>" in host.prompts[0].text


@pytest.mark.behaviour("L22")
async def test_a_thread_in_which_only_settings_are_kept_has_nothing_to_fork(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        transcript = mt.thread("conv-1").transcript
        transcript.add(None, "task-max-async 3", role="setting")
        await transcript.save()
        with pytest.raises(InvalidInput, match="no conversation to fork"):
            await start(mt, "begin", fork=True)


@pytest.mark.behaviour("L22")
async def test_a_fork_goes_on_with_its_own_session_when_it_is_resumed(tmp_path: Path):
    host = ScriptedHost(reading)
    async with working(tmp_path, host) as mt:
        source = await start(mt, "read it")
        await source.wait()
        fork = await mt.thread("conv-1").fork(source, "where is it?")
        await fork.wait()
        await (await mt.thread("conv-1").resume(fork, "really?")).wait()
        assert host.prompts[-1].text == "really?"


@pytest.mark.behaviour("L22")
async def test_nothing_to_fork_is_an_error_and_nothing_is_recorded(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        thread = mt.thread("conv-1")
        with pytest.raises(InvalidInput, match="no conversation to fork") as caught:
            await start(mt, fork=True)
        assert caught.value.code == "nothing_to_fork"
        with pytest.raises(InvalidInput, match="has not worked in"):
            await start(mt, fork=True, session="elsewhere")
        with pytest.raises(InvalidInput, match="call tasks have no conversation"):
            await thread.start(Call(int, "1"), fork=True)
        with pytest.raises(NotFound):
            await thread.start(Agent(NAME, "go"), fork_of="t_nothere000")
        with pytest.raises(InvalidInput, match="context must hold Line"):
            await thread.start(Agent(NAME, "go"), context=["hello"])  # pyright: ignore[reportArgumentType]
        assert await mt.list() == []


@pytest.mark.behaviour("L22")
async def test_a_task_of_another_thread_cannot_be_forked(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        source = await start(mt)
        await source.wait()
        for verb in (mt.thread("other").fork(source, "go"),
                     mt.thread("other").start(Agent(NAME, "go"), fork_of=source)):  # fmt: skip
            with pytest.raises(NotFound):
                await verb


@pytest.mark.behaviour("L22")
async def test_a_task_that_has_not_begun_cannot_be_forked(tmp_path: Path):
    class Slow(ScriptedHost):
        async def begin(self, brief):
            await asyncio.Event().wait()
            raise AssertionError

    async with working(tmp_path, Slow(reading)) as mt:
        source = await start(mt)
        with pytest.raises(Refused) as caught:
            await mt.thread("conv-1").fork(source, "go")
        assert caught.value.code == "nothing_to_fork"


@pytest.mark.behaviour("L22")
async def test_a_fork_that_fails_later_is_a_failure_and_never_a_blank_start(tmp_path: Path):
    host = ScriptedHost(reading, NATIVE)
    async with working(tmp_path, host) as mt:
        source = await start(mt, "read it")
        await source.wait()
        host.sessions.clear()
        fork = await mt.thread("conv-1").fork(source, "where is it?")
        task = await fork.wait()
        assert (task.status, failed(task).code) == ("failed", "session_gone")
        assert len(host.prompts) == 1


@pytest.mark.behaviour("L22")
async def test_a_context_over_the_limits_is_cut_not_refused(tmp_path: Path):
    host = echo_host()
    lines = [Line(role="user", text=f"{number} " + "x" * 5_000) for number in range(1_000)]
    async with working(tmp_path, host) as mt:
        fork = await start(mt, "go on", context=lines)
        await fork.wait()
        assert len(host.prompts[0].text) < 210_000
        assert "lines at its beginning are left out" in host.prompts[0].text
        assert "[user] 999 x" in host.prompts[0].text


@pytest.mark.behaviour("I11")
async def test_a_fork_says_so_on_the_wire(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        fork = await start(mt, "go on", context=[text("hello")])
        assert b'"isForked":true' in msgspec.json.encode(wire_task(await fork.wait()))
