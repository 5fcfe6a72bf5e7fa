"""The kinds of values: in words, for the error, and as a check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

LONGEST = 1e10  # seconds: the most that the heart takes as a time
MOST = 1 << 40


class Constraint(NamedTuple):
    must: str
    fits: Callable[[Any], bool]


def whole(least: int, most: int = MOST) -> Constraint:
    def fits(value: Any) -> bool:
        return type(value) is int and least <= value <= most

    return Constraint(f"a whole number from {least} to {most}", fits)


def seconds(least: float = 0, most: float = LONGEST) -> Constraint:
    def fits(value: Any) -> bool:
        return type(value) in (int, float) and least <= value <= most  # which no NaN is

    return Constraint(f"a number of seconds from {least:g} to {most:.0f}", fits)


def one_of(*choices: str) -> Constraint:
    def fits(value: Any) -> bool:
        return isinstance(value, str) and value in choices

    return Constraint(" or ".join(f'"{choice}"' for choice in choices), fits)


def or_minus_one(one: Constraint, must: str) -> Constraint:
    def fits(value: Any) -> bool:
        return one.fits(value) or (type(value) in (int, float) and value == -1)

    return Constraint(must, fits)


def table_of(one: Constraint, must: str) -> Constraint:
    def fits(value: Any) -> bool:
        return isinstance(value, dict) and all(map(one.fits, cast("dict[str, Any]", value).values()))

    return Constraint(must, fits)


def _is_limit(value: Any) -> bool:
    return whole(-1).fits(value) and value != 0


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, cast("list[Any]", value)))


SIZE = whole(0)
COUNT = whole(1)
LIMIT = Constraint("a whole number above 0, or -1 for no limit", _is_limit)
DEPTH = Constraint("a whole number from 0 up, or -1 for any", whole(-1).fits)
AGE = seconds()
TIMEOUT = or_minus_one(seconds(5e-324), "a number of seconds above 0, or -1 for none")
FLAG = Constraint("true or false", _is_flag)
TEXT = Constraint("a text", _is_text)
TEXTS = Constraint("a list of texts", _are_texts)


def shown(value: Any) -> str:
    """As an error may show it."""
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
