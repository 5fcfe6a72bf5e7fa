"""Ledgers for the family of damage: an owner that works, keeps a record outside, and closes or is killed.

`python -m tests.faults.damage_world <folder> <record> <closed|killed>` is the owner. Its files are put back
after each case, with their inodes: a ledger with another inode is a copy, of which less is claimed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT, until

from meantime import Call, Meantime, MeantimeError, Shell, Task, TaskEnded
from meantime.app.ledger_audit import audit
from meantime.kernel.model import Lost
from meantime.runners.shell.output_ring import look as look_at_state
from meantime.runners.shell.shim import cells
from meantime.stores.sqlite import wal_index
from meantime.surfaces.http.tokens import kept_secret

from .strace import ROOT

THREADS = ("a", "b")
TASKS = 5  # of each thread, in each of two lives
MANY = 500  # more than there are of anything
OUTLIVES = "b-outlives"  # a command that ends when its owner is gone
RUNS, GATE = "runs", "gate"  # how often it has run, and what lets it end: outside of the home


async def work(number: int, id: str) -> Any:
    if number % 4 == 1:
        raise ValueError(f"number {number} was bad")
    if number % 4 == 2:
        return f"{id} " * 12_000  # too long for the ledger
    return {"number": number, "text": "x" * (37 * number % 700)}


class Record(NamedTuple):
    """What is known outside: of each task its thread, status, title and result; what was told, in order."""

    tasks: dict[str, list[Any]]
    ended: dict[str, list[str]]  # by thread, in order
    acked: list[str]
    journal: list[list[Any]]
    lines: dict[str, list[str]]  # of the transcripts

    @classmethod
    def read(cls, path: Path) -> Record:
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self._asdict()))


async def shape(mt: Meantime, task: Task) -> list[Any]:
    """All that is compared of a task. Raises MeantimeError where it cannot be read."""
    result: Any = None
    if task.ended:
        try:
            result = await mt.thread(task.thread).result(task.id)
        except TaskEnded as ending:
            result = ending.message if task.status == "failed" else ""
    return [task.thread, str(task.status), task.title, result]


async def shaped(mt: Meantime) -> tuple[dict[str, list[Any]], list[str]]:
    """Every task, and what was said of those that cannot be read."""
    found: dict[str, list[Any]] = {}
    problems: list[str] = []
    for task in await mt.list(limit=MANY):
        if task.id == OUTLIVES and isinstance(task.outcome, Lost):
            problems.append(f"{task.id}: {task.outcome.reason}")
        try:
            found[task.id] = await shape(mt, task)
        except MeantimeError as problem:
            problems.append(str(problem))
    return found, problems


async def journal(mt: Meantime) -> list[list[Any]]:
    events = await mt._runtime.events(0, 10_000)
    return [[event.seq, event.kind, event.task_id, event.thread, str(event.status)] for event in events]


async def lines(mt: Meantime) -> dict[str, list[str]]:
    return {
        name: [message.text for message in await mt.thread(name).transcript.messages()] for name in THREADS
    }


# -- the owner


class Endless(Exception):
    """Work that was accepted does not end."""


class Owner:
    def __init__(self, mt: Meantime, record: Record) -> None:
        self.mt = mt
        self.record = record
        self.patience = LIMIT  # seconds for an ending

    async def start(self, thread: str, id: str, number: int) -> None:
        home = self.mt.thread(thread)
        if number % 4 == 3:
            words = f"seq 1 30000; echo {id}" if number % 8 == 3 else f"echo {id}"
            handle = await home.start(Shell(words), id=id)
        else:
            handle = await home.start(
                Call(work, number, id), id=id, description=f"{id} does {'y' * number * 9}"
            )
        self.record.tasks[id] = [thread, "", handle.task.title, None]  # accepted, and not ended yet
        task = await handle.wait(self.patience)
        if not task.ended:
            raise Endless
        self.record.tasks[id] = await shape(self.mt, task)
        self.record.ended[thread].append(id)

    async def tell(self, thread: str, limit: int) -> None:
        home = self.mt.thread(thread)
        async with home.turn(limit=limit) as turn:
            transcript = home.transcript
            told = [notice.id for notice in turn.notices]
            for notice in turn.notices:
                transcript.add(notice.id, f"told {notice.id}")
            await turn.ack(transcript=transcript)
            self.record.acked.extend(id.rpartition(".")[0] for id in told)
            self.record.lines[thread].extend(f"told {id}" for id in told)

    async def live(self, life: int) -> None:
        for number in range(TASKS):
            for thread in THREADS:
                await self.start(thread, f"{thread}-{life}-{number}", number)
        await self.tell("a", 100)
        await self.tell("b", 4)

    async def note_journal(self) -> None:
        self.record.journal[:] = await journal(self.mt)


async def own(folder: Path, path: Path, ends: str) -> None:
    ledger = folder / "ledger.db"
    record = Record({}, {name: [] for name in THREADS}, [], [], {name: [] for name in THREADS})
    kept_secret(_private(Path(f"{ledger}.http")))
    async with Meantime.open(ledger) as mt:
        await Owner(mt, record).live(1)
    _said("once")
    async with Meantime.open(ledger) as mt:
        owner = Owner(mt, record)
        await owner.live(2)
        _said("half")
        await owner.live(3)
        if ends == "killed":
            gate = path.with_name(GATE)
            words = (
                f"echo ran >> {path.with_name(RUNS)}; until [ -e {gate} ]; do sleep 0.05; done; echo outlived"
            )
            handle = await mt.thread("b").start(Shell(words), id=OUTLIVES)
            record.tasks[OUTLIVES] = ["b", "completed", handle.task.title, "outlived\n"]
            record.ended["b"].append(OUTLIVES)
            endless = await mt.thread("a").start(Call(asyncio.Event().wait), id="a-sleeps")
            record.tasks["a-sleeps"] = ["a", "", endless.task.title, None]
        await owner.note_journal()
        record.write(path)
        if ends == "killed":
            _said("done")
            await asyncio.Event().wait()
    _said("done")


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _said(word: str) -> None:
    print(word, flush=True)
    sys.stdin.readline()


# -- its files


class World:
    """The files of an owner that has closed its ledger, or was killed."""

    def __init__(self, folder: Path, ends: str, *, plant: str = "") -> None:
        self.folder = folder / "home"
        self.folder.mkdir(mode=0o700)
        self.ledger = self.folder / "ledger.db"
        self._keep = folder / "keep"
        self._keep.mkdir()
        self.early: dict[str, bytes] = {}  # by the name of the file, at any time before the end
        self._make(folder / "record.json", ends, plant)
        self.record = Record.read(folder / "record.json")
        self.runs = folder / RUNS
        self.files: dict[Path, bytes] = {}
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                self.files[path] = path.read_bytes()
                os.link(path, self._keep / str(len(self.files)))

    def _make(self, record: Path, ends: str, plant: str) -> None:
        line = [sys.executable, "-m", "tests.faults.damage_world", str(self.folder), str(record), ends, plant]
        owner = subprocess.Popen(line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert owner.stdin is not None
        assert owner.stdout is not None
        try:
            for word in (b"once\n", b"half\n", b"done\n"):
                assert owner.stdout.readline() == word
                if word == b"done\n" and ends == "killed":
                    break
                self._note_early()
                owner.stdin.write(b"go on\n")
                owner.stdin.flush()
            if ends == "closed":
                assert owner.wait(LIMIT) == 0
        finally:
            owner.kill()
            owner.communicate()
        if ends == "killed":
            self._wait_for_the_command()

    def _note_early(self) -> None:
        """The database is kept as it was after the first life: a copy that somebody made then."""
        for path in self.folder.glob("ledger.db*"):
            if path.is_file() and not (path == self.ledger and path.name in self.early):
                self.early[path.name] = path.read_bytes()

    def _wait_for_the_command(self) -> None:
        """Otherwise it would write to its files while they are put back."""
        self.folder.with_name(GATE).touch()
        states = list(Path(f"{self.ledger}.commands").glob("*.state"))
        until(lambda: all(_has_ended(state) for state in states), "every command has ended")

    def put_back(self) -> None:
        if self.runs.exists():
            self.runs.write_text("ran\n")
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir() and not any(path in kept.parents for kept in self.files):
                shutil.rmtree(path, ignore_errors=True)
            elif not path.is_dir() and path not in self.files:
                path.unlink(missing_ok=True)
        for number, (path, content) in enumerate(self.files.items(), 1):
            original = self._keep / str(number)
            if not path.exists() or not path.samefile(original):
                path.unlink(missing_ok=True)
                os.link(original, path)
            if path.read_bytes() != content:
                with path.open("r+b") as file:
                    file.truncate(0)
                    file.write(content)


def _has_ended(state: Path) -> bool:
    found = look_at_state(state.with_suffix(""))
    return found is not None and found[cells.PHASE] == cells.ENDED


# -- what the next owner finds


class Seen(NamedTuple):
    tasks: dict[str, list[Any]]
    told: dict[str, list[str]]  # by thread, in order
    journal: list[list[Any]]
    lines: dict[str, list[str]]
    counts: dict[str, int]
    said: list[str]  # what was said of damage, wherever


async def seen(ledger: Path, *, salvage: bool = False) -> Seen:
    """Raises MeantimeError where the ledger cannot be opened."""
    async with Meantime.open(ledger, salvage=salvage) as mt:
        await _settled(mt)
        tasks, said = await shaped(mt)
        told = {name: await _told(mt, name) for name in THREADS}
        counts = await mt.stats()
        found = Seen(tasks, told, await journal(mt), await lines(mt), counts, said)
        found.said.extend(f"stats: {name} {counts[name]}" for name in SAID if counts.get(name))
    findings = audit(ledger, owned=False, now=time.time()).findings
    found.said.extend(f"audit: {finding.what}: {finding.which}" for finding in findings if finding.wrong)
    return found


SAID = ("unreadable", "damaged", "degraded", "notices.parked")


async def _settled(mt: Meantime) -> None:
    """What the last owner left is mended: the command that outlived it has its ending."""
    if any(task.id == OUTLIVES for task in await mt.list(limit=MANY)):
        await mt.thread("b").wait(OUTLIVES, timeout=LIMIT)


async def _told(mt: Meantime, thread: str) -> list[str]:
    told: list[str] = []
    for _ in range(MANY):
        async with mt.thread(thread).turn() as turn:
            if not turn.notices:
                return told
            told += [notice.task_id for notice in turn.notices]
            await turn.ack()
    raise AssertionError(f"thread {thread} is told for ever")


def _mark_first() -> None:
    """A planted bug: the mark is written before its commit, so a kill between the two leaves it ahead."""
    end = wal_index.WalIndex.end

    def ahead(index: wal_index.WalIndex, needs: int = 0) -> wal_index.Point | None:
        found = end(index, needs)
        return found and found._replace(frames=found.frames + 3)

    wal_index.WalIndex.end = ahead  # type: ignore[method-assign]


if __name__ == "__main__":
    if sys.argv[4] == "mark_first":
        _mark_first()
    asyncio.run(own(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
