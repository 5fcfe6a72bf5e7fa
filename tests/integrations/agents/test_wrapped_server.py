"""Real agents with a slow MCP server that knows nothing of us: without the wrap they wait until they give up;
with it they go on, and are told once, even if wrap, server, daemon or all of them are killed in between."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.waiting import LIMIT, until

from cli.person import Person, running
from meantime.daemon.home import Home
from meantime.daemon.owner_process import owner, terminate

from . import report
from .installed import (
    CLAUDE,
    CODEX,
    GEMINI,
    MEANTIME,
    OPENCODE,
    Agent,
    ClaudeCode,
    Codex,
    Gemini,
    OpenCode,
    greet,
    needs,
)
from .model import IDS, Model, script
from .slow_servers import OF_OTHERS, Scripted, SlowServer

pytestmark = pytest.mark.agents
TIMEOUT = 10  # seconds that an agent waits for a tool, when that is to be too long
PATIENT = int(LIMIT)
THRESHOLD = 1  # second
LOST = '" was lost. '  # in a notice
TOOL = "TOOL"  # stands for the name of the slow tool
Prompt = Callable[[str], None]


def claude_config(agent: Agent, command: list[str], timeout: int) -> None:
    servers = {"slow": {"type": "stdio", "command": command[0], "args": command[1:]}}
    (Path(agent.environ["HOME"]) / ".claude.json").write_text(json.dumps({"mcpServers": servers}, indent=2))
    agent.environ["MCP_TOOL_TIMEOUT"] = str(timeout * 1_000)


def codex_config(agent: Agent, command: list[str], timeout: int) -> None:
    ours = {name: value for name, value in agent.environ.items() if name.startswith("MEANTIME")}
    env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in ours.items())
    config = Path(agent.environ["HOME"]) / ".codex/config.toml"
    config.write_text(
        f"{config.read_text()}\n[mcp_servers.slow]\ncommand = {json.dumps(command[0])}\n"
        f"args = {json.dumps(command[1:])}\nenv = {{ {env} }}\ntool_timeout_sec = {timeout}\n"
        f"startup_timeout_sec = {LIMIT}\nrequired = true\n"
    )


def gemini_config(agent: Agent, command: list[str], timeout: int) -> None:
    config = Path(agent.environ["HOME"]) / ".gemini/settings.json"
    ours = {name: value for name, value in agent.environ.items() if name.startswith("MEANTIME")}
    server = {"command": command[0], "args": command[1:], "env": ours, "timeout": timeout * 1_000}
    config.write_text(
        json.dumps({**json.loads(config.read_text()), "mcpServers": {"slow": server}}, indent=2)
    )


def opencode_config(agent: Agent, command: list[str], timeout: int) -> None:
    config = Path(agent.environ["HOME"]) / ".config/opencode/opencode.json"
    config.parent.mkdir(parents=True)
    server = {"type": "local", "command": command, "enabled": True, "timeout": timeout * 1_000}
    config.write_text(json.dumps({"mcp": {"slow": server}}, indent=2))


class AgentOf(NamedTuple):
    kind: Any
    name: str
    call: dict[str, str]  # how its model calls TOOL
    offered: str  # and how it is offered
    configure: Callable[[Agent, list[str], int], None]  # the last is how long it waits for a tool
    plays: str  # the server of others that it is tried with; `make agents-newest` tries them all

    @property
    def talks(self) -> bool:
        """Whether one process of it takes several prompts, and can be woken."""
        return self.kind in (ClaudeCode, OpenCode)

    def calling(self, server: SlowServer) -> dict[str, Any]:
        named = {key: word.replace(TOOL, server.tool) for key, word in self.call.items()}
        return {**named, "arguments": server.arguments}


ONE_NAME = f"mcp__slow__{TOOL}"
IN_CODEX = {"tool": TOOL, "namespace": "mcp__slow"}
AGENTS = {
    CLAUDE: AgentOf(ClaudeCode, "claude-code", {"tool": ONE_NAME}, ONE_NAME, claude_config, "everything"),
    CODEX: AgentOf(Codex, "codex", IN_CODEX, "mcp__slow", codex_config, "fetch"),
    GEMINI: AgentOf(Gemini, "gemini", {"tool": f"mcp_slow_{TOOL}"}, "", gemini_config, "fastmcp"),
    OPENCODE: AgentOf(
        OpenCode, "opencode", {"tool": f"slow_{TOOL}"}, f"slow_{TOOL}", opencode_config, "fetch"
    ),
}
EACH = [pytest.param(one, marks=needs(program), id=one.name) for program, one in AGENTS.items()]
PAIRS = [
    pytest.param(one, made, marks=[needs(program), needed], id=f"{one.name}-{server}")
    for program, one in AGENTS.items()
    for server, (made, needed) in OF_OTHERS.items()
    if report.FILE or server == one.plays
]
# Each victim alone, and the agents that it is tried with. An agent with a process for each prompt has no wrap
# when its turn is over. `make agents-newest` tries them all.
VICTIMS = {
    "wrap": ("claude-code", "opencode"),
    "server": ("claude-code", "codex", "gemini"),
    "daemon": ("codex", "opencode", "gemini"),
}


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    one = Person(tmp_path)
    with (tmp_path / "config.toml").open("a") as file:
        file.write(f"[mcp]\nwrap_threshold = {THRESHOLD}\n")
    assert one("up").code == 0
    yield one
    one.leave()


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SlowServer]:
    """The scripted one, or the one that the test names."""
    made = getattr(request, "param", Scripted)(tmp_path / "slow")
    yield made
    made.close()


@contextmanager
def conversation(
    of: AgentOf, agent: Any, model: Model, server: SlowServer, *, again: bool = False
) -> Iterator[Prompt]:
    """Gives prompts to one session, which is offered the tool. `again`: to the one of before."""
    if of.talks:
        more = ["--allowedTools=Bash,mcp__meantime,mcp__slow"] if of.kind is ClaudeCode else []
        more += ["--continue"] if of.kind is ClaudeCode and again else []
        with agent.session(*more) as prompt:
            if not again:
                greet(model, prompt, of.offered.replace(TOOL, server.tool))
            yield prompt
        return
    turns = int(again)

    def turn(text: str) -> None:
        nonlocal turns
        agent.turn(text, again=turns > 0)
        turns += 1

    yield turn


def asked(model: Model, count: int) -> None:
    until(
        lambda: len(model.turns) >= count,
        f"the model is asked {count} times",
        lambda: [one.answer for one in model.turns],
    )


def question(model: Model) -> str:
    """The last one, however the agent has escaped it."""
    return html.unescape(model.turns[-1].text).replace('\\"', '"')


def seen(model: Model) -> list[str]:
    """The ids of the notices in the last question, as often as they are there."""
    return IDS.findall(question(model))


def wrap(agent: Agent, name: str) -> None:
    """As a person does it."""
    agent.install(name)
    done = subprocess.run(
        [MEANTIME, "install", name, "--wrap", "slow", "--yes"], env=agent.environ, cwd=agent.project,
        capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done


@pytest.mark.parametrize(("of", "server"), PAIRS, indirect=["server"])
def test_without_the_wrap_an_agent_waits_until_it_gives_up(
    of: AgentOf, person: Person, model: Model, server: SlowServer
):
    agent = of.kind(person, model)
    of.configure(agent, server.command, TIMEOUT)
    with conversation(of, agent, model, server) as prompt:
        before = len(model.turns)
        prompt(script(of.calling(server), {"text": "It failed."}))
        asked(model, before + 2)
    waited = model.turns[-1].at - model.turns[-2].at
    assert waited >= TIMEOUT - 1
    assert "time" in model.turns[-1].said[-1].text.lower(), model.turns[-1].said[-1]
    assert server.done not in question(model)
    assert server.calls == 1


@pytest.mark.parametrize(("of", "server"), PAIRS, indirect=["server"])
def test_with_the_wrap_an_agent_goes_on_and_is_told_once(
    of: AgentOf, person: Person, model: Model, server: SlowServer
):
    told_after(of, "nobody", person, model, server)


CASES = [
    pytest.param(one, victim, marks=needs(program), id=f"{one.name}-{victim}")
    for program, one in AGENTS.items()
    for victim, plays in VICTIMS.items()
    if report.FILE or one.name in plays
]


@pytest.mark.parametrize(("of", "victim"), CASES)
def test_an_agent_is_told_once_even_if_somebody_is_killed(
    of: AgentOf, victim: str, person: Person, model: Model, server: SlowServer
):
    told_after(of, victim, person, model, server)


def told_after(of: AgentOf, victim: str, person: Person, model: Model, server: SlowServer) -> None:
    agent = of.kind(person, model)
    of.configure(agent, server.command, PATIENT)
    wrap(agent, of.name)
    with conversation(of, agent, model, server) as prompt:
        before = len(model.turns)
        told = {"text": "I was told."}
        prompt(script(of.calling(server), {"text": "It runs."}, told, told))
        asked(model, before + 2)
        answer = model.turns[before + 1]
        assert "continues in the background as task t_" in answer.text
        (task,) = [one["id"] for one in person.json("ps", "-a")["tasks"]]
        kill(victim, person, server)
        server.let_go()
        until(lambda: ended(person, task), "the task has ended", lambda: person.json("ps", "-a"))
        prompt(script({"text": "I am back."}, told))
        until(lambda: seen(model), "the agent is told", lambda: model.turns[-1].text)
        settled(person)
    assert seen(model) == [f"{task}.1"]
    lost = victim in ("server", "daemon")
    assert (server.done in question(model)) is not lost
    assert (LOST in question(model)) is lost
    assert server.calls == 1, "it was sent once"


@pytest.mark.parametrize("of", EACH)
def test_with_everything_killed_the_same_conversation_is_told_once(
    of: AgentOf, person: Person, model: Model, server: SlowServer
):
    agent = of.kind(person, model)
    of.configure(agent, server.command, PATIENT)
    wrap(agent, of.name)
    with conversation(of, agent, model, server) as prompt:
        before = len(model.turns)
        prompt(script(of.calling(server), {"text": "It runs."}))
        asked(model, before + 2)
        (task,) = [one["id"] for one in person.json("ps", "-a")["tasks"]]
        for victim in VICTIMS:
            kill(victim, person, server)
    server.let_go()  # the agent is killed by now, or has ended: nobody is left
    with conversation(of, agent, model, server, again=True) as prompt:
        prompt(script({"text": "I am back."}, {"text": "I was told."}))
        until(lambda: seen(model), "the agent is told", lambda: model.turns[-1].text)
        settled(person)
    assert seen(model) == [f"{task}.1"]
    assert LOST in question(model)
    assert server.done not in question(model)
    assert server.calls == 1, "it was sent once"


def kill(victim: str, person: Person, server: SlowServer) -> None:
    if victim == "server":
        assert isinstance(server, Scripted)
        os.kill(server.peer.pids[-1], signal.SIGKILL)
    elif victim == "wrap":
        for pid in running(person.home, "mcp", "--wrap"):
            os.kill(pid, signal.SIGKILL)
    elif victim == "daemon":
        home = Home(person.home, person.folder / "config.toml")
        found = owner(home)
        assert found is not None
        assert terminate(home, found.pid, signal.SIGKILL, LIMIT)


def ended(person: Person, task: str) -> bool:
    return all(one["state"] != "running" for one in person.json("ps", "-a")["tasks"] if one["id"] == task)


def settled(person: Person) -> None:
    asking = person.daemon()

    def is_settled() -> bool:
        threads = asking.get("/v1/threads")["threads"]
        return not any(one["active"] or one["unread"] or one["leased"] for one in threads)

    until(is_settled, "all is told", lambda: asking.get("/v1/threads"))
