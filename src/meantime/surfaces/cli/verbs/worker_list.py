"""`meantime workers`: the workers on other machines, by their last message."""

from __future__ import annotations

from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain

COLUMNS = ("WORKER", "HOST", "POOL", "LABELS", "SLOTS", "RUNNING", "VERSION", "HEARD")


@verb("workers")
@as_json
def command(as_json: bool) -> None:
    """The workers on other machines, and the key that they pin."""
    info = daemon().get("/v1/info")
    workers, key = info.get("workers", []), info.get("ownerKey", "")
    if as_json:
        say_json({"workers": workers, "unmet": info.get("unmet", []), "ownerKey": key})
        return
    if not key:
        echo('no carrier\n  [engine] carrier = "local" in the configuration   start with one')
        return
    rows = [
        (
            plain(one["name"]), plain(one["host"]), plain(one["pool"]), _labels(one),
            str(one["slots"]), str(one["running"]), plain(one["version"]), _heard(one),
        )
        for one in workers
    ]  # fmt: skip
    echo("\n".join(task_format.table(COLUMNS, rows, shrink=1)) if rows else "no workers")
    for need in info.get("unmet", []):
        echo(f"{need['waiting']} wait: {plain(need['reason'])}")
    echo(f'owner_key = "{key}"')


def _labels(one: task_format.Wire) -> str:
    return plain(" ".join(f"{name}={value}" for name, value in sorted(one["labels"].items())))


def _heard(one: task_format.Wire) -> str:
    heard = f"{task_format.span(one['silent'])} ago"
    return f"{heard}, draining" if one["draining"] else heard
