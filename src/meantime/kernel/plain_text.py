"""Texts from outside: plain, encodable and of a known length."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text itself, of a subclass that may behave in any way, such as a member of an enum."""
    return text if type(text) is str else str.__str__(text)


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


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
