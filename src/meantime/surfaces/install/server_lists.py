"""The MCP servers that an agent has already, in which file and where in it: through the wrap, and back."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from meantime.surfaces.terminal.errors import FAILED, CliError

from .agent_configs import AGENTS, Place
from .file_change import FileChange, read
from .jsonc import NotJson
from .jsonc import Path as JsonPath
from .wrapped_entries import NO_SERVER, Rewritten, unwrap_json, unwrap_toml, wrap_json, wrap_toml


class ServerList(NamedTuple):
    """A file, and the places in it; no place is TOML, as Codex has it."""

    path: Path
    places: tuple[JsonPath, ...]
    private: bool = False


def server_list(agent: str, place: Place, folder: Path) -> ServerList:
    """The file in which `install` writes our own server, with everybody else's. Claude Code keeps servers
    that one person has added in a folder, as `claude mcp add` does, under that folder."""
    if agent == "goose":
        what = "The servers of goose are in a file that goose writes itself."
        raise CliError(what, "Put `meantime mcp --wrap --` before a server's command there.", FAILED)
    first = AGENTS[agent].changes(place, ["meantime"], False)[0]
    if agent == "codex":
        return ServerList(first.path, (), first.private)
    places: list[JsonPath] = [("mcp",) if agent == "opencode" else ("mcpServers",)]
    if agent == "claude-code" and place.project is None:
        places.append(("projects", str(folder), "mcpServers"))
    return ServerList(first.path, tuple(places), first.private)


def wrapped_change(
    servers: ServerList, names: Sequence[str], words: Sequence[str], *, wanted: bool
) -> tuple[FileChange, Rewritten]:
    before = read(servers.path)
    text = before or ""
    try:
        if not servers.places:
            made = wrap_toml(text, names, words) if wanted else unwrap_toml(text, names)
        else:
            made = _rewritten(text, servers.places, names, words, wanted=wanted)
    except (NotJson, tomllib.TOMLDecodeError) as problem:
        raise CliError(f"{servers.path}, {problem}.", "Mend it first; nothing was changed.", FAILED) from None
    after = None if before is None else made.text
    return FileChange(servers.path, before, after, servers.private), made


def _rewritten(
    text: str, places: Sequence[JsonPath], names: Sequence[str], words: Sequence[str], *, wanted: bool
) -> Rewritten:
    done: list[str] = []
    skipped: dict[str, str] = {}
    for place in places:
        made = wrap_json(text, place, names, words) if wanted else unwrap_json(text, place, names)
        text = made.text
        done += made.done
        skipped = {**made.skipped, **{name: why for name, why in skipped.items() if why != NO_SERVER}}
    return Rewritten(text, done, {name: why for name, why in skipped.items() if name not in done})
