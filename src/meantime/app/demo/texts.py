"""What the demo says at its beginning and at its end."""

from __future__ import annotations

from collections.abc import Sequence

from meantime import __version__
from meantime.kernel.ids import display
from meantime.kernel.model import Task
from meantime.kernel.notices import Notice

from .layout import mark, table, took

ASK = "Look into the Python standard library for me, would you?"
HANDED_OFF = "Handed off. All of it runs beside us; you are told of each ending once, in order."
MEANWHILE = "Meanwhile we can talk: tasks, show <id>, logs <id>, cancel <id>, help, quit."
PLUG_IN = """\
In an agent of your own:

  async with Meantime.open("work.db") as mt:
      thread = mt.thread("conversation-1")
      await thread.start(Shell("make test"))     # returns at once
      async for _ in thread.wakeups():           # idle, and something to tell
          async with thread.turn() as turn:
              conversation += turn.render()      # in order, once each
              await turn.ack()                   # without it they come again

A whole agent loop: examples/agent_loop.py. The tutorial: tests/fundamentals/."""


def banner(url: str, folder: str, keep: bool) -> list[str]:
    return [
        f"Meantime {__version__} demo",
        "",
        f"API:      {url + '/v1/tasks' if url else 'off, as the environment says'}",
        f"Storage:  SQLite in {folder} ({'kept' if keep else 'removed at the end'})",
        "Agent:    demo: scripted, no model",
        "",
    ]


def handed_off(tasks: Sequence[Task]) -> list[str]:
    return table((display(task.id), task.title) for task in tasks)


def summary(tasks: Sequence[Task], heard: Sequence[Notice]) -> list[str]:
    numbers = {notice.task_id: str(notice.number) for notice in heard}
    rows = [("ID", "STATUS", "TIME", "TOLD", "TASK")]
    for task in tasks:
        status = f"{mark(task.status)} {task.status}"
        rows.append((display(task.id), status, took(task), numbers.get(task.id, "-"), task.title))
    return table(rows)
