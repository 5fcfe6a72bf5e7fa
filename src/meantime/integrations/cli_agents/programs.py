"""Which programs we can speak to, and what an agent's settings mean for one."""

from __future__ import annotations

import os

from meantime.integrations.agent_host.inherited_env import inherited
from meantime.kernel.errors import InvalidInput
from meantime.ports.session import AgentSettings
from meantime.system.program_search import find_program

from . import claude, codex, gemini, goose, opencode
from .cli_adapter import CliAdapter

KNOWN = {one.ADAPTER.name: one.ADAPTER for one in (claude, codex, gemini, goose, opencode)}
INHERITED = ("PATH", "HOME", "LANG", "TERM")


def adapter_of(name: str, settings: AgentSettings) -> CliAdapter:
    if not settings.command:
        raise InvalidInput(f"The agent {name} has no command.", hint='For example command = ["codex"].')
    asked = _called(settings)
    if asked not in KNOWN:
        raise InvalidInput(
            f"The agent {name} is {asked!r}, which is not known here.",
            hint=f"Use one of {', '.join(KNOWN)}, or name one as its profile if it is only called otherwise.",
        )
    return KNOWN[asked]


def forks(settings: AgentSettings) -> bool:
    """An unknown one is refused later, and by name."""
    known = KNOWN.get(_called(settings))
    return known is not None and known.forks


def _called(settings: AgentSettings) -> str:
    return settings.profile or os.path.basename("".join(settings.command[:1])).partition(".")[0]


def check(name: str, settings: AgentSettings) -> None:
    adapter = adapter_of(name, settings)
    wanted = {
        "tools": (adapter.picks_tools, settings.tools is not None),
        "allow": (adapter.allows, bool(set(settings.allow) - {"*"})),
        "deny": (adapter.denies, bool(settings.deny)),
    }
    for option, (can, is_set) in wanted.items():
        if is_set and not can:
            raise InvalidInput(
                f"{option} of the agent {name} cannot be: {adapter.name} has no flag for it.",
                hint="Leave it out, and say it in its own configuration.",
            )
    if settings.options.get("leftovers", "kill") not in ("kill", "keep"):
        raise InvalidInput(f"options.leftovers of the agent {name} is unknown.", hint="Use 'kill' or 'keep'.")
    program = settings.command[0]
    if find_program(program, environment(settings)) is None:
        raise InvalidInput(
            f"The program {program} of the agent {name} was not found.",
            hint="Install it, or name it with its path.",
            code="program_not_found",
        )


def environment(settings: AgentSettings) -> dict[str, str]:
    return {"TERM": "dumb", **inherited(INHERITED, settings), **settings.env}
