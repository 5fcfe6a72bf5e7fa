"""The folder of a session host keeps its name on disk, whatever its class is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Agent, Meantime
from meantime.integrations.acp.session_host import AcpSessionHost
from meantime.integrations.cli_agents.session_host import CliSessionHost
from meantime.integrations.loops import PythonHost, PythonSessionHost
from meantime.integrations.loops.loop_conversation import Conversation
from meantime.integrations.opencode.session_host import OpenCodeSessionHost
from meantime.ports.session import AgentSettings
from meantime.runners.agent.agent_run import HostedAgent
from meantime.runners.agent.runner import AgentRunner
from meantime.testing import FakeClock
from meantime.testing.scripted_host import ScriptedHost

from .stage import echo_host

# As ledgers have them since the first version: a name here never changes.
ON_DISK = {
    "AcpHost": AcpSessionHost,
    "CommandLineHost": CliSessionHost,
    "OpenCodeSessions": OpenCodeSessionHost,
    "PythonHost": PythonSessionHost,
}


async def words(talk: Conversation) -> str:
    return " ".join(line.text for line in talk.messages if line.role == "user")


def runner(folder: Path, *hosts: ScriptedHost) -> AgentRunner:
    settings = AgentSettings(runner="python")
    agents = {f"agent{number}": HostedAgent(settings, host) for number, host in enumerate(hosts)}
    return AgentRunner(agents, FakeClock(), folder)


@pytest.mark.parametrize("name", ON_DISK)
def test_a_folder_has_the_name_that_older_ledgers_have(name: str):
    assert ON_DISK[name].folder_name == name


def test_the_former_name_of_the_host_of_python_agents_works():
    assert PythonHost is PythonSessionHost


@pytest.mark.anyio
async def test_a_session_that_an_older_version_kept_is_gone_on_with(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db", agents={"echo": words}) as mt:
        handle = await mt.thread("t").start(Agent("echo", "walnut"))
        await handle.result(timeout=LIMIT)
    assert list((tmp_path / "work.db.agents" / "PythonHost").glob("*.lines"))
    async with Meantime.open(tmp_path / "work.db", agents={"echo": words}) as mt:
        again = await mt.thread("t").resume(handle.id, "hazel")
        assert await again.result(timeout=LIMIT) == "walnut hazel"


def test_a_host_without_a_name_of_its_own_has_that_of_its_class(tmp_path: Path):
    runner(tmp_path, echo_host(), echo_host()).open()
    assert {path.name for path in tmp_path.iterdir()} == {"ScriptedHost", "ScriptedHost.2"}
