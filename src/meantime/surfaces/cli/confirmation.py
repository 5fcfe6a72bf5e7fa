"""A person's yes before something is done: a question at the terminal, or a line on stdin."""

from __future__ import annotations

import select
import sys


def confirmed(question: str) -> bool:
    """Asks somebody at a terminal. Ctrl-C and the end of stdin interrupt the command."""
    import click

    try:
        return click.confirm(question, err=True)
    except click.Abort:
        raise KeyboardInterrupt from None


def line_typed(*, within: float) -> bool:
    """Whether a line that is not empty comes on stdin within so many seconds."""
    ready = select.select([sys.stdin], [], [], within)[0]
    return bool(ready) and bool(sys.stdin.readline().strip())
