"""What the next owner of commands is judged by: started once, the same process, its exit code, every line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from meantime import Meantime

from . import strace
from .judge import Fact, Told, Verdict, judge, read_facts
from .owner import THREADS, Expected

UNBORN = "unborn"  # among those that may be lost: whoever had not begun


def command(mode: str, folder: Path, seed: int = 0, plant: str = "") -> list[str]:
    plants = [plant] if plant else []
    return [sys.executable, "-m", "tests.faults.owner", mode, str(folder), str(seed), *plants]


def recover(folder: Path, may_be_lost: set[str] | None = None, plant: str = "") -> Verdict:
    """`may_be_lost`: commands whose shims we killed ourselves; None is any of them."""
    done = subprocess.run(
        command("reopen", folder, plant=plant),
        cwd=strace.ROOT,
        capture_output=True,
        text=True,
        timeout=strace.OVER,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-3_000:]
        return Verdict(lost=(f"it could not be opened again (exit {done.returncode}):\n{said}",))
    facts = read_facts(folder / "ledger.jsonl") + [Fact("ran", id[0], id) for _, id in starts(folder)]
    told = judge(facts, asyncio.run(transcripts(folder / "ledger.db")))
    seen = {one["id"]: one for one in _lines(folder / "ended.jsonl")}
    pids = {id: pid for pid, id in starts(folder)}
    wrong: list[str] = []
    for fields in _lines(folder / "expect.jsonl"):
        expected = Expected(*fields)
        if expected.id in seen:
            unborn = expected.id not in pids and UNBORN in (may_be_lost or ())
            fair = may_be_lost is None or expected.id in may_be_lost or unborn
            wrong += _wrong(expected, seen[expected.id], pids, fair)
    return Verdict((*told.lost, *wrong), told.doubled, told.misordered)


def _wrong(
    expected: Expected, seen: dict[str, Any], pids: dict[str, int], lost_is_fair: bool
) -> Iterator[str]:
    status, id = seen["status"], expected.id
    where = f"{id} is {status}: {seen['outcome']}"
    if status == "lost" and lost_is_fair:
        return
    if lost_is_fair and "signal=9" in seen["outcome"]:
        return  # it was the one that was killed
    if expected.cancelled and status == "cancelled":
        return
    if status != ("completed" if expected.code == 0 else "failed") or (seen["code"] or 0) != expected.code:
        yield f"{where}, and was to end with exit code {expected.code}"
        return
    if id not in pids:
        yield f"{where}, and never began"
        return
    out = [f"out {n}" for n in range(expected.lines)] + [f"out {pids[id]}"]
    err = [f"err {n}" for n in range(expected.lines)]
    both = seen["both"].splitlines()
    if seen["stdout"].splitlines() != out or seen["stderr"].splitlines() != err:
        yield f"{where}, and its output is not whole: {seen['stdout']!r} {seen['stderr']!r}"
    elif sorted(both) != sorted(out + err) or [line for line in both if line in out] != out:
        yield f"{where}, and both streams in one are {both}"


async def transcripts(ledger: Path) -> dict[str, list[Told]]:
    async with Meantime.open(ledger) as meantime:
        entries = {name: await meantime.thread(name).transcript.entries() for name in THREADS}
        return {name: [Told(*one.message.text.split(" ")) for one in said] for name, said in entries.items()}


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def starts(folder: Path) -> list[tuple[int, str]]:
    """Pid and id of every command that began, as it said itself."""
    path = folder / "starts"
    words = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return [(int(pid), id) for pid, id in words]


def running(folder: Path) -> dict[int, str]:
    """Commands that run now. A pid alone would not do: it may be another's by now."""
    return {pid: id for pid, id in starts(folder) if f" {id} >>".encode() in words(pid)}


def words(pid: int | str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def clear(folder: Path) -> None:
    """Nothing of this folder goes on, whatever became of it."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        if str(folder).encode() in words(entry) and int(entry) != os.getpid():
            with suppress(OSError):
                os.kill(int(entry), signal.SIGKILL)
