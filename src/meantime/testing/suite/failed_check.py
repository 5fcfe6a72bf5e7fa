"""The failure of a check of a suite, with the check's name."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


def title_of(check: object) -> str:
    return getattr(check, "__name__", repr(check))


@contextmanager
def named_after(check: object) -> Generator[None]:
    """An exception inside becomes an AssertionError that begins with the name of the check."""
    try:
        yield
    except Exception as problem:
        raise AssertionError(f"{title_of(check)}: {problem or type(problem).__name__}") from problem
