"""JSON as people write it, with comments and trailing commas: changed in place, so that all the rest of the
text stays as it was."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,:\[\]{}\"/]+")
_NOTE = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)?[ \t]*(?=\r?\n)")
DEEPEST = 200
Path = tuple[str | int, ...]


class NotJson(Exception):
    """Where, and what is wrong there."""


class JsoncEntry(NamedTuple):
    start: int  # of its key, or of itself
    node: Node


class Node(NamedTuple):
    value: Any
    start: int
    end: int
    entries: dict[str | int, JsoncEntry]  # of an object or a list, in order


def parse(text: str) -> Node:
    node = _value(text, _after_blank(text, 0), 0)
    rest = _after_blank(text, node.end)
    if rest != len(text):
        raise _bad(text, rest, "something follows the end")
    return node


def found(text: str, path: Path) -> Any:
    """The value there; None for nothing."""
    node = _at(parse(text), path)
    return None if node is None else node.value


def added(text: str, path: Path, value: object) -> str:
    """With the value at the path, where there is none yet; objects on the way to it are made. A path that
    ends with -1 is the end of a list."""
    root = parse(text)
    depth = 0
    while depth < len(path) - 1 and (below := _at(root, path[: depth + 1])) is not None:
        depth += 1
        if not isinstance(below.value, dict | list):
            raise _bad(text, below.start, f"{path[depth - 1]!r} is neither an object nor a list")
    holder = _at(root, path[:depth])
    assert holder is not None
    last = path[depth]
    if isinstance(holder.value, list) != isinstance(last, int):
        kind = "a list" if isinstance(last, int) else "an object"
        raise _bad(text, holder.start, f"{'.'.join(map(str, path[:depth])) or 'the file'} is not {kind}")
    for name in reversed(path[depth + 1 :]):
        value = [value] if isinstance(name, int) else {name: value}
    return _inserted(text, holder, None if isinstance(last, int) else last, value)


def removed(text: str, path: Path) -> str:
    """Without what is at the path, and without the objects and lists that are empty then."""
    while path:
        root = parse(text)
        holder = _at(root, path[:-1])
        if holder is None or path[-1] not in holder.entries:
            return text
        text = _without(text, holder, path[-1])
        left = _at(parse(text), path[:-1])
        if left is None or left.entries or not path[:-1]:
            break
        path = path[:-1]
    return text


# -- changing


def _inserted(text: str, holder: Node, key: str | None, value: object) -> str:
    step = _indent(text)
    depth = _depth(text, holder, step)
    inner = step * (depth + 1)
    shown = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", "\n" + inner)
    entry = shown if key is None else f"{json.dumps(key, ensure_ascii=False)}: {shown}"
    if not holder.entries:
        between = text[holder.start + 1 : holder.end - 1]
        kept = between.rstrip() if between.strip() else ""
        return f"{text[: holder.start + 1]}{kept}\n{inner}{entry}\n{step * depth}{text[holder.end - 1 :]}"
    last = list(holder.entries.values())[-1].node
    if text.startswith(",", _after_blank(text, last.end)):  # a trailing comma is kept as one
        comma = _after_blank(text, last.end) + 1
        return f"{text[:comma]}\n{inner}{entry},{text[comma:]}"
    note = _NOTE.match(text, last.end)  # a comment behind the last one stays with it
    end = note.end() if note else last.end
    return f"{text[: last.end]},{text[last.end : end]}\n{inner}{entry}{text[end:]}"


def _without(text: str, holder: Node, key: str | int) -> str:
    names = list(holder.entries)
    place = names.index(key)
    entry = holder.entries[key]
    after = _after_blank(text, entry.node.end)
    if text.startswith(",", after):  # with the comma that follows, and its line
        end = after + 1
        begin = _line_start(text, entry.start)
        rest = re.compile(r"[ \t]*\r?\n").match(text, end)
        if begin is not None and rest:
            return text[:begin] + text[rest.end() :]
        return _joined(text[: entry.start], text[end:].lstrip(" \t"))
    if place:  # the last one: with the comma before it
        before = holder.entries[names[place - 1]].node.end
        comma = _after_blank(text, before)
        return _joined(text[:comma] + text[comma + 1 : entry.start].rstrip(), text[entry.node.end :])
    before, behind = text[holder.start + 1 : entry.start].rstrip(), text[entry.node.end : holder.end - 1]
    if not (before + behind).strip():
        return text[: holder.start + 1] + text[holder.end - 1 :]
    return _joined(text[: holder.start + 1] + before, behind + text[holder.end - 1 :])


def _joined(before: str, behind: str) -> str:
    """A comment that goes to the end of its line must not swallow what follows."""
    open_note = "//" in before.rpartition("\n")[2] and not re.match(r"[ \t]*\r?\n", behind)
    return f"{before}\n{behind}" if open_note else before + behind


def _line_start(text: str, place: int) -> int | None:
    begin = text.rfind("\n", 0, place) + 1
    return begin if not text[begin:place].strip() else None


def _indent(text: str) -> str:
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _depth(text: str, holder: Node, step: str) -> int:
    begin = text.rfind("\n", 0, holder.start) + 1
    lead = text[begin : len(text) - len(text[begin:].lstrip(" \t"))]
    return len(lead) // len(step)


# -- reading


def _at(node: Node | None, path: Path) -> Node | None:
    for name in path:
        if node is None:
            return None
        entry = node.entries.get(name)
        node = None if entry is None else entry.node
    return node


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise _bad(text, at, "it is nested too deeply")
    if text.startswith("{", at):
        return _object(text, at, depth)
    if text.startswith("[", at):
        return _list(text, at, depth)
    match = _STRING.match(text, at) or _WORD.match(text, at)
    if match is None:
        raise _bad(text, at, "a value is missing")
    try:
        return Node(json.loads(match[0]), at, match.end(), {})
    except ValueError:
        raise _bad(text, at, f"{match[0][:20]!r} is not a value") from None


def _object(text: str, start: int, depth: int) -> Node:
    entries: dict[str | int, JsoncEntry] = {}
    at = _after_blank(text, start + 1)
    while not text.startswith("}", at):
        key = _STRING.match(text, at)
        if key is None:
            raise _bad(text, at, "a name in quotes is missing")
        name = json.loads(key[0])
        if name in entries:
            raise _bad(text, at, f"{name!r} is there twice")
        colon = _after_blank(text, key.end())
        if not text.startswith(":", colon):
            raise _bad(text, colon, "a colon is missing")
        node = _value(text, _after_blank(text, colon + 1), depth + 1)
        entries[name] = JsoncEntry(at, node)
        at = _next(text, node.end, "}")
    return Node({name: entry.node.value for name, entry in entries.items()}, start, at + 1, entries)


def _list(text: str, start: int, depth: int) -> Node:
    entries: dict[str | int, JsoncEntry] = {}
    at = _after_blank(text, start + 1)
    while not text.startswith("]", at):
        node = _value(text, at, depth + 1)
        entries[len(entries)] = JsoncEntry(at, node)
        at = _next(text, node.end, "]")
    return Node([entry.node.value for entry in entries.values()], start, at + 1, entries)


def _next(text: str, end: int, closing: str) -> int:
    at = _after_blank(text, end)
    if text.startswith(",", at):
        return _after_blank(text, at + 1)
    if not text.startswith(closing, at):
        raise _bad(text, at, f"a comma or {closing} is missing")
    return at


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _bad(text: str, at: int, what: str) -> NotJson:
    return NotJson(f"line {text.count(chr(10), 0, at) + 1}: {what}")
