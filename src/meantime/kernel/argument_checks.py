"""Arguments of verbs: checked once, so that bad input is the same clear error wherever it comes from.

Each check returns plain data. A subclass of str or float may behave in any way: it is made a plain text or
number here, and nothing behind this file meets it. Only `shown` puts a value into an error's text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from reprlib import Repr
from typing import Any, TypeVar, cast

from .errors import InvalidInput
from .ids import check_id
from .plain_text import cut, escape_surrogates, is_unicode, plain

T = TypeVar("T")
SHOWN = 100  # characters of a value in an error's text
MOST_GIVEN = 100_000  # entries of one list
MOST_PATH = 4_095  # bytes

_repr = Repr()
_repr.maxlevel = 3
_repr.maxstring = _repr.maxother = 60


def shown(value: object) -> str:
    """A value in an error's text: short, printable, and never an error itself, whatever the value does."""
    try:
        return cut(escape_surrogates(_repr.repr(value)), SHOWN)
    except Exception:  # its own __repr__, an int of too many digits, a list that is too deep
        return f"<{type(value).__name__}>"


def check_scope(thread: object) -> str | None:
    """A thread, or None for a person, who sees all."""
    return None if thread is None else check_id(thread, "thread")


def as_number(value: object) -> float | None:
    """A plain number; None for what is none. True is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def check_text(value: object, what: str, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a text, not {type(value).__name__}.")
    text = plain(value)
    if len(text) > most:
        raise InvalidInput(f"{what} has {len(text)} characters; at most {most} are kept.", hint="Shorten it.")
    return check_unicode(text, what)


def check_unicode(text: str, what: str) -> str:
    if not is_unicode(text):
        raise InvalidInput(f"{what} holds a lone surrogate.", hint="It cannot be stored as UTF-8.")
    return text


def check_words(value: object, most: int) -> str:
    """A text that is only kept to be read, such as a reason: anything that has a text, cut."""
    try:
        return escape_surrogates(plain(value) if isinstance(value, str) else str(value))[:most]
    except Exception:
        return shown(value)[:most]


def check_all(values: object, kind: type[T], what: str) -> list[T]:
    """A list, or what can be one, of things of one kind."""
    name = type(values).__name__
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} must be a list, not {name}.")
    try:
        given = list(islice(cast("Iterable[Any]", values), MOST_GIVEN + 1))
    except Exception as problem:  # an iterator of the caller's own
        raise InvalidInput(f"{what} could not be read: {type(problem).__name__}.") from problem
    if len(given) > MOST_GIVEN:
        raise InvalidInput(f"{what} has more than {MOST_GIVEN} entries.", hint="Give fewer at once.")
    for one in given:
        if not isinstance(one, kind):
            raise InvalidInput(f"{what} must hold {kind.__name__}, not {type(one).__name__}.")
    return cast("list[T]", [plain(one) for one in given]) if kind is str else given


def check_kind(value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind):
        raise InvalidInput(f"{what} must be a {kind.__name__}, not {type(value).__name__}.")
    return value


def has_methods(value: object, *names: str) -> bool:
    """Whether something of the caller's own can be used as what it is given for."""
    try:
        return all(callable(getattr(value, name, None)) for name in names)
    except Exception:
        return False


def check_path(value: object, what: str) -> str:
    """The name of a file as the system could take it: a text, or anything that has a path."""
    try:
        has_path = hasattr(type(value), "__fspath__")
        given: object = cast("Any", value).__fspath__() if has_path else value
        path = plain(given.decode("utf-8", "surrogateescape") if isinstance(given, bytes) else str(given))
        size = len(path.encode("utf-8", "surrogateescape")) if has_path or isinstance(given, str) else -1
    except Exception:
        size, path = -1, ""
    if size < 0:
        raise InvalidInput(f"{what} must be a path, not {shown(value)}.")
    if not size or size > MOST_PATH or "\0" in path:
        raise InvalidInput(
            f"{what}={shown(value)} is not a path.", hint=f"Give 1 to {MOST_PATH} bytes without a NUL."
        )
    return path


def check_map(values: object, what: str) -> dict[Any, Any]:
    """A dict, or what can be one."""
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{what} must be a dict, not {type(values).__name__}.")
    try:
        return dict(cast("Mapping[Any, Any]", values).items())
    except Exception as problem:
        raise InvalidInput(f"{what} could not be read: {type(problem).__name__}.") from problem


def as_bytes(text: str) -> bytes:
    """A text from outside as it was there: bytes that are not UTF-8 come out as they went in."""
    try:
        return plain(text).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidInput("The text holds a lone surrogate.", hint="Give bytes instead.") from None
