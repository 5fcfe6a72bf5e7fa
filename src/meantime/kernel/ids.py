"""Ids: random, not ordered by time, because people type prefixes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .errors import InvalidInput
from .plain_text import plain

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
SHOWN = 8  # characters of an id that people see, without its `t_`
ENTROPY = 10  # bytes for an id of ours: ten characters of five bits


_LETTERS = (CROCKFORD * 8).encode()  # one for each byte


def crockford(entropy: bytes) -> str:
    """A letter for every byte; 3 of its 8 bits are not used."""
    return entropy.translate(_LETTERS).decode()


def task_id(entropy: bytes) -> str:
    return "t_" + crockford(entropy)


def is_generated(id: str) -> bool:
    """Whether it looks like an id of `task_id`. All of these have one length, so none begins another."""
    return id.startswith("t_") and len(id) == 2 + ENTROPY


def batch_id(entropy: bytes) -> str:
    """For tasks that were handed off together without a name for it."""
    return "b_" + crockford(entropy)


def is_unnamed(batch: str) -> bool:
    return batch.startswith("b_") and len(batch) == 2 + ENTROPY


def check_id(value: object, what: str) -> str:
    """An id that comes from outside: checked once, at the edge, and never used in a path."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__}.")
    value = plain(value)
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
        if other == short:
            return id  # only the whole id tells `t_x` from a host's own `x`
        while length < len(short) and other.startswith(short[:length]):
            length += 1
    return short[:length]


def shorten(shown: Sequence[str], every: Iterable[str]) -> dict[str, str]:
    """The `display` of each of these, among all: one pass, however many there are."""
    alike: dict[str, list[str]] = {bare(id)[:SHOWN]: [] for id in shown}
    for id in every:
        siblings = alike.get(bare(id)[:SHOWN])
        if siblings is not None:
            siblings.append(id)
    return {id: display(id, alike[bare(id)[:SHOWN]]) for id in shown}


def prefix_end(prefix: str) -> str:
    """The first string after everything that starts with `prefix` (our ids are ASCII)."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\x7f"
