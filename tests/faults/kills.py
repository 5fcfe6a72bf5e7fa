"""Families 2 and 3: kill -9 at swept system calls, and at random moments under load."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

from tests.waiting import pause

from meantime import Meantime

from . import strace
from .judge import Tally, Told, Transcripts, Verdict, judge, read_facts
from .strace import Point
from .trial import new_folder, sample, side_by_side, trial


def recover(folder: Path) -> Verdict:
    """A second process opens what the first left, lets it come out, and the judge compares."""
    ended = strace.run("reopen", folder)
    if ended.code != 0:
        return Verdict(lost=(f"it could not be opened again (exit {ended.code}):\n{ended.output}",))
    return judge(read_facts(folder / "ledger.jsonl"), transcripts(folder))


def transcripts(folder: Path) -> Transcripts:
    lines = {name: _file(folder / f"{name}.jsonl") for name in "bc"}
    return {**lines, "a": asyncio.run(_own(folder))}


def _file(path: Path) -> list[Told]:
    from .victim import File

    return File(path).lines()


async def _own(folder: Path) -> list[Told]:
    from .victim import ledger

    async with Meantime.open(ledger(folder)) as meantime:
        entries = await meantime.thread("a").transcript.entries()
        return [Told(*entry.message.text.split(" ")) for entry in entries]


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
    def make(folder: Path) -> int:
        if template is not None:
            shutil.copytree(template, folder, dirs_exist_ok=True)
        ended = strace.kill_at(point, mode, folder)
        assert ended.killed or ended.code == 0, f"the victim ended with {ended.code}:\n{ended.output}"
        return int(ended.killed)

    trial(tally, f"{mode}, killed at {point}", make, recover)


def at_random(seed: int, chains: int, kills: int, reproduce: str) -> Tally:
    """`chains` ledgers, each killed `kills` times in a row under load, then looked at."""
    tally = Tally("kill -9 at random moments under load", reproduce)
    side_by_side(range(chains), lambda number: _chain(tally, seed * 101 + number, kills))
    return tally


def _chain(tally: Tally, seed: int, kills: int) -> None:
    rng = random.Random(seed)

    def make(folder: Path) -> int:
        for life in range(kills):
            _live_and_die(folder, seed + life, rng.uniform(0.02, 1.2))
        return kills

    trial(tally, f"load with seed {seed}, {kills} kills", make, recover)


def _live_and_die(folder: Path, seed: int, seconds: float) -> None:
    command = strace.command("load", folder, seed)
    victim = subprocess.Popen(
        command, cwd=strace.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert victim.stdout is not None
    try:
        begun = victim.stdout.readline()
        pause(seconds, "the moment of the kill is what is random here")
        said = "" if victim.poll() is None else f"{begun!r} {victim.stdout.read()[-3_000:]!r}"
        assert not said, f"the victim ended by itself:\n{said}"
    finally:
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        victim.stdout.close()
