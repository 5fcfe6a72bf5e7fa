"""Payloads: made JSON, measured, cut, cleaned. A task can end, whatever its function returns."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from .model import InlineLimits, Json, Spill
from .plain_text import cut, escape_surrogates, is_unicode

MAX_DEPTH = 64
MAX_NODES = 1_000_000  # containers and objects visited in one payload
MAX_BITS = 14_000  # an int of more does not print under Python's own limit of 4300 digits
MAX_REPRS = 10  # types that are named
REPR = 2_000  # characters kept of something that is not JSON
PREVIEW = 2_000  # characters of a spilled payload shown in the message, 80 % of them from its head


class Jsonable(NamedTuple):
    value: Json
    faithful: bool  # False: something in it is only kept as text


def jsonable(value: object, *, exact: bool = False) -> Jsonable:
    """The value as JSON; what is not JSON becomes its text, and `faithful` says so. With `exact` it also
    says so where the value would come back as another type, such as a path as its text.

    A function may have worked for an hour before it returned a set or a NaN: its ending is
    worth more than our taste in types.
    """
    if value is None or type(value) is bool:
        return Jsonable(value, True)
    walk = _Walk()
    try:
        plain = walk.convert(value, 0)
    except Exception as problem:  # a property or an iterator of the user's own that raises
        return Jsonable(_unreadable(value, problem), False)
    return Jsonable(plain, walk.faithful and (walk.exact or not exact))


def reprs_in(value: object) -> tuple[str, ...]:
    """The types in a value of which only the repr is kept, by name; asked where the value is not faithful."""
    walk = _Walk()
    try:
        walk.convert(value, 0)
    except Exception:
        return (type_name(value),)
    return tuple(walk.reprs)


def type_name(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"[:200]


class PathLike(Protocol):
    def __fspath__(self) -> str: ...


class PydanticModel(Protocol):
    def model_dump(self, *, mode: str) -> object: ...


class _Walk:
    """One conversion: it knows what it is inside of, and how much it may still visit."""

    def __init__(self) -> None:
        self.faithful = True
        self.exact = True
        self.reprs: dict[str, None] = {}  # names of types, in the order in which they were found
        self._inside: set[int] = set()
        self._left = MAX_NODES

    def convert(self, value: Any, depth: int) -> Json:
        if type(value) is str:
            return value if is_unicode(value) else self._lose(escape_surrogates(value))
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else self._lose(str(value))
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            plain = int(value)
            return plain if plain.bit_length() <= MAX_BITS else self._lose(hex(plain)[:REPR])
        self._left -= 1
        # A structure that holds itself never ends, one that shares its parts may grow without bound.
        if depth >= MAX_DEPTH or self._left < 0 or id(value) in self._inside:
            return self._lose("…")
        self._inside.add(id(value))
        try:
            return self._convert_inside(value, depth)
        finally:
            self._inside.discard(id(value))

    def _convert_inside(self, value: Any, depth: int) -> Json:
        if isinstance(value, Mapping):
            pairs = cast("Mapping[object, object]", value).items()
            return {self._key(key): self.convert(item, depth + 1) for key, item in pairs}
        if isinstance(value, list | tuple):
            return [self.convert(item, depth + 1) for item in cast("list[object]", value)]
        if isinstance(value, str):  # a subclass, an enum
            return self.convert(str.__str__(value), depth)
        return self._convert_object(value, depth)

    def _convert_object(self, value: object, depth: int) -> Json:
        """Dataclasses, structs, sets, dates, enums, bytes: msgspec knows how. A Pydantic model dumps itself,
        a path is its text; the rest is kept as the text of its repr, which is marked."""
        if hasattr(type(value), "__fspath__"):
            self.exact = False
            return self.convert(cast("PathLike", value).__fspath__(), depth + 1)
        if hasattr(type(value), "model_dump"):
            self.exact = False
            return self.convert(cast("PydanticModel", value).model_dump(mode="json"), depth + 1)
        try:
            plain = msgspec.to_builtins(value)
        except (TypeError, ValueError, RecursionError, OverflowError):
            return self._repr(value)
        return self.convert(plain, depth + 1)

    def _key(self, key: object) -> str:
        text = key if isinstance(key, str) else self._lose(str(key))
        return text if is_unicode(text) else self._lose(escape_surrogates(text))

    def _repr(self, value: object) -> str:
        if len(self.reprs) < MAX_REPRS:
            self.reprs[type_name(value)] = None
        return self._lose(_text(value))

    def _lose(self, text: str) -> str:
        self.faithful = False
        return text


def _text(value: object) -> str:
    try:
        return escape_surrogates(repr(value)[:REPR])
    except Exception as problem:
        return _unreadable(value, problem)


def _unreadable(value: object, problem: Exception) -> str:
    return f"<{type(value).__name__} that could not be read: {type(problem).__name__}>"


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
    head, tail = _ends(text)
    payload = text.encode()
    return Spill(path, len(payload), count_lines(text), head, tail, is_text, crc=zlib.crc32(payload))


def _ends(text: str) -> tuple[str, str]:
    if len(text) <= PREVIEW:
        return text, ""
    head = int(PREVIEW * 0.8)
    return text[:head], text[head - PREVIEW :]


def preview(of: Spill | str) -> str:
    """The beginning and the end of what is too long to show."""
    head, tail = _ends(of) if isinstance(of, str) else (of.head, of.tail)
    return f"{head}\n…\n{tail}" if tail else head


_SIDE = InlineLimits()


def short(value: Json) -> Json:
    """The value itself, or, over the limits, only its two ends: for what is kept on the side."""
    if value is None:
        return None
    text = as_text(value)
    return preview(text) if is_over(text, _SIDE) else value


_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
# Persian, Hindi and others need joiners inside their words, and many emoji are several that are joined.
# Between two characters of that kind a joiner stays; elsewhere it would only hide something.
_UNJOINED = "\x00-\xbf\u061c\u180e\u2000-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    f"|(?<![^{_UNJOINED}])[\u200c\u200d]|[\u200c\u200d](?![^{_UNJOINED}])"
)
_OUR_TAGS = re.compile(r"<(?=\s*/?\s*(?:task-notification|task-output|system-reminder)\b)", re.IGNORECASE)


def clean(text: str) -> str:
    """Task output is untrusted: no terminal codes, no invisible characters, none of our own tags."""
    text = _CONTROL.sub("", _ANSI.sub("", text.replace("\r\n", "\n")))
    return _OUR_TAGS.sub("&lt;", text)


def one_line(text: str, most: int = 200) -> str:
    """Cleaned, in one line, and with an ellipsis where it was cut."""
    return cut(clean(text).replace("\n", " "), most)


def fenced(text: str, nonce: str) -> str:
    """The output of a task, as a labelled block. The number that ends it comes from a nonce that was made
    after the task had ended. Digits only: a model pays three tokens for these nine, and eleven for a hex
    nonce.

    A text that has the number by chance is told with it broken, so no text can end its own block.
    """
    mark = f"{zlib.crc32(nonce.encode()) % 10**9:09}"
    inside = clean(text).removesuffix("\n").replace(mark, f"{mark[:4]} {mark[4:]}")
    return f"Untrusted output:\n<{mark}>\n{inside}\n</{mark}>"
