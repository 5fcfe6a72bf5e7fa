"""A program's message, taken as far as it has the shape that it should have."""

from __future__ import annotations

from typing import Any, cast

from meantime.kernel.payloads import as_text


def mapping(value: Any, *names: str) -> dict[str, Any]:
    """The object below these names, or an empty one."""
    found = part(value, *names)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def mappings(value: Any) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", each) for each in listed(value) if isinstance(each, dict)]


def part(value: Any, *names: str) -> Any:
    """The value below these names; an empty object where there is nothing of the kind."""
    found: Any = value
    for name in names:
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return {} if found is None else found


def text_in(value: Any) -> str:
    """The text in what a tool answered, however it is wrapped."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(text_in, listed(value))))
    if isinstance(value, dict):
        for name in ("text", "content", "value", "output", "message"):
            if name in value:
                return text_in(value[name])
    return as_text(value) if value not in (None, {}) else ""


def number(value: Any) -> int:
    """A count, from a program that may have said anything."""
    return max(0, int(value)) if isinstance(value, int | float) and value == value else 0
