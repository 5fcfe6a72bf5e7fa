"""The part that the programs of all subjects share: the work, and a conversation over stdin and stdout.

Only the standard library: it is loaded in the environments of the peers. The work writes to a ledger outside,
a file for each execution, so nothing that a subject remembers or forgets can change what is counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

LONGEST = 90.0  # seconds that the work waits for its gate


def ledger() -> Path:
    return Path(os.environ["CRASH_LEDGER"])


def state_folder() -> Path:
    return Path(os.environ["CRASH_STATE"])


def model_url() -> str:
    return os.environ["CRASH_MODEL"]


def do_work(name: str) -> str:
    """Begins, waits for the gate, and ends. The ledger has both."""
    own = ledger() / f"{name}.{os.getpid()}.{time.monotonic_ns()}"
    own.with_suffix(own.suffix + ".begun").touch()
    until = time.monotonic() + LONGEST
    while not (ledger() / "gate").exists():
        if time.monotonic() > until:
            raise TimeoutError(f"the gate of {name} did not open")
        time.sleep(0.05)
    own.with_suffix(own.suffix + ".done").touch()
    return f"the work of {name} is finished"


async def alpha() -> str:
    """Does the work alpha, which takes long."""
    return await _work("alpha")


async def beta() -> str:
    """Does the work beta, which takes long."""
    return await _work("beta")


async def _work(name: str) -> str:
    own = ledger() / f"{name}.{os.getpid()}.{time.monotonic_ns()}"
    own.with_suffix(own.suffix + ".begun").touch()
    until = time.monotonic() + LONGEST
    while not (ledger() / "gate").exists():
        if time.monotonic() > until:
            raise TimeoutError(f"the gate of {name} did not open")
        await asyncio.sleep(0.05)
    own.with_suffix(own.suffix + ".done").touch()
    return f"the work of {name} is finished"


async def converse(
    say: Callable[[str], Awaitable[Any]], state: Callable[[], Awaitable[dict[str, str]]], *beside: Any
) -> None:
    """Answers one JSON object a line: {"say": "…"} or {"state": true}. `beside` runs meanwhile: it wakes."""
    others = [asyncio.ensure_future(one) for one in beside]
    _put({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        try:
            answer: Any = (
                {"said": str(await say(asked["say"]))} if "say" in asked else {"state": await state()}
            )
        except Exception as problem:
            answer = {"error": f"{type(problem).__name__}: {problem}"[:2_000]}
        _put(answer)
    for one in others:
        one.cancel()


def _put(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    print(do_work(sys.argv[1]))
