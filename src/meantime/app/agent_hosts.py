"""Agents by name, each with its settings and the host of its sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from meantime.integrations.python_agent import KINDS, PythonAgent, is_agent
from meantime.kernel.errors import InvalidInput
from meantime.ports.agent_settings import settled
from meantime.ports.clock import Clock
from meantime.ports.commands import Commands
from meantime.ports.session import AgentSettings, SessionHost
from meantime.runners.agent.agent_run import HostedAgent
from meantime.runners.shell.lasting_commands import LastingCommands
from meantime.runners.shell.runner import ShellRunner

if TYPE_CHECKING:
    from meantime.integrations.loops.session_host import PythonSessionHost

# Each has a function `host(clock)`; it is imported when the first agent of its kind is hosted. Where the
# abilities of its agents differ it has `variant(settings)`, too, and makes a host for each. Those that are
# LASTING get the commands, too: what they start goes on without us.
SESSION_HOSTS = {
    "acp": "meantime.integrations.acp",
    "opencode": "meantime.integrations.opencode",
    "cli": "meantime.integrations.cli_agents",
    "python": "meantime.integrations.loops",
}
LASTING = {"cli"}


def host_agents(
    agents: Mapping[str, Any], clock: Clock, commands: Callable[[str], Commands]
) -> dict[str, HostedAgent]:
    """An agent is given by AgentSettings, as the configuration has them; or, in Python, as itself: a
    framework's agent, or an async function of a conversation; with settings, as PythonAgent(…)."""
    session_hosts: dict[str, SessionHost] = {}
    hosted: dict[str, HostedAgent] = {}
    for name, given in agents.items():
        if not isinstance(given, HostedAgent):
            given = _hosted(name, given, session_hosts, clock, commands)
        hosted[name] = given
    return hosted


def checked(tables: Mapping[str, Any]) -> dict[str, AgentSettings]:
    """Agents as a configuration file names them."""
    return {name: settled(table, f"the agent {name}") for name, table in tables.items()}


def look_at(name: str, settings: AgentSettings, clock: Clock) -> None:
    """Whether it can run here, as far as its host sees before it starts one. Raises InvalidInput."""
    one = host_agents({name: settings}, clock, _no_commands)[name]
    one.host.check(name, settings)


def _no_commands(folder: str) -> Commands:
    """For a host that is never opened."""
    return LastingCommands(ShellRunner(None))


def _hosted(
    name: str,
    given: Any,
    session_hosts: dict[str, SessionHost],
    clock: Clock,
    commands: Callable[[str], Commands],
) -> HostedAgent:
    if isinstance(given, AgentSettings):
        settings = settled(structs.asdict(given), f"the agent {name}")
        return HostedAgent(settings, _session_host(settings, session_hosts, clock, commands))
    if isinstance(given, PythonAgent) or is_agent(given):
        host = _session_host(AgentSettings(runner="python"), session_hosts, clock, commands)
        return HostedAgent(cast("PythonSessionHost", host).add(name, given), host)
    raise InvalidInput(
        f"The agent {name} is {type(given).__name__}.",
        hint=f"Give AgentSettings(…), PythonAgent(…), {KINDS}.",
    )


def _session_host(
    settings: AgentSettings,
    session_hosts: dict[str, SessionHost],
    clock: Clock,
    commands: Callable[[str], Commands],
) -> SessionHost:
    module: Any = import_module(SESSION_HOSTS[settings.runner])
    variant: Callable[[AgentSettings], str] | None = getattr(module, "variant", None)
    own = (variant(settings),) if variant else ()
    key = "/".join((settings.runner, *own))
    if key not in session_hosts:
        # Each has its own, so that no host takes another's commands for lost ones.
        folder = "-".join(("commands", *own))
        given = (commands(folder),) if settings.runner in LASTING else ()
        session_hosts[key] = module.host(clock, *given, *own)
    return session_hosts[key]
