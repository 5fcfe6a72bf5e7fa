"""Damage to every file of a ledger that was closed, was killed, or is open.

Each case must be harmless (everything in the outside record is there, unchanged), or detected. What is lost,
altered or told twice without a word is a failure. Where the ledger is refused it is salvaged: everything that
comes back must be true, and the account must name what does not, or say that it cannot.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import random
import shutil
import signal
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT

from meantime import LedgerError, Meantime, MeantimeError
from meantime.stores.sqlite.salvage_report import FILE
from meantime.surfaces.http.tokens import kept_secret

from .damage_kinds import KINDS, PLACES, Damage, nothing, target_of
from .damage_world import THREADS, Endless, Owner, Record, Seen, World, seen, shaped
from .judge import Tally, Verdict
from .trial import new_folder

STATES = ("closed", "killed", "open")
LEAST_TOKEN = 32
SOON = 5.0  # seconds for an ending: one that cannot be recorded is tried again and again
_fresh = multiprocessing.get_context("forkserver")
_fresh.set_forkserver_preload([__name__])  # otherwise each owner would load everything again


class Case(NamedTuple):
    state: str
    place: str
    kind: Damage
    seed: int

    def __str__(self) -> str:
        return f"{self.kind.__name__} in {self.place} of a ledger that is {self.state}, seed {self.seed}"


class Outcome(NamedTuple):
    """`word`: how it went, for the table. A problem is a failure."""

    word: str
    problems: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


class DamageTally(Tally):
    def __init__(self, reproduce: str) -> None:
        super().__init__("damage to the files of a ledger", reproduce)
        self.cells: Counter[tuple[str, str, str]] = Counter()

    def note(self, case: Case, outcome: Outcome) -> None:
        self.cells[case.place, case.kind.__name__, outcome.word] += 1
        self.add(Verdict(lost=outcome.problems), f"{case}; said: {outcome.said[:5]}")

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.table()}"

    def table(self) -> str:
        """Cases by place and kind: harmless / detected / salvaged."""
        kinds = [kind.__name__ for kind in KINDS]
        rows = [f"  {'harmless/detected/refused':<26}" + "".join(f"{kind:>16}" for kind in kinds)]
        for place in PLACES:
            cells = ["/".join(str(self.cells[place, kind, word]) for word in WORDS) for kind in kinds]
            rows.append(f"  {place:<26}" + "".join(f"{cell:>16}" for cell in cells))
        totals = ", ".join(f"{sum(self.cells[key] for key in self.cells if key[2] == w)} {w}" for w in WORDS)
        return "\n".join([*rows, f"  {totals}"])


WORDS = ("harmless", "detected", "refused")


def run(seed: int, count: int, reproduce: str) -> Tally:
    tally = DamageTally(reproduce)
    folder = new_folder()
    try:
        worlds = {state: _world(folder, state) for state in ("closed", "killed")}
        sound = [Case(state, "lock", nothing, 0) for state in worlds]
        for case in (*sound, *cases(seed, count, worlds)):
            tally.note(case, play(case, worlds["killed" if case.state == "killed" else "closed"]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def _world(folder: Path, state: str) -> World:
    (folder / state).mkdir(mode=0o700)
    return World(folder / state, state)


def cases(seed: int, count: int, worlds: dict[str, World]) -> list[Case]:
    rng = random.Random(seed)
    every = [
        (state, place, kind)
        for place, (weight, pattern) in PLACES.items()
        for kind in KINDS
        for state in STATES
        for _ in range(weight if state != "open" else (weight + 2) // 3)  # those take longest
        if state == "open" or any(worlds[state].folder.glob(pattern))
    ]
    chosen: list[Case] = []
    while len(chosen) < count:
        rng.shuffle(every)
        chosen += [Case(*one, rng.randrange(1 << 30)) for one in every[: count - len(chosen)]]
    return chosen


def play(case: Case, world: World) -> Outcome:
    world.put_back()
    try:
        if case.state == "open":
            return _open_case(case, world)
        rng = random.Random(case.seed)
        target = target_of(world, case.place, case.kind, rng)
        assert target is not None
        case.kind(target, rng)
        outcome = judged(world.ledger, world.record, case)
        if case.kind is nothing and outcome.word != "harmless":
            return outcome._replace(problems=(*outcome.problems, f"nothing was damaged: {outcome.said}"))
        if world.runs.exists() and world.runs.read_text() != "ran\n":
            return outcome._replace(problems=(*outcome.problems, "a command was run twice"))
        return outcome
    except Exception as problem:  # an error that is not one of ours is a failure
        where = traceback.format_exc(limit=-3)
        return Outcome("detected", (f"{type(problem).__name__}: {problem}\n{where}",))


# -- judging


def judged(ledger: Path, record: Record, case: Case, said: tuple[str, ...] = ()) -> Outcome:
    if case.place == "token" and (problem := _token_problem(Path(f"{ledger}.http"))):
        return Outcome("detected", (problem,))
    try:
        found = asyncio.run(asyncio.wait_for(seen(ledger), 2 * LIMIT))
    except LedgerError as refused:
        return _salvaged(ledger, record, str(refused), said)
    found.said.extend(said)
    found.said.extend(
        id for id, shape in found.tasks.items() if any(word in str(shape[3]) for word in NOT_KEPT)
    )
    wrong = list(untrue(record, found))
    missing = list(lacking(record, found)) + list(told_again(record, found))
    if missing and not found.said:
        wrong += [f"without a word: {problem}" for problem in missing[:5]]
    wrong += [f"although nothing was refused: {problem}" for problem in told_again(record, found)]
    word = "detected" if found.said else "harmless"
    return Outcome(word, tuple(wrong), tuple(found.said))


def _salvaged(ledger: Path, record: Record, refusal: str, said: tuple[str, ...]) -> Outcome:
    found = asyncio.run(asyncio.wait_for(seen(ledger, salvage=True), 2 * LIMIT))
    wrong = [f"after a salvage: {problem}" for problem in untrue(record, found, salvaged=True)]
    wrong += [f"after a salvage: {problem}" for problem in _untold(record, found)]
    if "is an older copy" not in refusal and "is gone" not in refusal:  # what those lack, nobody can know
        account = "\n".join(path.read_text() for path in ledger.parent.glob(f"*.salvaged-*/{FILE}"))
        for id in sorted(set(record.tasks) - set(found.tasks)):
            if id not in account and "cannot be named" not in account:
                wrong.append(f"after a salvage: {id} is missing, and not listed in {account!r}")
    return Outcome("refused", tuple(wrong[:8]), (refusal, *said, *found.said))


def untrue(record: Record, found: Seen, *, salvaged: bool = False) -> list[str]:
    """What was given back, and is not so. Nothing excuses that; but a salvage may find a task before its end,
    and then it is lost, and says so."""
    wrong: list[str] = []
    for id, shape in found.tasks.items():
        known = record.tasks.get(id)
        if known is None:
            wrong.append(f"{id} was made up")
        elif shape != known and not _may_be(known, shape, record, id, salvaged):
            wrong.append(f"{id} was {_short(known)}, and is {_short(shape)}")
    events = {event[0]: event for event in record.journal}
    for event in found.journal:
        if event[0] in events and event != events[event[0]] and not (salvaged and _is_new(record, event)):
            wrong.append(f"event {events[event[0]]} is {event}")
    for thread, lines in found.lines.items():
        if not set(lines) <= set(record.lines[thread]):
            wrong.append(f"the transcript of {thread} has {set(lines) - set(record.lines[thread])}")
    for thread, ids in found.told.items():
        again = [id for id, count in Counter(ids).items() if count > 1]
        strange = [id for id in ids if id not in record.tasks or record.tasks[id][0] != thread]
        wrong += [f"{id} was told twice, or in the wrong thread" for id in [*again, *strange]]
        ours = [id for id in ids if id in record.ended[thread] and id not in record.acked]
        if salvaged:  # a task that was found before its end has ended just now, as lost or as its command did
            anew = {
                event[2] for event in found.journal if event[1] == "ended" and event not in record.journal
            }
            ours = [id for id in ours if id not in anew]
        if ours != sorted(ours, key=record.ended[thread].index):
            wrong.append(f"thread {thread} was told out of order: {ours}")
    return wrong


def _is_new(record: Record, event: list[Any]) -> bool:
    """It came after the salvage: the numbers of a journal that is lost are given again."""
    return not any(event[1:] == known[1:] for known in record.journal)


def _untold(record: Record, found: Seen) -> list[str]:
    """Endings that came back, and that nobody was told of, neither before nor now."""
    return [
        f"{id} was not told"
        for thread in THREADS
        for id in record.ended[thread]
        if id in found.tasks and id not in record.acked and id not in found.told[thread]
    ]


def _may_be(known: list[Any], shape: list[Any], record: Record, id: str, salvaged: bool) -> bool:
    """Work that had not ended, or whose ending was not recorded, may be lost, and that is told. Of one that
    was accepted the ending may not be known. Output that was not kept is said in its place."""
    if shape[0] != known[0] or shape[2] != known[2]:
        return False
    if not known[1] or (shape[1] == known[1] and any(word in str(shape[3]) for word in NOT_KEPT)):
        return True
    recorded = any(event[2] == id and event[4] == known[1] for event in record.journal)
    return (salvaged or not recorded) and shape[1] in ("queued", "running", "lost", "cancelled")


NOT_KEPT = ("bytes were not kept", "checksum does not match")


def _short(shape: list[Any]) -> list[str]:
    return [str(part)[:60] for part in shape]


def lacking(record: Record, found: Seen) -> list[str]:
    """What is in the record, and was not given back: somebody must have said so."""
    gone = [f"{id} is gone" for id in record.tasks if id not in found.tasks]
    for thread in THREADS:
        untold = [id for id in record.ended[thread] if id not in record.acked]
        gone += [f"{id} was not told in {thread}" for id in untold if id not in found.told[thread]]
        gone += [f"{line!r} is gone" for line in record.lines[thread] if line not in found.lines[thread]]
    seqs = {event[0] for event in found.journal}
    gone += [f"event {event} is gone" for event in record.journal if event[0] not in seqs]
    gone += [
        f"{id} has become {found.tasks[id][1]}"
        for id, shape in record.tasks.items()
        if shape[1] and id in found.tasks and found.tasks[id][1] == "lost"
    ]
    ended = Counter(shape[1] for shape in found.tasks.values())
    gone += [
        f"{count} {status} are counted as {found.counts.get(status, 0)}"
        for status, count in ended.items()
        if found.counts.get(status, 0) != count
    ]
    return gone


def told_again(record: Record, found: Seen) -> list[str]:
    again = {id for ids in found.told.values() for id in ids} & set(record.acked)
    return [f"{id} was acknowledged, and is told again" for id in sorted(again)]


def _token_problem(folder: Path) -> str:
    """A token is a secret: none that is short or empty may open anything."""
    try:
        return "a token that is too short is taken" if len(kept_secret(folder)) < LEAST_TOKEN else ""
    except MeantimeError:
        return ""


# -- damage under an owner


def _open_case(case: Case, world: World) -> Outcome:
    report = world.folder.parent / "report.json"
    report.unlink(missing_ok=True)
    owner = _fresh.Process(target=_own, args=(case, world, report))
    owner.start()
    owner.join(4 * LIMIT)
    if owner.is_alive():
        owner.kill()
        return Outcome("detected", ("the owner hangs",))
    said = json.loads(report.read_text()) if report.exists() else {"problems": ["no report"], "said": []}
    if said["problems"]:
        return Outcome("detected", tuple(said["problems"]), tuple(said["said"]))
    record = Record(**said["record"])
    killed = (f"the owner ended with {owner.exitcode}",) if owner.exitcode not in (0, -signal.SIGKILL) else ()
    return judged(world.ledger, record, case, (*said["said"], *killed))


def _own(case: Case, world: World, report: Path) -> None:
    os.setsid()
    logging.getLogger("meantime").setLevel(logging.CRITICAL)  # of failures that we made ourselves
    asyncio.run(_under_damage(case, world, report))


async def _under_damage(case: Case, world: World, report: Path) -> None:
    """Works, is damaged, works on. What it was promised is in the record; half of the owners are killed."""
    rng = random.Random(case.seed)
    record, said, problems = world.record, list[str](), list[str]()

    def tell() -> None:
        draft = report.with_suffix(".new")
        draft.write_text(json.dumps({"record": record._asdict(), "said": said, "problems": problems}))
        draft.rename(report)

    async with Meantime.open(world.ledger) as mt:
        owner = Owner(mt, record)
        await owner.start("a", "a-open-0", 0)
        await owner.note_journal()
        tell()
        owner.patience = SOON
        target = target_of(world, case.place, case.kind, rng)
        if target is not None:
            case.kind(target, rng)
        await _tried(owner.tell("b", 3), said)
        tell()
        for thread, number in (("b", 1), ("a", 2)):
            await _tried(owner.start(thread, f"{thread}-open-{number}", number), said)
            tell()
        try:
            tasks, unread = await shaped(mt)
        except MeantimeError as problem:
            said.append(str(problem))
        else:
            said.extend(unread)
            found = Seen(tasks, {}, [], {}, {}, [])
            problems.extend(untrue(record, found))
        tell()
        if rng.random() < 0.5:
            os.kill(os.getpid(), signal.SIGKILL)
    tell()


async def _tried(step: Any, said: list[str]) -> None:
    try:
        await step
    except MeantimeError as problem:
        said.append(str(problem))
    except Endless:
        said.append("it does not end")
