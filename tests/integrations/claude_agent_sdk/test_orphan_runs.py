"""Claude Code whose owner was killed is ended before its session is resumed; that of others is not, and no
command of Meantime."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from tests.waiting import LIMIT, until

from meantime.integrations.agent_host.marked_processes import kill_all
from meantime.integrations.claude_agent_sdk import orphan_runs
from meantime.integrations.claude_agent_sdk.orphan_runs import end_orphans, owner_mark
from meantime.integrations.guarded_process import GuardedProcess
from meantime.system.platform import stat
from meantime.system.process import Process, process
from meantime.system.process_marks import CLAUDE, COMMAND

pytestmark = pytest.mark.agents

OWNER = """
import os, subprocess, sys
from meantime.integrations.claude_agent_sdk.orphan_runs import guard_runs, owner_mark
if os.environ.get("GUARDED"):
    guard_runs()
    guard_runs()
env = {**os.environ, **owner_mark("a b")}
for line in sys.argv[1:]:
    command = ["env", *filter(None, [line]), "sleep", "1000"]
    run = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    print(run.pid, flush=True)
run.wait()
"""


class Owner:
    """A process that has started some with its mark, each with another variable."""

    def __init__(self, *variables: str, **own: str) -> None:
        program = [sys.executable, "-c", OWNER, *variables]
        env = {**os.environ, **own}
        self._process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=env)
        assert self._process.stdout is not None
        self._said = self._process.stdout
        self.runs = [process(int(self._said.readline())) for _ in variables]
        for run in self.runs:
            until(partial(is_sleep, run), "it has become another program, with its own variables")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        kill_all([run for run in self.runs if run.is_alive])
        self._said.close()


def is_sleep(run: Process) -> bool:
    found = stat(run.pid)
    assert found is not None, "it has ended"
    return found.name == "sleep"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_runs, "GONE", LIMIT)


@pytest.fixture
def owner() -> Iterator[Callable[..., Owner]]:
    made: list[Owner] = []

    def make(*variables: str, **own: str) -> Owner:
        made.append(Owner(*variables, **own))
        return made[-1]

    yield make
    for each in made:
        each.kill()
        each.close()


def test_only_runs_whose_owner_is_gone_are_ended(owner: Callable[..., Owner]):
    killed = owner("")
    (run,) = killed.runs
    end_orphans("a b")
    assert run.is_alive, "its owner lives"
    killed.kill()
    end_orphans("a")
    assert run.is_alive, "it is of another session"
    end_orphans("a b")
    assert not run.is_alive


@pytest.mark.behaviour("P4")
def test_a_command_of_meantime_that_was_started_from_inside_goes_on(owner: Callable[..., Owner]):
    killed = owner("", f"{COMMAND}=/home/commands/build@1:2")
    killed.kill()
    end_orphans("a b")
    assert [run.is_alive for run in killed.runs] == [False, True]


@pytest.mark.behaviour("P4")
def test_an_owner_that_is_a_command_itself_leaves_orphans_too(owner: Callable[..., Owner]):
    killed = owner("", f"{COMMAND}=/home/commands/build@1:2", **{COMMAND: "/home/commands/talk@1:1"})
    killed.kill()
    end_orphans("a b")
    assert [run.is_alive for run in killed.runs] == [False, True]


@pytest.mark.behaviour("P4")
def test_the_guard_of_an_owner_ends_its_runs_as_soon_as_it_is_killed(owner: Callable[..., Owner]):
    other = owner("")
    killed = owner(f"{COMMAND}=/home/commands/build@1:2", f"{CLAUDE}=1 2 boot 0 a b", "", GUARDED="yes")
    assert all(run.is_alive for run in killed.runs)
    killed.kill()
    command, foreign, run = killed.runs  # a look goes through them in this order
    until(lambda: not run.is_alive, "the guard has ended it")
    assert command.is_alive, "a command of Meantime goes on"
    assert foreign.is_alive, "it is another owner's"
    assert all(run.is_alive for run in other.runs), "their owner lives"


def test_the_guard_of_an_owner_that_is_a_command_itself_ends_its_runs(owner: Callable[..., Owner]):
    killed = owner("", **{COMMAND: "/home/commands/talk@1:1", "GUARDED": "yes"})
    killed.kill()
    until(lambda: not killed.runs[0].is_alive, "the guard has ended it")


def test_an_owner_that_ends_by_itself_leaves_no_guard_and_ends_nothing():
    program = (
        "import os, subprocess\n"
        "from meantime.integrations.claude_agent_sdk import orphan_runs\n"
        "orphan_runs.guard_runs()\n"
        "env = {**os.environ, **orphan_runs.owner_mark('a b')}\n"
        "run = subprocess.Popen(['sleep', '1000'], env=env, stdout=-3, stderr=-3)\n"
        "print(run.pid, orphan_runs._guards[0]._process.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT, check=True
    )
    run, guard = map(int, done.stdout.split())
    assert stat(guard) is None, "it was waited for"
    assert process(run).is_alive
    kill_all([process(run)])


@pytest.mark.parametrize(
    "mark", ["", "nonsense", "1 2 3", "1 2 boot", "one 2 boot 0 a b", "1 two boot 0 a b"]
)
def test_a_mark_that_says_nothing_is_ignored(owner: Callable[..., Owner], mark: str):
    killed = owner(f"{CLAUDE}={mark}", "")
    killed.kill()
    end_orphans("a b")
    assert [run.is_alive for run in killed.runs] == [True, False]


def test_a_mark_of_this_process_is_of_a_living_owner():
    run = subprocess.Popen(["sleep", "1000"], env={**os.environ, **owner_mark("mine")})
    try:
        end_orphans("mine")
        assert run.poll() is None
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()


@pytest.mark.anyio
async def test_a_server_that_the_daemon_holds_has_no_such_mark():
    env = {"PATH": os.environ["PATH"], CLAUDE: "1 2 boot 0 a b", "OTHER": "is kept"}
    server = await GuardedProcess.start(["env"], env, None, lambda said: None)
    try:
        said = (await server.stdout.read()).decode()
    finally:
        await server.close()
    assert "OTHER=is kept" in said
    assert CLAUDE not in said
