"""`meantime audit`: an account of every notice, of what is silent, and of what does not fit."""

from __future__ import annotations

import time
from typing import Any

from meantime.app.ledger_audit import Audit, Finding, audit
from meantime.daemon.owner_process import owner
from meantime.kernel.durations import duration
from meantime.kernel.errors import MeantimeError
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb
from meantime.surfaces.terminal.errors import CliError
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import coloured


@verb("audit", starts=False)
@as_json
def command(as_json: bool) -> int:
    """Account for every notice and every silent task. It reads the ledger beside the daemon, or without
    one, and changes nothing; exit 1 if something is wrong."""
    home = daemon().home
    if not home.ledger.exists():
        if as_json:
            say_json(_wire(Audit((), {}, ())))
        else:
            echo(f"There is no ledger yet in {home.folder}: nothing to account for.")
        return 0
    try:
        is_owned = owner(home) is not None
        found = audit(home.ledger, owned=is_owned, now=time.time())
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint) from problem
    if is_owned:
        found = found._replace(findings=(*found.findings, *_circles()))
    if as_json:
        say_json(_wire(found))
    else:
        _show(found)
    return int(not found.is_clean)


def _circles() -> tuple[Finding, ...]:
    """The daemon's own numbers: no ledger says how often a thread was woken."""
    try:
        count = daemon().get("/v1/stats").get("restingThreads", 0)
    except CliError:  # it does not answer, which is no reason not to account for what is on the disk
        return ()
    if not count:
        return ()
    todo = (
        "Look at what they start: `meantime threads`, `meantime ps --thread ID`. A turn of a person ends it."
    )
    text = f"{count} × a thread that is woken again and again by what it started, and rests"
    return (Finding(False, text, (), todo),)


def _wire(found: Audit) -> dict[str, Any]:
    return {
        "ok": found.is_clean,
        "notices": {one.state: {"count": one.how_many, "oldest": one.oldest} for one in found.notices},
        "tasks": found.tasks,
        "findings": [finding._asdict() for finding in found.findings],
    }


def _show(found: Audit) -> None:
    echo("notices")
    for one in found.notices:
        echo(f"  {one.state:<10} {one.how_many:>7}   the oldest ended {duration(one.oldest)} ago")
    if not found.notices:
        echo("  none")
    echo("tasks")
    for status, count in found.tasks.items():
        echo(f"  {status.replace('_', ' '):<10} {count:>7}")
    if not found.tasks:
        echo("  none")
    for finding in found.findings:
        mark = coloured("✗", "31") if finding.wrong else coloured("·", "33")
        echo(f"{mark} {finding.what}")
        echo("".join(f"    {one}\n" for one in finding.which), nl=False)
        if finding.todo:
            echo(f"    → {finding.todo}")
    if found.is_clean:
        echo(coloured("✓", "32") + " Every ending has its notice, and nothing contradicts itself.")
