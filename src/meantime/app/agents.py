"""Who works: agents by name, each with its settings and the host of its sessions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

import msgspec

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


NAME = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")


def employ(agents: Mapping[str, Any], clock: Clock) -> dict[str, Employed]:
    """An agent is given by AgentSettings, as the configuration has them; or, in Python, as itself: a
    Pydantic AI agent, or an async function of messages."""
    hosts: dict[str, SessionHost] = {}
    employed: dict[str, Employed] = {}
    for name, given in agents.items():
        one = given if isinstance(given, Employed) else _employed(name, given, hosts, clock)
        employed[name] = one
    return employed


def checked(tables: Mapping[str, Any]) -> dict[str, AgentSettings]:
    """Agents as a configuration file names them."""
    found: dict[str, AgentSettings] = {}
    for name, table in tables.items():
        if not NAME.match(name):
            raise InvalidInput(f"{name!r} is no name for an agent.", hint="Use letters, digits, . _ and -.")
        try:
            settings = msgspec.convert(table, AgentSettings)
        except msgspec.ValidationError as problem:
            known = ", ".join(AgentSettings.__struct_fields__)
            raise InvalidInput(
                f"The agent {name} is not right: {problem}.", hint=f"There are: {known}."
            ) from None
        if settings.runner not in HOSTS:
            raise _unknown_runner(name, settings)
        found[name] = settings
    return found


def _unknown_runner(name: str, settings: AgentSettings) -> InvalidInput:
    return InvalidInput(
        f"runner={settings.runner!r} of the agent {name} is unknown.", hint=f"Use {', '.join(HOSTS)}."
    )


def _employed(name: str, given: Any, hosts: dict[str, SessionHost], clock: Clock) -> Employed:
    if isinstance(given, AgentSettings):
        if given.runner not in HOSTS:
            raise _unknown_runner(name, given)
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
