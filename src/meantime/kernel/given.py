"""What verbs are given: checked once, so that bad input is the same clear error wherever it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from .errors import InvalidInput
from .ids import check_id

T = TypeVar("T")


def check_scope(thread: object) -> str | None:
    """A thread, or None for a person, who sees all."""
    return None if thread is None else check_id(thread, "thread")


def check_count(value: object, what: str, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InvalidInput(
            f"{what}={value!r} is not possible.", hint=f"Give a number from {least} to {most}."
        )
    return value


def check_all(values: object, kind: type[T], what: str) -> list[T]:
    """A list, or what can be one, of things of one kind."""
    name = type(values).__name__
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} must be a list, not {name}.")
    given = list(cast("Iterable[Any]", values))
    for one in given:
        if not isinstance(one, kind):
            raise InvalidInput(f"{what} must hold {kind.__name__}, not {type(one).__name__}.")
    return given


def as_bytes(text: str) -> bytes:
    """A text from outside as it was there: bytes that were no UTF-8 come out as they went in."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidInput("The text holds a lone surrogate.", hint="Give bytes instead.") from None
