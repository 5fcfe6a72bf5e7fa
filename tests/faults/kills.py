"""Families 2 and 3: kill -9 at swept system calls, and at random moments under load."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from meantime import Meantime

from . import strace
from .judge import Tally, Told, Transcripts, Verdict, judge, read_facts
from .strace import Point

T = TypeVar("T")
WORKERS = 3  # on two cores: some of the time is spent waiting for the disk


def recover(folder: Path) -> Verdict:
    """A second process opens what the first left, lets it come out, and the judge compares."""
    ended = strace.run("reopen", folder)
    if ended.code != 0:
        return Verdict(lost=(f"it could not be opened again (exit {ended.code}):\n{ended.output}",))
    return judge(read_facts(folder / "ledger.jsonl"), transcripts(folder))


def transcripts(folder: Path) -> Transcripts:
    lines = {name: _file(folder / f"{name}.jsonl") for name in "bc"}
    return {**lines, "a": asyncio.run(_own(folder / "ledger.db"))}


def _file(path: Path) -> list[Told]:
    from .victim import File

    return File(path).lines()


async def _own(ledger: Path) -> list[Told]:
    async with Meantime.open(ledger) as meantime:
        entries = await meantime.thread("a").transcript.entries()
        return [Told(*entry.message.text.split(" ")) for entry in entries]


def side_by_side(jobs: Iterable[T], do: Callable[[T], None]) -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(do, jobs):
            pass


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="meantime-faults-"))


def sample(points: list[Point], count: int, rng: random.Random) -> list[Point]:
    """An equal share for every kind of call, then the rest from all; spread over the whole story."""
    kinds: dict[str, list[Point]] = {}
    for point in points:
        kinds.setdefault(point.syscall, []).append(point)
    share = max(1, count // (2 * len(kinds)))
    chosen = [point for of_kind in kinds.values() for point in rng.sample(of_kind, min(share, len(of_kind)))]
    left = [point for point in points if point not in chosen]
    return (chosen + rng.sample(left, min(len(left), max(0, count - len(chosen)))))[:count]


def sweep(seed: int, story: int, reopen: int, reproduce: str) -> Tally:
    """kill -9 before a system call of start, finish, announce, ack; and of a restart after such a kill."""
    tally = Tally("kill -9 at swept system calls", reproduce)
    rng = random.Random(seed)
    first, left = new_folder(), new_folder()
    found = strace.points("story", first)
    middle = [point for point in found if point.syscall == "fdatasync"]
    strace.kill_at(middle[len(middle) * 2 // 3], "story", left)  # a life cut off with much still open
    restart = new_folder()
    shutil.copytree(left, restart, dirs_exist_ok=True)
    jobs = [(point, "story", None) for point in sample(found, story, rng)]
    jobs += [(point, "reopen", left) for point in sample(strace.points("reopen", restart), reopen, rng)]
    side_by_side(jobs, lambda job: _kill(tally, *job))
    for folder in (first, left, restart):
        shutil.rmtree(folder)
    return tally


def _kill(tally: Tally, point: Point, mode: str, template: Path | None) -> None:
    folder = new_folder()
    if template is not None:
        shutil.copytree(template, folder, dirs_exist_ok=True)
    where = f"{mode}, killed at {point}"
    try:
        ended = strace.kill_at(point, mode, folder)
        if not ended.killed and ended.code != 0:
            tally.broke(f"the victim ended with {ended.code}:\n{ended.output}", where)
            return
        verdict = recover(folder)
        tally.add(verdict, where, 1 if ended.killed else 0)
        if verdict.clean:
            shutil.rmtree(folder)
    except Exception as problem:
        tally.broke(f"{type(problem).__name__}: {problem} (files in {folder})", where)


def at_random(seed: int, chains: int, kills: int, reproduce: str) -> Tally:
    """`chains` ledgers, each killed `kills` times in a row under load, then looked at."""
    tally = Tally("kill -9 at random moments under load", reproduce)
    side_by_side(range(chains), lambda number: _chain(tally, seed * 101 + number, kills))
    return tally


def _chain(tally: Tally, seed: int, kills: int) -> None:
    rng = random.Random(seed)
    folder = new_folder()
    where = f"load with seed {seed}, {kills} kills, files in {folder}"
    try:
        for life in range(kills):
            problem = _live_and_die(folder, seed + life, rng.uniform(0.02, 1.2))
            if problem:
                tally.broke(problem, where)
                return
        verdict = recover(folder)
        tally.add(verdict, where, kills)
        if verdict.clean:
            shutil.rmtree(folder)
    except Exception as problem:
        tally.broke(f"{type(problem).__name__}: {problem}", where)


def _live_and_die(folder: Path, seed: int, seconds: float) -> str:
    command = strace.command("load", folder, seed)
    victim = subprocess.Popen(
        command, cwd=strace.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert victim.stdout is not None
    try:
        begun = victim.stdout.readline()
        time.sleep(seconds)  # the moment of the kill is what is random here
        if victim.poll() is not None:
            return f"the victim ended by itself:\n{begun!r} {victim.stdout.read()[-3_000:]!r}"
    finally:
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        victim.stdout.close()
    return ""
