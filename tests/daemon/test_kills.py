"""Daemons are killed and stopped at any moment, while many need one: each gets one, and the work goes on."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from meantime.daemon.daemon_autostart import NoDaemon, ensure
from meantime.daemon.owner_process import listener, owner

from .conftest import PATIENCE, Place
from .test_upgrade import is_alive, started, told

SECONDS = 4.0
CLIENTS = 6
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR2)


@pytest.mark.faults
def test_whoever_needs_a_daemon_gets_one(place: Place, tmp_path: Path) -> None:
    chance = random.Random(seed := random.randrange(1 << 32))
    place.up()
    task = started(place, tmp_path)
    over = threading.Event()

    def need_it() -> list[str]:
        problems: list[str] = []
        while not over.is_set():
            try:
                ensure(place.home, wait=60)
            except NoDaemon as problem:
                problems.append(str(problem))
            time.sleep(0.02)
        return problems

    with ThreadPoolExecutor(CLIENTS) as crowd:
        clients = [crowd.submit(need_it) for _ in range(CLIENTS)]
        try:
            kills = _kill_daemons(place, chance)
        finally:
            over.set()
    # One that is killed three times in a row may be given up on, and that is then what is said.
    problems = [text for client in clients for text in client.result() if "killed whenever" not in text]
    assert problems == [], f"seed {seed}"
    assert kills >= 2

    leader = place.up()
    assert listener(place.home) == leader == place.ask("GET", "/v1/info")["pid"]
    assert is_alive(tmp_path), f"seed {seed}"
    (tmp_path / "go").touch()
    ended = place.ask("GET", f"/v1/tasks/{task['id']}/wait?timeout=30")
    assert "exit code 7" in ended["error"]
    assert told(place) == [f"{task['id']}.1"]
    assert place.cli("audit").returncode == 0


def _kill_daemons(place: Place, chance: random.Random) -> int:
    """For some seconds; a busy machine may take that long for one, and then there are two."""
    kills, began = 0, time.monotonic()
    while (took := time.monotonic() - began) < SECONDS or (kills < 2 and took < PATIENCE):
        leader = owner(place.home)
        if leader is not None:
            os.kill(leader.pid, chance.choice(SIGNALS))
            kills += 1
        time.sleep(chance.random() * 0.5)
    return kills
