"""The family: 2,000 tasks at three workers, while workers, broker and owner are killed, frozen, cut off, run
out of disk, and have their clocks turned. `judged` in verdict.py says what came of it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.waiting import LIMIT, pause, until

from .. import filling, jumps, strace
from ..adoption import clear
from ..judge import Tally, Verdict, read_facts
from ..trial import trial
from . import jobs
from .brokers import Broker, MemoryProcess, NatsProcesses, PostgresProcess
from .network import Loopback, Namespace, Relays, way
from .plants import PLANT
from .verdict import Done, Outage, judged, runs_of

NAMES = ("w1", "w2", "w3")
FULL, TURNED = "w3", "w2"  # the worker with a small disk, and the one whose clock is turned
SLOTS = {"memory": 24, "nats": 8, "postgres": 8, "cluster": 8}
# How often each fault is made in a whole run; a part of it makes each one less often.
PLAN = {
    "kill": 20, "broker": 3, "wipe": 2, "owner": 3, "stop": 5, "cut": 5, "long stop": 1, "long cut": 1,
    "full disk": 1, "clock +1 h": 1, "clock -1 h": 1,
}  # fmt: skip
PATIENCE = (
    60.0  # seconds of lease and grace: a busy machine freezes nobody for so long, and the long faults do
)
MARGIN = 10.0  # seconds that a worker, back again, needs to be heard
STALLED = 3 * LIMIT  # in which nothing is told: more than any lease, grace, and pause between attempts


class Site:
    """The processes, and the faults that can be made of them."""

    def __init__(
        self, folder: Path, carrier: str, seed: int, tasks: int, *, delay: float = 3.0, plant: str = "",
        slots: int = 0,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.carrier, self.seed, self.tasks = carrier, seed, tasks
        self._slots = slots or SLOTS[carrier]
        self.rng = random.Random(seed)
        self.broker = self._broker(delay)
        self._plant = plant
        self.stack = ExitStack()
        self._relays = Relays()
        self._ways: dict[str, Loopback | Namespace] = {}
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.owner: subprocess.Popen[bytes] | None = None
        self.lives: Counter[str] = Counter()
        self.killed: set[str] = set()
        self.outages: list[Outage] = []
        self.full: set[str] = set()
        self.faults: Counter[str] = Counter()

    def _broker(self, delay: float) -> Broker:
        match self.carrier:
            case "memory":
                return MemoryProcess(self.folder, self.seed, delay)
            case "postgres":
                self.folder.chmod(0o711)  # PostgreSQL runs as another user
                place = self.folder / "postgres"
                place.mkdir()
                return PostgresProcess(place)
            case "cluster":
                return NatsProcesses(self.folder, 3, NAMES)
            case _:
                return NatsProcesses(self.folder, 1, NAMES)

    # -- life

    def __enter__(self) -> Site:
        try:
            self.broker.start()
            self.allow(0.0)
            self.start_owner()
            for number, name in enumerate(NAMES):
                self._ways[name] = way(self._relays, self.broker.ports, number)
                home = self.folder / f"home-{name}"
                home.mkdir()
                if name == FULL and not filling.missing():
                    self.stack.enter_context(filling.small_disk(home))
                self._start_worker(name)
            for name in NAMES:
                self._until_open(name, self.workers[name])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in (*self.workers.values(), *([self.owner] if self.owner is not None else [])):
            with suppress(ProcessLookupError):
                child.send_signal(signal.SIGCONT)
            child.kill()
            child.wait()
        self.broker.end()
        clear(self.folder)
        for one in self._ways.values():
            one.mend()
        self._relays.close()  # while the other ends of its connections are there
        for one in self._ways.values():
            one.close()
        self.stack.close()

    def allow(self, share: float) -> None:
        """So much of the tasks may be started by now: each fault finds work under way."""
        new = self.folder / "allowed.new"
        new.write_text(str(int(self.tasks * share)))
        new.rename(self.folder / "allowed")

    def start_owner(self) -> None:
        words = [
            str(self.folder),
            self.broker.owner_url(),
            str(self.seed),
            str(self.tasks),
            str(PATIENCE),
        ]
        self.owner = self._start("owner", words, [], "owner")
        self._until_open("owner", self.owner)

    def start_worker(self, name: str) -> None:
        self._start_worker(name)
        self._until_open(name, self.workers[name])

    def _start_worker(self, name: str) -> None:
        line = self._ways[name]
        url = self.broker.worker_url(name, line.host, line.ports)
        words = [str(self.folder), url, name, str(self._slots)]
        self.workers[name] = self._start("worker", words, line.before, name)

    def _start(self, program: str, words: list[str], before: list[str], name: str) -> subprocess.Popen[bytes]:
        self.lives[name] += 1
        environ = {
            **os.environ,
            "PYTHONPATH": f"{strace.ROOT / 'src'}{os.pathsep}{strace.ROOT}",
            PLANT: self._plant,
            jobs.WORKER: f"{name} {self.lives[name]}",
            **self._clock(name),
        }
        with self._log(name).open("wb") as log:
            command = [*before, sys.executable, "-m", f"tests.faults.workers.{program}", *words]
            return subprocess.Popen(command, cwd=strace.ROOT, env=environ, stdout=log, stderr=log)

    def _clock(self, name: str) -> dict[str, str]:
        if name not in ("owner", TURNED) or jumps.missing():
            return {}
        clock = self.folder / f"clock-{name}"
        if not clock.exists():
            clock.write_text("+0\n")
        return {
            "LD_PRELOAD": jumps.library(),
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.{self.lives[name]}.log"

    def _until_open(self, name: str, child: subprocess.Popen[bytes]) -> None:
        def is_open() -> bool:
            said = self._log(name).read_bytes()
            assert child.poll() is None, f"{name} ended by itself:\n{said.decode(errors='replace')[-2_000:]}"
            return b"open\n" in said

        until(is_open, f"{name} is open")

    def pause(self, least: float, most: float) -> None:
        pause(self.rng.uniform(least, most), "the moment of a fault is what is random here")

    def _away(self, name: str, began: float) -> None:
        self.outages.append(Outage(name, began, time.monotonic() + MARGIN))

    def _short(self) -> float:
        return self.rng.uniform(0.3, 3.0)

    # -- faults

    def make(self, fault: str) -> None:
        name = self.rng.choice(NAMES)
        with (self.folder / "faults.log").open("a") as log:
            print(f"{time.monotonic():.2f} {fault} ({name}, if it is of a worker)", file=log)
        match fault:
            case "kill":
                self.kill(name)
            case "kill at work":
                self.kill(until(self._at_work, "a worker has begun what must not be run twice"))
            case "owner at an end":
                until(self._fresh_end(), "a run ends")
                self.pause(0.5, 3.0)
                self.kill_owner()
            case "broker" | "wipe":
                self.kill_broker(wipe=fault == "wipe")
            case "owner":
                self.kill_owner()
            case "stop" | "long stop":
                self.stop(name, self._short() if fault == "stop" else 1.4 * PATIENCE)
            case "cut" | "long cut":
                self.cut(name, self._short() if fault == "cut" else 1.4 * PATIENCE)
            case "leader":
                self.kill_leader()
            case "full disk":
                if not filling.missing():
                    self.fill_disk()
            case _:
                self.turn_clocks("+3600" if "+" in fault else "-3600")
        self.faults[fault] += 1

    def _at_work(self) -> str:
        facts = read_facts(self.folder / "ledger.jsonl")
        open_ids = {fact.id for fact in facts if fact.what == "attempt" and not fact.note}
        open_ids -= {fact.id for fact in facts if fact.what == "finishing"}
        alive = {f"{name} {life}" for name, life in self.lives.items()}
        begun = [ran for id, runs in runs_of(facts).items() if id in open_ids for ran in runs]
        return next((ran.worker for ran in begun if ran.who in alive), "")

    def _fresh_end(self) -> Callable[[], bool]:
        def ends() -> int:
            return sum(fact.what == "finishing" for fact in read_facts(self.folder / "ledger.jsonl"))

        before = ends()
        return lambda: ends() > before

    def kill(self, name: str) -> None:
        began = time.monotonic()
        self.killed.add(f"{name} {self.lives[name]}")
        self.workers[name].kill()
        self.workers[name].wait()
        self.pause(0.0, 0.5)
        self.start_worker(name)
        self._away(name, began)

    def kill_broker(self, *, wipe: bool) -> None:
        self.broker.kill()
        if wipe:
            self.broker.wipe()
        self.pause(0.1, 1.5)
        self.broker.start()

    def kill_leader(self) -> None:
        assert isinstance(self.broker, NatsProcesses)
        leader = until(lambda: self.broker.leader() + 1, "the stream has a leader") - 1  # type: ignore[attr-defined]
        self.broker.kill_one(leader)
        self.pause(2.0, 5.0)
        self.broker.start_one(leader)
        self.pause(3.0, 5.0)

    def kill_owner(self) -> None:
        assert self.owner is not None
        self.owner.kill()
        self.owner.wait()
        self.pause(0.0, 1.0)
        self.start_owner()

    def stop(self, name: str, seconds: float) -> None:
        began = time.monotonic()
        self.workers[name].send_signal(signal.SIGSTOP)
        pause(seconds, "it is frozen")
        self.workers[name].send_signal(signal.SIGCONT)
        self._away(name, began)

    def cut(self, name: str, seconds: float) -> None:
        began = time.monotonic()
        self._ways[name].cut()
        pause(seconds, "its cable is unplugged")
        self._ways[name].mend()
        self._away(name, began)

    def fill_disk(self) -> None:
        """Its journal cannot be written: it gives back what it claims, and rests for a while."""
        self.full.add(FULL)
        ballast = self.folder / f"home-{FULL}" / "ballast"
        with suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(65_536))
                file.flush()
        self.pause(2.0, 4.0)
        ballast.unlink()

    def turn_clocks(self, by: str) -> None:
        for clock in self.folder.glob("clock-*"):
            new = self.folder / f"new-{clock.name}"
            new.write_text(f"{by}\n")
            new.rename(clock)

    # -- the end

    def come_out(self, seconds: float, is_enough: Callable[[], bool]) -> list[str]:
        """Until the owner has told everything, or enough was seen. On a busy machine that takes as long as it
        takes; so many seconds in which nothing is told are too many."""
        assert self.owner is not None
        owner, ledger = self.owner, self.folder / "ledger.jsonl"
        told = size = -1

        def looked() -> str:
            nonlocal told, size
            if owner.poll() is not None:
                return "over"
            before, now = told, ledger.stat().st_size
            if now == size:
                return ""
            told, size = ledger.read_bytes().count(b'["acked"'), now
            return "enough" if is_enough() else "more" if told > before else ""

        try:
            while (found := until(looked, "more is told", self.counters, limit=seconds)) == "more":
                continue
        except AssertionError as stalled:
            return [str(stalled)]
        finally:
            owner.kill()
            owner.wait()
        if found == "enough":
            return []
        code = owner.returncode
        said = self._log("owner").read_text(errors="replace")[-2_000:]
        return [] if code == 0 else [f"the owner ended with {code}:\n{said}"]

    def counters(self) -> dict[str, int]:
        with suppress(OSError, ValueError):
            return json.loads((self.folder / "counters.json").read_text())
        return {}

    def judged(self, problems: list[str]) -> Verdict:
        done = Done(self.killed, self.outages, PATIENCE, self.full)
        return judged(self.folder, self.seed, self.tasks, done, problems)


def planned(percent: int, rng: random.Random, plan: dict[str, int]) -> list[str]:
    """Faults in a random order: every kind at least once, but the long ones only in a whole run. 0 percent
    is one kill."""
    if percent == 0:
        return ["kill"]
    short = {fault: times for fault, times in plan.items() if percent == 100 or "long" not in fault}
    faults = [fault for fault, times in short.items() for _ in range(max(1, times * percent // 100))]
    rng.shuffle(faults)
    return faults


def run_plan(
    site: Site,
    faults: list[str],
    patience: float,
    is_enough: Callable[[], bool] = lambda: False,
) -> Verdict:
    """`patience`: seconds in which something must be told. `is_enough`: whether it need not go on."""
    for number, fault in enumerate(faults):
        site.allow((number + 1) / len(faults))  # spread: each fault finds work under way
        site.pause(0.2, 1.0)
        if is_enough():
            break
        site.make(fault)
    site.allow(1.0)
    return site.judged(site.come_out(patience, is_enough))


def _family(
    carrier: str, title: str, *, delay: float = 3.0, plan: dict[str, int] = PLAN
) -> Callable[[int, int, int, str], Tally]:
    def play(seed: int, tasks: int, percent: int, reproduce: str) -> Tally:
        tally = Tally(title, reproduce)
        judgement = Verdict()

        def make(folder: Path) -> int:
            nonlocal judgement
            late = delay if percent == 100 else delay / 6
            with Site(folder, carrier, seed, tasks, delay=late) as site:
                judgement = run_plan(site, planned(percent, site.rng, plan), STALLED)
                _print(site)
                return sum(site.faults.values())

        trial(tally, f"{title}, seed {seed}, {tasks} tasks", make, lambda folder: judgement)
        return tally

    return play


def _print(site: Site) -> None:
    runs = runs_of(read_facts(site.folder / "ledger.jsonl"))
    begun = sum(len(each) for each in runs.values())
    again = sum(1 for each in runs.values() if len(each) > 1)
    print(
        f"  {site.carrier}, seed {site.seed}: {site.tasks} tasks, {begun} runs begun, {again} run again "
        f"after a loss, {len(site.killed)} lives killed; {dict(site.faults)}; {site.counters()}",
        flush=True,
    )


memory = _family("memory", "workers, and a broker that loses messages")
nats = _family("nats", "workers over NATS")
postgres = _family("postgres", "workers over PostgreSQL")
cluster = _family("cluster", "workers over three NATS servers", plan={"leader": 3, "kill": 3, "owner": 1})
