"""`meantime events`: everything that happens, as it happens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.first_interrupt import interrupt_once
from meantime.surfaces.cli.parameter_types import TASK, Whole, reconnect
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.daemon_client.daemon_connection import Arriving
from meantime.surfaces.daemon_client.reconnection import patiently
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import DaemonGone
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import Wire

SILENCE = 90.0  # seconds: the daemon speaks at least every 30


@verb("events")
@argument("ref", type=TASK, required=False, metavar="[ID]")
@option("--thread", metavar="ID", help="Only of one conversation.")
@option("-b", "--batch", metavar="ID", help="Only of one batch.")
@option("-n", "--count", type=Whole(1), metavar="N", help="End after so many.")
@reconnect
@as_json
def command(
    ref: str | None, thread: str | None, batch: str | None, count: int | None, reconnect: float, as_json: bool
) -> None:
    """Follow what happens: of one task, a batch, a conversation, or everything. Ctrl+C ends it.

    With --json, one object a line: event, id, data.
    """
    interrupt_once()
    with_daemon = daemon()
    task = task_search.task(with_daemon, ref)["id"] if ref else None
    watch = EventWatch(with_daemon, {"task": task, "thread": thread, "batch": batch}, count, as_json)
    patiently(with_daemon, watch.follow, reconnect)


class EventWatch:
    """Knows the last event that it has shown, and goes on after it."""

    def __init__(
        self, with_daemon: Daemon, about: dict[str, str | None], count: int | None, as_json: bool
    ) -> None:
        self._daemon = with_daemon
        self._about = about
        self._left = count
        self._as_json = as_json
        self._last = ""

    def follow(self) -> None:
        headers = {"Last-Event-ID": self._last} if self._last else {}
        asked = {"snapshot": "bounded", "replay": 1, **self._about}
        with self._daemon.stream("/v1/events", patience=SILENCE, headers=headers, **asked) as answer:
            for event in _events(answer):
                self._last = event.get("id") or self._last
                if event["event"] in ("snapshot", "heartbeat"):
                    continue
                self._show(event)
                if self._left is not None:
                    self._left -= 1
                    if not self._left:
                        return
        raise DaemonGone

    def _show(self, event: Wire) -> None:
        if self._as_json:
            say_json(event)
        elif event["event"] == "resync":
            echo("… some events were missed")
        else:
            echo(_line(event["event"], event["data"]))


def _line(name: str, task: Wire) -> str:
    at = time.strftime("%H:%M:%S")
    word = "created" if name == "task.created" else task_format.status(task)
    parts = [
        at,
        task_format.short(task["id"]),
        task_format.paint(word, task),
        task_format.title(task),
        task_format.doing(task),
    ]
    return "  ".join(part for part in parts if part)


def _events(answer: Arriving) -> Iterator[Wire]:
    """Server-sent events: lines of `field: value`, and an empty line after each event."""
    fields: dict[str, str] = {}
    while line := answer.line():
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        name, _, value = text.partition(":")
        if text and name:
            fields[name] = fields.get(name, "") + value.removeprefix(" ")
        elif not text and fields:
            if "event" in fields:
                data = json.loads(fields.get("data", "null"))
                yield {"event": fields["event"], "id": fields.get("id"), "data": data}
            fields = {}
