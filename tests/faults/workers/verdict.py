"""The judgement from outside: the ledger of facts, the conversations, and what was done to whom."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from meantime import Meantime, Task

from ..judge import Fact, Told, Verdict, judge, read_facts
from ..served import Line, misnumbered
from . import jobs


class Outage(NamedTuple):
    """A time in which a worker was dead, frozen or unreachable."""

    worker: str
    began: float
    ended: float


class Done(NamedTuple):
    """What was done to the workers, and what the ledger has of the tasks."""

    killed: set[str]  # lives, as "w1 3"
    outages: list[Outage]
    patience: float  # seconds: lease and grace
    full: set[str]  # workers whose disk was full for a while


class Ran(NamedTuple):
    attempt: int
    worker: str
    life: str
    at: float
    was_over: bool = False  # its ending was told before it began: its grant had waited at a frozen worker

    @property
    def who(self) -> str:
        return f"{self.worker} {self.life}"


def judged(folder: Path, seed: int, count: int, done: Done, problems: list[str]) -> Verdict:
    facts = read_facts(folder / "ledger.jsonl")
    wanted = [jobs.job_of(seed, n) for n in range(count)]
    told, tasks, outputs = asyncio.run(_read(folder / "work.db", wanted))
    ends = {f"{id}.1": str(task.status) for id, task in tasks.items()}
    runs = runs_of(facts)
    wrong = [
        problem
        for job in wanted
        if job.id in tasks
        for problem in _wrong(job, tasks[job.id], runs.get(f"{job.id}.1", []), outputs.get(job.id), done)
    ]
    late = {id for id, status in ends.items() if status == "lost"}
    facts = [fact for fact in facts if fact.what not in ("number",)]
    facts = [fact for fact in facts if fact.what != "finishing" or fact.id not in late]
    facts += [Fact("ended", "", id, status) for id, status in ends.items()]
    found = judge(facts, {name: [Told(*line[:2]) for line in lines] for name, lines in told.items()})
    return Verdict(
        (*found.lost, *wrong, *problems),
        (*found.doubled, *_begun_twice(runs), *_offered_twice(facts)),
        (*found.misordered, *(each for name, lines in told.items() for each in misnumbered(name, lines))),
    )


def runs_of(facts: list[Fact]) -> dict[str, list[Ran]]:
    runs: dict[str, list[Ran]] = {}
    told: set[str] = set()
    for fact in facts:
        if fact.what == "acked":
            told.add(fact.id)
        elif fact.what == "ran":
            attempt, worker, life, at = fact.note.split()
            ran = Ran(int(attempt), worker, life, float(at), fact.id in told)
            runs.setdefault(fact.id, []).append(ran)
    return runs


def has_doubled(folder: Path) -> bool:
    """Whether the facts alone, while it goes on, show something that happened twice."""
    facts = read_facts(folder / "ledger.jsonl")
    found = (*judge(facts, {}).doubled, *_begun_twice(runs_of(facts)), *_offered_twice(facts))
    return bool(found)


def _begun_twice(runs: dict[str, list[Ran]]) -> Iterator[str]:
    for id, each in runs.items():
        for attempt, times in Counter(ran.attempt for ran in each).items():
            if times > 1:
                yield f"attempt {attempt} of {id} was begun {times} times: {each}"


def _offered_twice(facts: list[Fact]) -> Iterator[str]:
    for fact in facts:
        if fact.what == "offered while queued":
            yield f"the offer {fact.id} was repeated while it was in the queue"


def _wrong(job: jobs.Job, task: Task, ran: list[Ran], output: str | None, done: Done) -> Iterator[str]:
    status = str(task.status)
    worker = task.run.claim.worker if task.run.claim is not None else ""
    where = f"{job.id} ({job.kind}, at {worker}, attempt {task.run.attempt}) is {status}: {task.outcome}"
    runs_again = job.kind == "idempotent"
    if status not in ("completed", "lost") or (runs_again and status == "lost"):
        yield where
    elif status == "lost" and not _may_be_lost(job, worker, ran, done):
        yield f"{where}; nothing had happened to its worker that explains it: {ran}"
    elif status == "completed" and not ran:
        yield f"{where}, and never began"
    elif job.kind == "command" and status == "completed" and not _has_output(job, worker, ran, output, done):
        yield f"{where}, and its output here is {output!r}"
    for one in ran:
        later = [other for other in ran if other.attempt > one.attempt]
        if later and not _ended_with_its_worker(one, done):
            yield f"{where}; attempt {one.attempt} was given up, and its worker was there: {ran}"


def _ended_with_its_worker(ran: Ran, done: Done) -> bool:
    return ran.who in done.killed or _is_gone(ran.worker, ran, done)


def _has_output(job: jobs.Job, worker: str, ran: list[Ran], output: str | None, done: Done) -> bool:
    """A worker that is gone after it has said the ending may be gone for good: the ending is recorded without
    its output. A full disk has no room for it."""
    is_whole = (output or "").strip() == jobs.last_words(job)
    return is_whole or worker in done.full or _is_gone(worker, ran[-1], done)


def _may_be_lost(job: jobs.Job, worker: str, ran: list[Ran], done: Done) -> bool:
    """A worker was away for longer than it may be, or a function ran in a life that was killed."""
    if _is_gone(worker, ran[-1] if ran else None, done):
        return True
    if job.kind == "command":
        return False
    lives = {one.who for one in ran if one.attempt == ran[-1].attempt}
    return bool(lives & done.killed) if ran else any(life.split()[0] == worker for life in done.killed)


def _is_gone(worker: str, ran: Ran | None, done: Done) -> bool:
    """Whether the worker was away for too long while it ran; or before, if it was given up before it ran."""
    since = 0.0 if ran is None else ran.at - done.patience if ran.was_over else ran.at
    return any(
        one.worker == worker and one.ended > since and one.ended - one.began > done.patience
        for one in done.outages
    )


async def _read(
    ledger: Path, wanted: list[jobs.Job]
) -> tuple[dict[str, list[Line]], dict[str, Task], dict[str, str]]:
    told: dict[str, list[Line]] = {}
    tasks: dict[str, Task] = {}
    outputs: dict[str, str] = {}
    async with Meantime.open(ledger) as mt:
        for name in sorted({job.thread for job in wanted}):
            entries = await mt.thread(name).transcript.entries()
            words = [entry.message.text.split(" ") for entry in entries]
            told[name] = [Line(id, status, int(number)) for id, status, number in words]
        for job in wanted:
            try:
                tasks[job.id] = await mt.get(job.id)
            except LookupError:
                continue  # its start was under way when the owner was killed
            if job.kind == "command" and str(tasks[job.id].status) == "completed":
                outputs[job.id] = (await mt.log(job.id).read()).text
    return told, tasks, outputs
