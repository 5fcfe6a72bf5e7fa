"""The meaning of an agent's settings for OpenCode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from meantime.integrations.agent_host.inherited_env import inherited
from meantime.ports.session import AgentSettings

PROGRAM = ("opencode",)
INHERITED = (
    "PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL", "TZ", "TMPDIR",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
)  # fmt: skip


def command(settings: AgentSettings) -> Sequence[str]:
    return settings.command or PROGRAM


def environ(settings: AgentSettings) -> dict[str, str]:
    return inherited(INHERITED, settings) | settings.env


def rules(settings: AgentSettings) -> list[dict[str, str]]:
    """The tools that it has at all, and what is allowed and denied without being asked for. Requests beyond
    that are decided by OpenCode's own configuration, or by `options = {permission = {bash = "ask"}}`.
    """
    said: dict[str, str] = {}
    if settings.tools is not None:
        usual = "allow" if settings.otherwise == "allow" else "ask"
        said = {"*": "deny"} | dict.fromkeys(settings.tools, usual)
    given = settings.options.get("permission")
    if isinstance(given, dict):
        said |= {str(name): str(action) for name, action in cast("dict[Any, Any]", given).items()}
    said |= dict.fromkeys(settings.allow, "allow") | dict.fromkeys(settings.deny, "deny")
    return [{"permission": name, "pattern": "*", "action": action} for name, action in said.items()]
