"""The work that victims hand off, in a module of its own: what was queued is found again after a restart."""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import shlex
import threading
from pathlib import Path

from tests.waiting import LIMIT

LEDGER: int = -1  # the outside ledger of this process
SYNCED = True  # False where only processes die, and the load is to be as fast as it can
GATES: dict[str, asyncio.Event] = {}  # closed ones; what has none is let go at once
SYNC_GATES: dict[str, threading.Event] = {}
BIG = "x" * 60_000


def open_ledger(folder: Path) -> None:
    global LEDGER
    LEDGER = os.open(folder / "ledger.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def watch(seconds: float = 3 * LIMIT) -> None:
    """This process ends, and says where it hangs, before whoever waits for it gives up."""
    faulthandler.dump_traceback_later(seconds, exit=True)


def say(what: str, thread: str, id: str, note: str = "") -> None:
    """One line, one write, on the disk before anybody goes on."""
    os.write(LEDGER, json.dumps([what, thread, id, note]).encode() + b"\n")
    if SYNCED:
        os.fsync(LEDGER)


def let_go(id: str) -> None:
    for gate in (GATES.get(id), SYNC_GATES.get(id)):
        if gate is not None:
            gate.set()


async def gated(id: str, thread: str, how: str = "") -> str:
    say("ran", thread, id)
    gate = GATES.get(id)
    if gate is not None:
        await gate.wait()
    say("finishing", thread, id)
    if how == "fail":
        raise ValueError("it failed, as it was told to")
    return BIG if how == "big" else id


def threaded(id: str, thread: str) -> str:
    say("ran", thread, id)
    gate = SYNC_GATES.get(id)
    assert gate is None or gate.wait(LIMIT), f"{id} is not let go"
    say("finishing", thread, id)
    return id


def saying(folder: Path, what: str, thread: str, id: str) -> str:
    """The same as `say`, as a command."""
    fact = json.dumps([what, thread, id, ""])
    return f"printf '%s\\n' {shlex.quote(fact)} >>{shlex.quote(str(folder / 'ledger.jsonl'))}"
