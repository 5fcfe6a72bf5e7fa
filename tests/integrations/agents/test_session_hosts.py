"""The public suite for hosts of sessions, on real agents with the scripted model behind them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, pause_async, until_async

from cli.person import Person
from meantime.app.system_clock import SystemClock
from meantime.integrations import acp, cli_agents, opencode
from meantime.ports.session import AgentSettings, SessionHost
from meantime.runners.shell.lasting_commands import LastingCommands
from meantime.runners.shell.runner import ShellRunner
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture, Script
from meantime.testing.session_host.host_fixture import ODD

from ..cli_agents.test_real import Claude, Codex
from ..opencode.serving import Running
from . import report
from .installed import CLAUDE, CODEX, GEMINI, GOOSE, OPENCODE, Agent, Gemini, Goose, OpenCode, needs
from .model import Model, script

pytestmark = [pytest.mark.agents, pytest.mark.anyio, pytest.mark.xdist_group("session-hosts")]
SCRIPT = Script(
    say=script({"text": "{word}"}),
    recall=script({"recall": True}),
    wait=script({"hang": True}),
    slow=script({"text": "{word}", "delay": 3.0}),
    odd=script({"text": ODD}),
)
Made = tuple[Callable[[], SessionHost], AgentSettings]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    one = Running(tmp_path_factory.mktemp("opencode"), model)
    yield one
    one.kill()


class Homes:
    """One for every kind of agent: what it sets up when it is first started there is set up once."""

    def __init__(self, factory: pytest.TempPathFactory, model: Model) -> None:
        self._factory, self._model = factory, model
        self._known: dict[Any, Agent] = {}

    def of(self, kind: Any) -> Agent:
        if kind not in self._known:
            agent = self._known[kind] = kind(Person(self._factory.mktemp("home")), self._model)
            if kind is OpenCode:  # two that make its database at once lock each other out
                words = [OPENCODE, "session", "list"]
                subprocess.run(words, env=agent.environ, cwd=agent.project, timeout=LIMIT, check=True)
        return self._known[kind]


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Homes:
    return Homes(tmp_path_factory, model)


def at_home(agent: Agent) -> dict[str, Any]:
    return {"cwd": str(agent.project), "env": agent.environ}


def over_acp(program: Path, kind: Any, *arguments: str, **options: Any) -> Any:
    def make(request: pytest.FixtureRequest, folder: Path) -> Made:
        agent = request.getfixturevalue("homes").of(kind)
        words = (str(program), *arguments)
        settings = AgentSettings(runner="acp", command=words, options=options, **at_home(agent))
        return lambda: acp.host(SystemClock(), acp.variant(settings)), settings

    return pytest.param(make, id=f"acp-{program.name}", marks=needs(program))


def on_the_command_line(program: Path, kind: Any, **more: Any) -> Any:
    def make(request: pytest.FixtureRequest, folder: Path) -> Made:
        agent = request.getfixturevalue("homes").of(kind)
        settings = AgentSettings(runner="cli", command=(str(program),), **at_home(agent), **more)

        def host() -> SessionHost:
            commands = LastingCommands(ShellRunner(folder / "commands", grace=0.5))
            return cli_agents.host(SystemClock(), commands, cli_agents.variant(settings))

        return host, settings

    return pytest.param(make, id=f"cli-{program.name}", marks=needs(program))


def on_a_server(request: pytest.FixtureRequest, folder: Path) -> Made:
    server: Running = request.getfixturevalue("server")
    settings = AgentSettings(runner="opencode", url=server.url, cwd=str(server.project))
    return lambda: opencode.host(SystemClock()), settings


HOSTS = [
    over_acp(GOOSE, Goose, "acp"),
    pytest.param(on_a_server, id="opencode", marks=needs(OPENCODE)),
    on_the_command_line(GOOSE, Goose, otherwise="allow"),
]
# A turn of these takes seconds of CPU.
SLOW = [
    over_acp(OPENCODE, OpenCode, "acp", shared=True, start=LIMIT),
    on_the_command_line(OPENCODE, OpenCode, otherwise="allow"),
    on_the_command_line(CLAUDE, Claude, allow=("Bash",)),  # root cannot allow it everything
    on_the_command_line(CODEX, Codex),
    on_the_command_line(GEMINI, Gemini, otherwise="allow", model="gemini-2.5-flash"),
]


CHECKS = [pytest.param(check, id=check.__name__) for check in SESSION_HOST_CHECKS]


def pairs() -> list[Any]:
    """Each check with two of the slow agents, and so each of these with two checks in five. All pairs take
    longer than the rest of the agents' tests together; `make agents-newest`, which reports, runs them all."""
    chosen: list[Any] = []
    for row, check in enumerate(CHECKS):
        for column, made in enumerate(SLOW):
            if report.FILE or (row + column) % len(SLOW) in (0, 2):
                values = (*made.values, *check.values)
                chosen.append(pytest.param(*values, id=f"{check.id}-{made.id}", marks=made.marks))
    return chosen


@pytest.mark.parametrize("made", HOSTS)
@pytest.mark.parametrize("check", CHECKS)
async def test_real_hosts_keep_the_contract(
    made: Any, check: Check, request: pytest.FixtureRequest, tmp_path: Path, model: Model
) -> None:
    await exercise(made, check, request, tmp_path, model)


@pytest.mark.parametrize(("made", "check"), pairs())
async def test_slow_hosts_keep_the_contract(
    made: Any, check: Check, request: pytest.FixtureRequest, tmp_path: Path, model: Model
) -> None:
    await exercise(made, check, request, tmp_path, model)


async def exercise(
    made: Any, check: Check, request: pytest.FixtureRequest, tmp_path: Path, model: Model
) -> None:
    make, settings = made(request, tmp_path)

    async def middle() -> None:
        """The model thinks."""
        await until_async(lambda: model.thinking, "the model thinks")
        await pause_async(0.2, "its agent, too, knows that it was asked")

    bench = HostFixture(make, settings, tmp_path / "bench", SCRIPT, middle=middle)
    bench.host.check("agent", settings)
    try:
        await check(bench)
    finally:
        await bench.host.close()
