"""Who works: agents by name, each with its settings and the host of its sessions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

from meantime.kernel.errors import InvalidInput
from meantime.ports.clock import Clock
from meantime.ports.session import AgentSettings, SessionHost
from meantime.runners.agent.drive import Employed

# Each has a function `host(clock)`; it is imported when the first agent of its kind is employed.
HOSTS = {
    "acp": "meantime.integrations.acp",
    "opencode": "meantime.integrations.opencode",
    "cli": "meantime.integrations.cli_agents",
    "python": "meantime.integrations.loops",
}


def employ(agents: Mapping[str, Any], clock: Clock) -> dict[str, Employed]:
    """An agent is given by AgentSettings, as the configuration has them; or, in Python, as itself: a
    Pydantic AI agent, or an async function of messages."""
    hosts: dict[str, SessionHost] = {}
    employed: dict[str, Employed] = {}
    for name, given in agents.items():
        one = given if isinstance(given, Employed) else _employed(name, given, hosts, clock)
        employed[name] = one
    return employed


def _employed(name: str, given: Any, hosts: dict[str, SessionHost], clock: Clock) -> Employed:
    if isinstance(given, AgentSettings):
        if given.runner not in HOSTS:
            raise InvalidInput(
                f"runner={given.runner!r} of the agent {name} is unknown.", hint=f"Use {', '.join(HOSTS)}."
            )
        return Employed(given, _host(given.runner, hosts, clock))
    if inspect.iscoroutinefunction(given) or inspect.isasyncgenfunction(given) or hasattr(given, "run"):
        host = _host("python", hosts, clock)
        cast("Any", host).add(name, given)
        return Employed(AgentSettings(runner="python"), host)
    raise InvalidInput(
        f"The agent {name} is {type(given).__name__}.",
        hint="Give AgentSettings(…), a Pydantic AI agent, or an async function.",
    )


def _host(runner: str, hosts: dict[str, SessionHost], clock: Clock) -> SessionHost:
    if runner not in hosts:
        make: Callable[[Clock], SessionHost] = import_module(HOSTS[runner]).host
        hosts[runner] = make(clock)
    return hosts[runner]
