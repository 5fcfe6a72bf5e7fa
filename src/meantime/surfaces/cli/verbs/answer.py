"""`meantime answer`: for a task that waits for input."""

from __future__ import annotations

import click

from meantime.surfaces.cli import finding, showing
from meantime.surfaces.cli.asking import one_task
from meantime.surfaces.cli.speaking import part
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb


@verb("answer")
@one_task
@click.argument("words", nargs=-1, required=True, metavar="TEXT…")
@as_json
def command(ref: str, words: tuple[str, ...], as_json: bool) -> None:
    """Answer a task that waits for input."""
    with_daemon = daemon()
    id = finding.task(with_daemon, ref)["id"]
    task = with_daemon.post(f"/v1/tasks/{part(id)}/answer", {"answer": " ".join(words)})
    if as_json:
        say_json(task)
    else:
        click.echo(f"answered {showing.short(id)}")
