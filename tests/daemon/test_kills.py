"""Daemons are killed and stopped at any moment, while many need one: each gets one, and the work goes on."""

from __future__ import annotations

import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.waiting import LIMIT, pause, until

from meantime.daemon.daemon_autostart import NoDaemon, ensure
from meantime.daemon.owner_process import listener, owner, terminate

from .conftest import Place
from .test_upgrade import is_alive, started, told

pytestmark = pytest.mark.faults

KILLS = 12
CLIENTS = 6
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR2)


def test_whoever_needs_a_daemon_gets_one(place: Place, tmp_path: Path) -> None:
    chance = random.Random(seed := random.randrange(1 << 32))
    place.up()
    task = started(place, tmp_path)
    over = threading.Event()

    def need_it() -> list[str]:
        problems: list[str] = []
        while not over.is_set():
            try:
                ensure(place.home, wait=LIMIT)
            except NoDaemon as problem:
                problems.append(str(problem))
            pause(0.02, "the next one needs it a moment later")
        return problems

    with ThreadPoolExecutor(CLIENTS) as crowd:
        clients = [crowd.submit(need_it) for _ in range(CLIENTS)]
        try:
            _kill_daemons(place, chance)
        finally:
            over.set()
    # One that is killed three times in a row may be given up on, and that is then what is said.
    problems = [text for client in clients for text in client.result() if "killed whenever" not in text]
    assert problems == [], f"seed {seed}"

    leader = place.up()
    assert listener(place.home) == leader == place.ask("GET", "/v1/info")["pid"]
    assert is_alive(tmp_path), f"seed {seed}"
    (tmp_path / "go").touch()
    ended = place.wait(task["id"])
    assert "exit code 7" in ended["error"]
    assert told(place) == [f"{task['id']}.1"]
    assert place.cli("audit").returncode == 0


def _kill_daemons(place: Place, chance: random.Random) -> None:
    """The last one is gone when this returns, so the next one is not ending."""
    for _ in range(KILLS):
        leader = until(lambda: owner(place.home), "a daemon owns the ledger")
        terminate(place.home, leader.pid, chance.choice(SIGNALS), 0)
        pause(chance.random() * 0.5, "the next kill is at a random moment")
    assert terminate(place.home, leader.pid, signal.SIGKILL, LIMIT)
