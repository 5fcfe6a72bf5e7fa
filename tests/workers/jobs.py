"""Functions that workers of the tests perform."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.waiting import until, until_async

from meantime import current
from meantime.kernel.questions import Question


def add(one: int, two: int) -> int:
    return one + two


def touch(path: str) -> None:
    Path(path).touch()


def length(text: str) -> int:
    return len(text)


def fail(text: str) -> None:
    raise ValueError(text)


def big(size: int) -> str:
    return "x" * size


async def forever() -> None:
    current().progress(5, "waiting")
    await asyncio.Event().wait()


def patient() -> str:
    """Looks whether it should stop, as a function on a thread must."""
    work = current()
    work.progress(10, "began")
    until(work.check, "it is asked to stop")
    return "never"


def emits() -> str:
    work = current()
    work.progress(50, "half")
    work.emit("color", "blue")
    return "emitted"


async def asks() -> str:
    reply = await current().ask(Question(id="q1", text="Which color?"))
    return f"chose {reply.text}"


async def asks_for_a_word(path: str) -> int:
    """The length of the answer, as nobody else is to know it."""
    reply = await current().ask(Question(id="q1", text="The password?"))
    Path(path).touch()
    return len(reply.text)


async def waits_for(path: str) -> str:
    await until_async(Path(path).exists, "the test makes the file")
    return "found"


async def once_then_quick(path: str) -> str:
    if not Path(path).exists():
        Path(path).touch()
        await asyncio.Event().wait()
    return "quick"


def log_to(path: str, number: int) -> None:
    with Path(path).open("a") as file:
        file.write(f"{number}\n")


def deaf(path: str) -> str:
    """Never looks whether it should stop."""
    until(Path(path).exists, "the test makes the file")
    return "at last"


def any_value(value: object) -> str:
    return str(value)


def floods(times: int) -> str:
    work = current()
    for number in range(times):
        work.progress(None, str(number))
    return "flooded"


async def tells(texts: list[str], go_on: str = "") -> str:
    """Tells each of the texts; with `go_on`, it ends when that file is there."""
    answers = [await current().notify(text) for text in texts]
    if go_on:
        await until_async(Path(go_on).exists, "the test makes the file")
    return " ".join(sorted(set(answers)))


def tells_on_a_thread() -> str:
    return asyncio.run(current().notify("from a thread"))
