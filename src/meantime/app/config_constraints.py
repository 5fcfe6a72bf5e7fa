"""Constraints of configured values that go beyond kernel/constraints.py knows."""

from __future__ import annotations

from typing import Any, cast

from meantime.integrations.mcp.servers import checked
from meantime.kernel.constraints import LIMIT, SIZE, TEXT, Constraint, seconds, table_of
from meantime.kernel.errors import InvalidInput
from meantime.kernel.placement import check_place

DAY = 86_400.0
MOST_TEXT = 4_000  # characters


def _is_inline(value: Any) -> bool:
    return table_of(SIZE, "").fits(value) and {"max_bytes", "max_lines"}.issuperset(value)


def _are_servers(value: Any) -> bool:
    try:
        return isinstance(value, dict) and bool(checked(cast("dict[str, Any]", value)) or True)
    except InvalidInput:
        return False


def _are_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(one, dict) for one in cast("dict[str, Any]", value).values()
    )


def _is_place(value: Any) -> bool:
    try:
        return bool(check_place(value))
    except InvalidInput:
        return False


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MOST_TEXT


def _is_threshold(value: Any) -> bool:
    return type(value) in (int, float) and (value == -1 or 0 <= value <= DAY)


OPTIONAL_TEXT = Constraint("a text, which may be empty", _is_short)
PLACES = table_of(Constraint("", _is_place), 'a table of kinds or names, each with "pool:NAME" or "here"')
LABELS = table_of(TEXT, "a table of texts")
LIMITS = table_of(LIMIT, "a table of kinds, each with a whole number above 0, or -1 for no limit")
THRESHOLD = Constraint(
    "seconds, from 0 up to a day, or -1 for never",
    _is_threshold,
)
THRESHOLDS = table_of(THRESHOLD, "a table of servers or tools, each with seconds, or -1 for never")
PAUSE = seconds(0.01, DAY)  # between two times that something is done: never none
STOP = seconds(0, DAY - 1)
AGENTS = Constraint("a table of names, each with a table of settings", _are_tables)
SERVERS = Constraint(
    "a table of names, each with a command (a list of texts) or a url, and what docs/guides/mcp.md lists",
    _are_servers,
)
INLINE_BY_NAME = table_of(
    Constraint("", _is_inline), "a table of names, each with max_bytes and max_lines as whole numbers"
)
