"""`meantime demo`: a scripted agent hands off six real pieces of work, and one talks to it meanwhile.

`command` is the click command. It is made when it is asked for: click is in the extra `server`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

    command: click.Command

__all__ = ["command"]


def __getattr__(name: str) -> Any:
    if name != "command":
        raise AttributeError(f"module 'meantime.app.demo' has no attribute {name!r}")
    from .demo_command import make_command

    globals()["command"] = made = make_command()
    return made
