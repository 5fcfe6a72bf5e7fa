"""kill -9 of a host, its wrap, the daemon and the wrapped server, at swept moments of a call.

Each call reaches a server at most once, and its host gets its own answer, or is told once, or is told
honestly that it is lost."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT, pause, until

from meantime.daemon.home import Home
from meantime.daemon.owner_process import owner, terminate

from . import strace
from .adoption import clear
from .judge import Tally, Verdict
from .served import PLANT
from .trees import lives
from .trial import side_by_side, trial
from .wrap_judge import verdict
from .wrap_ledger import THREAD, Noted, note, noted

VICTIMS = ("host", "wrap", "daemon", "server")
MOMENTS = ("before", "running", "answering", "background", "ended", "telling")
THRESHOLD = 0.4  # seconds
ANSWERS = ("result", "error", "background")
CONFIG = """
tools = ["tests.faults.wrap_plants"]
[http]
port = 0
[runtime]
reconcile_every = 0.5
"""


class Fault(NamedTuple):
    moment: str
    victim: str


def run(seed: int, chains: int, kills: int, reproduce: str) -> Tally:
    """`chains` conversations, in each of which somebody is killed `kills` times in a row."""
    tally = Tally("kill of host, wrap, daemon, wrapped server", reproduce)
    return sweep(tally, Scene, seed, chains, kills)


def sweep(tally: Tally, scene: type[Scene], seed: int, chains: int, kills: int) -> Tally:
    rng = random.Random(seed)
    every = [Fault(*one) for one in product(MOMENTS, scene.victims)]
    faults: list[Fault] = []
    while len(faults) < chains * kills:
        faults += rng.sample(every, len(every))
    shares = [
        (seed * 101 + number, faults[number * kills : (number + 1) * kills]) for number in range(chains)
    ]
    side_by_side(shares, lambda share: _chain(tally, scene, *share))
    return tally


def _chain(tally: Tally, scene: type[Scene], seed: int, faults: list[Fault]) -> None:
    what = ", ".join(f"{fault.victim} {fault.moment}" for fault in faults)
    found = Verdict()

    def make(folder: Path) -> int:
        nonlocal found
        found = played(folder, seed, faults, scene=scene)
        return len(faults)

    trial(tally, f"seed {seed}: {what}", make, lambda _: found, clear)


def played(
    folder: Path, seed: int, faults: list[Fault], plant: str = "", patience: float = LIMIT,
    scene: type[Scene] | None = None, threshold: float = THRESHOLD,
) -> Verdict:  # fmt: skip
    """`patience`: seconds in which, at the end, everything must be told. `threshold`: of the calls."""
    made = (scene or Scene)(folder, random.Random(seed), plant, patience, threshold)
    problems: list[str] = []
    try:
        for fault in faults:
            made.play(fault)
        made.come_out()
    except AssertionError as problem:
        problems.append(f"{problem}\n{made.log()}")
    finally:
        made.end()
    judged = verdict(noted(folder))
    return judged._replace(lost=(*judged.lost, *problems))


class Scene:
    """One conversation: its host of now, and the daemon of its home."""

    victims = VICTIMS
    program = "tests.faults.wrap_host"

    def __init__(
        self, folder: Path, rng: random.Random, plant: str, patience: float, threshold: float
    ) -> None:
        self.folder = folder
        self.home = Home(folder / "home", folder / "config.toml")
        self._rng = rng
        self._plant = plant
        self.home.config.write_text(self.config())
        self._patience, self._threshold = patience, threshold
        self._host: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    def config(self) -> str:
        return CONFIG

    # -- one fault

    def play(self, fault: Fault) -> None:
        """Two slow calls side by side; the second is let go first, so answers come in another order."""
        self._look()
        calls = [f"c{next(self._numbers)}" for _ in range(2)]
        server = self.pid("server")
        if fault.moment == "before":
            os.kill(server, signal.SIGSTOP)
        for mark in calls:
            self._send(f"slow-{mark}")
        getattr(self, f"_{fault.moment}")(calls)
        self._kill(fault.victim, server)
        if fault.moment == "before":
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGCONT)
        self._pause(0.3)
        self._free(calls)
        self._look()
        self._wait(lambda facts: self._is_settled(facts, calls), f"every call is settled after {fault}")

    def _before(self, calls: list[str]) -> None:
        self._wait(lambda facts: _has(facts, "sent", calls), "the calls are sent")
        self._pause(0.02)

    def _running(self, calls: list[str]) -> None:
        self._wait(lambda facts: _has(facts, "got", calls), "the server has the calls")
        self._pause(0.02)

    def _answering(self, calls: list[str]) -> None:
        self._running(calls)
        self._free(calls)
        self._wait(lambda facts: _has(facts, "answering", calls[1:]), "the server answers")
        self._pause(0.01)

    def _background(self, calls: list[str]) -> None:
        self._wait(lambda facts: _has(facts, "background", calls), "the calls are tasks")

    def _ended(self, calls: list[str]) -> None:
        self._background(calls)
        for mark in reversed(calls):
            self._free([mark])
            task = next(fact.note for fact in self.facts if fact[:2] == ("background", mark))
            self._wait(lambda _, id=task: self._state(id) != "running", f"{mark} has ended")
            note(self.folder, "ended", mark)

    def _telling(self, calls: list[str]) -> None:
        self._ended(calls)
        self._send(f"quick-p{next(self._numbers)}")
        self._wait(lambda facts: sum(fact.what == "told" for fact in facts) > self._told, "it is told")

    # -- the processes

    def _look(self) -> None:
        """There is a host whose server answers."""
        if self._host is None or self._host.poll() is not None:
            self._join()

        def answered(_: list[Noted]) -> bool:
            mark = f"p{next(self._numbers)}"
            self._send(f"quick-{mark}")
            said = self._wait(lambda facts: _answers(facts, mark), "a quick call is answered")
            return said[0].what == "result"

        self._wait(answered, "the server serves")
        self._told = sum(fact.what == "told" for fact in self.facts)

    def _join(self) -> None:
        program = [sys.executable, "-m", self.program, str(self.folder), str(self._threshold)]
        with (self.folder / "host.log").open("ab") as log:
            self._host = subprocess.Popen(
                program, cwd=strace.ROOT, env=self._environ, stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        pid = str(self._host.pid)
        self._wait(lambda facts: _has(facts, "greeted", [pid]), "the host has made its handshake")

    @property
    def _environ(self) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("MEANTIME")}
        return {
            **plain,
            "MEANTIME_HOME": str(self.home.folder),
            "MEANTIME_CONFIG": str(self.home.config),
            "PYTHONPATH": f"{strace.ROOT / 'src'}{os.pathsep}{strace.ROOT}",
            PLANT: self._plant,
        }

    def pid(self, what: str) -> int:
        """Of the newest wrap or server."""
        return int(next(fact.mark for fact in reversed(self.facts) if fact.what == what))

    def _kill(self, victim: str, server: int) -> None:
        note(self.folder, "killed", victim)
        if victim == "daemon":
            found = owner(self.home)
            assert found is not None, "there is no daemon"
            assert terminate(self.home, found.pid, signal.SIGKILL, LIMIT)
            self._wait(lambda _: not lives(server), "the server ends with its daemon")
            return
        if victim == "server":
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
        else:
            self._end_host(victim)

    def _end_host(self, victim: str) -> None:
        assert self._host is not None
        wrap = self.pid("wrap")
        with suppress(ProcessLookupError):
            os.kill(wrap if victim == "wrap" else self._host.pid, signal.SIGKILL)
        self._host.wait(LIMIT)  # it ends with its wrap, and its wrap with it
        self._wait(lambda _: not lives(wrap), "the wrap ends with its host")
        note(self.folder, "gone", "wrap")
        self._host = None

    def _send(self, tool: str) -> None:
        assert self._host is not None
        assert self._host.stdin is not None
        self._host.stdin.write(f"{tool}\n".encode())
        self._host.stdin.flush()

    def _free(self, calls: list[str]) -> None:
        for mark in reversed(calls):
            if not (self.folder / f"go-{mark}").exists():
                note(self.folder, "freed", mark)
                (self.folder / f"go-{mark}").touch()

    # -- the end

    def come_out(self) -> None:
        """Everything is told, the host leaves, and no server is left."""

        def nothing_left(facts: list[Noted]) -> bool:
            if verdict(facts).doubled:
                return True  # and will not become better
            self._look()
            threads = self._ask("/v1/threads")["threads"]
            return not any(one["active"] or one["unread"] for one in threads if one["id"] == THREAD)

        self._wait(nothing_left, "everything is told", self._patience)
        assert self._host is not None
        assert self._host.stdin is not None
        self._host.stdin.close()
        assert self._host.wait(LIMIT) == 0, "the host did not end well"
        self._leave([int(fact.mark) for fact in self.facts if fact.what == "server"])

    def _leave(self, servers: list[int]) -> None:
        self._wait(lambda _: not any(map(lives, servers)), "every server has ended")

    def end(self) -> None:
        if self._host is not None:
            self._host.kill()
            self._host.wait()
        found = owner(self.home)
        if found is not None:
            terminate(self.home, found.pid, signal.SIGKILL, LIMIT)
        clear(self.folder)

    # -- what is seen

    @property
    def facts(self) -> list[Noted]:
        return noted(self.folder)

    def _is_settled(self, facts: list[Noted], calls: list[str]) -> bool:
        """Whatever will be answered to a host that lives, is."""
        answered = {fact.mark for fact in facts if fact.what in ANSWERS}
        joined = max(place for place, fact in enumerate(facts) if fact.what == "greeted")
        return answered >= {
            fact.mark for fact in facts[joined:] if fact.what == "sent" and fact.mark in calls
        }

    def _state(self, task: str) -> str:
        return self._ask(f"/v1/tasks/{task}")["state"]

    def _ask(self, path: str) -> Any:
        talk = _Line(str(self.home.http_socket))
        try:
            talk.request("GET", path)
            answer = talk.getresponse()
            said = answer.read()
            assert answer.status == 200, said
            return json.loads(said)
        finally:
            talk.close()

    def _wait(self, true: Callable[[list[Noted]], Any], what: str, limit: float = LIMIT) -> Any:
        return until(lambda: true(self.facts), what, limit=limit)

    def _pause(self, most: float) -> None:
        pause(self._rng.uniform(0, most), "the moment of a fault is what is random here")

    def log(self) -> str:
        logs = (self.folder / "host.log", self.home.log)
        return "\n".join(log.read_text(errors="replace")[-1_500:] for log in logs if log.exists())


class _Line(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("meantime", timeout=LIMIT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _answers(facts: list[Noted], mark: str) -> list[Noted]:
    return [fact for fact in facts if fact.what in ANSWERS and fact.mark == mark]


def _has(facts: list[Noted], what: str, marks: list[str]) -> bool:
    return {fact.mark for fact in facts if fact.what == what} >= set(marks)
