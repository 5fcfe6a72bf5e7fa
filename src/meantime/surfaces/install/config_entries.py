"""Our entries in the files of agents: which are ours, how they are added, how they are taken out again."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, cast

from meantime.surfaces.terminal.errors import FAILED, CliError

from . import jsonc

NAME = "meantime"
# In every form that `install` ever wrote: `meantime hook stop`, and `meantime-hook stop` behind a guard.
OURS = re.compile(
    r"meantime(?:\S*\s+hook|-hook\S*)\s+(?:session-start|user-prompt|pre-tool|post-tool|stop|wait)\b"
)
BEGIN, END = "# >>> meantime: written by `meantime install`", "# <<< meantime"
Groups = dict[str, list[dict[str, Any]]]


def with_json(
    text: str, server: tuple[jsonc.Path, dict[str, Any]] | None, hooks: Groups, head: dict[str, Any]
) -> str:
    """As it is to be: the server's entry at its path, and the groups of hooks, by event, below a head that
    the agent wants in such a file. A group may also be a hook itself. A correct entry is left as it is."""
    if not text.strip():
        text = "{}\n"
    for name, value in head.items():
        if jsonc.found(text, (name,)) is None:
            text = jsonc.added(text, (name,), value)
    if server is not None:
        path, entry = server
        there = jsonc.found(text, path)
        if there != entry:
            if there is not None and not is_our_server(there):
                raise _taken(".".join(map(str, path)))
            text = jsonc.added(jsonc.removed(text, path), path, entry)
    if _our_hooks(text) != {event: _of_group(groups) for event, groups in hooks.items() if groups}:
        text = without_hooks(text)
        for event, groups in hooks.items():
            for group in groups:
                text = jsonc.added(text, ("hooks", event, -1), group)
    return text


def without_json(text: str, server: jsonc.Path | None) -> str:
    if server is not None and is_our_server(jsonc.found(text, server)):
        text = jsonc.removed(text, server)
    return without_hooks(text)


def without_hooks(text: str) -> str:
    """Others' hooks stay, even in a group that holds one of ours. A group of ours alone goes whole."""
    while (path := next(_paths(text), None)) is not None:
        alone = len(path) > 3 and len(jsonc.found(text, path[:-1])) == 1
        text = jsonc.removed(text, path[:3] if alone else path)
    return text


def _our_hooks(text: str) -> dict[str, list[Any]]:
    ours: dict[str, list[Any]] = {}
    for path in _paths(text):
        ours.setdefault(str(path[1]), []).append(jsonc.found(text, path))
    return ours


def _of_group(groups: list[dict[str, Any]]) -> list[Any]:
    return [hook for group in groups for hook in group.get("hooks", [group])]


def _paths(text: str) -> Iterator[jsonc.Path]:
    """The paths of every hook that is ours."""
    for event, groups in _items(jsonc.found(text, ("hooks",))):
        for number, group in _items(groups):
            if _is_our_hook(group):
                yield ("hooks", event, number)
            inside = cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None
            for place, hook in _items(inside):
                if _is_our_hook(hook):
                    yield ("hooks", event, number, "hooks", place)


def _is_our_hook(hook: Any) -> bool:
    said = cast("dict[str, Any]", hook).get("command") if isinstance(hook, dict) else None
    return isinstance(said, str) and OURS.search(said) is not None


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


def is_our_server(entry: Any) -> bool:
    """An older one of ours, with another path, counts too."""
    if not isinstance(entry, dict):
        return False
    found = cast("dict[str, Any]", entry)
    words = [word for _, word in _items(found.get("command"))] or [found.get("command")]
    words += [word for _, word in _items(found.get("args"))]
    return bool(re.search(r"meantime\S*\s+mcp\b", " ".join(map(str, words))))


def with_toml(text: str, table: str) -> str:
    """The table in a block of its own, at the end."""
    bare = without_toml(text)
    if NAME in (tomllib.loads(bare).get("mcp_servers") or {}):
        raise _taken(f"mcp_servers.{NAME}")
    if block(table) in text:
        return text
    made = f"{bare.rstrip()}\n\n{block(table)}" if bare.strip() else block(table)
    tomllib.loads(made)
    return made


def without_toml(text: str) -> str:
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        return text
    return (
        text[:begin].rstrip("\n")
        + ("\n" if text[:begin].strip() else "")
        + text[end + len(END) :].lstrip("\n")
    )


def block(table: str) -> str:
    return f"{BEGIN}\n{table}{END}\n"


def _taken(what: str) -> CliError:
    return CliError(
        f"There is a {what} that `meantime install` did not write.",
        "Rename or remove it first; nothing was changed.",
        FAILED,
    )
