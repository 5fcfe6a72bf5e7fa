"""kill -9 at the system calls of an agent's start, question, answer, ending, follow-up and resume: nothing
that was accepted is lost, no prompt is given twice, and an answer is heard at most once."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

from . import strace
from .judge import Tally, Verdict, judge, read_facts
from .kills import new_folder, sample, side_by_side
from .strace import Point
from .victim import File

PROGRAM = "agentwork"
SYSCALLS = (*strace.SYSCALLS, "rename")


def sweep(seed: int, count: int, reproduce: str) -> Tally:
    tally = Tally("kill -9 at system calls of agents", reproduce)
    folder = new_folder()
    try:
        found = strace.points("story", folder, SYSCALLS, program=PROGRAM)
        tally.add(recover(folder), "nobody killed it", 0)
    finally:
        shutil.rmtree(folder)
    side_by_side(sample(found, count, random.Random(seed)), lambda point: _kill(tally, point))
    return tally


def _kill(tally: Tally, point: Point) -> None:
    folder = new_folder()
    where = f"{tally.family}: {point}, files in {folder}"
    try:
        ended = strace.kill_at(point, "story", folder, program=PROGRAM)
        if not ended.killed and ended.code != 0:
            tally.broke(f"the victim ended with {ended.code}:\n{ended.output}", where)
            return
        verdict = recover(folder)
        tally.add(verdict, where, 1 if ended.killed else 0)
        if verdict.clean:
            shutil.rmtree(folder)
    except Exception as problem:
        tally.broke(f"{type(problem).__name__}: {problem}", where)


def recover(folder: Path) -> Verdict:
    ended = strace.run("reopen", folder, program=PROGRAM)
    if ended.code != 0:
        return Verdict(lost=(f"it could not be opened again (exit {ended.code}):\n{ended.output}",))
    facts = read_facts(folder / "ledger.jsonl")
    verdict = judge(facts, {"b": File(folder / "b.jsonl").lines()})
    heard = Counter(fact.id for fact in facts if fact.what == "heard")
    twice = tuple(f"{id} was heard {times} times" for id, times in heard.items() if times > 1)
    return verdict._replace(doubled=(*verdict.doubled, *twice))
