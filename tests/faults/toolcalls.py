"""Family 9: kill -9 of the owner of running MCP calls, and of the servers that perform them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.waiting import pause, until

from . import strace
from .adoption import clear, transcripts
from .judge import Fact, Tally, Verdict, judge, read_facts
from .toolowner import CALLS
from .trees import stat
from .trial import side_by_side, trial

RANDOM = "the moment of the kill is what is random here"


class Calls(Tally):
    """Also counts the servers' tasks that were followed over a kill."""

    found = 0

    def __str__(self) -> str:
        return f"{super().__str__()}, {self.found} of the servers' tasks found again"


def command(mode: str, folder: Path, seed: int = 0) -> list[str]:
    return [sys.executable, "-m", "tests.faults.toolowner", mode, str(folder), str(seed)]


def at_random(seed: int, chains: int, kills: int, reproduce: str) -> Calls:
    """`chains` ledgers, each owner killed `kills` times in a row with calls running, then looked at."""
    tally = Calls("kill -9 of owners and servers of MCP calls", reproduce)
    side_by_side(range(chains), lambda number: _chain(tally, seed * 101 + number, kills, number % 2 == 0))
    return tally


def _chain(tally: Calls, seed: int, kills: int, modern: bool) -> None:
    rng = random.Random(seed)
    found = 0

    def make(folder: Path) -> int:
        (folder / "peer").mkdir()
        if modern:
            (folder / "modern").touch()
        return sum(_live_and_die(folder, seed + life, rng) for life in range(kills))

    def look(folder: Path) -> Verdict:
        nonlocal found
        before = set(ran(folder))
        verdict = recover(folder)
        found = _found_again(folder, before) if verdict.clean else 0
        return verdict

    trial(tally, f"MCP calls with seed {seed}, {kills} kills", make, look, clear)
    tally.found += found


def _live_and_die(folder: Path, seed: int, rng: random.Random) -> int:
    """How many were killed: the owner, and perhaps its server before."""
    owner = subprocess.Popen(
        command("load", folder, seed), cwd=strace.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert owner.stdout is not None
    killed = 1
    before, asked = len(ran(folder)), _accepted(folder)
    try:
        begun = owner.stdout.readline()

        def asks_no_more() -> bool:
            return owner.poll() is not None or _accepted(folder) >= asked + CALLS

        until(lambda: len(ran(folder)) >= before + 3 or asks_no_more(), "three calls have run")
        pause(rng.uniform(0.0, 0.4), RANDOM)
        until(lambda: _alive(folder) or asks_no_more(), "there is a server")
        killed += _kill_server(folder)
        pause(rng.uniform(0.0, 0.6), RANDOM)
        assert owner.poll() is None, f"the owner ended by itself: {begun!r} {owner.stdout.read()[-3_000:]!r}"
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    return killed


def _accepted(folder: Path) -> int:
    return sum(fact.what == "accepted" for fact in read_facts(folder / "ledger.jsonl"))


def _kill_server(folder: Path) -> bool:
    """The youngest, if there is one: a crash may have taken the last."""
    with suppress(OSError, IndexError):
        os.kill(_alive(folder)[-1], signal.SIGKILL)
        return True
    return False


def recover(folder: Path) -> Verdict:
    done = subprocess.run(
        command("reopen", folder), cwd=strace.ROOT, capture_output=True, text=True, timeout=strace.OVER
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-3_000:]
        return Verdict(lost=(f"it could not be opened again (exit {done.returncode}):\n{said}",))
    executed = ran(folder)
    facts = read_facts(folder / "ledger.jsonl") + [Fact("ran", mark[0], mark) for mark in executed]
    told = judge(facts, asyncio.run(transcripts(folder / "ledger.db")))
    wrong = [problem for seen in _ended(folder) for problem in wrong_ending(seen, set(executed))]
    return Verdict((*told.lost, *wrong, *_orphans(folder)), told.doubled, told.misordered)


def wrong_ending(seen: dict[str, Any], executed: set[str]) -> Iterator[str]:
    """Every ending must be one that this call can have, with its own answer and nobody else's."""
    id, kind, status = seen["id"], seen["kind"], seen["status"]
    where = f"{id} ({kind}) is {status}: {seen['outcome']}"
    answers = {"echo": id, "gate": f"through {id}", "twice": "first", "strangers": "yours"}
    answers |= {"garbage": "after the noise", "task": f"done {id}", "task_of_2025": f"done {id}"}
    if status == "completed" and seen["result"] != answers.get(kind):
        yield f"{where}, and was to answer {answers.get(kind)!r}"
    elif status == "completed" and id not in executed:
        yield f"{where}, and never ran"
    elif status == "failed" and id in executed:
        yield f"{where}, and did run: whether it did its work is not known"
    elif status == "lost" and seen["session"]:
        yield f"{where}, and the server still has it as {seen['session']}"
    elif status == "cancelled" and kind != "hang":
        yield f"{where}, and nobody cancelled it"
    elif status not in ("completed", "failed", "lost", "cancelled"):
        yield where


def _orphans(folder: Path) -> list[str]:
    """Servers that outlived their owners, which a guard ends: this one stays when its stdin is closed."""
    try:
        until(lambda: not _alive(folder), "every server has ended")
    except AssertionError:
        return [f"the server {pid} outlived its owner" for pid in _alive(folder)]
    return []


def _found_again(folder: Path, before: set[str]) -> int:
    """Tasks of the servers that were begun in a life that was killed, and completed in the last one."""
    tasks = [seen for seen in _ended(folder) if seen["kind"].startswith("task") and seen["id"] in before]
    return sum(seen["status"] == "completed" for seen in tasks)


def _ended(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "ended.jsonl").read_text().splitlines()]


def ran(folder: Path) -> list[str]:
    """The marks of all executions, as the server wrote them down."""
    file = folder / "peer" / "calls"
    return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []


def _pids(folder: Path) -> list[int]:
    file = folder / "peer" / "pids"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def _alive(folder: Path) -> list[int]:
    return [pid for pid in _pids(folder) if _lives(pid, folder)]


def _lives(pid: int, folder: Path) -> bool:
    """A pid alone would not do: it may be another's by now."""
    fields = stat(pid)
    if not fields or fields[0] in ("Z", "X"):
        return False
    with suppress(OSError):
        return str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
