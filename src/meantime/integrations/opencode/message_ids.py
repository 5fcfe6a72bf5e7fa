"""Ids of messages and parts, in the form of OpenCode's own. We choose them, so that a message which is sent
again after a crash is the same message."""

from __future__ import annotations

from hashlib import sha256

LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM = 14  # letters behind the time
PER_MILLISECOND = 4096


def message_id(session: str, key: str, at: float, number: int = 0) -> str:
    return f"msg_{_tail(session, key, at, number)}"


def part_id(session: str, key: str, at: float, number: int = 0) -> str:
    """A message of ours that is sent again with parts of new ids would have them twice."""
    return f"prt_{_tail(session, key, at, number)}"


def _tail(session: str, key: str, at: float, number: int) -> str:
    """The same for the same arguments. Ids are unique over all sessions of a server, so the session is in
    them. `at` and `number` give the order, of parts and on servers that sort messages by their ids."""
    moment = (round(at * 1000) * PER_MILLISECOND + number % PER_MILLISECOND) % (1 << 48)
    return f"{moment:012x}{_letters(f'{session} {key}')}"


def _letters(text: str) -> str:
    number = int.from_bytes(sha256(text.encode()).digest())
    found = ""
    for _ in range(RANDOM):
        number, digit = divmod(number, len(LETTERS))
        found += LETTERS[digit]
    return found
