"""How a daemon begins: detached, private, and one per home."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

from meantime.daemon.daemon_autostart import NoDaemon, ensure
from meantime.daemon.owner_process import listener, owner
from meantime.system.process_marks import CLAUDE

from .conftest import Place

ROOT = Path(__file__).parents[2]


def test_it_is_detached_and_private(place: Place) -> None:
    hears, says = os.pipe()
    front = place.daemon(pass_fds=[says], umask=0o022)
    os.close(says)
    assert front.wait(LIMIT) == 0, front.communicate()
    with os.fdopen(hears, "rb") as ear:
        assert select.select([ear], [], [], LIMIT)[0]  # nobody has the other end any more: it was not kept
        assert ear.read() == b""

    leader = owner(place.home)
    assert leader is not None
    fields = Path(f"/proc/{leader.pid}/stat").read_text().rpartition(")")[2].split()
    parent, session, terminal = int(fields[1]), int(fields[3]), int(fields[4])
    assert parent not in (front.pid, os.getpid())
    assert session not in (os.getsid(0), leader.pid)  # a session of its own, and not the leader of it
    assert terminal == 0
    assert os.readlink(f"/proc/{leader.pid}/cwd") == "/"
    assert os.readlink(f"/proc/{leader.pid}/fd/0") == "/dev/null"
    assert {os.readlink(f"/proc/{leader.pid}/fd/{fd}") for fd in (1, 2)} == {str(place.home.log)}
    assert place.home.folder.stat().st_mode & 0o777 == 0o700
    loose = [path.name for path in place.home.folder.iterdir() if path.stat().st_mode & 0o077]
    assert loose == []


@pytest.mark.processes
def test_commands_have_the_umask_of_who_started_it(place: Place, tmp_path: Path) -> None:
    assert place.daemon(umask=0o027).wait(LIMIT) == 0
    made = tmp_path / "made"
    place.ask("POST", "/v1/tasks", {"command": ["touch", str(made)]})
    until(made.exists, "the command has written its file")
    assert made.stat().st_mode & 0o777 == 0o640


@pytest.mark.processes
@pytest.mark.behaviour("P4")
def test_neither_it_nor_its_commands_end_with_the_claude_code_that_asked_for_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(CLAUDE, "1 2 boot 0 t")
    ensure(place.home, wait=LIMIT)
    leader = owner(place.home)
    assert leader is not None
    assert CLAUDE.encode() not in Path(f"/proc/{leader.pid}/environ").read_bytes()
    made = tmp_path / "made"
    command = f"env > {made}.part && mv {made}.part {made}"
    body = {"command": command, "env": {CLAUDE: "1 2 boot 0 t", "OTHER": "is kept"}}
    place.ask("POST", "/v1/tasks", body)
    until(made.exists, "the command has written its file")
    assert "OTHER=is kept" in made.read_text()
    assert CLAUDE not in made.read_text()


@pytest.mark.processes
def test_one_in_the_foreground_does_not_end_with_it_either(place: Place) -> None:
    program = [sys.executable, "-m", "meantime", "up", "--foreground"]
    env = {**place.environ, CLAUDE: "1 2 boot 0 t"}
    with subprocess.Popen(program, env=env, stderr=subprocess.DEVNULL) as daemon:
        try:
            until(lambda: (found := owner(place.home)) and found.pid == daemon.pid, "it owns the ledger")
            assert CLAUDE.encode() not in Path(f"/proc/{daemon.pid}/environ").read_bytes()
        finally:
            daemon.terminate()


@pytest.mark.processes
@pytest.mark.behaviour("H2")
def test_thirty_at_once_are_one(place: Place) -> None:
    fronts = [place.daemon() for _ in range(30)]
    said = [front.communicate(timeout=LIMIT)[1] for front in fronts]
    assert [front.returncode for front in fronts] == [0] * 30, said
    leader = owner(place.home)
    assert leader is not None
    assert listener(place.home) == leader.pid
    assert place.ask("GET", "/v1/info")["pid"] == leader.pid
    assert place.log().count(" serves ") == 1
    assert place.home.discovery.exists()
    until(lambda: place.processes() == [leader.pid], "the others have ended", there=place.processes)


@pytest.mark.processes
def test_thirty_that_need_it_start_one(place: Place) -> None:
    with ThreadPoolExecutor(30) as crowd:
        list(crowd.map(lambda _: ensure(place.home, wait=LIMIT), range(30)))
    assert place.log().count(" serves ") == 1
    assert place.log().count("\n") == 2


def test_a_second_one_leaves_at_once(place: Place) -> None:
    first = place.up()
    before = place.home.discovery.read_bytes(), place.home.http_socket.stat().st_ino
    second = place.daemon()
    assert second.wait(LIMIT) == 0
    assert place.up() == first
    assert (place.home.discovery.read_bytes(), place.home.http_socket.stat().st_ino) == before


@pytest.mark.processes
@pytest.mark.behaviour("H2")
def test_an_embedded_owner_is_named(place: Place) -> None:
    place.home.make()
    code = (
        "import asyncio, sys\n"
        "from meantime import Meantime\n"
        "async def main():\n"
        "    async with Meantime.open(sys.argv[1]):\n"
        "        print('open', flush=True)\n"
        "        await asyncio.to_thread(sys.stdin.read)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(place.home.ledger)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as embedded:  # fmt: skip
        assert embedded.stdout is not None
        assert embedded.stdout.readline() == "open\n"
        with pytest.raises(NoDaemon, match=f"owned by process {embedded.pid}") as caught:
            ensure(place.home, wait=LIMIT)
        assert "MEANTIME_HOME" in caught.value.hint
        down = place.cli("down")
        assert (down.returncode, str(embedded.pid) in down.stderr) == (4, True)
        status = place.cli("status")
        assert (status.returncode, str(embedded.pid) in status.stdout) == (5, True)
        assert embedded.poll() is None
        embedded.communicate("")
    assert place.up()


def test_a_bad_configuration_is_named(place: Place) -> None:
    place.configure('[limits]\nper_thread = "five"\n')
    with pytest.raises(NoDaemon) as caught:
        ensure(place.home, wait=LIMIT)
    assert f"limits.per_thread in {place.home.config}, line 2," in caught.value.message
    assert "The default is 10" in caught.value.hint
    assert "limits.per_thread" in place.log()
    up = place.cli("up")
    assert (up.returncode, "limits.per_thread" in up.stderr) == (5, True)


def test_a_ledger_that_is_none_is_named(place: Place) -> None:
    place.home.make()
    letter = "Dear Ada, this is no database. " * 400
    place.home.ledger.write_text(letter)
    with pytest.raises(NoDaemon, match=r"ledger\.db is not a ledger of Meantime"):
        ensure(place.home, wait=LIMIT)
    assert place.home.ledger.read_text() == letter


def test_a_home_that_cannot_be_written_is_named(place: Place) -> None:
    environ = {**place.environ, "MEANTIME_HOME": "/proc/meantime"}  # where not even root can make a folder
    front = place.daemon(env=environ)
    assert "/proc/meantime cannot be used" in front.communicate(timeout=LIMIT)[1]
    assert front.returncode == 1


def test_a_log_that_cannot_be_written_is_named(place: Place) -> None:
    place.home.make()
    place.home.log.mkdir()
    front = place.daemon()
    said = front.communicate(timeout=LIMIT)[1]
    assert (front.returncode, f"{place.home.log} cannot be written" in said) == (1, True)


def test_a_long_log_is_put_aside(place: Place) -> None:
    place.home.make()
    place.home.log.write_bytes(b"x" * 1_100_000)
    place.up()
    assert place.home.log.stat().st_size < 10_000
    assert (place.home.folder / "daemon.log.1").stat().st_size > 1_000_000


@pytest.mark.processes
def test_in_the_foreground_it_stays_and_logs_to_stderr(place: Place) -> None:
    with place.daemon("--foreground") as front:
        assert front.stderr is not None
        lines = iter(front.stderr.readline, "")
        assert any(f"serves {place.home.folder}" in line for line in lines)
        leader = owner(place.home)
        assert leader is not None
        assert leader.pid == front.pid
        front.terminate()
        assert "INFO Closed.\n" in lines
    assert front.returncode == 0
    assert not place.home.http_socket.exists()
    assert not place.home.log.exists()


@pytest.mark.processes
def test_one_that_is_killed_while_it_starts_is_started_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is killed by a tool that it imports, which happens before it can say anything."""
    marks = tmp_path / "marks"
    marks.mkdir()
    (tmp_path / "dying_tools.py").write_text(
        "import os, signal\n"
        f"if len(os.listdir({str(marks)!r})) < int(os.environ['DEATHS']):\n"
        f"    open(os.path.join({str(marks)!r}, str(os.getpid())), 'w').close()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    place.configure('tools = ["dying_tools"]\n[http]\nport = 0\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("DEATHS", "3")
    with pytest.raises(NoDaemon, match="The daemon is killed whenever it starts"):
        ensure(place.home, wait=LIMIT)
    assert len(list(marks.iterdir())) == 3
    monkeypatch.setenv("DEATHS", "4")
    place.up()
    assert len(list(marks.iterdir())) == 4


@pytest.mark.processes
def test_one_that_is_slow_to_start_is_said_to_be_starting_without_words_of_an_earlier_one(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = tmp_path / "goes_on"
    (tmp_path / "slow_tools.py").write_text(
        "import os\n"
        "from tests.waiting import until\n"
        f"until(lambda: os.path.exists({str(goes_on)!r}), 'it may go on')\n"
    )
    place.configure('tools = ["slow_tools"]\n[http]\nport = 0\n')
    paths = os.pathsep.join(filter(None, (str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", paths)
    place.home.make()
    place.home.log.write_text("2026-01-01 INFO Closed.\n")
    try:
        with pytest.raises(NoDaemon, match="The daemon is still starting") as caught:
            ensure(place.home, wait=0.5)
        assert "Closed" not in caught.value.message
        assert "Try again" in caught.value.hint
    finally:
        goes_on.touch()
    ensure(place.home, wait=LIMIT)


@pytest.mark.processes
@pytest.mark.linux_only("a home with a long path is refused elsewhere")
def test_a_home_with_a_path_too_long_for_sockets_works(tmp_path: Path) -> None:
    far = tmp_path / ("x" * 120)
    far.mkdir()
    place = Place(far)
    try:
        ran = place.cli("run", "--wait", "-c", "echo far away")
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "far away\n", "")
        assert place.cli("status").returncode == 0
        assert "bad " not in place.cli("doctor").stdout
        down = place.cli("down")
        assert (down.returncode, owner(place.home)) == (0, None)
        assert not place.home.http_socket.exists()
    finally:
        if owner(place.home) is not None:
            place.kill()
