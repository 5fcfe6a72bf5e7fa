"""The judge of one round of a soak: the outside record beside the conversations, the daemon alive."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from meantime import Meantime

from .judge import Fact, Told, Verdict, judge, read_facts
from .linked import Conversation
from .served import Line, misnumbered
from .soaking import AGENT, COMMANDS

COUNTED = ("accepted", "refused", "unanswered")
Lines = Mapping[str, Sequence[Line]]


def judged_round(
    folder: Path, link: Path, problems: list[str], broken: set[str], stormy: bool
) -> tuple[Verdict, Counter[str]]:
    """`broken`: lives of clients that were killed; `stormy`: the daemon was killed, too."""
    facts = read_facts(folder / "ledger.jsonl")
    threads = sorted({fact.thread for fact in facts if fact.thread.startswith("a")})
    told: dict[str, Sequence[Line]] = dict(asyncio.run(_transcripts(link, threads)))
    told |= {path.stem: Conversation(path).lines() for path in sorted(folder.glob("b*.jsonl"))}
    statuses = {line.id: line.status for lines in told.values() for line in lines}
    # What was lost with its process ended then, whatever its function did later.
    fair = [fact for fact in facts if fact.what != "finishing" or statuses.get(fact.id) != "lost"]
    found = judge(fair, {name: [Told(*line[:2]) for line in lines] for name, lines in told.items()})
    wrong = _wrong_endings(facts, statuses, broken, stormy)
    misordered = [problem for name, lines in told.items() for problem in misnumbered(name, list(lines))]
    verdict = Verdict((*found.lost, *wrong, *problems), found.doubled, (*found.misordered, *misordered))
    return verdict, _counts(facts, told)


def _wrong_endings(
    facts: Sequence[Fact], statuses: Mapping[str, str], broken: set[str], stormy: bool
) -> Iterator[str]:
    """A function is lost with its own process alone, an agent with the daemon alone, a command never, once it
    has begun; and nothing but what is lost has an ending without having run."""
    ran = {fact.id for fact in facts if fact.what == "ran"}
    kinds = {fact.id: fact.note for fact in facts if fact.what == "attempt"}
    accepted = {fact.id for fact in facts if fact.what == "accepted"}
    for id, status in statuses.items():
        kind, life = kinds.get(id, ""), "-".join(id.split("-")[1:3])
        if kind == AGENT:
            excused = stormy
        elif kind in COMMANDS:
            excused = id not in ran and (stormy or life in broken)
        else:
            excused = life in broken
        if status == "lost" and not excused and id in accepted:
            yield f"{id} ({kind}) is lost, and nothing happened to its process"
        elif status not in ("completed", "failed", "lost"):
            yield f"{id} ({kind}) is {status}"
        elif id not in ran and status != "lost":
            yield f"{id} ({kind}) is {status}, and never ran"


def _counts(facts: Sequence[Fact], told: Lines) -> Counter[str]:
    counts = Counter[str](fact.what for fact in facts if fact.what in COUNTED)
    counts.update(f"kind {fact.note or 'call'}" for fact in facts if fact.what == "attempt")
    counts.update(line.status for lines in told.values() for line in lines)
    counts["told"] = sum(map(len, told.values()))
    counts["conversations"] = len(told)
    counts["kept in the ledger"] = sum(len(lines) for name, lines in told.items() if name.startswith("a"))
    return counts


def lines_of(counts: Mapping[str, int]) -> int:
    return counts.get("kept in the ledger", 0)


async def _transcripts(link: Path, threads: Sequence[str]) -> dict[str, list[Line]]:
    async with Meantime.connect(link, start=False) as meantime:
        found = dict[str, list[Line]]()
        for name in threads:
            words = [
                entry.message.text.split(" ") for entry in await meantime.thread(name).transcript.entries()
            ]
            found[name] = [Line(id, status, int(number)) for id, status, number in words]
        return found
