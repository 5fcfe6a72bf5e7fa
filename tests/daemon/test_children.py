"""What an agent starts through our own doors, from its own process: it is that agent's child, and counts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from meantime import Agent, Meantime
from surfaces.mcp.speaking import Raw

from .conftest import Place

pytestmark = pytest.mark.processes

PROGRAM = Path(__file__).parents[1] / "integrations/cli_agents/program.py"
MEANTIME = (sys.executable, "-m", "meantime")
CONNECTED = """
import asyncio
from meantime import Call, Meantime, MeantimeError, Shell

async def main():
    async with Meantime.connect(start=False) as mt:
        for work in (Shell("true"), Call(int, "1")):
            for verb in ("start", "call"):
                try:
                    done = await getattr(mt.thread("any"), verb)(work)
                    print(verb, getattr(done, "id", None) or done.mode)
                except MeantimeError as problem:
                    print(verb, problem.code)

asyncio.run(main())
"""


class Agents:
    """A daemon that knows one scripted program as agents that may go so deep: `none`, `one`, `two`, `any`."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.folder = folder
        folder.mkdir()
        command = json.dumps([sys.executable, str(PROGRAM), str(folder)])
        depths = {"none": 0, "one": 1, "two": 2, "any": -1}
        tables = [
            f'[agents.{name}]\nrunner = "cli"\nprofile = "claude"\ncommand = {command}\ndepth = {depth}\n'
            for name, depth in depths.items()
        ]
        for name, kind in (("thrifty", 1), ("frugal", 2)):
            own = list(depths)[kind]
            tables += [tables[kind].replace(f"agents.{own}", f"agents.{name}"), "tree = {tokens = 104}\n"]
        place.configure("[http]\nport = 0\n" + "".join(tables))
        place.up()

    def start(self, name: str, *steps: dict[str, Any]) -> str:
        prompt = f"@@{json.dumps(steps)}@@"
        return self.place.ask("POST", "/v1/tasks", {"agent": name, "prompt": prompt})["id"]

    def ended(self, id: str) -> dict[str, Any]:
        task = self.place.wait(id)
        assert task["status"] == "completed", task
        return task

    def ran(self, name: str, *words: str) -> tuple[str, dict[str, Any]]:
        """An agent runs this; its id, and what came of it."""
        id = self.start(name, {"run": words}, {"say": "done"})
        self.ended(id)
        return id, self.noted("ran")[-1]

    def at_work(self, name: str) -> str:
        id = self.start(name, {"gate": "gate"}, {"say": "done"})
        until(lambda: self.noted("waiting"), "it has begun")
        return id

    def noted(self, name: str) -> list[Any]:
        file = self.folder / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def tasks(self) -> list[dict[str, Any]]:
        return self.place.ask("GET", "/v1/tasks")["tasks"]

    def task(self, id: str) -> dict[str, Any]:
        return self.place.ask("GET", f"/v1/tasks/{id}")


@pytest.fixture
def agents(place: Place, tmp_path: Path) -> Agents:
    return Agents(place, tmp_path / "program")


@pytest.mark.behaviour("F17")
def test_an_agent_that_may_start_nothing_is_refused_at_the_command_line(agents: Agents):
    id, ran = agents.ran("none", *MEANTIME, "run", "--", "true")
    assert ran["code"] != 0
    assert "This agent may not start tasks of its own." in ran["err"]
    assert "depth=1" in ran["err"], "what to do next"
    assert [task["id"] for task in agents.tasks()] == [id]


@pytest.mark.behaviour("F9", "F17")
def test_a_child_is_recorded_under_the_agent_that_started_it(agents: Agents):
    id, ran = agents.ran("one", *MEANTIME, "run", "-q", "--", "true")
    assert ran["code"] == 0, ran
    child = agents.task(ran["out"].strip())
    assert child["parentTaskID"] == id


@pytest.mark.behaviour("F17")
def test_a_command_counts_as_a_step_down(agents: Agents):
    """A command that an agent has started is itself the parent of what it starts."""
    line = f"{sys.executable} -m meantime run -q -- true"
    _, ran = agents.ran("one", *MEANTIME, "run", "-w", "-c", line)
    assert "may not start tasks of its own" in ran["out"] + ran["err"]
    id, ran = agents.ran("two", *MEANTIME, "run", "-w", "-c", line)
    assert ran["code"] == 0, ran
    child = next(task for task in agents.tasks() if task["parentTaskID"] == id)
    grandchild = agents.task(agents.ended(child["id"])["result"].strip())
    assert grandchild["parentTaskID"] == child["id"]


@pytest.mark.behaviour("F17")
def test_an_agent_that_starts_agents_is_held_by_its_depth(agents: Agents):
    """The child has settings of its own that would allow more; what its parent may do is the bound."""
    inner = json.dumps([{"run": [*MEANTIME, "run", "-q", "--", "true"]}, {"say": "inner"}])
    _, ran = agents.ran("one", *MEANTIME, "run", "-w", "-a", "any", f"@@{inner}@@")
    assert ran["code"] == 0, ran
    inner_ran = agents.noted("ran")[0]
    assert "may not start tasks of its own" in inner_ran["err"]


@pytest.mark.behaviour("L15")
def test_what_is_started_outside_spends_from_the_tree_of_its_parent(agents: Agents):
    """The first child spends 100 tokens of 104; the first words of the second are over the limit."""
    first, second = [{"say": "first"}], [{"say": "second"}, {"gate": "never"}]
    runs = [[*MEANTIME, "run", "-w", "-a", "any", f"@@{json.dumps(steps)}@@"] for steps in (first, second)]
    id = agents.start("thrifty", *({"run": run} for run in runs), {"say": "done"})
    agents.place.wait(id)
    children = {task["status"]: task for task in agents.tasks() if task["parentTaskID"] == id}
    assert children["completed"]["result"] == "first"
    assert "tokens of all together" in children["error"]["error"]


@pytest.mark.behaviour("L15")
def test_the_tree_of_an_agent_goes_through_its_commands(agents: Agents):
    """A command is the parent of what it starts, and the agent above it pays."""
    stories = [{"say": "first"}], [{"say": "second"}, {"gate": "never"}]
    lines = [f"{sys.executable} -m meantime run -w -a any '@@{json.dumps(steps)}@@'" for steps in stories]
    runs = [{"run": [*MEANTIME, "run", "-w", "-c", line]} for line in lines]
    id = agents.start("frugal", *runs, {"say": "done"})
    agents.place.wait(id)
    commands = {task["id"] for task in agents.tasks() if task["parentTaskID"] == id}
    ends = [task["status"] for task in agents.tasks() if task["parentTaskID"] in commands]
    assert sorted(ends) == ["completed", "error"]


@pytest.mark.behaviour("F17")
def test_a_call_that_is_waited_for_is_held_by_the_depth_of_its_agent(agents: Agents):
    prompt = f"@@{json.dumps([{'run': [*MEANTIME, 'run', '--', 'true']}, {'say': 'done'}])}@@"

    async def call() -> None:
        async with Meantime.connect(agents.place.home.link_socket) as mt:
            await mt.thread("conv-1").call(Agent("none", prompt), threshold=None)

    asyncio.run(call())
    assert "may not start tasks of its own" in agents.noted("ran")[0]["err"]
    assert agents.tasks() == []


@pytest.mark.behaviour("F17")
def test_work_that_connects_is_held_too(agents: Agents):
    id, ran = agents.ran("none", sys.executable, "-c", CONNECTED)
    assert ran["out"].split() == ["start", "no_children", "call", "no_children"] * 2, ran
    assert [task["id"] for task in agents.tasks()] == [id]


@pytest.mark.behaviour("F17")
def test_work_that_connects_starts_children_where_it_may(agents: Agents):
    id, ran = agents.ran("one", sys.executable, "-c", CONNECTED)
    said = ran["out"].split()
    assert "no_children" not in said, ran
    started = [agents.task(said[1]), agents.task(said[5])]
    assert [task["parentTaskID"] for task in started] == [id, id]


@pytest.mark.behaviour("F17")
def test_the_mcp_server_of_an_agent_starts_nothing_for_it(agents: Agents):
    id = agents.at_work("none")
    given = agents.noted("given")[-1]["environment"]
    environ = {name: value for name, value in given.items() if name.startswith("MEANTIME")}
    assert environ == {
        "MEANTIME_TASK": id, "MEANTIME_THREAD": id, "MEANTIME_HOME": str(agents.place.home.folder),
        "MEANTIME_COMMAND": given["MEANTIME_COMMAND"],
    }  # fmt: skip
    with Raw(agents.place, **environ) as raw:
        raw.hello()
        refused = raw.call("start", command="true")
        assert refused["_meta"]["meantime/code"] == "no_children", refused
        refused = raw.call("start_agent", agent="any", prompt="go")
        assert refused["_meta"]["meantime/code"] == "no_children", refused
    (agents.folder / "gate").touch()
    agents.ended(id)
    assert [task["id"] for task in agents.tasks()] == [id]


@pytest.mark.behaviour("F9")
def test_the_mcp_server_of_an_agent_starts_children_where_it_may(agents: Agents):
    id = agents.at_work("one")
    with Raw(agents.place, MEANTIME_TASK=id, MEANTIME_THREAD=id) as raw:
        raw.hello()
        raw.call("start", command="true")
    child = next(task for task in agents.tasks() if task["id"] != id)
    assert child["parentTaskID"] == id
    (agents.folder / "gate").touch()
    agents.ended(id)


def test_a_task_that_this_ledger_does_not_know_is_nobodys_parent(agents: Agents, monkeypatch):
    environ = {**agents.place.environ, "MEANTIME_TASK": "t_elsewhere"}
    monkeypatch.setattr(Place, "environ", property(lambda self: environ))
    started = agents.place.cli("run", "-q", "--", "true")
    assert started.returncode == 0, started
    assert agents.task(started.stdout.strip())["parentTaskID"] is None


def test_who_stops_a_daemon_is_told_of_its_agents(agents: Agents):
    id = agents.at_work("none")
    down = [*MEANTIME, "down"]
    said = subprocess.run(down, env=agents.place.environ, capture_output=True, text=True, check=True).stdout
    assert "open questions wait" in said
    assert f"{id[2:10]}  " in said.partition("Agents at work")[2]
    agents.place.up()
    (agents.folder / "gate").touch()
    agents.ended(id)  # this one is of the command line, and has gone on


def test_a_daemon_that_an_agent_has_started_is_not_its_child(place: Place, monkeypatch):
    """What the daemon starts by itself later must not count for whoever happened to need it first."""
    environ = {**place.environ, "MEANTIME_TASK": "t_first", "MEANTIME_THREAD": "t_first"}
    monkeypatch.setattr(Place, "environ", property(lambda self: environ))
    assert place.cli("run", "-q", "--", "true").returncode == 0
    line = "echo $MEANTIME_TASK $MEANTIME_THREAD"
    id = place.ask("POST", "/v1/tasks", {"command": line})["id"]  # with the daemon's own environment
    done = place.wait(id)
    assert done["result"] == f"{id}\n"
