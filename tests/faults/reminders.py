"""Family remind: kill -9 of an owner at swept system calls of create, ring and cancel, at random moments, and
with a wall clock that jumps by a year in between."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path

from . import jumps, reminded, strace
from .judge import Tally, Verdict
from .strace import ROOT, Point
from .trial import new_folder, sample, side_by_side, trial

PROGRAM = "reminded"
FAR = "+2000d"  # after every jump: whatever has a time is due by then


def run(seed: int, points: int, chains: int, kills: int, reproduce: str, plant: str = "") -> Tally:
    """`points` system calls of a story; `chains` ledgers that are killed `kills` times in a row. Every second
    one has a wall clock that jumps between two lives."""
    tally = Tally("kill -9 while reminders are set, come and are cancelled", reproduce)
    rng = random.Random(seed)
    if points:
        first = new_folder()
        found = strace.points("story", first, program=PROGRAM)
        side_by_side(sample(found, points, rng), lambda point: _swept(tally, point))
    jobs = [(rng.randrange(1 << 30), bool(n % 2) and not jumps.missing()) for n in range(chains)]
    side_by_side(jobs, lambda job: _chain(tally, *job, kills, plant))
    return tally


def _swept(tally: Tally, point: Point) -> None:
    def make(folder: Path) -> int:
        ended = strace.kill_at(point, "story", folder, program=PROGRAM)
        assert ended.killed or ended.code == 0, f"the victim ended with {ended.code}:\n{ended.output}"
        return int(ended.killed)

    trial(tally, f"story, killed at {point}", make, lambda folder: judge(folder, "+0"))


def _chain(tally: Tally, seed: int, jumping: bool, kills: int, plant: str) -> None:
    rng = random.Random(seed)

    def make(folder: Path) -> int:
        for life in range(kills):
            at = rng.choice(("-365d", "-1d", "+0", "+1d", "+365d")) if jumping else "+0"
            ended = _live("load", folder, seed + life, at, plant)
            assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2_000:]
        return kills

    trial(
        tally,
        f"load with seed {seed}{', the clock jumps' if jumping else ''}",
        make,
        lambda folder: judge(folder, FAR if jumping else "+0"),
    )


def _live(mode: str, folder: Path, seed: int, at: str, plant: str = "") -> subprocess.CompletedProcess[bytes]:
    environ = dict(os.environ) | ({reminded.PLANT: plant} if plant else {})
    if at != "+0":
        environ |= {"LD_PRELOAD": jumps.library(), "FAKETIME": at, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    command = strace.command(mode, folder, seed, PROGRAM)
    return subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, timeout=strace.OVER, check=False
    )


def judge(folder: Path, at: str) -> Verdict:
    """A last owner lets everything come; then the conversation is compared with what was answered."""
    ended = _live("recover", folder, 0, at)
    if ended.returncode != 0:
        text = ended.stderr.decode()[-2_000:]
        return Verdict(lost=(f"it could not be opened again (exit {ended.returncode}):\n{text}",))
    facts: dict[str, set[str]] = {what: set() for what in ("attempt", "accepted", "cancel", "cancelled")}
    path = folder / reminded.FACTS
    for line in path.read_text().splitlines() if path.exists() else ():
        what, _, text = line.partition(" ")
        facts[what].add(text)
    told = Counter(line.split(" ")[1] for line in (folder / "told").read_text().splitlines())
    due = facts["accepted"] - facts["cancel"]
    lost = [f"{text} was accepted and never came" for text in sorted(due) if not told[text]]
    doubled = [f"{text} came {count} times" for text, count in told.items() if count > 1]
    doubled += [f"{text} was cancelled and came" for text in sorted(facts["cancelled"]) if told[text]]
    doubled += [f"{text} came from nowhere" for text in told if text not in facts["attempt"]]
    return Verdict(lost=tuple(lost), doubled=tuple(doubled))
