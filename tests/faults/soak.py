"""A soak: a third of the highest rate against a real daemon, for an hour, with kills in it.

    python -m tests.faults.soak [--minutes 60] [--folder .soak] [--seed N]

`make faults LONG=1` is the same. It is played in rounds. In every fourth, daemons are killed; in the others
the daemon lives on, so that what it holds can be watched, and only clients are killed. At the end of a round
everything must have been told, and the round's outside record is judged. The report is written as it goes; a
soak that was stopped, or killed, goes on from it.
Exit code 1: something was lost, doubled or misordered, or it grew.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from tests.waiting import pause

from . import flatness
from .judge import Verdict
from .reports import add_soak
from .served import Crowd, Daemon
from .soak_judge import judged_round, lines_of
from .soak_report import Report

CONFIG = """
tools = ["tests.faults.link_plants", "tests.faults.soak_daemon"]
[http]
enabled = false
[limits]
per_thread = 20
total = 60
[agents.echo]
runner = "python"
agent = "tests.faults.soaking:echo"
[runtime]
reconcile_every = 0.5
upkeep_every = 5.0
[retention]
history_tasks = 1500
journal_events = 3000
[timeouts]
stop_grace = 0.5
stop_deadline = 3.0
[wakes]
rounds = -1
[executors]
lease = {lease}
grace = {grace}
"""
CLIENTS = 3
SHARE = 1 / 3  # of the highest rate
STORM = 4  # every so many rounds, daemons are killed
LINE = 320  # bytes that the ledger may need for a line of a conversation that it keeps, with its index


class Sizes(NamedTuple):
    """In seconds."""

    whole: float
    measuring: float = 20.0  # the highest rate
    round: float = 300.0
    warm_up: float = 90.0
    every: float = 2.0  # between two samples
    client_kill: float = 30.0  # between two kills, about
    daemon_kill: float = 20.0
    slack: float = 1.0  # times the floors of what counts as flat

    @classmethod
    def of(cls, minutes: float) -> Sizes:
        """Shorter rounds in a short soak, so that each has the same ones."""
        whole = minutes * 60
        least = min(1.0, whole / 1_200)
        return cls(
            whole,
            measuring=max(5.0, 20 * least),
            round=max(6.0, 300 * least),
            warm_up=max(4.0, 90 * least),
            every=max(0.25, whole / 1_800),
            client_kill=max(3.0, 30 * least),
            daemon_kill=max(2.0, 20 * least),
            slack=1.0 if least == 1.0 else 6.0,  # a young daemon fills its caches, and its load is uneven
        )


class Soak:
    def __init__(self, folder: Path, sizes: Sizes, seed: int, plant: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder.resolve()
        self.sizes = sizes
        self.report = Report(self.folder / "report.json", seed, sizes.whole)
        self.rng = random.Random(f"{self.report.seed}.{self.report.parts}")
        self.daemon = Daemon(self.folder, config=CONFIG, plant=plant)
        self.crowd: Crowd | None = None
        self._born = 0.0
        self._saved = 0.0

    # -- the whole

    def run(self) -> Report:
        with self.report.held():
            self.report.end_leftovers()
            if self.report.parts == 1:  # a new one, whatever lies here
                shutil.rmtree(self.daemon.home.folder, ignore_errors=True)
                shutil.rmtree(self.folder / "rounds", ignore_errors=True)
            self.report.save()
            try:
                self._up()
                if not self.report.maximum:
                    self._measure()
                while self.report.played < self.sizes.whole:
                    self._round()
                    self._say()
                self.daemon.end(signal.SIGTERM)
                self.report.finish(self.sizes.warm_up, self.sizes.slack)
            except AssertionError as problem:
                self.report.broke(problem)
                raise
            finally:
                if self.crowd is not None:
                    self.crowd.end()
                if self.daemon.is_up:
                    self.report.kills["daemon"] += 1  # to the next part it was one
                    self.daemon.end(signal.SIGKILL)
                self.report.save()
        return self.report

    def _up(self) -> None:
        self.daemon.up()
        self._born = time.monotonic()
        self.report.lives += 1
        self._remember()

    def _say(self) -> None:
        print(self.report.line(), flush=True)

    # -- a round

    def _measure(self) -> None:
        """The highest rate, of the same mixed work: accepted and told, or answered at once."""
        folder = self._open("measuring")
        crowd = self._gather(folder, "m", rate=0.0)
        pause(self.sizes.measuring / 4, "everybody gets to work")
        count = Count(folder)
        before, began = count.settled(), time.monotonic()
        pause(self.sizes.measuring, "the rate is measured")
        maximum = (count.settled() - before) / (time.monotonic() - began)
        assert maximum > 0, "nothing was told"
        found = self._judge(folder, crowd, "measuring")
        self.report.maximum = maximum
        self._over(folder, found)

    def _round(self) -> None:
        number = self.report.rounds
        folder = self._open(str(number))
        self.crowd = crowd = self._gather(folder, str(number), rate=self.report.maximum * SHARE / CLIENTS)
        storm = number % STORM == 0
        played, into, count = self.report.played, self.report.into, Count(folder)
        length = min(self.sizes.round - into, self.sizes.whole - played)
        now, clock = 0.0, time.monotonic()  # seconds of this round, without those in which nobody looked
        sample_at, client_at = 0.0, self._next(self.sizes.client_kill)
        daemon_at = 0.0 if storm else float("inf")  # at once, so that the shortest round has one
        while now < length:
            assert self.daemon.is_up, f"the daemon ended by itself:\n{self.daemon.said()}"
            if now >= sample_at:
                sample_at = now + self.sizes.every
                self._sample(count, played + now, into + now)
            if now >= daemon_at:
                self._kill_the_daemon()
                daemon_at = now + self._next(self.sizes.daemon_kill)
            if now >= client_at:
                self._kill_a_client(crowd)
                client_at = now + self._next(self.sizes.client_kill)
            pause(max(0.0, min(sample_at, daemon_at, client_at, length) - now), "a paced round")
            now, clock = now + min(time.monotonic() - clock, self.sizes.every), time.monotonic()
        found = self._judge(folder, crowd, str(number))
        self.report.played = played + length
        self.report.rounds, self.report.into = number + 1, 0.0
        self._over(folder, found)

    def _over(self, folder: Path, found: Verdict) -> None:
        """Not before it is judged: what is untold is told by those who go on with the round."""
        self.report.broken, self.report.stormy = set(), False
        self.report.save()
        if found.clean:
            shutil.rmtree(folder)

    def _next(self, about: float) -> float:
        return self.rng.uniform(0.5, 1.5) * about

    def _open(self, name: str) -> Path:
        """A round that was under way when the last part was stopped goes on, with other clients."""
        folder = self.folder / "rounds" / name
        folder.mkdir(parents=True, exist_ok=True)
        earlier = [path.name.split(".")[1:3] for path in folder.glob("client.*.log")]
        self.report.broken |= {"-".join(one) for one in earlier}
        self.report.stormy |= bool(earlier)
        for path in (*folder.glob("stopped.*"), folder / "finish"):
            path.unlink(missing_ok=True)
        return folder

    def _gather(self, folder: Path, name: str, rate: float) -> Crowd:
        crowd = Crowd(self.daemon, folder=folder, program="soaking", more=(str(rate),))
        self.crowd = crowd
        for number in range(CLIENTS):
            crowd.join(f"{name}x{number}", self.rng.randrange(1 << 30))
        self._remember()
        return crowd

    def _judge(self, folder: Path, crowd: Crowd, name: str) -> Verdict:
        problems = crowd.come_out()
        self.crowd = None
        found, counts = judged_round(
            folder, self.daemon.home.link_socket, problems, self.report.broken, self.report.stormy
        )
        self.report.add(name, found, counts)
        self.report.transcript_lines += lines_of(counts)
        return found

    # -- faults

    def _kill_a_client(self, crowd: Crowd) -> None:
        name = self.rng.choice(sorted(crowd.living))
        self.report.broken.add(f"{name}-{crowd.life(name)}")
        crowd.kill(name)
        self.report.kills["client"] += 1
        crowd.join(name, self.rng.randrange(1 << 30))
        self._remember()

    def _kill_the_daemon(self) -> None:
        self.report.stormy = True
        self.daemon.end(signal.SIGKILL)
        self.report.kills["daemon"] += 1
        pause(self.rng.uniform(0.0, 0.5), "the moment of a restart is what is random here")
        self._up()

    def _remember(self) -> None:
        """Who is to be ended if we are killed."""
        pids = [client.pid for client in self.crowd.living.values()] if self.crowd else []
        self.report.remember([self.daemon.pid, *pids] if self.daemon.is_up else pids)

    # -- samples

    def _sample(self, count: Count, at: float, into: float) -> None:
        proc = Path(f"/proc/{self.daemon.pid}")
        try:
            status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
            descriptors = len(os.listdir(proc / "fd"))
        except OSError:
            return  # it has just ended, which the next look says
        home = self.daemon.home
        wal = home.ledger.with_name("ledger.db-wal")
        lines = self.report.transcript_lines + count.now()["kept in the ledger"]
        self.report.samples.append(
            flatness.Sample(
                round(at, 1), self.report.lives, round(time.monotonic() - self._born, 1),
                int(status["VmRSS"].split()[0]) * 1024, descriptors, int(status["Threads"]),
                wal.stat().st_size if wal.exists() else 0, _size(home.folder) - lines * LINE,
            )
        )  # fmt: skip
        self.report.played, self.report.into = at, into
        if time.monotonic() > self._saved + min(10.0, self.sizes.round / 4):
            self.report.save()
            self._saved = time.monotonic()


def _size(folder: Path) -> int:
    """What it takes on the disk. Files come and go meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                continue
    return total


class Count:
    """Facts of a round by their first word. Each look reads only what was written since the last."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "ledger.jsonl"
        self._read = 0
        self._found = Counter[str]()

    def now(self) -> Counter[str]:
        fresh = b""
        if self._file.exists():
            with self._file.open("rb") as file:
                file.seek(self._read)
                fresh = file.read()
        fresh = fresh[: fresh.rfind(b"\n") + 1]
        self._read += len(fresh)
        for line in fresh.splitlines():
            self._found[line[2 : line.find(b'"', 2)].decode()] += 1
            self._found["kept in the ledger"] += line.startswith(b'["acked", "a')
        return self._found

    def settled(self) -> int:
        found = self.now()
        return found["acked"] + found["refused"]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m tests.faults.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, default=Path(".soak"), help="report.json is written there")
    parser.add_argument("--seed", type=int, default=None, help="of a new soak; else it is drawn, and printed")
    parser.add_argument("--report", type=Path, help="a JSON file in which the last result is kept, too")
    given = parser.parse_args(words)
    signal.signal(signal.SIGTERM, _stop)
    seed = given.seed if given.seed is not None else time.time_ns() % 1_000_000
    soak = Soak(given.folder, Sizes.of(given.minutes), seed)
    print(soak.report.head(), flush=True)
    try:
        report = soak.run()
    except (KeyboardInterrupt, Stopped):
        print(f"stopped after {soak.report.played:.0f} s; the same command goes on")
        return 130
    print(report.summary())
    if given.report is not None:
        add_soak(given.report, report.result())
    return 0 if report.clean else 1


class Stopped(BaseException):
    """By a signal."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped


if __name__ == "__main__":
    sys.exit(main())
