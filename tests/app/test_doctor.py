"""The doctor: every check can find something, says what to do, and changes nothing."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

import meantime
from meantime import Meantime
from meantime.app import doctor
from meantime.app.doctor import (
    BAD,
    OK,
    WARN,
    CheckRow,
    Patient,
    examine,
    home_checks,
    machine_checks,
    platform_checks,
)
from meantime.daemon.home import Home
from meantime.system import platform
from meantime.system.platform import linux

DOCS = Path(__file__).resolve().parents[2] / "docs"
pytestmark = pytest.mark.anyio


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    found = Home(tmp_path / "home", tmp_path / "config.toml")
    found.make()
    return Patient(found, {"HOME": str(tmp_path)}, time.time())


def rows(patient: Patient) -> dict[str, CheckRow]:
    return {row.name: row for row in examine(patient)}


async def test_a_healthy_one(patient: Patient) -> None:
    async with Meantime.open(patient.home.ledger):
        pass
    before = sorted(patient.home.folder.iterdir())
    found = rows(patient)
    assert {row.level for row in found.values()} == {OK}, found
    assert found["meantime"].found.endswith(f" at {Path(meantime.__file__).parent}")
    assert "sound" in found["ledger"].found
    assert "not running" in found["daemon"].found
    assert sorted(patient.home.folder.iterdir()) == before


def test_before_the_first_start(tmp_path: Path) -> None:
    found = rows(Patient(Home(tmp_path / "new" / "home", tmp_path / "none.toml"), {}, time.time()))
    assert {row.level for row in found.values()} == {OK}, found
    assert not (tmp_path / "new").exists()


async def test_an_owner_that_is_no_daemon(patient: Patient) -> None:
    async with Meantime.open(patient.home.ledger):
        found = rows(patient)
    assert found["daemon"].level == BAD
    assert f"process {os.getpid()}" in found["daemon"].found
    assert found["ledger"].level == OK  # it is read beside its owner


def test_a_folder_that_others_may_enter(patient: Patient) -> None:
    patient.home.folder.chmod(0o755)
    row = rows(patient)["home"]
    assert (row.level, row.todo) == (BAD, f"Close it with: chmod 700 {patient.home.folder}")


def test_a_file_that_others_may_read(patient: Patient) -> None:
    patient.home.token.write_text("secret")
    patient.home.token.chmod(0o644)
    row = rows(patient)["home"]
    assert (row.level, "token" in row.found) == (WARN, True)


def test_a_wrong_configuration(patient: Patient) -> None:
    patient.home.config.write_text("[http]\nport = 'x'\n")
    row = rows(patient)["config"]
    assert (row.level, "http.port" in row.found, bool(row.todo)) == (BAD, True, True)


def test_a_configuration_that_others_can_change(patient: Patient) -> None:
    patient.home.config.touch()
    patient.home.config.chmod(0o664)
    assert [row.level for row in home_checks.config(patient)] == [OK, WARN]
    patient.home.config.chmod(0o644)
    assert [row.level for row in home_checks.config(patient)] == [OK]


def test_a_tool_that_is_not_there(patient: Patient) -> None:
    patient.home.config.write_text('tools = ["json", "not_there_at_all", "not_there.either"]\n')
    found = [row for row in home_checks.config(patient) if row.name == "tools"]
    assert [row.level for row in found] == [BAD, BAD]


AGENTS = """
[agents.there]
runner = "cli"
profile = "claude"
command = ["sh", "-c", "a secret"]
[agents.served]
runner = "opencode"
url = "http://localhost:4096"
[agents.gone]
runner = "cli"
command = ["codex"]
env = { PATH = "/nowhere" }
[agents.strange]
runner = "cli"
command = ["sh"]
[agents.ours]
runner = "python"
agent = "json:tool"
[agents.theirs]
runner = "python"
agent = "not_there_at_all:agent"
"""


def test_every_agent_of_the_configuration_is_looked_at(patient: Patient) -> None:
    patient.home.config.write_text(AGENTS)
    before = sorted(patient.home.folder.iterdir())
    found = {row.found.partition(":")[0]: row for row in examine(patient) if row.name == "agent"}
    assert {name: row.level for name, row in found.items()} == {
        "there": OK, "served": OK, "gone": BAD, "strange": BAD, "ours": OK, "theirs": BAD,
    }  # fmt: skip
    assert found["there"].found == "there: cli, sh"
    assert "codex" in found["gone"].found
    assert "Install it" in found["gone"].todo
    assert "claude, codex" in found["strange"].todo
    assert "not_there_at_all is not there" in found["theirs"].found
    assert sorted(patient.home.folder.iterdir()) == before

    patient.home.config.write_text(AGENTS.replace('"cli"', '"clay"'))
    rows_now = list(examine(patient))
    assert [row.level for row in rows_now if row.name == "config"] == [BAD]
    assert not [row for row in rows_now if row.name == "agent"]


async def test_a_damaged_ledger(patient: Patient) -> None:
    ledger = patient.home.ledger
    async with Meantime.open(ledger) as mt:
        for number in range(20):
            await mt.thread(f"t{number}").turn().__aenter__()
    whole = bytearray(ledger.read_bytes())
    whole[4096 : 4096 * 4] = os.urandom(4096 * 3)
    ledger.write_bytes(whole)
    row = rows(patient)["ledger"]
    assert (row.level, "salvage=True" in row.todo) == (BAD, True)


def test_a_ledger_that_is_none(patient: Patient) -> None:
    with sqlite3.connect(patient.home.ledger) as db:
        db.execute("CREATE TABLE other (x)")
    row = rows(patient)["ledger"]
    assert (row.level, "not a ledger" in row.found) == (BAD, True)
    patient.home.ledger.write_text("a letter, not a database, and long enough to be looked at as one" * 9)
    assert rows(patient)["ledger"].level == BAD


def test_files_of_a_daemon_that_was_killed(patient: Patient) -> None:
    patient.home.discovery.write_text(json.dumps({"pid": os.getpid()}))
    patient.home.http_socket.touch()
    row = rows(patient)["stale"]
    assert (row.level, "server.json, http.sock" in row.found) == (WARN, True)


@pytest.mark.parametrize(("free", "level"), [(10**10, OK), (5 * 10**8, WARN), (10**7, BAD)])
def test_a_disk_with_little_room_is_a_finding_with_advice(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, free: int, level: str
) -> None:
    monkeypatch.setattr(machine_checks.shutil, "disk_usage", lambda place: type("Usage", (), {"free": free}))
    row = rows(patient)["disk"]
    assert (row.level, bool(row.todo)) == (level, level != OK)


def test_a_low_limit_of_descriptors_is_a_warning_with_advice(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    row = rows(patient)["files"]
    assert (row.level, "ulimit -n 4096" in row.todo) == (WARN, True)


def test_packages_that_are_missing(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    there = machine_checks.importlib.util.find_spec
    missing = {"httptools"}

    def find(name: str) -> Any:
        return None if name in missing else there(name)

    monkeypatch.setattr(machine_checks.importlib.util, "find_spec", find)
    assert rows(patient)["extras"].level == WARN
    assert rows(patient)["mcp"].found.startswith("mcp ")
    missing.add("mcp")
    assert (rows(patient)["mcp"].level, "meantime[mcp]" in rows(patient)["mcp"].found) == (OK, True)
    servers = {"mcpServers": {"meantime": {"command": "/bin/meantime", "args": ["mcp"]}}}
    (Path(patient.environ["HOME"]) / ".claude.json").write_text(json.dumps(servers))
    row = rows(patient)["mcp"]
    assert (row.level, "Claude Code" in row.found, "meantime[server,mcp]" in row.todo) == (BAD, True, True)
    missing.add("uvicorn")
    row = rows(patient)["extras"]
    assert (row.level, "uvicorn" in row.found, "meantime[server]" in row.todo) == (BAD, True, True)


def test_expressions_of_watches_have_a_line(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert rows(patient)["watch"] == CheckRow("watch", OK, "re2, for expressions of watches")
    monkeypatch.setitem(sys.modules, "re2", None)  # as where it is not installed
    row = rows(patient)["watch"]
    assert (row.level, "pip install 'meantime[watch]'" in row.found) == (OK, True)
    (tmp_path / "re2.py").write_text("raise ImportError('libre2.so.11: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "re2")
    row = rows(patient)["watch"]
    assert (row.level, "libre2.so.11" in row.found, "google-re2" in row.todo) == (WARN, True, True)


def test_an_old_sqlite_is_explained(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    assert "(all that a ledger needs; 3.51.3 is newer)" in rows(patient)["sqlite"].found
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    assert rows(patient)["sqlite"].found == sqlite3.sqlite_version


@pytest.mark.linux_only("it takes away calls of the kernel of Linux")
def test_a_kernel_without_what_we_need(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "LOCKS", "/nowhere")
    monkeypatch.delattr(os, "pidfd_open")
    row = rows(patient)["kernel"]
    assert (row.level, "pidfd" in row.found, "/proc" in row.found) == (BAD, True, True)


def test_a_strange_clock(patient: Patient) -> None:
    patient.home.ledger.touch()
    for now in (0.0, 5e9, time.time() - 86_400):
        assert rows(patient._replace(now=now))["clock"].level == WARN, now


def test_a_check_that_fails_is_a_row(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(patient: Patient) -> Iterator[CheckRow]:
        raise ZeroDivisionError

    monkeypatch.setattr(doctor, "CHECKS", (broken, machine_checks.clock))
    found = rows(patient)
    assert (found["broken"].level, found["clock"].level) == (BAD, OK)


def test_a_ledger_that_is_gone(patient: Patient) -> None:
    patient.home.ledger.with_name("ledger.db.lock").write_text('{"made": true, "clean": true}')
    row = rows(patient)["ledger"]
    assert (row.level, "is gone" in row.found) == (BAD, True)


def test_a_daemon_that_accepts_nothing_new(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"degraded": True}
    monkeypatch.setattr(home_checks.Daemon, "get", lambda *_: answers)
    (row,) = home_checks.degraded(patient.home)
    assert (row.level, "accepts nothing new" in row.found) == (BAD, True)
    answers["degraded"] = False
    assert not list(home_checks.degraded(patient.home))


@pytest.mark.parametrize(
    ("version", "level", "todo"), [(4, WARN, "meantime up"), (999, BAD, "version of Meantime")]
)
async def test_a_ledger_of_another_version_is_not_a_damaged_one(
    patient: Patient, version: int, level: str, todo: str
) -> None:
    async with Meantime.open(patient.home.ledger):
        pass
    with sqlite3.connect(patient.home.ledger) as db:
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    row = rows(patient)["ledger"]
    assert (row.level, f"schema {version}" in row.found) == (level, True)
    assert todo in row.todo
    assert "salvage" not in row.todo


@pytest.mark.parametrize(
    ("kernel", "interop", "version"),
    [
        ("Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)", "", 0),
        ("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0)", "", 1),
        ("Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1)", "/run/WSL/8_interop", 2),
        ("Linux version 6.9.1-mine", "/run/WSL/8_interop", 2),
        ("", "", 0),
    ],
)
def test_wsl_is_recognised_by_its_kernel(kernel: str, interop: str, version: int) -> None:
    assert platform_checks.wsl_version(kernel, interop) == version


@pytest.mark.parametrize(
    ("kernel", "folder", "level", "said"),
    [
        (
            "5.15.153.1-microsoft-standard-WSL2",
            "/home/ann/.local/state/meantime",
            OK,
            "last terminal is closed",
        ),
        ("5.15.153.1-microsoft-standard-WSL2", "/mnt/c/Users/ann/meantime", BAD, "on a drive of Windows"),
        ("5.15.153.1-microsoft-standard-WSL2", "/mnt/data/meantime", OK, "last terminal is closed"),
        ("4.4.0-19041-Microsoft", "/home/ann/.local/state/meantime", BAD, "WSL 1"),
    ],
)
def test_what_to_mind_on_wsl_is_a_row(
    monkeypatch: pytest.MonkeyPatch, kernel: str, folder: str, level: str, said: str
) -> None:
    monkeypatch.setattr(platform, "kernel_name", lambda: f"Linux version {kernel}")
    home = Home(Path(folder), Path("/nowhere/config.toml"))
    (row,) = platform_checks.wsl(Patient(home, {}, time.time()))
    assert (row.level, said in row.found) == (level, True)
    assert bool(row.todo) == (level == BAD)


def test_without_wsl_there_is_no_row_of_it(patient: Patient) -> None:
    assert "wsl" not in rows(patient)
    assert rows(patient)["platform"].level == OK


@pytest.mark.linux_only("it is about the other path")
def test_the_weaker_path_is_said_with_its_figures(patient: Patient) -> None:
    """The same figure as in the pages; what names a process, and what a reboot looks like."""
    words = [sys.executable, "-c", "from meantime.app.doctor.platform_checks import path; print(*path(None))"]
    env = {**os.environ, "MEANTIME_PLATFORM": "posix"}
    said = subprocess.run(words, env=env, capture_output=True, text=True, timeout=LIMIT, check=True).stdout
    figure = f"{platform_checks.SURVIVORS} of {platform_checks.TREES}"
    assert f"{figure} hostile process trees" in said
    assert "start on the wall clock" in said
    assert "time of the boot" in said
    for page in ("guides/platforms.md", "reference/promises.md"):
        rows_of_page = (DOCS / page).read_text().splitlines()
        [row] = [
            line for line in rows_of_page if "ostile process trees" in line and "outlive a cancel" in line
        ]
        assert figure in row, page
    assert rows(patient)["platform"].found == "linux"
