"""kill -9 at the system calls of every write over HTTP: what was answered is there after a restart, what
was not is there or not, never half; and what was acknowledged never comes again."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from . import strace
from .adoption import clear
from .judge import Tally, Verdict, judge, read_facts
from .kills import new_folder, sample, side_by_side
from .posting import Poster, problems
from .strace import Point

PROGRAM = "posting"
ALONE = ("-b", "execve")  # the commands go on, and nobody waits for them


def sweep(seed: int, count: int, reproduce: str) -> Tally:
    tally = Tally("kill -9 at system calls of each write", reproduce)
    folder = new_folder()
    try:
        found = strace.points("story", folder, program=PROGRAM, more=ALONE)
        tally.add(recover(folder), "nobody killed it", 0)
    finally:
        clear(folder)
        shutil.rmtree(folder)
    side_by_side(sample(found, count, random.Random(seed)), lambda point: _kill(tally, point))
    return tally


def _kill(tally: Tally, point: Point) -> None:
    folder = new_folder()
    where = f"{tally.family}: {point}, files in {folder}"
    try:
        ended = strace.kill_at(point, "story", folder, *ALONE, program=PROGRAM)
        if not ended.killed and ended.code != 0:
            tally.broke(f"the victim ended with {ended.code}:\n{ended.output}", where)
            return
        verdict = recover(folder)
        tally.add(verdict, where, 1 if ended.killed else 0)
        if verdict.clean:
            shutil.rmtree(folder)
    except Exception as problem:
        tally.broke(f"{type(problem).__name__}: {problem}", where)
    finally:
        clear(folder)


def recover(folder: Path) -> Verdict:
    ended = strace.run("reopen", folder, program=PROGRAM)
    if ended.code != 0:
        return Verdict(lost=(f"it could not be opened again (exit {ended.code}):\n{ended.output}",))
    found = judge(read_facts(folder / "ledger.jsonl"), {"b": Poster(folder).lines()})
    return found._replace(lost=(*found.lost, *problems(folder)))
