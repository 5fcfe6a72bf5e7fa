"""The programs themselves, with a scripted model behind them. Those that are not installed are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from cli.person import Person
from meantime import Agent, Meantime, Status, Thread
from meantime.ports.session import AgentSettings

from ..agents import installed
from ..agents.model import Model
from .conftest import QUICK, lives, script, shown, told
from .owning import Owner

pytestmark = [pytest.mark.anyio, pytest.mark.agents]


class Codex(installed.Codex):
    def __init__(self, person: Person, model: Model) -> None:
        super().__init__(person, model)
        with (Path(self.environ["HOME"]) / ".codex/config.toml").open("a") as config:
            config.write("request_max_retries = 0\nstream_max_retries = 0\n")  # else it is patient itself


class Claude(installed.ClaudeCode):
    def __init__(self, person: Person, model: Model) -> None:
        super().__init__(person, model)
        self.environ |= {"CLAUDE_CODE_MAX_RETRIES": "0"}


class Real:
    """One of them, as the agent `one`."""

    def __init__(self, name: str, program: Path, kind: Any, tool: str, argument: str, **more: Any) -> None:
        self.name, self.program, self.kind = name, program, kind
        self._tool, self._argument, self._more = tool, argument, more

    def set_up(self, folder: Path, model: Model) -> Real:
        agent = self.kind(Person(folder), model)
        self.model, self.folder, self.cwd = model, folder, agent.project
        self.settings = AgentSettings(
            runner="cli", command=(str(self.program),), profile=self.name, cwd=str(agent.project),
            env=agent.environ, last_turn=0.0, **self._more,
        )  # fmt: skip
        self.ledger = folder / "work.db"
        return self

    def shell(self, command: str) -> dict[str, Any]:
        more = {} if self.name in ("codex", "goose") else {"description": "does it"}
        return {"tool": self._tool, "arguments": {self._argument: command, **more}}

    def open(self) -> Any:
        return Meantime.open(self.ledger, settings=QUICK, agents={"one": self.settings})

    def waits(self) -> dict[str, Any]:
        """A tool that goes on until the gate is open, and says who it is."""
        pid, gate = self.folder / "pid", self.folder / "gate"
        return self.shell(
            f"echo $$ > {pid}.new; mv {pid}.new {pid}; while [ ! -e {gate} ]; do sleep 0.1; done"
        )

    @property
    def pid(self) -> int:
        file = self.folder / "pid"
        return int(file.read_text()) if file.exists() else 0

    def open_gate(self) -> None:
        (self.folder / "gate").touch()


def made(name: str, program: Path, *words: Any, slow: bool = False, **more: Any) -> Any:
    marks = [installed.needs(program), *([pytest.mark.agents] if slow else [])]
    return pytest.param((name, program, *words, more), marks=marks, id=name)


CODEX = made("codex", installed.CODEX, Codex, "exec_command", "cmd")
CLAUDE = made("claude", installed.CLAUDE, Claude, "Bash", "command", allow=("Bash",))
OPENCODE = made(
    "opencode", installed.OPENCODE, installed.OpenCode, "bash", "command", otherwise="allow", slow=True
)
GEMINI = made("gemini", installed.GEMINI, installed.Gemini, "run_shell_command", "command", otherwise="allow",
              model="gemini-2.5-flash")  # fmt: skip
GEESE = made("goose", installed.GOOSE, installed.Goose, "shell", "command", otherwise="allow")


@pytest.fixture
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


@pytest.fixture
def real(request: pytest.FixtureRequest, tmp_path: Path, model: Model) -> Real:
    *words, more = request.param
    return Real(*words, **more).set_up(tmp_path, model)


async def ended(thread: Thread, id: str) -> Any:
    (task,) = await thread.wait(id, timeout=2 * LIMIT)
    assert task.ended, task
    return task


ODD = 'She said: "it\'s $HOME" `ls`\n\n\\n 日本語 🦆'


@pytest.mark.parametrize("real", [CODEX, CLAUDE, OPENCODE, GEMINI, GEESE], indirect=True)
async def test_a_turn_a_later_one_and_a_fork(real: Real, model: Model):
    async with real.open() as mt:
        thread = mt.thread("a")
        prompt = f"{ODD} {script(real.shell('printf forty-%d 2'), {'text': 'Done.'})}"
        first = await thread.start(Agent("one", prompt))
        task = await ended(thread, first.id)
        assert task.outcome.result == "Done.", task.outcome
        lines = await thread.lines(first.id)
        assert [line.kind for line in lines[1:]] == ["call", "result", "text"]
        assert "forty-2" in lines[2].text
        assert ODD in model.turns[0].text
        assert task.progress.calls == 1
        if real.name in ("codex", "claude"):
            assert task.progress.tokens == 4  # two requests of two each
        if real.name not in ("goose", "gemini"):
            fork = await ended(thread, (await thread.fork(first.id, "Another way.")).id)
            assert fork.outcome.result.startswith("ECHO You go on from a copy")
            assert "forty-2" in model.turns[-1].text
        if real.name == "opencode":
            return  # it takes seconds for every turn, and goes on in a session as it goes on in a fork
        await thread.resume(first.id, "And what did I say?")
        task = await ended(thread, first.id)
        assert task.outcome.result.startswith("ECHO And what did I say?")
        assert "forty-2" in model.turns[-1].text
        assert "Another way." not in model.turns[-1].text
        if real.name != "goose":
            assert task.progress.tokens == 2


@pytest.mark.behaviour("L22")
@pytest.mark.parametrize("real", [GEESE, GEMINI], indirect=True)
async def test_a_program_that_cannot_fork_is_told_the_conversation(real: Real, model: Model):
    async with real.open() as mt:
        thread = mt.thread("a")
        first = await thread.start(Agent("one", script({"text": "Done."})))
        await ended(thread, first.id)
        fork = await ended(thread, (await thread.fork(first.id, "Another way.")).id)
        assert fork.status is Status.COMPLETED
        assert "<conversation>" in model.turns[-1].text
        assert "Done." in model.turns[-1].text


@pytest.mark.behaviour("P4")
@pytest.mark.parametrize("real", [CODEX, CLAUDE], indirect=True)
async def test_a_turn_survives_its_owner(real: Real, model: Model):
    owner = Owner(real.ledger, real.settings)
    id = owner.start(script(real.shell("echo first"), real.waits(), {"text": "Done."}))
    await until_async(lambda: real.pid, "it is in its tool")
    await until_async(lambda: owner.recorded_calls(id), "its progress is stored")
    owner.kill()
    real.open_gate()
    async with real.open() as mt:
        thread = mt.thread("a")
        task = await ended(thread, id)
        assert task.outcome.result == "Done."
        kinds = [line.kind for line in await thread.lines(id)]
        assert kinds == ["text", "call", "result", "call", "result", "text"]
        assert 1 <= task.progress.calls <= 2  # nothing counts twice, and what was stored is not forgotten
        assert 2 <= task.progress.tokens <= 6
        assert await told(thread) == [(id, "completed")]
        assert await told(thread) == []
    assert len(model.turns) == 3


@pytest.mark.behaviour("P8")
@pytest.mark.parametrize("real", [CODEX, CLAUDE, OPENCODE, GEMINI, GEESE], indirect=True)
async def test_a_cancel_in_a_tool_leaves_nothing(real: Real):
    """By an owner that has taken it up; OpenCode's tools are in sessions of their own."""
    owner = Owner(real.ledger, real.settings)
    id = owner.start(script(real.waits(), {"text": "Done."}))
    await until_async(lambda: real.pid, "it is in its tool")
    owner.kill()
    assert lives(real.pid)
    async with real.open() as mt:
        answer = await mt.thread("a").cancel(id, wait=True)
        assert answer.task.status is Status.CANCELLED
        assert not lives(real.pid)
        assert not any(_mark(real.ledger))


def _mark(ledger: Path) -> Iterator[str]:
    """Whatever was started for a turn of this ledger."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{ledger}.agents/commands".encode() in path.read_bytes() and lives(int(path.parent.name)):
                yield path.parent.name
        except OSError:
            continue


@pytest.mark.parametrize("real", [CODEX, CLAUDE], indirect=True)
async def test_a_refusal_is_told_in_the_providers_words(real: Real):
    refusal = {"error": 400, "message": "There is no model nope."}
    async with real.open() as mt:
        task = await ended(mt.thread("a"), (await mt.thread("a").start(Agent("one", script(refusal)))).id)
    assert task.status is Status.FAILED
    assert "There is no model nope." in task.outcome.message
    assert "{" not in task.outcome.message


@pytest.mark.parametrize("real", [CODEX, CLAUDE], indirect=True)
async def test_a_429_is_waited_out(real: Real, model: Model):
    busy = {"errors": 1, "error": 429, "retry_after": 1, "text": "At last."}
    async with real.open() as mt:
        thread = mt.thread("a")
        task = await ended(thread, (await thread.start(Agent("one", script(busy)))).id)
        assert task.outcome.result == "At last."
        assert await told(thread) == [(task.id, "completed")]


@pytest.mark.parametrize("real", [CODEX], indirect=True)
async def test_four_at_once(real: Real):
    async with real.open() as mt:
        thread = mt.thread("a")
        handles = [await thread.start(Agent("one", script({"text": f"I am {n}."}))) for n in range(4)]
        tasks = [await ended(thread, handle.id) for handle in handles]
    assert [task.outcome.result for task in tasks] == [f"I am {n}." for n in range(4)]


@pytest.mark.parametrize("real", [CLAUDE], indirect=True)
async def test_what_claude_may_not_do_is_said(real: Real):
    steps = [
        {"tool": "Write", "arguments": {"file_path": f"{real.cwd}/new", "content": "x"}},
        {"text": "I tried."},
    ]
    async with real.open() as mt:
        thread = mt.thread("a")
        handle = await thread.start(Agent("one", script(*steps)))
        assert (await ended(thread, handle.id)).outcome.result == "I tried."
        assert any(
            "Not allowed, so not done: Write." in line for line in shown(await thread.lines(handle.id))
        )
    assert not (real.cwd / "new").exists()
