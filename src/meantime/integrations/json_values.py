"""An agent's message, taken as far as it has the shape that it should have."""

from __future__ import annotations

from typing import Any, cast


def mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]
