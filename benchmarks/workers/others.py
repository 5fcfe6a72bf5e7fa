"""The same work on Meantime, Celery, docket and Temporal, each with two workers in processes of their own: a
worker that is killed, a broker that is restarted, a cancel, and the CPU time of no-op tasks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from meantime.carriers.nats.nats_address import NatsAddress
from meantime.carriers.nats.server_config import ServerLogin, server_config

from ..measure import folder, p50, table
from .site import TICKS

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "queues"
PEERS = ROOT / ".queues" / "bin"
LONG = 12.0  # seconds of a long task: in the place of 30, with every timeout shortened alike
LEASE = 15.0  # seconds after which a worker counts as gone: more than a long task where it must be
RUNNING, NOOPS, CANCELS = 4, 300, 5
DOWN = 1.2  # seconds that a broker or a worker is away
PATIENCE = 60.0
PASSWORD = "of-the-benchmark"


def free_port() -> int:
    import socket

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


class Peer(NamedTuple):
    name: str
    settings: str  # the best that its documentation knows for this
    python: Path
    client: list[str]
    worker: list[str]  # "{name}" is the worker's
    broker: Callable[[Path, int], list[str]]
    url: str  # "{port}" is the broker's
    missing: str  # a program without which it cannot be played


def redis_server(folder: Path, port: int) -> list[str]:
    return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder),
            "--appendonly", "yes", "--save", ""]  # fmt: skip


def _temporal(folder: Path, port: int) -> list[str]:
    return [str(PEERS / "temporal"), "server", "start-dev", "--headless", "--ip", "127.0.0.1",
            "--port", str(port), "--db-filename", str(folder / "temporal.db"),
            "--log-level", "error"]  # fmt: skip


def _nats(folder: Path, port: int) -> list[str]:
    login = ServerLogin(PASSWORD, ("default",))
    config = server_config(
        host="127.0.0.1", port=port, folder=str(folder), name="bench", space="meantime",
        owner=ServerLogin(PASSWORD), workers={"w1": login, "w2": login}, lines={}, tls=None,
    )  # fmt: skip
    (folder / "nats.conf").write_bytes(config)
    return [str(Path(sysconfig.get_path("scripts")) / "nats-server"), "-c", str(folder / "nats.conf")]


MEANTIME = NatsAddress(("127.0.0.1:{port}",), "owner", PASSWORD).url()
OWN = Path(sys.executable)
QUEUES = [
    Peer("Meantime, NATS", f"retry=idempotent, lease + grace {LEASE:g} s", OWN,
         ["meantime_queue.py", "client"], ["meantime_queue.py", "worker", "{name}"], _nats, MEANTIME, ""),
    Peer("Celery, Redis (AOF)",
         f"acks_late, reject_on_worker_lost, prefetch 1, visibility_timeout {LEASE:g} s, prefork",
         PEERS / "python", ["celery_queue.py"],
         ["-m", "celery", "-A", "celery_queue", "worker", "-c", "8", "-n", "{name}", "-l", "ERROR"],
         redis_server, "redis://127.0.0.1:{port}/0", "redis-server"),
    Peer("docket, Redis (AOF)", f"redelivery_timeout {LEASE:g} s", PEERS / "python",
         ["docket_queue.py", "client"], ["docket_queue.py", "worker"],
         redis_server, "redis://127.0.0.1:{port}/0", "redis-server"),
    Peer("Temporal dev server (SQLite)", f"heartbeat every 0.5 s, heartbeat_timeout {LEASE:g} s",
         PEERS / "python", ["temporal_queue.py", "client"], ["temporal_queue.py", "worker"],
         _temporal, "127.0.0.1:{port}", ""),
]  # fmt: skip


class Crew:
    """The processes of one queue."""

    def __init__(self, peer: Peer, place: Path) -> None:
        self.peer, self.place, self.port = peer, place, free_port()
        self.facts = place / "facts"
        self.facts.touch()
        self._env = os.environ | {
            "QUEUE_URL": peer.url.format(port=self.port),
            "QUEUE_FOLDER": str(place),
            "QUEUE_FACTS": str(self.facts),
            "QUEUE_VISIBILITY": str(LEASE),
            "PYTHONPATH": f"{SCRIPTS}{os.pathsep}{ROOT / 'src'}" if peer.python == OWN else str(SCRIPTS),
        }
        self.children: dict[str, subprocess.Popen[str]] = {}

    def start_broker(self) -> None:
        self._start("broker", self.peer.broker(self.place, self.port))
        until(lambda: _listens(self.port))

    def start_client(self) -> None:
        self._start("client", [str(self.peer.python), *map(_script, self.peer.client)], pipes=True)
        assert self.children["client"].stdout is not None
        while self.children["client"].stdout.readline().strip() != "ready":
            assert self.children["client"].poll() is None, self.said("client")

    def start_worker(self, name: str) -> None:
        words = [_script(word.format(name=name)) for word in self.peer.worker]
        self._start(name, [str(self.peer.python), *words])

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
        return json.loads(client.stdout.readline() or '{"problem": "the client is gone"}')

    def kill(self, name: str) -> None:
        """With everything that it started, as the loss of its machine."""
        child = self.children.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
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
        """Seconds of all processes of all their groups."""
        groups = {child.pid for child in self.children.values()}
        total = 0
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) in groups:
                total += sum(map(int, fields[11:15]))  # with children that have ended
        return total / TICKS


def _script(word: str) -> str:
    return str(SCRIPTS / word) if word.endswith(".py") else word


def _listens(port: int) -> bool:
    import socket

    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def crew_of(peer: Peer) -> Iterator[Crew]:
    with folder() as place:
        crew = Crew(peer, place)
        try:
            crew.start_broker()
            until(lambda: _is_ready(crew))
            for name in ("w1", "w2"):
                crew.start_worker(name)
            crew.ask(do="noops", count=20)  # all of them are there
            yield crew
        finally:
            crew.end()


def _is_ready(crew: Crew) -> bool:
    """The client can connect: Temporal listens before it serves."""
    try:
        crew.start_client()
        return True
    except (AssertionError, OSError):
        time.sleep(0.5)
        return False


def _run_long(crew: Crew, prefix: str) -> None:
    ids = [f"{prefix}-{number}" for number in range(RUNNING)]
    crew.ask(do="start", ids=ids, seconds=LONG)
    until(lambda: len(crew.count("began", prefix)) == RUNNING)


def _outcome(crew: Crew, prefix: str) -> str:
    """Executions, those that came to their end, and those that nobody finished."""
    until(lambda: len(crew.count("ended", prefix)) == RUNNING, 3 * LONG + LEASE)
    time.sleep(2.0)  # another execution may have been on its way
    begun, ended = crew.count("began", prefix), crew.count("ended", prefix)
    return f"{begun.total()} begun, {ended.total()} ended, {RUNNING - len(ended)} lost"


def killed_worker(crew: Crew) -> str:
    _run_long(crew, "kill")
    crew.kill("w1")
    time.sleep(DOWN)
    crew.start_worker("w1")
    return _outcome(crew, "kill")


def restarted_broker(crew: Crew) -> tuple[str, str]:
    """And whether a cancel of one of them is heard afterwards."""
    _run_long(crew, "broker")
    crew.ask(do="start", ids=["after-0"], seconds=LONG)
    until(lambda: crew.count("began", "after"))
    crew.kill("broker")
    time.sleep(DOWN)
    crew.start_broker()
    time.sleep(1.0)
    asked = time.time()
    crew.ask(do="cancel", id="after-0")
    heard = until(lambda: crew.count("cancelled", "after"), LONG)
    cancel = f"after {crew.at('cancelled', 'after-0') - asked:.2f} s" if heard else "not heard"
    return _outcome(crew, "broker"), cancel


def cancel_delay(crew: Crew) -> str:
    delays: list[float] = []
    for number in range(CANCELS):
        id = f"cancel-{number}"
        crew.ask(do="start", ids=[id], seconds=LONG)
        if not until(lambda id=id: crew.count("began", id)):
            return "never began"
        asked = time.time()
        crew.ask(do="cancel", id=id)
        if not until(lambda id=id: crew.count("cancelled", id), LONG):
            return "not heard"
        delays.append(crew.at("cancelled", id) - asked)
    return f"{p50(delays) * 1e3:,.0f} ms"


def cpu_per_task(crew: Crew) -> str:
    before = crew.cpu()
    answer = crew.ask(do="noops", count=NOOPS)
    if "problem" in answer:
        return str(answer["problem"])[:60]
    return f"{(crew.cpu() - before) / NOOPS * 1e3:.2f} ms"


def played(peer: Peer) -> list[str]:
    if not peer.python.exists() or (peer.missing and shutil.which(peer.missing) is None):
        return [peer.name, f"not installed: {peer.missing or '.queues'}", "", "", "", ""]
    try:
        with crew_of(peer) as crew:
            cpu, delay = cpu_per_task(crew), cancel_delay(crew)
            killed = killed_worker(crew)
            broker, cancel = restarted_broker(crew)
            return [peer.name, cpu, delay, killed, broker, cancel]
    except (AssertionError, OSError, KeyError) as problem:
        return [peer.name, f"failed: {problem}"[:200], "", "", "", ""]


def run() -> None:
    rows = [played(peer) for peer in QUEUES]
    table(
        f"Two workers each; {RUNNING} tasks of {LONG:g} s while a worker is killed with -9, and while the "
        f"broker is restarted ({DOWN:g} s)",
        ["", "CPU of a no-op, all processes", "cancel, p50", "worker killed", "broker restarted",
         "cancel after that"],
        rows,
    )  # fmt: skip
    table("Settings", ["", ""], [[peer.name, peer.settings] for peer in QUEUES])
