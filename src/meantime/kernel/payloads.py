"""Payloads: made JSON, measured, cut, cleaned. Whatever a function returns, its task can end."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from .model import InlineLimits, Json, Spill

MAX_DEPTH = 64
REPR = 2_000  # characters kept of something that is not JSON
PREVIEW = 2_000  # characters of a spilled payload shown in the message, 80 % of them from its head

_BUILTIN = (str, int, float, bool, type(None))


class Jsonable(NamedTuple):
    value: Json
    faithful: bool  # False: something in it is only kept as text


def jsonable(value: object) -> Jsonable:
    """The value as JSON; what is not JSON becomes its text, and `faithful` says so.

    A function may have worked for an hour before it returned a set or a NaN: its ending is
    worth more than our taste in types.
    """
    if value is None or type(value) is bool or type(value) is int:
        return Jsonable(value, True)
    lost: list[object] = []
    try:
        return Jsonable(_convert(value, 0, lost), not lost)
    except Exception as problem:  # a __repr__ or a property of the user's own that raises
        return Jsonable(f"<{type(value).__name__} that could not be read: {type(problem).__name__}>", False)


def _convert(value: Any, depth: int, lost: list[object]) -> Json:
    if type(value) is str:
        return value if is_unicode(value) else _lose(escape_surrogates(value), lost)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _lose(str(value), lost)
    if isinstance(value, bool | int) or value is None:
        return value
    if depth >= MAX_DEPTH:
        return _lose("…", lost)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {_key(key, lost): _convert(item, depth + 1, lost) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [_convert(item, depth + 1, lost) for item in cast("list[object]", value)]
    return _convert_object(value, depth, lost)


def _convert_object(value: object, depth: int, lost: list[object]) -> Json:
    """Dataclasses, structs, sets, dates, enums, bytes: msgspec knows how; the rest is kept as text."""
    if isinstance(value, str):  # a subclass, an enum
        return _convert(str(value), depth, lost)
    try:
        plain = msgspec.to_builtins(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return _lose(escape_surrogates(repr(value)[:REPR]), lost)
    if type(plain) is type(value) and not isinstance(plain, _BUILTIN):
        return _lose(escape_surrogates(repr(value)[:REPR]), lost)
    return _convert(plain, depth + 1, lost)


def _key(key: object, lost: list[object]) -> str:
    text = key if isinstance(key, str) else _lose(str(key), lost)
    return text if is_unicode(text) else _lose(escape_surrogates(text), lost)


def _lose(text: str, lost: list[object]) -> str:
    lost.append(None)
    return text


def is_unicode(text: str) -> bool:
    """False for lone surrogates: they cannot be encoded, so they cannot be stored or sent."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape_surrogates(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def as_text(value: Json) -> str:
    """The form a synchronous answer would have: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def count_lines(text: str) -> int:
    """Lines as seed 004 counts them: split on \\n and \\r\\n, trailing empty ones dropped."""
    lines = re.split(r"\r?\n", text)
    while lines and not lines[-1]:
        lines.pop()
    return len(lines)


def is_over(text: str, limits: InlineLimits) -> bool:
    """At the limit stays inline; one more is over."""
    if len(text) > limits.max_bytes or len(text.encode()) > limits.max_bytes:
        return True
    return text.count("\n") >= limits.max_lines and count_lines(text) > limits.max_lines


def spill_record(path: str, text: str, *, is_text: bool = True) -> Spill:
    head = int(PREVIEW * 0.8)
    return Spill(
        is_text=is_text,
        path=path,
        bytes=len(text.encode()),
        lines=count_lines(text),
        head=text[:head],
        tail=text[-(PREVIEW - head) :] if len(text) > PREVIEW else "",
    )


def preview(spill: Spill) -> str:
    return f"{spill.head}\n…\n{spill.tail}" if spill.tail else spill.head


_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_OUR_TAGS = re.compile(r"<(?=/?\s*(?:task-notification|task-output|system-reminder)\b)", re.IGNORECASE)


def clean(text: str) -> str:
    """Task output is untrusted: no terminal codes, no invisible characters, none of our own tags."""
    text = _CONTROL.sub("", _ANSI.sub("", text.replace("\r\n", "\n")))
    return _OUR_TAGS.sub("&lt;", text)
