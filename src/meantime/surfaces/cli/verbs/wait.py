"""`meantime wait`: blocks until tasks have ended, and tells how."""

from __future__ import annotations

import time

from meantime.surfaces.caller.caller_thread import own_thread
from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import DURATION, TASK, reconnect
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.daemon_client.reconnection import patiently
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import NOT_FOUND, STILL_RUNNING, TIMED_OUT, USAGE, CliError
from meantime.surfaces.terminal.exit_code import exit_code, has_ended, worst
from meantime.surfaces.terminal.progress_line import ProgressLine, bar
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import Wire
from meantime.surfaces.terminal.terminal_text import plain

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = 1_000  # tasks that the daemon takes in one question; the others have their turn
STEP = 30.0  # seconds that the daemon is asked to wait at once
COUNTED = 200  # of those that ended before, how many are looked at
NAMED = 5  # that are named when the time is over
TICK = 0.5  # the same, where somebody looks at a bar


@verb("wait")
@argument("refs", nargs=-1, type=TASK, metavar="[ID]…")
@option("-b", "--batch", metavar="ID", help="All of a batch.")
@option("--thread", metavar="ID", help="All of a conversation.")
@option("--tell", is_flag=True, help="Until a conversation is to be told something; tells it here.")
@option("--confirm", is_flag=True, help="With --tell: it counts as told when a line comes on stdin.")
@option(
    "--settle", type=DURATION, metavar="TIME", default="1s", show_default=True,
    help="With --tell: tells endings that come so close together at once.",
)  # fmt: skip
@option("--any", "first", is_flag=True, help="Only until the first of them has ended.")
@option("-t", "--timeout", type=DURATION, metavar="TIME", help="At most this long; 0 only looks.")
@option("-q", "--quiet", is_flag=True, help="Say nothing: the exit code tells.")
@reconnect
@as_json
def command(
    refs: tuple[str, ...], batch: str | None, thread: str | None, tell: bool, confirm: bool,
    settle: float, first: bool, timeout: float | None, quiet: bool, reconnect: float, as_json: bool,
) -> int:  # fmt: skip
    """Block until tasks have ended.

    Exit 0: all are completed. 6: one failed. 7: one was cancelled. 124: the time is over (8 with -t 0).

    With --tell: block until the conversation (--thread, by default the one that this is started from) has
    something unread, print it, and count it as told. Exit 0, or 124. For an agent that runs it in its own
    background, and is woken by its end.
    """
    if tell:
        if refs or batch or first:
            raise CliError("--tell is about a conversation.", "Use it with --thread, or alone.", USAGE)
        from meantime.surfaces.cli.notice_printer import PrintOptions, told

        to = PrintOptions(quiet=quiet, as_json=as_json, confirm=confirm, settle=settle)
        return told(daemon(), thread or own_thread(), timeout, reconnect, to)
    if not (refs or batch or thread):
        raise CliError("Nothing to wait for.", "Name tasks, or use -b or --thread.", USAGE)
    with_daemon = daemon()

    def members() -> list[Wire]:
        named = [task_search.task(with_daemon, ref) for ref in refs]
        if not (batch or thread):
            return named
        every = [*task_format.ACTIVE, *task_search.ENDED] if batch else task_format.ACTIVE
        return [*named, *task_search.tasks(with_daemon, every, batch=batch, thread=thread)]

    waiting = Waiting(with_daemon, members, reconnect, plain(batch or thread or ""))
    if batch and not waiting.known:
        raise CliError(f"No batch {plain(batch)!r}.", "`meantime ps -a` lists tasks.", NOT_FOUND)
    silent = quiet or as_json
    if thread and not (waiting.known or silent):
        echo(f"meantime: {_all_ended(with_daemon, thread)}", err=True)
    try:
        done = waiting.wait(first, timeout, silent=silent)
    except KeyboardInterrupt:
        waiting.line.wipe()
        echo("meantime: Not waiting any more; the tasks run on.", err=True)
        raise
    if not (done or silent):
        echo(f"meantime: {waiting.left()}", err=True)
    if as_json:
        say_json({"tasks": list(waiting.known.values()), "done": done})
    return waiting.code(first, done, timeout)


class Waiting:
    """The known state of each task, by id. `members` asks again: a batch may grow while one waits."""

    def __init__(
        self, with_daemon: Daemon, members: Callable[[], list[Wire]], patience: float, name: str
    ) -> None:
        self._daemon = with_daemon
        self._members = members
        self._patience = patience
        self._name = name
        self._began = time.monotonic()
        self.line = ProgressLine()
        self.known = {task["id"]: task for task in members()}

    def wait(self, first: bool, timeout: float | None, *, silent: bool) -> bool:
        """Whether it is over. Each ending is a line, in the order in which they were seen."""
        if silent:
            self.line.alive = False
        told = set[str]()
        until = None if timeout is None else self._began + timeout
        while True:
            if not all(map(has_ended, self.known.values())):
                from meantime.surfaces.cli.first_interrupt import interrupt_once

                interrupt_once()
            fresh = [task for task in self.known.values() if has_ended(task) and task["id"] not in told]
            fresh.sort(key=lambda task: task.get("completedAt") or "")
            told.update(task["id"] for task in fresh)
            self.line.wipe()
            if not silent:
                echo("".join(f"{_ended(task)}\n" for task in fresh), nl=False)
            if first and told:
                return True
            if len(told) == len(self.known) and not self._joined():
                return True
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return False
            self.line.draw(self._shown())
            self._look(TICK if self.line.alive else STEP, left)

    def left(self) -> str:
        """The running tasks."""
        tasks = [task for task in self.known.values() if not has_ended(task)]
        names = [f"{task_format.short(task['id'])} ({task_format.title(task)})" for task in tasks[:NAMED]]
        more = [f"and {len(tasks) - NAMED} more"] if len(tasks) > NAMED else []
        return f"{len(tasks)} of {len(self.known)} still active: {', '.join([*names, *more])}."

    def code(self, first: bool, done: bool, timeout: float | None) -> int:
        ended = [task for task in self.known.values() if has_ended(task)]
        if not done:
            return STILL_RUNNING if timeout == 0 else TIMED_OUT
        return exit_code(ended[0]) if first and ended else worst(ended)

    def _joined(self) -> bool:
        """Whether there are more than there were."""
        before = len(self.known)
        for task in patiently(self._daemon, self._members, self._patience):
            self.known.setdefault(task["id"], task)
        return len(self.known) > before

    def _look(self, step: float, left: float | None) -> None:
        seconds = step if left is None else min(step, left)
        ids = [task["id"] for task in self.known.values() if not has_ended(task)]
        asked = {"ids": ids[:AT_ONCE], "until": "any", "timeout": seconds}
        answer = patiently(
            self._daemon, lambda: self._daemon.post("/v1/wait", asked, patience=seconds + 30), self._patience
        )
        for task in answer["tasks"]:
            self.known[task["id"]] = task

    def _shown(self) -> str:
        tasks = list(self.known.values())
        ended = [task for task in tasks if has_ended(task)]
        took = task_format.span(time.monotonic() - self._began)
        if len(tasks) == 1 and not self._name:
            task = tasks[0]
            progress: Wire = task.get("progress") or {}
            percent = progress.get("percent")
            drawn = f"  {bar(percent, 100)}" if percent is not None else ""
            parts = [
                task_format.title(task) + drawn,
                task_format.doing(task),
                task_format.span(task_format.age(task)),
            ]
            return "  ".join(part for part in parts if part)
        bad = sum(exit_code(task) != 0 for task in ended)
        failed = f"  ✗{bad}" if bad else ""
        name = f"{self._name}  " if self._name else ""
        return f"{name}{bar(len(ended), len(tasks))} {len(ended)}/{len(tasks)}{failed}  {took}"


def _all_ended(with_daemon: Daemon, thread: str) -> str:
    """Why there is nothing to wait for: how the tasks of a conversation ended."""
    page = with_daemon.get("/v1/tasks", q="status:ended", thread=thread, format="rows", limit=COUNTED)
    rows: list[Wire] = page["rows"]
    if not rows:
        return f"{plain(thread)} has no tasks."
    states = [str(row["state"]) for row in rows]
    words = [
        f"{states.count(state)} {state.replace('_', ' ')}" for state in task_format.LOOKS if state in states
    ]
    last = max(rows, key=lambda row: row.get("endedAt") or "")
    newest = f"the newest {len(rows)}: " if page["total"] > len(rows) else ""
    return (
        f"Nothing of {plain(thread)} is active ({newest}{', '.join(words)}). The last to end: {_ended(last)}"
    )


def _ended(task: Wire) -> str:
    parts = [
        task_format.short(task["id"]),
        task_format.paint(task_format.status(task), task),
        task_format.span(task_format.age(task)),
        task_format.title(task),
        task_format.doing(task),
    ]
    return "  ".join(part for part in parts if part)
