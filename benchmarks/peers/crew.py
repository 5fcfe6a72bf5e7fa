"""The processes of one peer: a broker, workers and a client, as far as it has them."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..measure import TICKS, folder

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
OWN = Path(sys.executable)
PATIENCE = 60.0
LONGEST = 150.0  # seconds for the answer to one command


class Peer(NamedTuple):
    name: str
    settings: str  # the best that its documentation knows for this
    promise: str
    program: Path  # Python or Node, in the environment of the peer
    client: Sequence[str]
    worker: Sequence[str] = ()  # "{name}" is the worker's; without it the client does the work
    broker: Callable[[Path, int], list[str]] | None = None
    url: str = ""  # "{port}" is the broker's
    needs: Callable[[], bool] = lambda: True
    missing: str = ""  # the reason, if what it needs is not here
    tasks: int = 600  # fewer where a task takes long
    workers: int = 2

    @property
    def absent(self) -> str:
        """Why it cannot be played here; empty if it can."""
        if not self.program.exists():
            return f"{self.program.relative_to(ROOT)} is not installed"
        return "" if self.needs() else self.missing


def environment(name: str) -> Path:
    """The Python of a peer."""
    return ROOT / ".peers" / name / "bin" / "python"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(holds: Callable[[], Any], seconds: float = PATIENCE) -> bool:
    over = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > over:
            return False
        time.sleep(0.02)
    return True


class Crew:
    """lease: seconds after which a worker counts as gone."""

    def __init__(self, peer: Peer, place: Path, lease: float) -> None:
        self.peer, self.place, self.port = peer, place, free_port()
        self.facts = place / "facts"
        self.facts.touch()
        self._env = os.environ | {
            "QUEUE_URL": peer.url.format(port=self.port, folder=place),
            "QUEUE_FOLDER": str(place),
            "QUEUE_FACTS": str(self.facts),
            "QUEUE_VISIBILITY": str(lease),
            "PYTHONPATH": f"{PROGRAMS}{os.pathsep}{ROOT / 'src'}" if peer.program == OWN else str(PROGRAMS),
        }
        self.children: dict[str, subprocess.Popen[str]] = {}

    def start_all(self) -> None:
        self.start_broker()
        if not until(self._client_is_ready):
            raise OSError(f"{self.peer.name}: its client does not start: {self.said('client')}")
        for number in range(self.peer.workers if self.peer.worker else 0):
            self.start_worker(f"w{number + 1}")

    def start_broker(self) -> None:
        if self.peer.broker is not None:
            self._start("broker", self.peer.broker(self.place, self.port))
            if not until(self._broker_listens):
                raise OSError(f"{self.peer.name}: its server does not start: {self.said('broker')}")

    def _broker_listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def _client_is_ready(self) -> bool:
        """Temporal listens before it serves, so a client is started again until it can connect."""
        self._start("client", [str(self.peer.program), *map(_script, self.peer.client)], pipes=True)
        client = self.children["client"]
        assert client.stdout is not None
        while client.stdout.readline().strip() != "ready":
            if client.poll() is not None:
                time.sleep(0.5)
                return False
        return True

    def start_worker(self, name: str) -> None:
        words = [_script(word.format(name=name)) for word in self.peer.worker]
        self._start(name, [str(self.peer.program), *words])

    def _start(self, name: str, words: list[str], *, pipes: bool = False) -> None:
        pipe = subprocess.PIPE if pipes else None
        with (self.place / f"{name}.log").open("a") as log:
            self.children[name] = subprocess.Popen(
                words, stdin=pipe or subprocess.DEVNULL, stdout=pipe or log, stderr=log, env=self._env,
                cwd=self.place, start_new_session=True, text=True,
            )  # fmt: skip

    def said(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text(errors="replace")[-800:]

    def ask(self, **given: Any) -> dict[str, Any]:
        client = self.children["client"]
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(json.dumps(given) + "\n")
        client.stdin.flush()
        if not select.select([client.stdout], [], [], LONGEST)[0]:
            raise OSError(f"no answer to {given['do']} within {LONGEST:g} s")
        answer = json.loads(client.stdout.readline() or '{"problem": "the client is gone"}')
        if "problem" in answer:
            raise OSError(f"{given['do']}: {answer['problem']}")
        return answer

    def kill(self, name: str) -> None:
        """With everything that it started, as the loss of its machine."""
        child = self.children.pop(name)
        for pid, _ in list(processes_of({child.pid})):
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        child.wait()

    def end(self) -> None:
        for name in list(self.children):
            self.kill(name)

    def count(self, what: str, prefix: str) -> Counter[str]:
        lines = [line.split() for line in self.facts.read_text().splitlines()]
        return Counter(id for _, kind, id in lines if kind == what and id.startswith(prefix))

    def at(self, what: str, id: str) -> float:
        lines = [line.split() for line in self.facts.read_text().splitlines()]
        return next(float(at) for at, kind, name in lines if (kind, name) == (what, id))

    def cpu(self) -> float:
        """Seconds of all processes, with children that have ended."""
        return sum(sum(map(int, fields[11:15])) for _, fields in self._processes()) / TICKS

    def memory(self) -> int:
        """Bytes of all processes; what several of them share counts once."""
        return sum(_proportional(pid) for pid, _ in self._processes())

    def _processes(self) -> Iterator[tuple[str, list[str]]]:
        return processes_of({child.pid for child in self.children.values()})


def processes_of(roots: set[int]) -> Iterator[tuple[str, list[str]]]:
    """Those of the sessions that these processes began, and their children in sessions of their own, as
    PostgreSQL has them; each with the fields of its stat."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parent, session = int(fields[1]), int(fields[3])
        if session in roots or parent in roots:
            yield entry, fields


def _proportional(pid: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _script(word: str) -> str:
    if word.endswith(".mjs"):  # Node looks for packages beside the program
        return str(shutil.copy(PROGRAMS / word, ROOT / ".peers" / "mastra" / word))
    return str(PROGRAMS / word) if word.endswith(".py") else word


@contextmanager
def crew_of(peer: Peer, lease: float) -> Iterator[Crew]:
    with folder() as place:
        crew = Crew(peer, place, lease)
        try:
            crew.start_all()
            crew.ask(do="noops", count=20)  # all of them are there
            yield crew
        finally:
            crew.end()
