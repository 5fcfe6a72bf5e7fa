"""The entries for each agent, and their files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from meantime.surfaces.terminal.errors import FAILED, CliError

from .config_entries import NAME, Groups, with_json, with_toml, without_json, without_toml
from .file_change import FileChange, read
from .hook_lines import line
from .jsonc import NotJson
from .jsonc import Path as JsonPath

MOMENTS = ("session-start", "user-prompt", "post-tool", "stop")  # and how the agents call them
CLAUDE = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")
GEMINI = ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent")
# Codex gives its servers no more than this of its environment. Without them ours would find another home, and
# not know for which task its agent works: `depth` and `tree` would not hold.
OUR_VARIABLES = ["MEANTIME_HOME", "MEANTIME_CONFIG", "MEANTIME_THREAD", "MEANTIME_TASK", "MEANTIME_NO_START",
                 "XDG_STATE_HOME", "XDG_CONFIG_HOME"]  # fmt: skip
CODEX_START = 60  # seconds for our server: the machine may be busy
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


class AgentConfig(NamedTuple):
    title: str
    changes: Callable[[Place, Sequence[str], bool], list[FileChange]]
    note: str


def claude_code(place: Place, command: Sequence[str], wanted: bool) -> list[FileChange]:
    if place.project is not None:
        servers = place.project / ".mcp.json"
    else:
        said = place.environ.get("CLAUDE_CONFIG_DIR")
        servers = (Path(said) if said else place.user) / ".claude.json"
    settings = place.folder(".claude", "CLAUDE_CONFIG_DIR") / "settings.json"
    # Its servers live on when a session is cleared or another one resumed: then a hook says whose they are.
    entry = {"type": "stdio", "command": command[0], "args": [*command[1:], "mcp", "--by-session"]}
    hooks = _hooks(command, "claude-code", {}, 10, CLAUDE)
    waits = {"type": "command", "command": line(command, "wait", "claude-code"), "asyncRewake": True}
    hooks["Stop"].append({"hooks": [{**waits, "timeout": DAY}]})
    return [
        _json(servers, ("mcpServers", NAME), entry, {}, wanted, private=True),
        _json(settings, None, {}, hooks, wanted),
    ]


def codex(place: Place, command: Sequence[str], wanted: bool) -> list[FileChange]:
    folder = place.folder(".codex", "CODEX_HOME")
    table = (
        f"[mcp_servers.{NAME}]\n"
        f"command = {json.dumps(command[0])}\n"
        f"args = {json.dumps([*command[1:], 'mcp'])}\n"
        f"env_vars = {json.dumps(OUR_VARIABLES)}\n"
    )
    if place.project is None:
        # Codex asks its model before its servers are up, and then the model has none of our tools. This makes
        # it wait. A required server that is late, or is not there, keeps Codex from starting: so the limit
        # is generous, and nobody else's Codex depends on it.
        table += f"required = true\nstartup_timeout_sec = {CODEX_START}\n"
    hooks = _hooks(command, "codex", {}, 10, CLAUDE)
    waits = {"type": "command", "command": line(command, "wait", "codex"), "timeout": 10}
    hooks["Stop"].append({"hooks": [waits]})  # it leaves a process that waits, and ends
    return [
        _toml(folder / "config.toml", table, wanted),
        _json(folder / "hooks.json", None, {}, hooks, wanted),
    ]


def gemini(place: Place, command: Sequence[str], wanted: bool) -> list[FileChange]:
    """Its AfterTool hooks are not used: what they add is there twice after a resume."""
    entry = {"command": command[0], "args": [*command[1:], "mcp", "--by-session"]}
    named = {"name": NAME}
    hooks = _hooks(command, "gemini", named, 10_000, GEMINI)
    del hooks["AfterTool"]
    names = {**named, "type": "command", "command": line(command, "pre-tool", "gemini"), "timeout": 10_000}
    hooks["BeforeTool"] = [{"matcher": f"mcp_{NAME}_.*", "hooks": [names]}]
    return [_json(place.folder(".gemini") / "settings.json", ("mcpServers", NAME), entry, hooks, wanted)]


def cursor(place: Place, command: Sequence[str], wanted: bool) -> list[FileChange]:
    """An event that it does not know makes it discard the whole file, without a word. Its other hooks either
    put nothing before the model, or only sometimes."""
    folder = place.folder(".cursor")
    entry = {"type": "stdio", "command": command[0], "args": [*command[1:], "mcp", "--by-session"]}
    # It counts how often a hook makes its agent go on, and then no longer hears it: a notice would be lost.
    tells = {"command": line(command, "stop", "cursor"), "timeout": 10, "loop_limit": None}
    names = {"command": line(command, "pre-tool", "cursor"), "timeout": 10}
    hooks: Groups = {"stop": [tells], "beforeMCPExecution": [names]}
    return [
        _json(folder / "mcp.json", ("mcpServers", NAME), entry, {}, wanted),
        _json(folder / "hooks.json", None, {}, hooks, wanted, head={"version": 1}),
    ]


def opencode(place: Place, command: Sequence[str], wanted: bool) -> list[FileChange]:
    if place.project is not None:
        folder, plugins = place.project, place.project / ".opencode"
    else:
        said = place.environ.get("XDG_CONFIG_HOME")
        folder = plugins = (Path(said) if said else place.user / ".config") / "opencode"
    names = ("opencode.jsonc", "opencode.json")
    config = next((folder / name for name in names if (folder / name).exists()), folder / names[1])
    entry = {"type": "local", "command": [*command, "mcp", "--by-session"], "enabled": True}
    source = (Path(__file__).parent / "opencode.js").read_text("utf-8")
    return [
        _json(config, ("mcp", NAME), entry, {}, wanted),
        _whole(plugins / "plugin" / f"{NAME}.js", source, wanted, begin=source.partition("\n")[0]),
    ]


def goose(place: Place, command: Sequence[str], wanted: bool) -> list[FileChange]:
    """A plugin of its own, with a server and a hook: goose writes its config.yaml itself, without comments.
    Its other hooks put nothing before the model."""
    own = place.environ.get("GOOSE_PATH_ROOT") if place.project is None else ""
    folder = (Path(own) / ".agents" if own else place.folder(".agents")) / "plugins" / NAME
    about = {"name": NAME, "version": "1.0.0", "description": "Background tasks that tell when they end."}
    entry = {"command": command[0], "args": [*command[1:], "mcp"]}
    hook = {"type": "command", "command": line(command, "stop", "goose"), "timeout": 10}
    changes = [
        _whole(
            folder / "plugin.json",
            json.dumps(about, indent=2) + "\n",
            wanted,
            begin=f'{{\n  "name": "{NAME}",',
        ),
        _json(folder / ".mcp.json", ("mcpServers", "tasks"), entry, {}, wanted),
        _json(folder / "hooks" / "hooks.json", None, {}, {"Stop": [{"hooks": [hook]}]}, wanted),
    ]
    return [change._replace(own=folder) for change in changes]


AGENTS: dict[str, AgentConfig] = {
    "claude-code": AgentConfig("Claude Code", claude_code, "It takes effect in the next session."),
    "codex": AgentConfig(
        "Codex", codex, "Codex runs no hook that you have not trusted: look at them with /hooks."
    ),
    "opencode": AgentConfig("OpenCode", opencode, "It takes effect when OpenCode is started again."),
    "gemini": AgentConfig("Gemini CLI", gemini, "It takes effect in the next session."),
    "goose": AgentConfig("goose", goose, "It takes effect in the next session; goose 1.39 or newer."),
    "cursor": AgentConfig(
        "Cursor", cursor, "It takes effect when you have allowed its MCP server in Cursor."
    ),
}


def _hooks(
    command: Sequence[str], host: str, extra: dict[str, str], timeout: int, events: Sequence[str]
) -> Groups:
    made: Groups = {}
    for event, moment in zip(events, MOMENTS, strict=True):
        hook = {**extra, "type": "command", "command": line(command, moment, host), "timeout": timeout}
        made[event] = [{"hooks": [hook]}]
    return made


def _json(
    path: Path, server: JsonPath | None, entry: dict[str, Any], hooks: Groups, wanted: bool, *,
    private: bool = False, head: dict[str, Any] | None = None,
) -> FileChange:  # fmt: skip
    before = read(path)
    try:
        if wanted:
            after = with_json(before or "", None if server is None else (server, entry), hooks, head or {})
        else:
            after = None if before is None else without_json(before, server)
    except NotJson as problem:
        raise CliError(f"{path}, {problem}.", "Mend it first; nothing was changed.", FAILED) from None
    left = "".join((after or "").split())
    if not wanted and after != before and left in ("{}", json.dumps(head, separators=(",", ":"))):
        after = None
    return FileChange(path, before, after, private)


def _toml(path: Path, table: str, wanted: bool) -> FileChange:
    before = read(path)
    try:
        if wanted:
            return FileChange(path, before, with_toml(before or "", table))
        after = None if before is None else without_toml(before)
    except tomllib.TOMLDecodeError as problem:
        raise CliError(f"{path}: {problem}.", "Mend it first; nothing was changed.", FAILED) from None
    return FileChange(path, before, None if after is not None and not after.strip() else after)


def _whole(path: Path, text: str, wanted: bool, *, begin: str) -> FileChange:
    """A file that is all ours, which its beginning shows."""
    before = read(path)
    if before is not None and not before.startswith(begin):
        raise CliError(
            f"{path} is there, and `meantime install` did not write it.",
            "Rename or remove it first; nothing was changed.",
            FAILED,
        )
    return FileChange(path, before, text if wanted else None)
