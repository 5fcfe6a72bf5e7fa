"""The answers of several servers behind one wrap, as one answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw

from .raw_messages import UNREADABLE, RawMessage, encoded, parts, raw, text, value
from .task_offers import DISCOVER

SEPARATOR = "__"  # between the name of a server and that of its tool
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
PREFIXED = ("tools", "prompts")
_items = msgspec.json.Decoder(list[dict[str, Raw]])


def joined_items(method: str, pages: Iterable[tuple[str, Raw]]) -> Raw:
    """One list of all: each page with the name of its server. Tools and prompts get it before their own."""
    member = LISTS[method]
    found: list[dict[str, Raw]] = []
    rest: dict[str, Raw] = {}
    for server, page in pages:
        rest = rest or {name: said for name, said in parts(page).items() if name != "nextCursor"}
        for one in items_of(method, page):
            if member in PREFIXED:
                one["name"] = raw(f"{server}{SEPARATOR}{text(one.get('name'))}")
            found.append(one)
    return encoded({**rest, member: raw(found)})


def items_of(method: str, page: Raw) -> list[dict[str, Raw]]:
    try:
        return _items.decode(parts(page)[LISTS[method]])
    except (*UNREADABLE, KeyError):
        return []


def joined_introduction(method: str, told: Sequence[tuple[str, RawMessage]], version: str) -> Raw:
    """The servers introduce themselves as one, which has all that one of them has, in the oldest protocol
    that one of them speaks."""
    results = [parts(message.result) for _, message in told]
    whole = dict(results[0])
    capabilities: dict[str, Any] = {}
    for result in results:
        _merge(capabilities, value(result.get("capabilities")) or {})
    whole["capabilities"] = raw(capabilities)
    said = [(name, text(parts(message.result).get("instructions"))) for name, message in told]
    instructions = "\n\n".join(f"{name}: {words}" for name, words in said if words)
    if instructions:
        whole["instructions"] = raw(instructions)
    if method == DISCOVER:
        common = [set(cast("list[str]", value(one.get("supportedVersions")) or [])) for one in results]
        whole["supportedVersions"] = raw(sorted(set[str].intersection(*common)))
    else:
        whole["serverInfo"] = raw({"name": "meantime", "version": version})
        whole["protocolVersion"] = raw(min(text(one.get("protocolVersion")) for one in results))
    return encoded(whole)


def _merge(into: dict[str, Any], more: Any) -> None:
    for name, said in cast("dict[str, Any]", more if isinstance(more, dict) else {}).items():
        if isinstance(into.get(name), dict):
            _merge(into[name], said)
        else:
            into[name] = into.get(name) or said
