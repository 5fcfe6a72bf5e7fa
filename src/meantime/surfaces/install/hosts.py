"""What is written for each agent, and where."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from meantime.surfaces.cli.trouble import FAILED, Trouble

from .entries import NAME, Groups, with_json, with_toml, without_json, without_toml
from .files import Change, read
from .jsonc import NotJson
from .jsonc import Path as JsonPath

MOMENTS = ("session-start", "user-prompt", "post-tool", "stop")  # and how the agents call them
CLAUDE = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")
GEMINI = ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent")
# Codex gives its servers no more than this of its environment. Without them ours would find another home, and
# not know for which task its agent works: `depth` and `tree` would not hold.
OUR_VARIABLES = ["MEANTIME_HOME", "MEANTIME_CONFIG", "MEANTIME_THREAD", "MEANTIME_TASK", "MEANTIME_NO_START",
                 "XDG_STATE_HOME", "XDG_CONFIG_HOME"]  # fmt: skip
DAY = 86_400  # seconds for the hook that waits in the background


class Place(NamedTuple):
    """Where to install: for one project, or for one person."""

    project: Path | None
    user: Path
    environ: Mapping[str, str]

    def folder(self, name: str, variable: str = "") -> Path:
        """`.claude` and the like, in the project or in the home folder."""
        if self.project is not None:
            return self.project / name
        said = self.environ.get(variable) if variable else ""
        return Path(said) if said else self.user / name


class Host(NamedTuple):
    title: str
    changes: Callable[[Place, Sequence[str], bool], list[Change]]
    note: str


def claude_code(place: Place, command: Sequence[str], wanted: bool) -> list[Change]:
    if place.project is not None:
        servers = place.project / ".mcp.json"
    else:
        said = place.environ.get("CLAUDE_CONFIG_DIR")
        servers = (Path(said) if said else place.user) / ".claude.json"
    settings = place.folder(".claude", "CLAUDE_CONFIG_DIR") / "settings.json"
    entry = {"type": "stdio", "command": command[0], "args": [*command[1:], "mcp"]}
    hooks = _hooks(command, "claude-code", {}, 10, CLAUDE)
    waits = {"type": "command", "command": _line(command, "wait", "claude-code"), "asyncRewake": True}
    hooks["Stop"].append({"hooks": [{**waits, "timeout": DAY}]})
    return [
        _json(servers, ("mcpServers", NAME), entry, {}, wanted, private=True),
        _json(settings, None, {}, hooks, wanted),
    ]


def codex(place: Place, command: Sequence[str], wanted: bool) -> list[Change]:
    folder = place.folder(".codex", "CODEX_HOME")
    table = (
        f"[mcp_servers.{NAME}]\n"
        f"command = {json.dumps(command[0])}\n"
        f"args = {json.dumps([*command[1:], 'mcp'])}\n"
        f"env_vars = {json.dumps(OUR_VARIABLES)}\n"
    )
    hooks = _hooks(command, "codex", {}, 10, CLAUDE)
    return [
        _toml(folder / "config.toml", table, wanted),
        _json(folder / "hooks.json", None, {}, hooks, wanted),
    ]


def gemini(place: Place, command: Sequence[str], wanted: bool) -> list[Change]:
    entry = {"command": command[0], "args": [*command[1:], "mcp", "--by-session"]}
    named = {"name": NAME}
    hooks = _hooks(command, "gemini", named, 10_000, GEMINI)
    names = {**named, "type": "command", "command": _line(command, "pre-tool", "gemini"), "timeout": 10_000}
    hooks["BeforeTool"] = [{"matcher": f"mcp_{NAME}_.*", "hooks": [names]}]
    return [_json(place.folder(".gemini") / "settings.json", ("mcpServers", NAME), entry, hooks, wanted)]


def opencode(place: Place, command: Sequence[str], wanted: bool) -> list[Change]:
    if place.project is not None:
        folder, plugins = place.project, place.project / ".opencode"
    else:
        said = place.environ.get("XDG_CONFIG_HOME")
        folder = plugins = (Path(said) if said else place.user / ".config") / "opencode"
    names = ("opencode.jsonc", "opencode.json")
    config = next((folder / name for name in names if (folder / name).exists()), folder / names[1])
    entry = {"type": "local", "command": [*command, "mcp", "--by-session"], "enabled": True}
    return [
        _json(config, ("mcp", NAME), entry, {}, wanted),
        _plugin(plugins / "plugin" / f"{NAME}.js", command, wanted),
    ]


HOSTS: dict[str, Host] = {
    "claude-code": Host("Claude Code", claude_code, "It takes effect in the next session."),
    "codex": Host("Codex", codex, "Codex runs no hook that you have not trusted: look at them with /hooks."),
    "opencode": Host("OpenCode", opencode, "It takes effect when OpenCode is started again."),
    "gemini": Host("Gemini CLI", gemini, "It takes effect in the next session."),
}


def _hooks(
    command: Sequence[str], host: str, extra: dict[str, str], timeout: int, events: Sequence[str]
) -> Groups:
    made: Groups = {}
    for event, moment in zip(events, MOMENTS, strict=True):
        hook = {**extra, "type": "command", "command": _line(command, moment, host), "timeout": timeout}
        made[event] = [{"hooks": [hook]}]
    return made


def _line(command: Sequence[str], moment: str, host: str) -> str:
    return shlex.join([*command, "hook", moment, "--host", host])


def _json(
    path: Path, server: JsonPath | None, entry: dict[str, Any], hooks: Groups, wanted: bool, *,
    private: bool = False,
) -> Change:  # fmt: skip
    before = read(path)
    try:
        if wanted:
            after = with_json(before or "", None if server is None else (server, entry), hooks)
        else:
            after = None if before is None else without_json(before, server)
    except NotJson as problem:
        raise Trouble(f"{path}, {problem}.", "Mend it first; nothing was changed.", FAILED) from None
    if not wanted and after is not None and after != before and after.strip() == "{}":
        after = None
    return Change(path, before, after, private)


def _toml(path: Path, table: str, wanted: bool) -> Change:
    before = read(path)
    try:
        if wanted:
            return Change(path, before, with_toml(before or "", table))
        after = None if before is None else without_toml(before)
    except tomllib.TOMLDecodeError as problem:
        raise Trouble(f"{path}: {problem}.", "Mend it first; nothing was changed.", FAILED) from None
    return Change(path, before, None if after is not None and not after.strip() else after)


def _plugin(path: Path, command: Sequence[str], wanted: bool) -> Change:
    before = read(path)
    source = (Path(__file__).parent / "opencode.js").read_text("utf-8")
    first = source.partition("\n")[0]
    if before is not None and not before.startswith(first):
        raise Trouble(
            f"{path} is there, and `meantime install` did not write it.",
            "Rename or remove it first; nothing was changed.",
            FAILED,
        )
    made = source.replace('const COMMAND = ["meantime"]', f"const COMMAND = {json.dumps(list(command))}")
    return Change(path, before, made if wanted else None)
