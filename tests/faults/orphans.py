"""Family 7: kill -9 of the owner with commands running, of its zygote, and of its shims."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

from . import strace
from .adoption import clear, command, recover, starts
from .judge import Tally
from .kills import new_folder, side_by_side
from .trees import ZYGOTE, lives, stat


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


def _chain(tally: Orphans, seed: int, kills: int, plant: str = "") -> None:
    rng = random.Random(seed)
    folder = new_folder()
    where = f"commands with seed {seed}, {kills} kills, files in {folder}"
    bereft: set[str] = set()
    try:
        for life in range(kills):
            tally.found += _live_and_die(folder, seed + life, rng, bereft)
        verdict = recover(folder, bereft, plant)
        tally.add(verdict, where, kills)
        if verdict.clean:
            shutil.rmtree(folder)
    except Exception as problem:
        tally.broke(f"{type(problem).__name__}: {problem}", where)
    finally:
        clear(folder)


def _live_and_die(folder: Path, seed: int, rng: random.Random, bereft: set[str]) -> int:
    """How many commands ran when their owner was killed."""
    before = len(starts(folder))
    owner = subprocess.Popen(
        command("load", folder, seed), cwd=strace.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert owner.stdout is not None
    try:
        begun = owner.stdout.readline()
        end = time.monotonic() + 10
        while len(starts(folder)) < before + 2 and time.monotonic() < end and owner.poll() is None:
            time.sleep(0.01)
        for target in rng.choice([("",), ("zygote",), ("shim",), ("zygote", "shim"), ("spare",), ("",)]):
            time.sleep(rng.uniform(0.02, 0.5))  # the moment of the kill is what is random here
            _strike(target, folder, rng, bereft)
        time.sleep(rng.uniform(0.02, 0.6))
        assert owner.poll() is None, f"the owner ended by itself: {begun!r} {owner.stdout.read()[-3_000:]!r}"
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    return sum(lives(pid) for pid, id in starts(folder) if id not in bereft)


def _strike(target: str, folder: Path, rng: random.Random, bereft: set[str]) -> None:
    """kill -9 of a zygote, of the shim above a running command, or of the shim that waits for one."""
    supervisors = {pid: int(fields[1]) for pid in _supervisors(folder) if (fields := stat(pid))}
    commands = {int(fields[1]): id for pid, id in starts(folder) if (fields := stat(pid)) and lives(pid)}
    zygotes = [pid for pid in supervisors if pid in supervisors.values()]
    spares = [pid for pid, parent in supervisors.items() if parent in zygotes and pid not in commands]
    chosen = {"zygote": zygotes, "shim": [pid for pid in supervisors if pid in commands], "spare": spares}
    if target and chosen[target]:
        pid = rng.choice(sorted(chosen[target]))
        bereft.update(id for shim, id in commands.items() if shim == pid)
        if target == "spare":  # it may have taken an order since we looked
            os.kill(pid, signal.SIGSTOP)
            bereft.update(id for one, id in starts(folder) if (fields := stat(one)) and int(fields[1]) == pid)
        os.kill(pid, signal.SIGKILL)


def _supervisors(folder: Path) -> list[int]:
    found: list[int] = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if ZYGOTE in words and str(folder).encode() in words:
            found.append(int(entry))
    return found
