"""The servers in an agent's file, sent through `meantime mcp --wrap` and back. Only the words of the wrap are
put in and taken out, so the text is to the letter what it was.

A server that had a list of arguments gets `"mcp", "--wrap", "--", "its-program", ` at its beginning; one
without gets a list, directly before its command: so it is known which of the two it was. A wrap without `--`
is one that somebody wrote, for a URL or a server of [mcp.servers], and stays.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from . import jsonc
from .config_entries import is_our_server

WRAP = ("mcp", "--wrap")
BETWEEN = ", "  # a list that came with the wrap, and the command
NO_COMMAND = (
    "it has a URL, and the agent may hold a login for it that the wrap would not have; if it needs none, or "
    "you have a token, write `meantime mcp --wrap URL [--headers FILE]` for it yourself"
)
NO_SERVER = "there is no such server"
STAYS_WRAPPED = "it is written in a way that is not understood; take the wrap out yourself"
NOT_UNDERSTOOD = "it is written in a way that is not understood; put the wrap in yourself"
_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_TOML_TEXT = rf"{_LITERAL}|'[^'\n]*'"
_COMMAND = re.compile(rf"(?m)^[ \t]*command[ \t]*=[ \t]*(?P<text>{_TOML_TEXT})")
_ARGUMENTS = re.compile(r"(?m)^[ \t]*args[ \t]*=[ \t]*\[")
_NEXT = r"\s*,\s*"  # an agent or a formatter may have put each word on a line of its own
_WORDS = rf"(?:(?:{_TOML_TEXT}){_NEXT})*?"
_START, _WRAP, _DASHES = (rf"""["']{word}["']{_NEXT}""" for word in ("mcp", "--wrap", "--"))
_OURS = re.compile(
    rf"(?m)^[ \t]*args[ \t]*=[ \t]*\[(?P<words>\s*{_WORDS}{_START}{_WRAP}{_WORDS}{_DASHES}"
    rf"(?P<own>{_TOML_TEXT})(?:\s*,[ ]?)?)"
)
_END_OF_LIST = re.compile(r"\]\r?\n")


class Rewritten(NamedTuple):
    text: str
    done: list[str]  # names of servers
    skipped: dict[str, str]  # and why


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def wrap_json(text: str, path: jsonc.Path, names: Sequence[str], words: Sequence[str]) -> Rewritten:
    """Each server below `path`, or those that are named, through the wrap that `words` start."""
    done: list[str] = []
    skipped: dict[str, str] = {}
    edits: list[_Edit] = []
    for name, node in _servers(text, path, names, skipped):
        made = _wrapping(text, node, words)
        if not isinstance(made, str) and unwrap_json(_edited(text, made), path, [name]).text != text:
            made = NOT_UNDERSTOOD
        if isinstance(made, str):
            skipped[name] = made
        else:
            edits += made
            done.append(name)
    return Rewritten(_edited(text, edits), done, skipped)


def unwrap_json(text: str, path: jsonc.Path, names: Sequence[str]) -> Rewritten:
    done: list[str] = []
    skipped: dict[str, str] = {}
    edits: list[_Edit] = []
    for name, node in _servers(text, path, names, skipped):
        made = _unwrapping(text, node)
        if made:
            edits += made
            done.append(name)
        elif names:
            skipped[name] = "it is not wrapped"
    return Rewritten(_edited(text, edits), done, skipped)


def _servers(
    text: str, path: jsonc.Path, names: Sequence[str], skipped: dict[str, str]
) -> list[tuple[str, jsonc.Node]]:
    node: jsonc.Node | None = jsonc.parse(text) if text.strip() else None
    for step in path:
        entry = None if node is None else node.entries.get(step)
        node = None if entry is None else entry.node
    entries = {} if node is None else node.entries
    skipped |= {name: NO_SERVER for name in names if name not in entries}
    return [(str(name), entry.node) for name, entry in entries.items() if not names or name in names]


def _wrapping(text: str, node: jsonc.Node, words: Sequence[str]) -> list[_Edit] | str:
    """The changes, or why there are none."""
    if is_our_server(node.value):
        return "it is Meantime's own, or wrapped already"
    command = node.entries.get("command")
    if command is None:
        return NO_COMMAND
    program = command.node
    if isinstance(program.value, list):  # OpenCode's, whose plugin names the session in each call
        given = ", ".join(map(json.dumps, [*words, *WRAP, "--by-session", "--"]))
        return (
            [_Edit(program.start + 1, program.start + 1, f"{given}, ")] if program.entries else "it is empty"
        )
    if not isinstance(program.value, str):
        return "its command is not a text"
    own = text[program.start : program.end]
    first, more = json.dumps(words[0]), "".join(f"{json.dumps(word)}, " for word in (*words[1:], *WRAP))
    arguments = node.entries.get("args")
    if arguments is None:
        put_in = _Edit(command.start, command.start, f'"args": [{more}"--", {own}]{BETWEEN}')
        return [put_in, _Edit(program.start, program.end, first)]
    listed = arguments.node
    if not isinstance(listed.value, list):
        return "its args are not a list"
    comma = ", " if listed.entries else ""
    put_in = _Edit(listed.start + 1, listed.start + 1, f'{more}"--", {own}{comma}')
    return [_Edit(program.start, program.end, first), put_in]


def _unwrapping(text: str, node: jsonc.Node) -> list[_Edit]:
    if not is_our_server(node.value):
        return []
    key, command = node.entries["command"]
    if isinstance(command.value, list):
        at = _behind_wrap(_items(command))
        if at is None:
            return []
        return [_Edit(command.start + 1, _behind_comma(text, command.entries[at - 1].node.end), "")]
    arguments = node.entries.get("args")
    if arguments is None:
        return []
    listed = arguments.node
    at = _behind_wrap(_items(listed))
    if at is None:
        return []
    own = listed.entries[at].node
    program = _Edit(command.start, command.end, text[own.start : own.end])
    if at + 1 not in listed.entries and text[listed.end : key] == BETWEEN:  # the list came with the wrap
        return [program, _Edit(arguments.start, key, "")]
    end = _behind_comma(text, own.end) if at + 1 in listed.entries else own.end
    return [program, _Edit(listed.start + 1, end, "")]


def _behind_comma(text: str, at: int) -> int:
    """As it was put in: a comma and a blank. Blanks behind it are the server's own."""
    comma = text.index(",", at) + 1
    return comma + 1 if text.startswith(" ", comma) else comma


def _items(listed: jsonc.Node) -> list[Any]:
    return [entry.node.value for entry in listed.entries.values()]


def _behind_wrap(words: list[Any]) -> int | None:
    """Where the server's own program stands among the words of its wrap; None for what is not a wrap."""
    wrap = words.index("--wrap") if "--wrap" in words else 0
    if not wrap or words[wrap - 1] != "mcp" or "--" not in words[wrap:]:
        return None
    at = words.index("--", wrap) + 1
    return at if at < len(words) else None


def _edited(text: str, edits: list[_Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


# -- TOML, as Codex has it


def wrap_toml(text: str, names: Sequence[str], words: Sequence[str]) -> Rewritten:
    done: list[str] = []
    skipped: dict[str, str] = {}
    for name, server in _tables(text, names, skipped).items():
        if is_our_server(server):
            skipped[name] = "it is Meantime's own, or wrapped already"
        elif not isinstance(server.get("command"), str):
            skipped[name] = NO_COMMAND
        else:
            made = _wrapped_table(text, name, words)
            own = [*words[1:], *WRAP, "--", server["command"], *server.get("args", [])]
            wanted = {**server, "command": words[0], "args": own}
            if made is None or _loaded(made, name) != wanted or _unwrapped_table(made, name) != text:
                skipped[name] = NOT_UNDERSTOOD
                continue
            text = made
            done.append(name)
    return Rewritten(text, done, skipped)


def unwrap_toml(text: str, names: Sequence[str]) -> Rewritten:
    done: list[str] = []
    skipped: dict[str, str] = {}
    for name, server in _tables(text, names, skipped).items():
        arguments = server.get("args")
        listed = cast("list[Any]", arguments) if isinstance(arguments, list) else []
        at = _behind_wrap(listed) if is_our_server(server) else None
        made = _unwrapped_table(text, name) if at else None
        if made is not None and _words(_loaded(made, name)) == listed[at:]:
            text = made
            done.append(name)
        elif at:
            skipped[name] = STAYS_WRAPPED
        elif names:
            skipped[name] = "it is not wrapped"
    return Rewritten(text, done, skipped)


def _tables(text: str, names: Sequence[str], skipped: dict[str, str]) -> dict[str, dict[str, Any]]:
    found = cast("dict[str, Any]", tomllib.loads(text).get("mcp_servers") or {})
    skipped |= {name: NO_SERVER for name in names if name not in found}
    return {
        name: one for name, one in found.items() if isinstance(one, dict) and (not names or name in names)
    }


def _region(text: str, name: str) -> tuple[int, int] | None:
    """The lines of a server's own table."""
    key = rf"(?:{re.escape(name)}|{re.escape(json.dumps(name))}|'{re.escape(name)}')"
    head = re.search(rf"(?m)^[ \t]*\[[ \t]*mcp_servers[ \t]*\.[ \t]*{key}[ \t]*\][^\n]*$", text)
    if head is None:
        return None
    following = re.compile(r"(?m)^[ \t]*\[").search(text, head.end())
    return head.end(), following.start() if following else len(text)


def _loaded(text: str, name: str) -> Any:
    try:
        return tomllib.loads(text)["mcp_servers"][name]
    except tomllib.TOMLDecodeError:
        return None


def _words(server: Any) -> list[Any]:
    """Its program and what the program is given."""
    return [] if server is None else [server["command"], *server.get("args", [])]


def _wrapped_table(text: str, name: str, words: Sequence[str]) -> str | None:
    region = _region(text, name)
    command = region and _COMMAND.search(text, *region)
    if not region or not command:
        return None
    own = command["text"]
    first, more = json.dumps(words[0]), "".join(f"{json.dumps(word)}, " for word in (*words[1:], *WRAP))
    arguments = _ARGUMENTS.search(text, *region)
    program = _Edit(*command.span("text"), first)
    if arguments is None:
        newline = "\r\n" if "\r\n" in text else "\n"
        listed = _Edit(command.start(), command.start(), f'args = [{more}"--", {own}]{newline}')
        return _edited(text, [listed, program])
    comma = "" if re.match(r"\s*\]", text[arguments.end() :]) else ", "
    return _edited(text, [program, _Edit(arguments.end(), arguments.end(), f'{more}"--", {own}{comma}')])


def _unwrapped_table(text: str, name: str) -> str | None:
    region = _region(text, name)
    command = region and _COMMAND.search(text, *region)
    ours = region and _OURS.search(text, *region)
    if not region or not command or not ours:
        return None
    program = _Edit(*command.span("text"), ours["own"])
    alone = _END_OF_LIST.match(text, ours.end())
    if alone and alone.end() == command.start():  # the list came with the wrap
        return _edited(text, [_Edit(ours.start(), alone.end(), ""), program])
    return _edited(text, [program, _Edit(*ours.span("words"), "")])
