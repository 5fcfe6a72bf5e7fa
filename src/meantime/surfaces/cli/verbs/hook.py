"""`meantime hook …`, for its help. The hooks of an agent take another way, without click: surfaces/hooks."""

from __future__ import annotations

from meantime.surfaces.cli.verb import argument, option, verb
from meantime.surfaces.hooks.hook_client import main
from meantime.surfaces.hooks.hook_events import AGENTS, MOMENTS


@verb("hook", starts=False, ignore_unknown_options=True, allow_extra_args=True)
@argument("moment", metavar=f"[{'|'.join(MOMENTS)}]")
@option("--host", default=AGENTS[0], show_default=True, metavar=f"[{'|'.join(AGENTS)}]")
def command(moment: str, host: str) -> int:
    """The hook that a coding agent runs at its own boundaries; `meantime install` configures it.

    The agent's JSON is read from stdin. Unread notices of its conversation are printed in the form that it
    puts before its model. `wait` blocks until there are some, prints them on stderr, and exits with 2.
    `pre-tool` tells nothing: it notes whose the coming call of our MCP server is.
    """
    return main([moment, "--host", host])
