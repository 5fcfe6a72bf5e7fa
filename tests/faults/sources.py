"""Family sources: kill -9 at swept system calls of every write of a notice that is not an ending: cursors of
watches with their notices, events of work that runs, reminders, delayed starts; and of the owner after it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import sourced, strace
from .judge import Fact, Tally, Verdict, read_facts
from .strace import Point
from .trial import new_folder, sample, side_by_side, trial

PROGRAM = "sourced"
WRITES = ("fdatasync", "pwrite64")  # where a transaction ends: a planted bug shows between two
TRIES = 40  # kills until a planted bug must have shown
LIVES = 10  # lives until one must have shown that needs no kill


def sweep(seed: int, story: int, recover: int, reproduce: str) -> Tally:
    """`story` system calls of a life, and `recover` of the one after a life that was cut off."""
    tally = Tally("kill -9 in each write of other notices", reproduce)
    rng = random.Random(seed)
    first, left = new_folder(), new_folder()
    found = strace.points("story", first, program=PROGRAM)
    writes = [point for point in found if point.syscall == "fdatasync"]
    cut_off = writes[len(writes) // 2]  # with much still open
    strace.kill_at(cut_off, "story", left, program=PROGRAM)
    jobs = [[point] for point in sample(found, story, rng)]
    after = strace.points("recover", left, program=PROGRAM)
    jobs += [[cut_off, point] for point in sample(after, recover, rng)]
    side_by_side(jobs, lambda points: _kill(tally, *points))
    for folder in (first, left):
        shutil.rmtree(folder)
    return tally


def is_caught(plant: str) -> bool:
    """Whether a kill at one of the writes shows the planted bug."""
    with _planted(plant):
        first = new_folder()
        every = strace.points("story", first, ("write", *WRITES), PROGRAM)  # it begins with a write
        shutil.rmtree(first)
        found = [point for point in every if point.syscall in WRITES]
        assert found, "nothing was written"
        return any(_shown(point) for point in found[:: max(1, len(found) // TRIES)])


def shows(plant: str) -> bool:
    """Whether a life that ends by itself shows the planted bug."""
    with _planted(plant):
        return any(_shown() for _ in range(LIVES))


def _shown(*points: Point) -> bool:
    """Only what was told counts: a victim that is too slow, as on a busy machine, shows nothing."""
    folder = new_folder()
    try:
        _live(folder, *points)
        strace.run("recover", folder, program=PROGRAM)
        return (folder / sourced.TOLD).exists() and not _compared(folder).clean
    except (subprocess.TimeoutExpired, AssertionError):
        return False
    finally:
        shutil.rmtree(folder)


def _live(folder: Path, *points: Point) -> int:
    """A life that is killed at the first point, and the one after it at the second, if there are any."""
    if not points:
        strace.run("story", folder, program=PROGRAM)
    kills = 0
    for mode, point in zip(("story", "recover"), points, strict=False):
        ended = strace.kill_at(point, mode, folder, program=PROGRAM)
        assert ended.killed or ended.code == 0, f"the victim ended with {ended.code}:\n{ended.output}"
        kills += ended.killed
    return kills


@contextmanager
def _planted(plant: str) -> Iterator[None]:
    os.environ[sourced.PLANT] = plant
    try:
        yield
    finally:
        del os.environ[sourced.PLANT]


def _kill(tally: Tally, *points: Point) -> None:
    what = f"killed at {' and '.join(map(str, points))}"
    trial(tally, what, lambda folder: _live(folder, *points), judge)


def judge(folder: Path) -> Verdict:
    """A last owner lets everything come; then the conversation is compared with what was answered."""
    ended = strace.run("recover", folder, program=PROGRAM)
    if ended.code != 0:
        return Verdict(lost=(f"it could not be opened again (exit {ended.code}):\n{ended.output}",))
    return _compared(folder)


def _compared(folder: Path) -> Verdict:
    facts = read_facts(folder / "ledger.jsonl")
    lines = (folder / sourced.TOLD).read_text().splitlines()
    told = [(of, id, text) for of, id, text in (line.split("\t") for line in lines)]
    found = Verdict()
    for verdict in (
        _ids(told),
        _events("watch", told, *_printed(folder, facts)),
        _events("teller", told, _said(facts, "attempt", "e"), _said(facts, "accepted", "e")),
        _reminders(facts, told),
        _starts(facts, told),
    ):
        found = Verdict(
            lost=(*found.lost, *verdict.lost),
            doubled=(*found.doubled, *verdict.doubled),
            misordered=(*found.misordered, *verdict.misordered),
        )
    return found


def _said(facts: list[Fact], what: str, kind: str) -> list[str]:
    return [fact.id for fact in facts if fact.what == what and fact.id[0] == kind and fact.id[1:].isdecimal()]


def _printed(folder: Path, facts: list[Fact]) -> tuple[list[str], list[str]]:
    """Lines that may be told, and those that must be: all of them, once there is a watch."""
    lines = [line for line in (folder / sourced.LINES).read_text().splitlines() if line.startswith("ERROR")]
    has_watch = any(fact.what == "accepted" and fact.id == "watch" for fact in facts)
    return lines, lines if has_watch else []


def _ids(told: list[tuple[str, str, str]]) -> Verdict:
    counts = Counter(id for _, id, _ in told)
    return Verdict(doubled=tuple(f"{id} is there {count} times" for id, count in counts.items() if count > 1))


def _events(of: str, told: list[tuple[str, str, str]], may: list[str], must: list[str]) -> Verdict:
    """Each notice covers what came between its first and its last event, and says how many these are."""
    places = {event: place for place, event in enumerate(may)}
    lost: list[str] = []
    doubled: list[str] = []
    misordered: list[str] = []
    behind = -1  # the last one that was told
    for who, id, text in told:
        if who != of or text == "ending":
            continue
        count, first, last = text.split("|")
        begin, end = places[first], places[last]
        if begin > behind + 1 or int(count) < end - begin + 1:
            lost.append(f"{id}: {text} follows {behind}")
        if begin <= behind or int(count) > end - begin + 1:
            doubled.append(f"{id}: {text} follows {behind}")
        if end < behind:
            misordered.append(f"{id}: {text} follows {behind}")
        behind = max(behind, end)
    if behind + 1 < len(must):
        lost.append(f"{of}: {must[behind + 1 :]} were never told")
    return Verdict(lost=tuple(lost), doubled=tuple(doubled), misordered=tuple(misordered))


def _reminders(facts: list[Fact], told: list[tuple[str, str, str]]) -> Verdict:
    come = Counter(text.rpartition("|")[2] for of, _, text in told if of.startswith("s_"))
    due = set(_said(facts, "accepted", "r")) - set(_said(facts, "cancel", "r"))
    cancelled = {*_said(facts, "cancelled", "r"), *_said(facts, "cancelled", "x")}
    return Verdict(
        lost=tuple(f"{text} was accepted and never came" for text in sorted(due) if not come[text]),
        doubled=(
            *(f"{text} came {count} times" for text, count in come.items() if count > 1),
            *(f"{text} was cancelled and came" for text in sorted(cancelled) if come[text]),
        ),
    )


def _starts(facts: list[Fact], told: list[tuple[str, str, str]]) -> Verdict:
    ran = Counter(fact.id for fact in facts if fact.what == "ran")
    ended = Counter(of for of, _, text in told if text == "ending")
    due = _said(facts, "accepted", "d")
    said = [(fact.what, fact.id) for fact in facts]
    late = [
        id for id in _said(facts, "cancelled", "g") if ("ran", id) in said[said.index(("cancelled", id)) :]
    ]
    return Verdict(
        lost=tuple(f"{id} was accepted, and its ending never told" for id in due if not ended[id]),
        doubled=(
            *(f"{id} ran {count} times" for id, count in ran.items() if count > 1),
            *(f"{id} ended {count} times" for id, count in ended.items() if count > 1),
            *(f"{id} was cancelled and ran" for id in late),
        ),
    )
