"""`meantime doctor`: what is wrong here, and what to do."""

from __future__ import annotations

import os
import time

from meantime.app.doctor import BAD, OK, WARN, Patient, examine
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import coloured

COLOURS = {OK: "32", WARN: "33", BAD: "31"}


@verb("doctor", starts=False)
@as_json
def command(as_json: bool) -> int:
    """Look for what is wrong, and say what to do. It changes nothing; exit 1 if something is bad."""
    rows = list(examine(Patient(daemon().home, os.environ, time.time())))
    bad = any(row.level == BAD for row in rows)
    if as_json:
        say_json({"ok": not bad, "checks": [row._asdict() for row in rows]})
        return int(bad)
    for row in rows:
        echo(f"{coloured(f'{row.level:<4}', COLOURS[row.level])}  {row.name:<8}  {row.found}")
        if row.todo:
            echo(f"{'':16}→ {row.todo}")
    return int(bad)
