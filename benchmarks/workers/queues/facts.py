"""The work of every queue: it writes into a file outside when it began, ended or was cancelled. The scripts
beside this one run in an environment of their own, so they import nothing of ours."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

FACTS = os.environ.get("QUEUE_FACTS", "")


def say(what: str, id: str) -> None:
    fd = os.open(FACTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{time.time():.4f} {what} {id}\n".encode())
    os.close(fd)


async def waited(id: str, seconds: float) -> str:
    if seconds:
        say("began", id)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        say("cancelled", id)
        raise
    if seconds:
        say("ended", id)
    return id


async def serve(commands: dict[str, Callable[..., Awaitable[Any]]]) -> None:
    """Commands as JSON lines on stdin, each answered by a line on stdout."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)
    while line := await reader.readline():
        given = json.loads(line)
        try:
            answer = await commands[given.pop("do")](**given)
        except Exception as problem:
            answer = {"problem": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), flush=True)
