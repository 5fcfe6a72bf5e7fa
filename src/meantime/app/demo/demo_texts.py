"""The demo's texts at its beginning and at its end."""

from __future__ import annotations

from meantime import __version__

ASK = "Look into the Python standard library for me, would you?"
HANDED_OFF = "Handed off. I tell you of each ending once, in order."
MEANWHILE = "Talk to me meanwhile: tasks, show <id>, logs <id>, cancel <id>, help."
PLUG_IN = """\
In an agent of your own:

  async with Meantime.open("work.db") as mt:
      thread = mt.thread("conversation-1")
      await thread.start(Shell("make test"))     # returns at once
      async for turn in thread.loop().turns():   # somebody spoke, or something ended
          async with turn:
              conversation += turn.messages()    # in order, once each
              await turn.ack()                   # without it they come again

From a shell: meantime run -- make test, then meantime ps. The rest: meantime --help."""


def banner(url: str, folder: str, keep: bool) -> list[str]:
    return [
        f"Meantime {__version__} demo",
        "",
        f"API:      {url + '/v1/tasks' if url else 'off, as the environment says'}",
        f"Storage:  SQLite in {folder} ({'kept' if keep else 'removed at the end'})",
        "Agent:    demo: scripted, no model",
        "",
    ]
