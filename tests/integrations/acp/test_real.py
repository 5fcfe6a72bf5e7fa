"""Real agents, goose and OpenCode, with the scripted model on loopback: what they do, and what the model was
asked, are judged at the model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, Handle, Meantime, Task, Thread
from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import Kind
from meantime.kernel.model import Completed, Failed, Lost
from meantime.ports.session import AgentSettings

from ..agents.installed import GOOSE, OPENCODE, OPENCODE_OFFLINE, needs
from ..agents.model import Model, script
from .conftest import asked, ended, in_phase, runs
from .test_sessions import OWNER

pytestmark = [pytest.mark.agents, pytest.mark.anyio, pytest.mark.xdist_group("acp-real")]


class Real:
    """One agent's program with folders of its own, and a Meantime that employs it."""

    name: str
    tool: str  # how its model calls a command

    def __init__(self, folder: Path, model: Model) -> None:
        self.model = model
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir()
        (folder / "user").mkdir()
        self.ledger = folder / "work.db"
        self.thread: Thread

    def settings(self, **more: Any) -> AgentSettings:
        return AgentSettings(runner="acp", cwd=str(self.project), **{**self.given(), **more})

    def given(self) -> dict[str, Any]:
        raise NotImplementedError

    def shell(self, command: str) -> dict[str, Any]:
        return {"tool": self.tool, "arguments": {"command": command, "description": "a command"}}

    @asynccontextmanager
    async def employed(self, **more: Any) -> AsyncIterator[Real]:
        async with Meantime.open(self.ledger, agents={"one": self.settings(**more)}) as mt:
            self.thread = mt.thread("conv-1")
            yield self

    async def start(self, *steps: dict[str, Any]) -> Handle:
        return await self.thread.start(Agent("one", script(*steps)))

    async def allowed(self, handle: Handle) -> None:
        await asked(handle)
        await self.thread.answer(handle, "yes", by="user")

    async def ended(self, handle: Handle) -> Task:
        return await ended(self.thread, handle)

    async def result(self, handle: Handle) -> Any:
        task = await self.ended(handle)
        assert isinstance(task.outcome, Completed), task.outcome
        return task.outcome.result

    async def in_a_command(self) -> tuple[Handle, int]:
        """A task that is in the middle of a call, and the process of its command."""
        pid = self.project / f"{uuid4()}.pid"
        handle = await self.start(self.shell(f"echo $$ > {pid}; sleep 1000; true"), {"text": "never"})
        await self.allowed(handle)
        await until_async(lambda: pid.exists() and pid.read_text().strip(), "its command runs")
        return handle, int(pid.read_text())


class Goose(Real):
    name, tool = "goose", "shell"

    def given(self) -> dict[str, Any]:
        env = {
            "HOME": str(self.folder / "user"), "GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o",
            "OPENAI_HOST": self.model.url, "OPENAI_API_KEY": "none", "GOOSE_DISABLE_KEYRING": "1",
        }  # fmt: skip
        command = (str(GOOSE), "acp", "--with-builtin", "developer")
        return {"command": command, "env": env, "options": {"start": LIMIT}}


class OpenCode(Real):
    """In one process for all: each takes seconds to start, and half a gigabyte."""

    name, tool = "opencode", "bash"

    def given(self) -> dict[str, Any]:
        provider = {
            "npm": "@ai-sdk/openai-compatible", "name": "S",
            "models": {"m": {"name": "m"}, "other": {"name": "other"}},
            "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "none"},
        }  # fmt: skip
        config = {
            "autoupdate": False, "share": "disabled", "snapshot": False, "model": "scripted/m",
            "small_model": "scripted/m", "enabled_providers": ["scripted"],
            "provider": {"scripted": provider},
        }  # fmt: skip
        (self.project / "opencode.json").write_text(json.dumps(config))
        env = {"HOME": str(self.folder / "user"), **OPENCODE_OFFLINE}
        options = {"shared": True, "start": LIMIT}
        return {"command": (str(OPENCODE), "acp"), "env": env, "options": options, "model": "scripted/other"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Goose, id="goose", marks=needs(GOOSE)),
        pytest.param(OpenCode, id="opencode", marks=needs(OPENCODE)),
    ],
)
async def agent(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: Model
) -> AsyncIterator[Real]:
    async with request.param(tmp_path_factory.mktemp("real"), model).employed() as real:
        yield real


@pytest.fixture
def goose(tmp_path: Path, model: Model) -> Goose:
    return Goose(tmp_path, model)


async def test_it_asks_a_person_once_for_the_task_and_is_resumed(agent: Real):
    two = [agent.shell("echo one; pwd"), agent.shell("echo two > two")]
    handle = await agent.start(*two, {"text": "all done", "usage": {"input": 30, "output": 12}})
    question = (await asked(handle)).question
    assert question is not None
    assert question.subject == agent.tool
    assert question.arguments["command"] == "echo one; pwd"
    await agent.thread.answer(handle, "always", by="user")
    task = await agent.ended(handle)
    lines = await agent.thread.lines(handle)
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "all done"
    assert [line.tool for line in lines if line.kind is Kind.CALL] == [agent.tool, agent.tool]
    assert str(agent.project) in next(line.text for line in lines if line.kind is Kind.RESULT)
    assert (agent.project / "two").read_text() == "two\n"
    assert task.progress is not None
    assert task.progress.tokens == 42  # both count the last request of a turn
    assert task.progress.turns == 3
    assert task.progress.tool_calls == {agent.tool: 2}
    await agent.thread.resume(handle, script({"text": "still here"}))
    assert await agent.result(handle) == "still here"
    assert "all done" in agent.model.turns[-1].text


async def test_what_is_refused_is_not_done(agent: Real):
    """goose goes on without it; OpenCode ends its turn."""
    handle = await agent.start(agent.shell("echo no > no"), {"text": "without"})
    await asked(handle)
    await agent.thread.answer(handle, "no", by="user")
    task = await agent.ended(handle)
    assert not (agent.project / "no").exists()
    if agent.name == "goose":
        assert isinstance(task.outcome, Completed)
        assert task.outcome.result == "without"
    else:
        assert isinstance(task.outcome, Failed)
        assert task.outcome.code == "not_allowed"


async def test_an_error_of_the_model_is_told_with_its_real_text(agent: Real):
    task = await agent.ended(await agent.start({"error": 400}))
    assert isinstance(task.outcome, Failed)
    assert "scripted error 400" in task.outcome.message
    assert task.outcome.code == "model_error"


async def test_a_fork_knows_what_its_source_knows_and_two_work_at_once(agent: Real):
    go = agent.folder / "go"
    source = await agent.start({"text": "the word is swordfish"})
    await agent.ended(source)
    before = len(agent.model.turns)
    steps = [{"text": f"n{n}", "wait_file": str(go)} for n in range(2)]
    both = [await agent.thread.fork(source, script(step)) for step in steps]
    await until_async(lambda: len(agent.model.turns) == before + 2, "both ask the model")
    go.touch()
    assert [await agent.result(fork) for fork in both] == ["n0", "n1"]
    assert all("the word is swordfish" in heard.text for heard in agent.model.turns[before:])
    for fork in both:  # nobody had to tell them
        assert "swordfish" not in (await agent.thread.lines(fork))[0].text


async def test_a_cancel_in_a_tool_ends_its_command_and_the_session_goes_on(agent: Real):
    handle, pid = await agent.in_a_command()
    await agent.thread.cancel(handle, by="user", wait=True)
    assert (await handle.get()).status is Status.CANCELLED
    await until_async(lambda: not runs(pid), "its command is gone")
    await agent.thread.resume(handle, script({"text": "and on"}))
    assert await agent.result(handle) == "and on"


async def test_a_kill_of_the_agent_is_a_loss_and_its_session_goes_on_with_its_history(agent: Real):
    handle, pid = await agent.in_a_command()
    os.kill(_agent_above(pid, agent), signal.SIGKILL)
    task = await agent.ended(handle)
    assert isinstance(task.outcome, Lost)
    await until_async(lambda: not runs(pid), "its command is gone")
    await agent.thread.resume(handle, script({"text": "and on"}))
    assert await agent.result(handle) == "and on"
    assert "sleep 1000" in agent.model.turns[-1].text


def _agent_above(pid: int, agent: Real) -> int:
    """The process of the agent itself, up from a command of its."""
    while agent.name not in os.readlink(f"/proc/{pid}/exe"):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


async def test_a_cancel_while_the_model_thinks(agent: Real):
    """OpenCode obeys. goose hears nothing before the model has answered: it is ended, started again, and has
    its session."""
    before = len(agent.model.turns)
    handle = await agent.start({"hang": True})
    await until_async(lambda: len(agent.model.turns) > before, "it asks the model")
    await agent.thread.cancel(handle, by="user", wait=True)
    assert (await handle.get()).status is Status.CANCELLED
    await agent.thread.resume(handle, script({"text": "and on"}))
    assert await agent.result(handle) == "and on"
    assert "hang" in agent.model.turns[-1].text


@needs(GOOSE)
async def test_goose_is_asked_again_when_the_provider_had_enough(goose: Goose):
    steps = goose.folder / "steps.json"
    steps.write_text(json.dumps([{"error": 429}]))
    async with goose.employed():
        handle = await goose.thread.start(Agent("one", f"%%{steps}%%"))
        await in_phase(handle, "waits for the provider")
        steps.write_text(json.dumps([{"text": "through"}]))
        assert await goose.result(handle) == "through"


@needs(GOOSE)
async def test_goose_hears_what_is_said_in_the_middle_of_a_turn(goose: Goose):
    go = goose.folder / "go"
    async with goose.employed(otherwise="allow"):
        waits = f"echo waits > {goose.folder}/waits; while [ ! -e {go} ]; do sleep 0.1; done"
        handle = await goose.start(goose.shell(waits), {"text": "done"})
        await until_async((goose.folder / "waits").exists, "its command runs")
        assert await handle.send("make it short") == "steered"
        go.touch()
        await goose.ended(handle)
    assert "make it short" in goose.model.turns[-1].text


STARTS = """
import asyncio, sys
from meantime import Meantime, MeantimeError, Shell

async def main():
    async with Meantime.connect(sys.argv[1]) as mt:
        try:
            print("started", (await mt.thread("any").start(Shell("true"))).id)
        except MeantimeError as problem:
            print("refused", problem.code)

asyncio.run(main())
"""


@pytest.mark.behaviour("F17")
@needs(GOOSE)
@pytest.mark.parametrize("depth", [0, 1])
async def test_what_goose_starts_through_our_socket_is_its_child(goose: Goose, depth: int):
    """A command of goose's own tool knows whose it is; the agent's depth decides."""
    program = goose.folder / "starts.py"
    program.write_text(STARTS)
    link = goose.folder / "link"
    settings = goose.settings(otherwise="allow", depth=depth)
    async with Meantime.open(goose.ledger, agents={"one": settings}, link=link) as mt:
        goose.thread = mt.thread("conv-1")
        handle = await goose.start(goose.shell(f"{sys.executable} {program} {link}"), {"text": "done"})
        await goose.ended(handle)
        said = next(line.text for line in await goose.thread.lines(handle) if line.kind is Kind.RESULT)
        children = [task for task in await mt.list() if task.id != handle.id]
    if depth == 0:
        assert "refused no_children" in said
        assert children == []
    else:
        assert f"started {children[0].id}" in said
        assert [(task.parent, task.depth, task.children) for task in children] == [(handle.id, 1, 0)]


@needs(GOOSE)
async def test_goose_goes_with_us_and_its_task_can_be_resumed(goose: Goose):
    """We are killed; its guard ends it and its command."""
    pid = goose.project / "pid"
    settings = msgspec.json.encode(goose.settings(otherwise="allow")).decode()
    turn = script(goose.shell(f"echo $$ > {pid}; sleep 1000; true"), {"text": "never"})
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, str(OWNER), str(goose.ledger), settings, turn), stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    id = (await owner.stdout.readline()).decode().strip()
    await until_async(lambda: pid.exists() and pid.read_text().strip(), "its command runs")
    owner.kill()
    await owner.wait()
    await until_async(lambda: not runs(int(pid.read_text())), "its command is gone")
    async with goose.employed():
        (task,) = await goose.thread.wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        handle = await goose.thread.resume(id, script({"text": "and on"}))
        assert await goose.result(handle) == "and on"
