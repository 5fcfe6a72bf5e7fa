"""Ids: random, not ordered by time, because people type prefixes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .errors import InvalidInput

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
SHOWN = 8  # characters of an id that people see, without its `t_`
BITS = 50  # of entropy in an id of ours: ten characters of five bits


def task_id(entropy: int) -> str:
    return "t_" + crockford(entropy, 10)


def crockford(entropy: int, length: int) -> str:
    letters: list[str] = []
    for _ in range(length):
        entropy, digit = divmod(entropy, 32)
        letters.append(CROCKFORD[digit])
    return "".join(letters)


def check_id(value: object, what: str) -> str:
    """An id that comes from outside: checked once, at the door, and never used in a path."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__}.")
    if not ID.match(value):
        shown = value[:40].encode("ascii", "backslashreplace").decode()
        raise InvalidInput(
            f"{what} {shown!r} is not a valid id.",
            hint="Use 1 to 128 letters, digits, '.', '_', ':' or '-'.",
        )
    return value


def bare(ref: str) -> str:
    """Without our own prefix, so that `t_2qx` and `2qx` are the same thing to a person."""
    return ref.removeprefix("t_")


def display(id: str, siblings: Iterable[str] = ()) -> str:
    """The shortest form, at least eight characters, that no sibling shares."""
    short = bare(id)
    length = SHOWN
    for other in siblings:
        if other == id:
            continue
        other = bare(other)
        while length < len(short) and other.startswith(short[:length]):
            length += 1
    return short[:length]


def prefix_end(prefix: str) -> str:
    """The first string after everything that starts with `prefix` (our ids are ASCII)."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
