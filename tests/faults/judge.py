"""The judge: pure functions over an outside ledger and the transcripts. It never looks into our database.

The outside ledger is a list of facts in the order in which they became known:

    attempt    a start or a resume was asked for; from here on it may exist
    accepted   the call returned: it was promised
    refused    the call was answered with a refusal: it must not exist
    ran        its work was entered
    finishing  its work was let go (or cancelled, or cut off): it cannot have ended before
    ended      somebody saw its ending; `note` is the status
    acked      an ack of it returned
    read       an agent read its ending inside a turn, which exempts it from the order
    parked     it was seen parked, which exempts it from the order

An id is that of the notice: `<task>.<run>`.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Fact(NamedTuple):
    what: str
    thread: str
    id: str
    note: str = ""


class Told(NamedTuple):
    """One line of a conversation that carries a notice."""

    id: str
    status: str = ""


Transcripts = Mapping[str, Sequence[Told]]


class Verdict(NamedTuple):
    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    misordered: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.misordered)

    def __str__(self) -> str:
        named = (("lost", self.lost), ("doubled", self.doubled), ("misordered", self.misordered))
        lines = [f"{name}: {problem}" for name, problems in named for problem in problems]
        return "\n".join(lines) or "nothing lost, nothing doubled, nothing misordered"


def judge(facts: Sequence[Fact], transcripts: Transcripts) -> Verdict:
    return Verdict(
        tuple(_lost(facts, transcripts)),
        (*_doubled(facts, transcripts), *_two_endings(facts, transcripts)),
        tuple(
            problem for thread in transcripts for problem in _misordered(facts, thread, transcripts[thread])
        ),
    )


def _lost(facts: Sequence[Fact], transcripts: Transcripts) -> Iterable[str]:
    told = {(thread, line.id) for thread, lines in transcripts.items() for line in lines}
    for fact in facts:
        if fact.what == "accepted" and (fact.thread, fact.id) not in told:
            yield f"{fact.id} was accepted in {fact.thread} and never told"


def _doubled(facts: Sequence[Fact], transcripts: Transcripts) -> Iterable[str]:
    attempts = {fact.id for fact in facts if fact.what == "attempt"}
    refused = {fact.id for fact in facts if fact.what == "refused"}
    again = {fact.id for fact in facts if fact.what == "attempt" and fact.note == "idempotent"}
    counts = Counter(line.id for lines in transcripts.values() for line in lines)
    for id, count in counts.items():
        if count > 1:
            yield f"{id} was told {count} times"
        if id not in attempts:
            yield f"{id} was told and nobody had asked for it"
        elif id in refused:
            yield f"{id} was told although its start was refused"
    for what, meaning in (("ran", "ran"), ("acked", "was acknowledged")):
        for id, count in Counter(fact.id for fact in facts if fact.what == what).items():
            if count > 1 and not (what == "ran" and id in again):
                yield f"{id} {meaning} {count} times"


def _two_endings(facts: Sequence[Fact], transcripts: Transcripts) -> Iterable[str]:
    seen: dict[str, set[str]] = {}
    for fact in facts:
        if fact.what == "ended":
            seen.setdefault(fact.id, set()).add(fact.note)
    for lines in transcripts.values():
        for line in lines:
            if line.status:
                seen.setdefault(line.id, set()).add(line.status)
    for id, statuses in seen.items():
        if len(statuses) > 1:
            yield f"{id} has {len(statuses)} endings: {', '.join(sorted(statuses))}"


def _misordered(facts: Sequence[Fact], thread: str, lines: Sequence[Told]) -> Iterable[str]:
    """One that was seen ended before another was let go must be told before it."""
    earliest: dict[str, int] = {}  # the ending cannot lie before this fact
    latest: dict[str, int] = {}  # and not after this one
    let_go: set[str] = set()
    exempt: set[str] = set()
    for place, fact in enumerate(facts):
        if fact.what == "attempt":
            earliest.setdefault(fact.id, place)
        elif fact.what == "finishing" and fact.id not in let_go:
            let_go.add(fact.id)
            earliest[fact.id] = place
        elif fact.what == "ended":
            latest.setdefault(fact.id, place)
        elif fact.what in ("read", "parked"):
            exempt.add(fact.id)
    newest, of = -1, ""
    for line in lines:
        if line.id in exempt:
            continue
        if latest.get(line.id, len(facts)) < newest:
            yield f"{line.id} was told after {of} in {thread}, and had ended before it"
        if earliest.get(line.id, -1) > newest:
            newest, of = earliest[line.id], line.id


class Tally:
    """What a family found: how many faults it made, and what they broke."""

    def __init__(self, family: str, reproduce: str) -> None:
        self.family = family
        self.reproduce = reproduce
        self.faults = 0
        self.lost = self.doubled = self.misordered = 0
        self.problems: list[str] = []
        self._lock = threading.Lock()  # victims run side by side

    def add(self, verdict: Verdict, where: str, faults: int = 1) -> None:
        with self._lock:
            self.faults += faults
            self.lost += len(verdict.lost)
            self.doubled += len(verdict.doubled)
            self.misordered += len(verdict.misordered)
        if not verdict.clean:
            self.problems.append(f"[{self.family}] {where}\n{verdict}\nreproduce: {self.reproduce}")

    def count(self, where: str) -> None:
        """A fault that broke nothing."""
        self.add(Verdict(), where)

    def broke(self, problem: str, where: str) -> None:
        """A hang, a crash of our own or a wrong error: it counts as a loss."""
        self.add(Verdict(lost=(problem,)), where)

    def check(self) -> None:
        assert not self.problems, "\n\n".join(self.problems)

    def __str__(self) -> str:
        return (
            f"{self.family:<44}{self.faults:>5} faults, {self.lost} lost, {self.doubled} doubled, "
            f"{self.misordered} misordered"
        )


def read_facts(ledger: Path) -> list[Fact]:
    """A ledger file has one JSON list a line; a line that was cut off by a kill was never said."""
    facts: list[Fact] = []
    for line in ledger.read_bytes().split(b"\n")[:-1] if ledger.exists() else ():
        facts.append(Fact(*json.loads(line)))
    return facts
