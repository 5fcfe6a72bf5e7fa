"""Who serves a home: only what the kernel says counts, and nobody else is ever signalled."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime.daemon import owner_process
from meantime.daemon.home import Home
from meantime.daemon.owner_process import OwnerProcess, listener, owner, served_by_another, terminate
from meantime.stores.sqlite.ledger_lock import Lock
from meantime.system.platform import linux

HOLD = """
import sys, time
from pathlib import Path
from meantime.stores.sqlite.ledger_lock import Lock
Lock(Path(sys.argv[1])).take()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home", tmp_path / "config.toml")
    found.make()
    return found


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def holding(home: Home, *more: str) -> subprocess.Popen[str]:
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.ledger), *more],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    return held


def test_the_lock_says_who_owns(home: Home) -> None:
    assert owner(home) is None
    lock = Lock(home.ledger)
    lock.take()
    found = owner(home)
    assert found is not None
    assert (found.pid, found.is_daemon) == (os.getpid(), False)
    assert "\n" not in str(found)
    lock.give_back(clean=True)
    assert owner(home) is None


@pytest.mark.linux_only("it writes a table of locks as Linux has it")
def test_a_lock_of_another_file_with_the_same_number(
    home: Home, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = Path(f"{home.ledger}.lock")
    path.write_text("")
    locks = tmp_path / "locks"
    monkeypatch.setattr(linux, "LOCKS", locks)
    number = path.stat().st_ino
    locks.write_text(f"1: FLOCK  ADVISORY  WRITE {stranger.pid} 08:01:{number} 0 EOF\n")
    assert owner(home) is None
    with path.open():  # now we hold the file, as the line says
        locks.write_text(
            f"1: -> FLOCK  ADVISORY  WRITE 1 08:01:{number} 0 EOF\n"
            f"2: POSIX  ADVISORY  WRITE 1 08:01:{number} 0 EOF\n"
            f"3: FLOCK  ADVISORY  WRITE {os.getpid()} 08:01:{number + 1} 0 EOF\n"
        )
        assert owner(home) is None
        locks.write_text(f"1: FLOCK  ADVISORY  WRITE {os.getpid()} 08:01:{number} 0 EOF\n")
        found = owner(home)
    assert found is not None
    assert found.pid == os.getpid()


def test_only_the_owner_is_signalled(home: Home, stranger: subprocess.Popen[bytes]) -> None:
    assert terminate(home, stranger.pid, signal.SIGKILL, LIMIT)  # it is no owner: nothing to wait for
    with holding(home) as held:
        assert terminate(home, stranger.pid, signal.SIGKILL, LIMIT)
        assert stranger.poll() is None
        assert terminate(home, held.pid, signal.SIGKILL, LIMIT)
    assert stranger.poll() is None
    assert held.returncode == -signal.SIGKILL
    assert terminate(home, held.pid, signal.SIGKILL, LIMIT)  # it is gone


def test_one_that_does_not_end_is_said(home: Home) -> None:
    with holding(home) as held:
        assert not terminate(home, held.pid, signal.SIGCONT, 0.05)
        held.communicate("")


@pytest.mark.linux_only("the process behind a Unix socket is not known elsewhere")
def test_the_process_that_listens_at_a_home_is_found(home: Home) -> None:
    assert listener(home) == 0
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home.http_socket))
        assert listener(home) == 0
        listening.listen()
        assert listener(home) == os.getpid()


def test_one_that_does_not_answer_is_said(home: Home) -> None:
    assert served_by_another(home) is None
    with holding(home) as held:
        said = served_by_another(home)
        assert said is not None
        assert f"owned by process {held.pid}" in said
        assert "not a daemon" in said
        held.communicate("")
    with holding(home, "-m", "meantime.app.daemon") as held:
        said = served_by_another(home, wait=0.05)
        assert said is not None
        assert said.startswith(f"Process {held.pid} has the ledger and does not answer.")
        held.communicate("")


def test_a_daemon_is_known_by_its_command_line() -> None:
    assert OwnerProcess(1, "/usr/bin/python3 -P -m meantime.app.daemon").is_daemon
    assert not OwnerProcess(1, "/usr/bin/python3 agent.py").is_daemon


def test_an_owner_that_is_being_killed_is_waited_for(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes its command line away before its locks."""
    found: Iterator[OwnerProcess | None] = iter([OwnerProcess(1, ""), OwnerProcess(1, ""), None])
    monkeypatch.setattr(owner_process, "owner", lambda home: next(found))
    assert served_by_another(home) is None


def test_an_owner_without_a_command_line_that_stays_is_named(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_process, "owner", lambda home: OwnerProcess(1, ""))
    assert "Process 1 has the ledger and does not answer." in str(served_by_another(home, 0.05))
