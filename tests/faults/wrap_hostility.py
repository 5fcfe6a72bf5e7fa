"""Hostile servers behind a wrap, and hosts that use ids as they should not: every call has its own answer, or
an error where its server fails it, and nothing that passes through is lost or changed.

An honest call runs beside each of them, and is answered as always."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until

from meantime.daemon.home import Home
from meantime.daemon.owner_process import owner, terminate

from . import strace
from .adoption import clear
from .judge import Tally, Verdict
from .served import PLANT
from .trial import side_by_side, trial
from .wraps import CONFIG

SERVER = strace.ROOT / "tests" / "surfaces" / "wrap" / "hostile_server.py"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
Message = dict[str, Any]


def run(seed: int, chains: int, acts: int, reproduce: str) -> Tally:
    """`chains` hosts, each with a server of its own that does `acts` of these things in a row."""
    tally = Tally("hostile servers behind a wrap", reproduce)
    rng = random.Random(seed)
    shares = [[rng.choice(list(ACTS)) for _ in range(acts)] for _ in range(chains)]
    side_by_side(shares, lambda share: _chain(tally, share))
    return tally


def _chain(tally: Tally, acts: list[str]) -> None:
    found = Verdict()

    def make(folder: Path) -> int:
        nonlocal found
        found = played(folder, acts)
        return len(acts)

    trial(tally, ", ".join(acts), make, lambda _: found, clear)


def played(folder: Path, acts: list[str], plant: str = "", patience: float = LIMIT) -> Verdict:
    """`patience`: seconds for an answer, once the server is there."""
    home = Home(folder / "home", folder / "config.toml")
    home.config.write_text(CONFIG)
    host = Host(folder, home, plant)
    problems: list[str] = []
    try:
        host.begin()
        host.patience = patience
        for act in acts:
            try:
                honest = host.call("honest", n=next(host.numbers))
                ACTS[act](host)
                host.check(honest, "honest")
            except (AssertionError, KeyError, TypeError, ValueError) as problem:
                problems.append(f"{act}: {problem!r}")
                break  # what comes after it may be read in the wrong place
    finally:
        host.end()
        found = owner(home)
        if found is not None:
            terminate(home, found.pid, signal.SIGKILL, LIMIT)
        clear(folder)
    return Verdict(lost=tuple(problems))


SAME = 30  # calls with one id


class Host:
    """Calls are named by numbers, which their answers repeat."""

    def __init__(self, folder: Path, home: Home, plant: str) -> None:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("MEANTIME")}
        own = {"MEANTIME_HOME": str(home.folder), "MEANTIME_CONFIG": str(home.config), PLANT: plant}
        paths = f"{strace.ROOT / 'src'}{os.pathsep}{strace.ROOT}"
        options = ["--wrap", "--threshold", "-1", "--thread", "hostile"]
        server = [sys.executable, str(SERVER), str(folder)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "meantime", "mcp", *options, "--", *server],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**plain, **own, "PYTHONPATH": paths},
        )  # fmt: skip
        self.patience = LIMIT
        self._rest = b""
        self.numbers = count(1)
        self.answers: dict[Any, list[Message]] = {}
        self.calls: dict[int, int] = {}  # the number in its arguments, by its id
        self.told = 0  # notifications

    def begin(self) -> None:
        self.say(id=0, method="initialize", params=HELLO)
        self.answer(0)
        self.say(method="notifications/initialized")
        self.check(self.call("honest", n=0), "honest")

    def say(self, is_last: bool = True, **message: Any) -> None:
        """is_last: otherwise it is sent together with the next one."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        if is_last:
            self._process.stdin.flush()

    def call(self, tool: str, id: int | None = None, is_last: bool = True, **given: Any) -> int:
        id = next(self.numbers) if id is None else id
        self.calls[id] = given.get("n", 0)
        self.say(is_last, id=id, method="tools/call", params={"name": tool, "arguments": given})
        return id

    def answer(self, id: Any) -> Message:
        def answered() -> list[Message] | None:
            self._read()
            return self.answers.get(id)

        return until(answered, f"{id} is answered", limit=self.patience).pop(0)

    def check(self, id: int, tool: str) -> None:
        said = self.answer(id)["result"]["content"][0]["text"]
        assert said == f"{tool} {self.calls[id]}", f"the answer to {id} is {said[:200]!r}"

    def _read(self) -> None:
        """All that is there."""
        assert self._process.stdout is not None
        place = self._process.stdout.fileno()
        while select.select([place], [], [], 0)[0]:
            piece = os.read(place, 1 << 20)
            assert piece, "the wrap has ended"
            *lines, self._rest = (self._rest + piece).split(b"\n")
            for line in lines:
                self._take(json.loads(line.decode("utf-8", "replace")))

    def _take(self, message: Message) -> None:
        if "method" in message:
            self.told += 1
        else:
            self.answers.setdefault(message["id"], []).append(message)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


# -- what they do


def crossed(host: Host) -> None:
    """Answers in another order."""
    ids = [host.call("reversed", n=number, of=20) for number in range(20)]
    for id in reversed(ids):
        host.check(id, "answer")


def reused(host: Host) -> None:
    """Calls with one id at once: all are answered, each once. Some are answered before the last one comes."""
    id = next(host.numbers)
    for number in range(SAME):
        host.call("echo", id, is_last=number == SAME - 1, n=number)
    said = Counter(host.answer(id)["result"]["content"][0]["text"] for _ in range(SAME))
    assert said == Counter(f"echo {number}" for number in range(SAME)), said


def giant(host: Host) -> None:
    """A frame above the limit is an error of its own call."""
    answer = host.answer(host.call("giant", size=65 << 20))
    assert "error" in answer, str(answer)[:200]


def big(host: Host) -> None:
    size = 5 << 20
    said = host.answer(host.call("giant", size=size))["result"]["content"][0]["text"]
    assert said == "x" * size, f"{len(said)} bytes"


def lies(host: Host) -> None:
    """A list of tools that makes no sense, and changes: it is passed on."""
    seen: list[int] = []
    for _ in range(2):
        id = next(host.numbers)
        host.say(id=id, method="tools/list", params={})
        seen.append(len(host.answer(id)["result"]["tools"]))
    assert seen in ([1, 5], [5, 5]), seen


def flood(host: Host) -> None:
    before, many = host.told, 5_000
    said = host.answer(host.call("flood", count=many))["result"]["content"][0]["text"]
    assert (said, host.told - before) == ("dry again", many), (said, host.told - before)


def half(host: Host) -> None:
    """Half a line, and its rest after another request."""
    begun = host.call("half")
    said = host.answer(host.call("rest"))["result"]["content"][0]["text"]
    assert said == "whole again", said
    assert host.answer(begun)["result"] == {"content": []}


def nonsense(host: Host) -> None:
    ids = {tool: host.call(tool) for tool in ("neither", "both", "words", "bytes", "wrong-structure")}
    for id in ids.values():
        host.answer(id)


def crash(host: Host) -> None:
    """Its calls end with an error, and a call after its rest starts it again."""
    open = [host.call("never") for _ in range(3)]
    last = host.call("crash")
    for id in (*open, last):
        answer = host.answer(id)
        assert "error" in answer or answer["result"].get("isError"), str(answer)[:300]

    def echoed() -> str | None:
        answer = host.answer(host.call("echo", n=7))
        if "error" not in answer:
            return answer["result"]["content"][0]["text"]
        assert "The server is not there" in answer["error"]["message"], answer
        return None

    assert until(echoed, "it is started again") == "echo 7"


ACTS: dict[str, Callable[[Host], None]] = {
    act.__name__: act for act in (crossed, reused, giant, big, lies, flood, half, nonsense, crash)
}
