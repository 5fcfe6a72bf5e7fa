"""Families of the link: kill -9 of the daemon, kill -9 and a stop of the processes that run functions,
and connections that are cut, all under load."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, pause

from .adoption import clear
from .cutting import Proxy
from .judge import Fact, Tally, Verdict, read_facts
from .served import GRACE, LEASE, Crowd, Daemon, endings, verdict
from .trial import side_by_side, trial

NAMES = ("0", "1")
FUNCTION, COMMAND = "function", "command"
SHORT = 15.0  # seconds of lease, and of grace, where a process is stopped for longer than both


class Scene:
    """A daemon, those who are connected to it, and what was done to them."""

    def __init__(self, daemon: Daemon, crowd: Crowd, rng: random.Random) -> None:
        self.daemon = daemon
        self.crowd = crowd
        self.rng = rng
        self.faults = 0
        self.broken: set[str] = set()  # lives of clients that were killed or stopped
        self.patience = LIMIT  # seconds in which, at the end, everything must be told

    def join(self, name: str) -> None:
        self.crowd.join(name, self.rng.randrange(1 << 30), patience=self.patience)

    def pause(self, least: float, most: float) -> None:
        pause(self.rng.uniform(least, most), "the moment of a fault is what is random here")

    def judged(self) -> Verdict:
        problems = self.crowd.come_out()
        self.daemon.end(signal.SIGTERM)
        home, folder = self.daemon.home, self.daemon.folder
        found = verdict(folder, home.ledger, problems)
        wrong = _wrong_endings(read_facts(folder / "ledger.jsonl"), endings(home.ledger, folder), self.broken)
        return found._replace(lost=(*found.lost, *wrong))


def _wrong_endings(facts: list[Fact], ends: dict[str, str], broken: set[str]) -> Iterator[str]:
    """A function is lost with its process and not without; a command goes on whatever happens to others."""
    ran = {fact.id for fact in facts if fact.what == "ran"}
    finishing = {fact.id for fact in facts if fact.what == "finishing"}
    functions = finishing | {fact.id for fact in facts if fact.what == FUNCTION}
    for fact in facts:
        if fact.what != "accepted" or fact.id not in ends:
            continue
        status, id = ends[fact.id], fact.id
        life = "-".join(id.split("-")[1:3])
        if status in ("queued", "running", "cancelling", "cancelled", "timed_out"):
            yield f"{id} is {status}"
        elif status == "lost" and life not in broken and (id in functions or id in ran):
            yield f"{id} is lost, and nothing happened to its process"
        elif id not in ran and status != "lost":
            yield f"{id} is {status}, and never ran"


def _chains(
    family: str, seed: int, chains: int, reproduce: str, play: Callable[[Scene], None], **options: float
) -> Tally:
    tally = Tally(family, reproduce)
    side_by_side(range(chains), lambda number: _chain(tally, seed * 101 + number, play, options))
    return tally


def _chain(tally: Tally, seed: int, play: Callable[[Scene], None], options: dict[str, Any]) -> None:
    judged = Verdict()

    def make(folder: Path) -> int:
        nonlocal judged
        with scene(folder, seed, **options) as found:
            play(found)
            judged = found.judged()
        return found.faults

    trial(tally, f"{tally.family}, seed {seed}", make, lambda folder: judged)


@contextmanager
def scene(
    folder: Path, seed: int, *, lease: float = LEASE, grace: float = GRACE, plant: str = "",
    link: Path | None = None, more: Mapping[str, str] | None = None,
) -> Iterator[Scene]:  # fmt: skip
    daemon = Daemon(folder, lease=lease, grace=grace, plant=plant)
    daemon.more.update(more or {})
    crowd = Crowd(daemon, link)
    try:
        daemon.up()
        yield Scene(daemon, crowd, random.Random(seed))
    finally:
        crowd.end()
        daemon.end(signal.SIGKILL)
        clear(folder)


# -- the daemon is killed


def daemons(seed: int, chains: int, kills: int, reproduce: str) -> Tally:
    family = "kill -9 of the daemon under load on the link"
    return _chains(family, seed, chains, reproduce, lambda scene: kill_daemon(scene, kills))


def kill_daemon(scene: Scene, kills: int) -> None:
    for name in NAMES:
        scene.join(name)
    for _ in range(kills):
        scene.pause(0.2, 0.9)
        scene.daemon.end(signal.SIGKILL)
        scene.pause(0.0, 0.2)
        scene.daemon.up()
        scene.faults += 1
    scene.pause(0.1, 0.3)


# -- the daemon stands still


def stops(seed: int, chains: int, count: int, reproduce: str) -> Tally:
    """Also for longer than the lease: those who are connected find it silent, and it finds them gone."""
    family = "SIGSTOP of the daemon under load on the link"
    play = partial(stop_daemon, count=count)
    return _chains(family, seed, chains, reproduce, play, lease=1.5)


def stop_daemon(scene: Scene, count: int) -> None:
    for name in NAMES:
        scene.join(name)
    for number in range(count):
        scene.pause(0.2, 0.6)
        os.kill(scene.daemon.pid, signal.SIGSTOP)
        pause(2.5 if number % 3 == 2 else scene.rng.uniform(0.1, 1.0), "it stands still")
        os.kill(scene.daemon.pid, signal.SIGCONT)
        scene.faults += 1
        for name in NAMES:
            scene.crowd.until_works(name)


# -- those who run functions are killed, or stopped


def executors(seed: int, chains: int, kills: int, reproduce: str) -> Tally:
    family = "kill -9 and SIGSTOP of executors under load"
    play = partial(kill_executors, kills=kills)
    return _chains(family, seed, chains, reproduce, play, lease=SHORT, grace=SHORT)


def kill_executors(scene: Scene, kills: int, *, stops: bool = True) -> None:
    for name in NAMES:
        scene.join(name)
    for number in range(kills):
        scene.pause(0.2, 0.6)
        name = scene.rng.choice(NAMES)
        scene.broken.add(f"{name}-{scene.crowd.life(name)}")
        if stops and number % 3 == 1:
            _stop_for_a_while(scene, name)
        else:
            scene.crowd.kill(name)
            scene.pause(0.0, 0.3)
            scene.join(name)  # another process goes on with the same conversations
        scene.faults += 1
    scene.pause(0.1, 0.3)


def _stop_for_a_while(scene: Scene, name: str) -> None:
    """Past its lease and its grace. Whatever it says afterwards comes too late, and it can go on working."""
    scene.crowd.signal(name, signal.SIGSTOP)
    pause(2 * SHORT + 2.0, "it stands still")
    scene.crowd.signal(name, signal.SIGCONT)
    scene.crowd.until_works(name)


# -- connections are cut


def cuts(seed: int, chains: int, count: int, reproduce: str) -> Tally:
    tally = Tally("connections cut at random, turns open", reproduce)
    side_by_side(range(chains), lambda number: _cut_chain(tally, seed * 101 + number, count))
    return tally


def _cut_chain(tally: Tally, seed: int, count: int) -> None:
    judged = Verdict()

    def make(folder: Path) -> int:
        nonlocal judged
        faults, judged = cut(folder, seed, count)
        return faults

    trial(tally, f"{tally.family}, seed {seed}", make, lambda folder: judged)


def cut(folder: Path, seed: int, count: int, plant: str = "", patience: float = LIMIT) -> tuple[int, Verdict]:
    with scene(folder, seed, plant=plant, link=folder / "cut.sock") as found:
        found.patience = patience
        with Proxy(folder / "cut.sock", found.daemon.home.link_socket, seed) as proxy:
            for name in NAMES:
                found.join(name)
            for _ in range(count):
                found.pause(0.02, 0.2)
                found.faults += proxy.cut()
            return found.faults, found.judged()
