"""Names that nobody has, and what may have been meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NAMED = 20  # tools that a hint lists


def near(name: str, known: Iterable[str]) -> str:
    """The names that somebody may have meant, or all that there are, in words."""
    names = sorted(known)
    meant = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if meant:
        return f"Did you mean {' or '.join(meant)}?"
    if not names:
        return "There are none."
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"There are: {', '.join(names[:NAMED])}{more}."
