"""A scripted agent hands off six real pieces of work and keeps talking. No key, no network, no model.

python examples/demo.py
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from meantime import Call, Failed, Meantime, Notice, Shell, Thread, current

LIBRARY = Path(sysconfig.get_path("stdlib"))
SMALL_TALK = (
    "All of that runs beside us. What else is on your mind?",
    "Yes, a walk after lunch sounds right.",
    "By the way: you can ask me how far things are at any time.",
    "I am not polling. I will be told.",
    "Shall I write the summary when everything is in?",
)
PLUG_IN = """\
In an agent of your own it is this much:

    async with Meantime.open("work.db") as mt:
        thread = mt.thread("conversation-1")
        await thread.start(Call(slow_function, "argument"))   # returns at once
        await thread.start(Shell("make test"), timeout=600)   # this one even outlives you
        async for _ in thread.wakeups():                      # idle, and something to tell
            async with thread.turn() as turn:
                for notice in turn.notices:                   # in order, once each
                    conversation.append(notice.message().text)
                await turn.ack()                              # without it they come again

examples/agent_loop.py is a whole agent loop. tests/fundamentals/ is the tutorial."""


# -- the work: plain functions, sync or async; one piece is a command, see hand_off


def hash_library() -> str:
    digest, files = hashlib.sha256(), list(_sources())
    for place, file in enumerate(files):
        current().check()  # stops here if somebody asked us to
        digest.update(file.read_bytes())
        current().progress(100 * place / len(files), message=file.name)
    return f"sha256 of {len(files)} files is {digest.hexdigest()[:16]}…"


def count_lines() -> str:
    lines = sum(file.read_bytes().count(b"\n") for file in _sources())
    return f"{lines:,} lines of Python"


async def survey(thread: Thread) -> str:
    """A piece of work that hands off two of its own; the ledger knows whose children they are."""
    children = [
        await thread.start(Call(count_modules, folder), description=f"count {folder}")
        for folder in ("json", "asyncio")
    ]
    counts = [await child.result() for child in children]
    return f"two children counted {' and '.join(map(str, counts))} modules"


def count_modules(folder: str) -> int:
    return len(list((LIBRARY / folder).glob("*.py")))


def look_up_the_missing() -> str:
    return (LIBRARY / "no_such_module.py").read_text()


async def think_slowly() -> str:
    for step in range(1, 11):
        await asyncio.sleep(0.25)
        current().progress(10 * step, phase="thinking", message=f"step {step} of 10")
    return "42"


def _sources() -> Iterator[Path]:
    for folder, inner, files in os.walk(LIBRARY):
        inner[:] = [name for name in inner if name not in ("site-packages", "test", "__pycache__")]
        yield from (Path(folder, name) for name in files if name.endswith(".py"))


# -- the agent


async def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="meantime-demo-") as folder:
        ledger = Path(folder) / "work.db"
        print("Meantime demo · agent: scripted, no model · storage: SQLite in a temporary folder\n")
        async with Meantime.open(ledger) as mt:
            thread = mt.thread("demo")
            say("you", "Look into the standard library for me, would you?")
            await hand_off(thread)
            say("agent", "Handed off. Each line below arrives when its work has ended, once.\n")
            talking = asyncio.create_task(keep_talking(thread))
            told = await be_told(thread, 8)
            talking.cancel()
            await check(mt, told)
    print(f"\n8 endings, each told once, in the order of completion ({time.monotonic() - began:.1f} s).\n")
    print(PLUG_IN)


async def hand_off(thread: Thread) -> None:
    orders = [
        (Call(think_slowly), "think slowly"),
        (Call(hash_library), "hash the library"),
        (Call(count_lines), "count its lines"),
        (Shell([sys.executable, "-m", "timeit", "sum(range(1000))"]), "time a loop, as a command"),
        (Call(survey, thread), "survey, with two children"),
        (Call(look_up_the_missing), "look up what is not there"),
    ]
    for work, description in orders:
        handle = await thread.start(work, description=description)
        print(f"         started {handle.id}  {description}")


async def keep_talking(thread: Thread) -> None:
    for line in SMALL_TALK:
        await asyncio.sleep(0.5)
        say("agent", line)
        for task in await thread.list():
            if task.progress is not None and task.progress.percent is not None:
                print(f"         {task.title}: {task.progress.percent:.0f} %")


async def be_told(thread: Thread, count: int) -> list[Notice]:
    """Wake, take a turn, put what is new into the conversation, acknowledge; until all is told."""
    told: list[Notice] = []
    transcript = thread.transcript
    async for _ in thread.wakeups():
        async with thread.turn() as turn:
            for notice in turn.notices:
                transcript.add(notice.id, notice.message())
                show(notice)
            await turn.ack(transcript=transcript)
        told += turn.notices
        if len(told) >= count:
            break
    return told


async def check(mt: Meantime, told: list[Notice]) -> None:
    """The journal knows in which order the runs ended; the conversation must have heard the same."""
    ended: list[str] = []
    async for event in mt.events():
        if event.kind == "ended":
            ended.append(event.task_id)
        if len(ended) == len(told):
            break
    ids = [notice.task_id for notice in told]
    held = [entry.notice for entry in await mt.thread("demo").transcript.entries()]
    if ids != ended or len(set(ids)) != 8 or held != [notice.id for notice in told]:
        sys.exit(f"The demo found a bug: told {ids}, ended {ended}, in the transcript {held}.")
    if await mt.notices():
        sys.exit("The demo found a bug: something is still untold.")


def show(notice: Notice) -> None:
    outcome = notice.outcome
    text = outcome.message.split(":")[0] if isinstance(outcome, Failed) else getattr(outcome, "result", "")
    print(f"  [{notice.number}]    {notice.task.status:<9}  {notice.task.title}: {str(text).strip()}")


def say(who: str, text: str) -> None:
    print(f"{who:>6} > {text}")


if __name__ == "__main__":
    asyncio.run(main())
