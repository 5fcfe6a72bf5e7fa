"""Whether the SDK would accept what a client says. These say yes to less than the SDK does, and never to
more (tests/surfaces/mcp/test_handshake.py). Standard library only."""

from __future__ import annotations

import json

TYPE_CHECKING = False  # to load `typing` takes time, and the client waits
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES, MOST_NESTED = 32_768, 100  # of one line
MOST_ID = 1 << 53
# How deep a capability is made of objects; below that, and if it is not named here, anything may stand.
_DEPTHS = {"experimental": 2, "extensions": 2, "sampling": 2, "elicitation": 2, "tasks": 4}

_LISTS = {"toolsListChanged", "promptsListChanged", "resourcesListChanged"}


def parsed(line: bytes) -> dict[str, Any] | None:
    """A request or a notification. None also for a line that two parsers could read differently."""
    if len(line) > MOST_BYTES or line.count(b"[") + line.count(b"{") > MOST_NESTED or b"\\ud" in line.lower():
        return None
    try:
        found = _object(
            json.loads(line.decode(), object_pairs_hook=_without_repeats, parse_constant=_refused)
        )
    except (ValueError, RecursionError):
        return None
    if found is None or not found.keys() <= {"jsonrpc", "id", "method", "params"}:
        return None
    params = _object(found.get("params", {}))
    is_message = found.get("jsonrpc") == "2.0" and isinstance(found.get("method"), str)
    if not is_message or not _is_id(found.get("id", 0)) or params is None:
        return None
    return None if _object(params.get("_meta", {})) is None else found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def is_meta(meta: dict[str, Any]) -> bool:
    return _is_id(meta.get("progressToken", 0))


def is_page(params: dict[str, Any]) -> bool:
    return isinstance(params.get("cursor", ""), str)


def is_filter(params: dict[str, Any]) -> bool:
    """Whether it filters a stream, for lists alone."""
    wanted = _object(params.get("notifications"))
    if wanted is None or not wanted.keys() <= _LISTS:
        return False
    return all(type(value) is bool for value in wanted.values())


def is_client(given: object) -> bool:
    found = _object(given)
    if found is None or not {"name", "version"} <= found.keys():
        return False
    icons = _list(found.get("icons", []))
    return (
        _are_texts(found, "name", "version", "title", "description", "websiteUrl")
        and icons is not None
        and all(_is_icon(icon) for icon in icons)
    )


def _is_icon(given: object) -> bool:
    found = _object(given)
    if found is None or "src" not in found or found.get("theme", "dark") not in ("dark", "light"):
        return False
    sizes = _list(found.get("sizes", []))
    is_sized = sizes is not None and all(isinstance(size, str) for size in sizes)
    return is_sized and _are_texts(found, "src", "mimeType")


def are_capabilities(given: object) -> bool:
    found = _object(given)
    return found is not None and all(_is_capability(name, value) for name, value in found.items())


def _is_capability(name: str, value: object) -> bool:
    if name != "roots":
        return _are_objects(value, _DEPTHS.get(name, 0))
    roots = _object(value)
    return roots is not None and type(roots.get("listChanged", True)) is bool


def _are_objects(value: object, depth: int) -> bool:
    if depth == 0:
        return True
    found = _object(value)
    return found is not None and all(_are_objects(one, depth - 1) for one in found.values())


def _are_texts(found: dict[str, Any], *names: str) -> bool:
    return all(isinstance(found.get(name, ""), str) for name in names)


def _is_id(value: object) -> bool:
    return isinstance(value, str) or (type(value) is int and abs(value) < MOST_ID)


def _object(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _list(value: object) -> list[Any] | None:
    return value if isinstance(value, list) else None  # pyright: ignore[reportUnknownVariableType]
