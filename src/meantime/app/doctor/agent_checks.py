"""The agents that the configuration names: whether each could be started here."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from meantime.app.agent_hosts import checked, look_at
from meantime.app.config_sources import load
from meantime.app.system_clock import SystemClock
from meantime.kernel.errors import MeantimeError
from meantime.ports.session import AgentSettings

from .check_row import BAD, OK, CheckRow, Patient
from .home_checks import is_there


def agents(patient: Patient) -> Iterator[CheckRow]:
    try:
        found = checked(load(patient.home, patient.environ).values.agents.named)
    except MeantimeError:
        return  # the row of the configuration says it
    for name, settings in found.items():
        yield _agent(name, settings)


def _agent(name: str, settings: AgentSettings) -> CheckRow:
    if settings.runner == "python":  # not imported: somebody's module does what it likes
        module = settings.agent.partition(":")[0]
        if not is_there(module):
            todo = f"Install it for {sys.executable}, or add its folder to the daemon's PYTHONPATH."
            return CheckRow("agent", BAD, f"{name}: {module} is not there for the daemon's Python.", todo)
    else:
        try:
            look_at(name, settings, SystemClock())
        except MeantimeError as problem:
            return CheckRow("agent", BAD, f"{name}: {problem.message}", problem.hint)
    where = settings.url or "".join(settings.command[:1]) or settings.agent
    return CheckRow("agent", OK, f"{name}: {', '.join(filter(None, (settings.runner, where)))}")
