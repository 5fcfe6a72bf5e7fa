"""The work: each piece writes its beginning into the outside ledger, with the worker that performs it."""

from __future__ import annotations

import json
import os
import random
import select
import shlex
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import pause, pause_async

from .. import works

WORKER = "MEANTIME_FAULT_WORKER"  # name and life of the worker, in its environment
FENCE: ContextVar[tuple[int, int]] = ContextVar("fence", default=(0, 0))
COMMANDS, IDEMPOTENT = 0.1, 0.55  # shares of the tasks, added up
QUICK = 0.05  # seconds of a later attempt: three workers may be killed under one task by chance, too


class Job(NamedTuple):
    """The task number `n` of a run of the family, the same in every life of the owner."""

    id: str
    thread: str
    kind: str  # command, idempotent or plain
    seconds: float
    is_sync: bool


def job_of(seed: int, n: int) -> Job:
    rng = random.Random(seed * 1_000_003 + n)
    draw = rng.random()
    kind = "command" if draw < COMMANDS else "idempotent" if draw < IDEMPOTENT else "plain"
    seconds = rng.uniform(0.5, 4.0) if kind == "command" else rng.uniform(0.0, 1.2)
    return Job(f"a{n % 4}-{n:05}", f"a{n % 4}", kind, round(seconds, 2), rng.random() < 0.3)


def mend_sleep() -> None:
    """Under libfaketime, with a clock that was turned back, `time.sleep` of Python fails with EINVAL. The
    processes of commands would fail for the same reason, so their clocks are not turned."""
    if os.environ.pop("LD_PRELOAD", None) is not None:
        time.sleep = _sleep


def _sleep(seconds: Any, /) -> None:
    select.select([], [], [], seconds)


def _began(id: str, thread: str) -> int:
    attempt = FENCE.get()[1]
    works.say("ran", thread, id, f"{attempt} {os.environ[WORKER]} {time.monotonic():.2f}")
    return attempt


async def waiting(id: str, thread: str, seconds: float) -> str:
    await pause_async(seconds if _began(id, thread) == 1 else QUICK, "work takes a moment")
    works.say("finishing", thread, id)
    return id


def blocking(id: str, thread: str, seconds: float) -> str:
    pause(seconds if _began(id, thread) == 1 else QUICK, "work takes a moment")
    works.say("finishing", thread, id)
    return id


def command(folder: Path, job: Job) -> str:
    """It says its last words on stdout; the owner must have them."""
    id, ledger = f"{job.id}.1", shlex.quote(str(folder / "ledger.jsonl"))
    began = json.dumps(["ran", job.thread, id, "1 %s %s"]).replace('"', '\\"')
    return (
        f'read up _ </proc/uptime; printf "{began}\\n" "${WORKER}" "$up" >>{ledger}; '
        f"sleep {job.seconds}; {works.saying(folder, 'finishing', job.thread, id)}; echo {last_words(job)}"
    )


def last_words(job: Job) -> str:
    return f"this was {job.id}"
