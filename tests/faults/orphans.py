"""Family 7: kill -9 of the owner with commands running, of its zygote, and of its shims."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path

from tests.waiting import pause, until

from . import strace
from .adoption import UNBORN, clear, command, recover, running, starts, words
from .judge import Tally
from .trees import ZYGOTE, lives, stat
from .trial import side_by_side, trial

RANDOM = "the moment of the kill is what is random here"


class Orphans(Tally):
    """Also counts the commands that ran when their owner was killed."""

    found = 0

    def __str__(self) -> str:
        return f"{super().__str__()}, {self.found} commands found again"


def at_random(seed: int, chains: int, kills: int, reproduce: str) -> Orphans:
    """`chains` ledgers, each owner killed `kills` times in a row with commands running, then looked at."""
    tally = Orphans("kill -9 of the owner of running commands", reproduce)
    side_by_side(range(chains), lambda number: _chain(tally, seed * 101 + number, kills))
    return tally


def _chain(tally: Orphans, seed: int, kills: int) -> None:
    rng = random.Random(seed)
    bereft: set[str] = set()  # commands whose shims we killed
    found = 0

    def make(folder: Path) -> int:
        nonlocal found
        for life in range(kills):
            found += _live_and_die(folder, seed + life, rng, bereft)
        return kills

    what = f"commands with seed {seed}, {kills} kills"
    if trial(tally, what, make, lambda folder: recover(folder, bereft), clear):
        tally.found += found


def _live_and_die(folder: Path, seed: int, rng: random.Random, bereft: set[str]) -> int:
    """How many commands ran when their owner was killed."""
    before = _asked(folder)
    owner = subprocess.Popen(
        command("load", folder, seed), cwd=strace.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert owner.stdout is not None
    try:
        begun = owner.stdout.readline()
        until(lambda: _asked(folder) >= before + 3 or owner.poll() is not None, "three are asked for")
        for target in rng.choice([("",), ("zygote",), ("shim",), ("zygote", "shim"), ("spare",), ("",)]):
            pause(rng.uniform(0.02, 0.5), RANDOM)
            _strike(target, folder, rng, bereft)
        pause(rng.uniform(0.02, 0.6), RANDOM)
        assert owner.poll() is None, f"the owner ended by itself: {begun!r} {owner.stdout.read()[-3_000:]!r}"
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    return sum(id not in bereft for id in running(folder).values())


def _asked(folder: Path) -> int:
    file = folder / "expect.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def _strike(target: str, folder: Path, rng: random.Random, bereft: set[str]) -> None:
    """kill -9 of a zygote, of the shim above a running command, or of the shim that waits for one."""
    supervisors = {pid: parent_of(pid) for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                   if ZYGOTE in (line := words(pid)) and str(folder).encode() in line}  # fmt: skip
    commands = {parent_of(pid): id for pid, id in running(folder).items()}
    zygotes = [pid for pid in supervisors if pid in supervisors.values()]
    spares = [pid for pid, parent in supervisors.items() if parent in zygotes and pid not in commands]
    chosen = {"zygote": zygotes, "shim": [pid for pid in supervisors if pid in commands], "spare": spares}
    if not target or not chosen[target]:
        return
    pid = rng.choice(sorted(chosen[target]))
    if ZYGOTE not in words(pid):
        return  # what a shim has just forked looks like a shim, until it is the command
    os.kill(pid, signal.SIGSTOP)
    bereft.update(_commands_of(pid, folder) if target != "zygote" else ())
    bereft.add(UNBORN)
    os.kill(pid, signal.SIGKILL)


def _commands_of(shim: int, folder: Path) -> list[str]:
    """Which one loses its shim. That is stopped, so what it has forked has time to begin, and stays at
    least as a zombie: that of one which was killed before it could begin, too."""

    def unbegun() -> list[int]:
        known = dict(starts(folder))
        return [pid for pid in _below(shim) if pid not in known and lives(pid)]

    until(lambda: not unbegun(), "what the shim has forked has begun", unbegun)
    known = dict(starts(folder))
    return [known[pid] for pid in _below(shim) if pid in known]


def _below(shim: int) -> list[int]:
    return list(map(int, Path(f"/proc/{shim}/task/{shim}/children").read_text().split()))


def parent_of(pid: int) -> int:
    fields = stat(pid)
    return int(fields[1]) if fields else 0
