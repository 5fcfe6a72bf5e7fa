"""A real daemon in a home of its own, to be killed and started again, and the processes that use it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.waiting import LIMIT, until

from meantime import Meantime
from meantime.kernel.notices import notice_id  # an older version has it there, too

from . import strace
from .judge import Fact, Told, Verdict, judge, read_facts

PLANT = "MEANTIME_FAULT_PLANT"
LEASE, GRACE = 20.0, 60.0  # seconds; a busy machine does not stop a process for as long as both
CONFIG = """
tools = ["tests.faults.link_plants"]
[http]
enabled = false
[limits]
per_thread = 6
total = 40
[runtime]
reconcile_every = 0.5
[timeouts]
stop_grace = 0.5
stop_deadline = 3.0
[executors]
lease = {lease}
grace = {grace}
"""


class Daemon:
    def __init__(
        self, folder: Path, *, lease: float = LEASE, grace: float = GRACE, plant: str = "",
        home: str = "home", config: str = CONFIG,
    ) -> None:  # fmt: skip
        from meantime.daemon.home import Home  # here: an older version's clients load this file, too

        self.folder = folder
        self.home = Home(folder / home, folder / "config.toml")
        self.home.config.write_text(config.format(lease=lease, grace=grace))
        self.plant = plant
        self.more: dict[str, str] = {}  # in its environment, and that of its clients
        self._process: subprocess.Popen[bytes] | None = None
        self._log = folder / "foreground.log"

    @property
    def environ(self) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("MEANTIME")}
        return {
            **plain,
            "MEANTIME_HOME": str(self.home.folder),
            "MEANTIME_CONFIG": str(self.home.config),
            "PYTHONPATH": f"{strace.ROOT / 'src'}{os.pathsep}{strace.ROOT}",
            PLANT: self.plant,
            **self.more,
        }

    def up(self) -> None:
        from meantime.daemon.daemon_autostart import answers

        program = [sys.executable, "-P", "-m", "meantime.app.daemon", "--foreground"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(program, env=self.environ, stdout=log, stderr=log)

        def ready() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, f"the daemon ended by itself:\n{self.said()}"
            return answers(self.home)

        until(ready, "the daemon answers", self.said)

    def end(self, number: signal.Signals) -> None:
        """SIGKILL, or SIGTERM for a good end."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(LIMIT)
            self._process = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-3_000:] if self._log.exists() else ""


class Crowd:
    """The processes that are connected to it: `python -m tests.faults.linked`, or another `program` that
    takes the same words and `more`."""

    def __init__(
        self, daemon: Daemon, link: Path | None = None, *, folder: Path | None = None,
        program: str = "linked", more: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self._daemon = daemon
        self._link = link or daemon.home.link_socket
        self._program, self._more = program, more
        self.folder = folder or daemon.folder
        self.living: dict[str, subprocess.Popen[bytes]] = {}
        self._spoke: list[Path] = []
        self._lives: dict[str, int] = {}

    def life(self, name: str) -> int:
        return self._lives[name]

    def join(self, name: str, seed: int, *, patience: float = LIMIT) -> None:
        """Returns when it is connected. `patience`: seconds in which, at the end, everything must be told."""
        life = self._lives[name] = len(list(self.folder.glob("client.*.log")))
        log = self.folder / f"client.{name}.{life}.log"
        self._spoke.append(log)
        words = ["load", str(self.folder), name, str(life), str(seed), str(self._link), str(patience)]
        program = [sys.executable, "-m", f"tests.faults.{self._program}", *words, *self._more]
        with log.open("wb") as file:
            self.living[name] = subprocess.Popen(
                program, cwd=strace.ROOT, env=self._daemon.environ, stdout=file, stderr=subprocess.STDOUT
            )

        def begun() -> bool:
            return b"begin" in log.read_bytes() or self._gone(name)

        until(begun, f"{name} is connected", self.said)

    def _gone(self, name: str) -> bool:
        assert self.living[name].poll() is None, f"a client ended by itself:\n{self.said()}"
        return False

    def kill(self, name: str) -> None:
        victim = self.living.pop(name)
        assert victim.poll() is None, f"a client ended by itself:\n{self.said()}"
        victim.kill()
        victim.wait()

    def signal(self, name: str, number: signal.Signals) -> None:
        self.living[name].send_signal(number)

    def until_works(self, name: str, *, orders: bool = False) -> None:
        """Until it was given something to do again, or has told something; `orders`: the former."""
        seen = len(read_facts(self.folder / "ledger.jsonl"))
        born = f"-{name}-{self._lives[name]}-"

        def works() -> bool:
            fresh = read_facts(self.folder / "ledger.jsonl")[seen:]
            return any(
                (fact.what == "accepted" and born in fact.id)
                or (fact.what == "acked" and fact.thread[1:] == name and not orders)
                for fact in fresh
            )

        until(works, f"client {name} works on", self.said)

    def come_out(self) -> list[str]:
        """Everybody stops asking, lets everything go, and goes when all is told."""
        (self.folder / "finish").write_text(" ".join(self.living))
        problems: list[str] = []
        for name, client in self.living.items():
            try:
                code = client.wait(2 * LIMIT)
            except subprocess.TimeoutExpired:
                client.kill()
                client.wait()
                code = "nothing: it hangs"
            if code != 0:
                problems.append(f"client {name} ended with {code}:\n{self.said()}")
        return problems

    def end(self) -> None:
        for client in self.living.values():
            client.kill()
            client.wait()

    def said(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-1_500:] for path in self._spoke)


class Line(NamedTuple):
    """A line of a conversation: the notice, its status and its number in the thread."""

    id: str
    status: str
    number: int


def verdict(folder: Path, ledger: Path, problems: list[str]) -> Verdict:
    """What everybody wrote down, beside what the conversations say and what the ledger says of itself."""
    facts = read_facts(folder / "ledger.jsonl")
    names = sorted({fact.thread for fact in facts if fact.thread})
    told, ends = asyncio.run(_seen(ledger, names))
    told |= {path.stem: _file(path) for path in sorted(folder.glob("b*.jsonl"))}
    # What was lost with its process ended then, whatever its function did later.
    facts = [fact for fact in facts if fact.what != "finishing" or ends.get(fact.id) != "lost"]
    facts += [Fact("ended", "", id, status) for id, status in ends.items()]
    found = judge(facts, {thread: [Told(*line[:2]) for line in lines] for thread, lines in told.items()})
    out_of_order = [problem for thread, lines in told.items() for problem in misnumbered(thread, lines)]
    return Verdict((*found.lost, *problems), found.doubled, (*found.misordered, *out_of_order))


def misnumbered(thread: str, lines: list[Line]) -> list[str]:
    return [
        f"{after.id} has number {after.number} and was told after {before.id}, {before.number}, in {thread}"
        for before, after in pairwise(lines)
        if before.number >= after.number
    ]


def endings(ledger: Path, folder: Path) -> dict[str, str]:
    facts = read_facts(folder / "ledger.jsonl")
    return asyncio.run(_seen(ledger, sorted({fact.thread for fact in facts if fact.thread})))[1]


async def _seen(ledger: Path, names: list[str]) -> tuple[dict[str, list[Line]], dict[str, str]]:
    """Our own transcripts, and the endings of all tasks."""
    async with Meantime.open(ledger) as meantime:
        told: dict[str, list[Line]] = {}
        ends: dict[str, str] = {}
        for name in names:
            if name.startswith("a"):
                entries = await meantime.thread(name).transcript.entries()
                words = [entry.message.text.split(" ") for entry in entries]
                told[name] = [Line(id, status, int(number)) for id, status, number in words]
            offset = 0
            while tasks := await meantime.list("all", thread=name, limit=1_000, offset=offset):
                ends |= {notice_id(task.id, task.run.number): str(task.status) for task in tasks}
                offset += len(tasks)
        return told, ends


def _file(path: Path) -> list[Line]:
    from .linked import Conversation

    return Conversation(path).lines()
