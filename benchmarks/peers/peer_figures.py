"""The figures of one peer: its costs while it runs, and the effect of a kill -9 in mid-work on its tasks."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from ..measure import Bare
from .crew import ROOT, Crew, Peer, crew_of, until

LEASE = 5.0  # seconds after which a worker counts as gone
ONE_BY_ONE = 100  # submits, one after the other
COMMITS = 50  # of SQLite alone, before and after these: the disk at this moment
REPEATS = 3  # of the no-ops, of which the median is kept
RUNNING, LONG = 4, 3.0  # tasks that are killed, and the seconds that each of them takes
WATCH = 30.0  # seconds that a peer has to bring them to an end after it is started again
LISTS = ROOT / "benchmarks" / "peers" / "environments"


def measured(peer: Peer) -> dict[str, Any]:
    with crew_of(peer, LEASE) as crew, closing(Bare(crew.place / "bare.db")) as bare:
        bares = [bare.once() for _ in range(COMMITS)]
        found = crew.ask(do="one_by_one", count=min(ONE_BY_ONE, peer.tasks // 2))
        bares += [bare.once() for _ in range(COMMITS)]
        repeats = [_noops(crew) for _ in range(REPEATS)]
        waiting = _waiting(crew)
    submits, tellings = found["submits"], found["tellings"]
    return {
        "name": peer.name,
        "promise": peer.promise,
        "settings": peer.settings,
        "version": version_of(peer),
        "bare_us": statistics.median(bares) * 1e6,
        "submit_us": statistics.median(submits) * 1e6,
        "submit_p99_us": percentile(submits, 99) * 1e6,
        "told_us": statistics.median(tellings) * 1e6,
        "rate": statistics.median(1 / took for took, _ in repeats),
        "cpu_us": statistics.median(used for _, used in repeats) * 1e6,
        "waiting_bytes": waiting,
    }


def _noops(crew: Crew) -> tuple[float, float]:
    """Wall and CPU seconds of a task, of all processes: client, workers and server."""
    count = crew.peer.tasks
    began, used = time.perf_counter(), crew.cpu()
    crew.ask(do="noops", count=count)
    return (time.perf_counter() - began) / count, (crew.cpu() - used) / count


def _waiting(crew: Crew) -> float:
    """Bytes by which all processes grow for each task that waits or sleeps."""
    count, before = crew.peer.tasks, crew.memory()
    crew.ask(do="start", ids=[f"waiting-{number}" for number in range(count)], seconds=600.0)
    return (crew.memory() - before) / count


def crashed(peer: Peer) -> dict[str, int]:
    """Everything of the peer is killed with -9 while its tasks run, and started again."""
    ids = [f"crash-{number}" for number in range(RUNNING)]
    with crew_of(peer, LEASE) as crew:
        crew.ask(do="start", ids=ids, seconds=LONG)
        if not until(lambda: len(crew.count("began", "crash")) == RUNNING):
            raise OSError("its tasks do not begin")
        crew.end()
        crew.start_all()
        until(lambda: _are_over(crew), WATCH)
        told = crew.ask(do="told", ids=ids)
        return judged(ids, crew.count("began", "crash"), crew.count("ended", "crash"), told)


def _are_over(crew: Crew) -> bool:
    """Other tasks go on meanwhile: taskiq and dramatiq look for abandoned ones only when there are others."""
    crew.ask(do="noops", count=1)
    return len(crew.count("ended", "crash")) == RUNNING


def judged(
    ids: Iterable[str], begun: Counter[str], ended: Counter[str], told: Mapping[str, str]
) -> dict[str, int]:
    """Counts of tasks. Lost is one that did not finish and of which nothing is known."""
    ids = list(ids)
    return {
        "tasks": len(ids),
        "finished": sum(ended[id] >= 1 for id in ids),
        "run_twice": sum(begun[id] >= 2 for id in ids),
        "doubled": sum(ended[id] >= 2 for id in ids),
        "told": sum(id in told for id in ids),
        "lost": sum(not ended[id] and id not in told for id in ids),
    }


def percentile(values: Iterable[float], percent: float) -> float:
    """The smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(percent) // 100) - 1)]


def version_of(peer: Peer) -> str:
    """As it is pinned: the first line of its list, or Mastra's own package."""
    place = peer.program.relative_to(ROOT).parts
    if place[0] != ".peers":
        return ""
    if place[1] == "mastra":
        return json.loads((LISTS / "package.json").read_text())["dependencies"]["@mastra/core"]
    return pinned((LISTS / f"{place[1]}.txt").read_text())


def pinned(requirements: str) -> str:
    """The version of the first package."""
    found = re.search(r"^[\w-]+(?:\[[\w,-]+\])?==(\S+)", requirements, re.MULTILINE)
    assert found is not None, requirements
    return found[1]
