"""Every kind of work, every dialect, every door: nothing over its limit, and the whole in a file."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.waiting import LIMIT, until, until_async

from meantime import Agent, Call, Meantime, Settings, Shell, StdioServer, Task, Thread, Tool, current
from meantime.dialects import names
from meantime.kernel.model import Failed
from meantime.kernel.payloads import jsonable
from meantime.ports.session import AgentSettings, Turned
from meantime.runners.agent.agent_run import HostedAgent
from meantime.surfaces.http.event_encoding import deltas
from meantime.surfaces.http.task_encoding import wire_task
from meantime.testing.scripted_host import ScriptedHost

pytestmark = pytest.mark.anyio

PEER = Path(__file__).parents[1] / "integrations" / "mcp" / "peers" / "scripted.py"
MESSAGE = 51_200 + 8_000  # characters of a notice: the payload, an error, and our own words
READ = 64_000 + 8_000  # characters of an answer that reads a log
ROW = 12_000  # characters of a task in a list or an event
SIZES = {"small": 10, "of one message": 45_000, "over": 300_000, "far over": 600_000}
READING = {
    "meantime": ("output", "id"),
    "background": ("background_output", "task_id"),
    "asyncagents": ("asyncagents_output", "task_id"),
    "llxprt": ("check_async_tasks", "task_id"),
    "jaato": ("getBackgroundTaskResult", "task_id"),
    "psi": ("inspect_job", "job_id"),
}


class Ended(NamedTuple):
    """A task that has ended, and the text that its work ended with."""

    task: Task
    text: str


def raising(size: int) -> None:
    raise ValueError("x" * size)


def stopping(size: int) -> str:
    """A sync function that hands in what it has when it is asked to stop."""
    context = current()
    context.progress(1)
    until(lambda: context.cancelled, "it is to stop")
    return "x" * size


async def turn(prompt: Any, hearer: Any) -> Turned:
    how, _, size = prompt.text.rpartition(" ")
    text = "x" * int(size)
    if how == "emit":
        return Turned(text="done", result=jsonable({"small": True}))
    if how == "say":  # the last message is longer than its result
        return Turned(text=text, result=jsonable({"small": True}))
    if how == "fail":
        return Turned(error=Failed(text, "agent_error"))
    return Turned(lost=text) if how == "lose" else Turned(text=text)


@pytest.fixture
async def mt(tmp_path: Path) -> AsyncIterator[Meantime]:
    agents = {"helper": HostedAgent(AgentSettings(runner="python"), ScriptedHost(turn))}
    (tmp_path / "peer").mkdir()
    servers = {"s": StdioServer(command=[sys.executable, str(PEER), "well", str(tmp_path / "peer")])}
    settings = Settings(stop_grace=0.5, stop_deadline=LIMIT)
    async with Meantime.open(
        tmp_path / "work.db", agents=agents, servers=servers, settings=settings
    ) as opened:
        yield opened


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")


def printed(size: int, code: int) -> Shell:
    return Shell([sys.executable, "-c", f"print('x' * {size}, end=''); raise SystemExit({code})"])


async def ended(thread: Thread, size: int) -> list[Ended]:
    works = {
        "function": Call("x".__mul__, size),
        "function that fails": Call(raising, size),
        "function that is stopped": Call(stopping, size),
        "command": printed(size, 0),
        "command that fails": printed(size, 3),
        "tool": Tool("s/big", {"bytes": size}),
        "tool that fails": Tool("s/fails", {"text": "x" * size}),
        "agent": Agent("helper", f"end {size}"),
        "agent that fails": Agent("helper", f"fail {size}"),
        "agent that is lost": Agent("helper", f"lose {size}"),
        "agent with more to say than its result": Agent("helper", f"say {size}"),
    }
    handles = {name: await thread.start(work, description=name) for name, work in works.items()}
    stopped = handles["function that is stopped"]

    async def runs() -> bool:
        return (await stopped.get()).progress is not None

    await until_async(runs, "the function runs")
    await stopped.cancel()
    tasks = await thread.wait(*handles.values(), timeout=LIMIT)
    assert all(task.ended for task in tasks)
    return [Ended(task, "x" * size) for task in tasks]


@pytest.mark.breadth
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_nothing_is_over_its_limit_and_the_whole_is_in_a_file(mt: Meantime, thread: Thread, size: int):
    known = {one.task.id: one for one in await ended(thread, size)}
    async with thread.turn(limit=100) as turn:
        assert {notice.task_id for notice in turn.notices} == set(known)
        for notice in turn.notices:
            for dialect in names():
                told = notice.message(dialect).text
                assert len(told) <= MESSAGE, (dialect, notice.task.title)
                assert is_all_there(known[notice.task_id], told, dialect), (dialect, notice.task.title)
        await turn.ack()
    for dialect in names():
        await assert_answers(thread, dialect, known)
    await assert_rows(mt, known)


def is_all_there(ended: Ended, shown: str, dialect: str) -> bool:
    """Over its limit there is a file that has it, and its path is told."""
    spill = ended.task.outcome.spill  # type: ignore[union-attr]
    if spill is None:  # it is within its limit: what is shown of it is for the dialect to say
        return len(ended.text) <= 51_200
    if dialect == "llxprt" and ended.task.status == "cancelled":
        return True  # seed 002 tells a cancel without output
    return spill.path in shown and ended.text in Path(spill.path).read_text()


async def assert_answers(thread: Thread, dialect: str, known: dict[str, Ended]) -> None:
    tools = thread.toolset(dialect, agents=["helper"])
    name, argument = READING[dialect]
    for id, one in known.items():
        said = await tools.call(name, {argument: id})
        assert not said.code, said.text[:300]
        data = msgspec.json.encode(said.data).decode()
        assert len(said.text) <= READ, (dialect, one.task.title)
        assert len(data) <= MESSAGE, (dialect, one.task.title)
        assert is_all_there(one, said.text + data, dialect), (dialect, one.task.title, said.text[-300:])
    for tool in await tools.tools():
        if "list" in tool.name.lower():
            assert len((await tools.call(tool.name, {})).text) <= MESSAGE


async def assert_rows(mt: Meantime, known: dict[str, Ended]) -> None:
    for one in known.values():
        task = await mt.get(one.task.id)
        for whole, most in ((False, ROW), (True, MESSAGE + 16_000)):
            row = msgspec.json.encode(wire_task(task, whole=whole)).decode()
            assert len(row) <= most, task.title
        spill = task.outcome.spill  # type: ignore[union-attr]
        assert spill is None or spill.path in row
    events = await mt._runtime.events(0, 1_000)
    frames = [delta.frame async for delta in deltas(mt._runtime, events)]
    assert len(frames) >= len(known)
    assert max(map(len, frames)) <= ROW


@pytest.mark.parametrize("dialect", ["psi", "llxprt", "jaato", "meantime"])
async def test_an_answer_of_a_call_that_is_waited_for_is_bounded(thread: Thread, dialect: str):
    tools = thread.toolset(
        dialect, agents=["helper"], tools={"much": lambda: "x" * 600_000, "wrong": lambda: raising(600_000)}
    )
    offered = {tool.name for tool in await tools.tools()}
    calls: list[tuple[str, dict[str, Any]]] = []
    if "run_tool" in offered:
        calls += [("run_tool", {"tool": name, "arguments": {}}) for name in ("much", "wrong")]
    if "task" in offered:
        about = {"subagent_name": "helper"}
        calls += [("task", {**about, "goal_prompt": f"{how} 600000"}) for how in ("end", "fail", "lose")]
    if "runCommand" in offered:
        calls.append(("runCommand", {"command": "head -c 600000 /dev/zero | tr '\\0' x"}))
    for name, arguments in calls:
        said = await tools.call(name, arguments)
        assert len(said.text) <= MESSAGE, (name, arguments)
        assert len(msgspec.json.encode(said.data)) <= MESSAGE, (name, arguments)
