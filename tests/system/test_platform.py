"""One suite for every platform: each operation of the package, with real processes, files and sockets."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest
from tests.waiting import LIMIT, stays, stays_async, until

from meantime.system import platform
from meantime.system.platform import chosen, linux, linux_tree, posix, posix_tree

pytestmark = pytest.mark.anyio
NEEDS_LINUX = pytest.mark.linux_only("it is the implementation for Linux")
BOTH = [pytest.param("linux", marks=NEEDS_LINUX), "posix"]
ROOT = Path(__file__).parents[2]
SLEEP = ["sleep", "600"]


@pytest.fixture(params=BOTH)
def system(request: pytest.FixtureRequest) -> ModuleType:
    return {"linux": linux, "posix": posix}[request.param]


@pytest.fixture(params=BOTH)
def tree(request: pytest.FixtureRequest) -> Any:
    return {"linux": linux_tree, "posix": posix_tree}[request.param]


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEP, start_new_session=True, env={**os.environ, "MARKED": "here"}) as process:
        yield process
        process.kill()


# -- the choice


@pytest.mark.parametrize(
    ("asked", "system", "name"),
    [
        ("", "linux", "linux"),
        ("", "darwin", "macos"),
        ("", "freebsd14", "posix"),
        ("posix", "linux", "posix"),
        ("linux", "linux", "linux"),
        ("macos", "darwin", "macos"),
        ("posix", "freebsd14", "posix"),
    ],
)
def test_the_system_chooses_unless_somebody_asks(asked: str, system: str, name: str):
    assert chosen(asked, system) == name


@pytest.mark.parametrize(
    ("asked", "system", "hint"),
    [
        ("linx", "linux", "Unset it, or set it to linux or posix."),
        ("macos", "linux", "Unset it, or set it to linux or posix."),
        ("linux", "freebsd14", "Unset it, or set it to posix."),
    ],
)
def test_another_name_is_refused_with_what_to_do(asked: str, system: str, hint: str):
    with pytest.raises(ValueError, match="is not a platform") as refused:
        chosen(asked, system)
    assert str(refused.value) == f"MEANTIME_PLATFORM={asked!r} is not a platform of this system. {hint}"


@pytest.mark.parametrize("arguments", [["ps", "-a"], ["doctor"], ["run", "true"], ["mcp"], ["--version"]])
def test_the_command_line_refuses_it_in_two_lines(arguments: list[str], tmp_path: Path):
    env = {**os.environ, "MEANTIME_PLATFORM": "linx", "MEANTIME_HOME": str(tmp_path / "home")}
    words = [sys.executable, "-m", "meantime", *arguments]
    said = subprocess.run(
        words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (said.returncode, said.stdout) == (2, "")
    own = sys.platform if sys.platform == "linux" else "macos"
    assert said.stderr.splitlines() == [
        "meantime: MEANTIME_PLATFORM='linx' is not a platform of this system.",
        f"  Unset it, or set it to {own} or posix.",
    ]
    assert not (tmp_path / "home").exists(), "no daemon was started"


@pytest.mark.linux_only("it names the path of Linux")
def test_the_name_of_the_own_path_is_accepted():
    code = "from meantime.system import platform; print(platform.NAME, platform.inherited())"
    env = {**os.environ, "MEANTIME_PLATFORM": "linux"}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert said.stdout == "linux {'MEANTIME_PLATFORM': 'linux'}\n"


def test_linux_does_not_load_psutil():
    code = "import sys, meantime.system.platform.tree, meantime.app.meantime; print('psutil' in sys.modules)"
    plain = {
        name: value for name, value in os.environ.items() if name not in ("MEANTIME_PLATFORM", "PYTHONPATH")
    }
    said = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True)
    assert said.stdout == ("True\n" if platform.NAME == "posix" else "False\n")


# -- processes


def test_a_boot_has_one_id(system: Any):
    assert system.boot() == system.boot()
    assert re.fullmatch(r"[0-9a-f-]{32,36}", system.boot())


def test_a_process_is_named_by_pid_and_start(system: Any, child: subprocess.Popen[bytes]):
    found = system.stat(child.pid)
    assert (found.name, found.parent) == ("sleep", os.getpid())
    assert found.started == system.stat(child.pid).started >= system.stat(os.getpid()).started
    child.kill()
    until(lambda: system.stat(child.pid).state == "Z", "the process has ended")
    child.wait()
    assert system.stat(child.pid) is None


def test_a_name_may_look_like_the_fields_after_it(system: Any, tmp_path: Path):
    """Linux prints the name between them as it is."""
    named = tmp_path / ") Z 1 (x) R"
    shutil.copy("/bin/sleep", named)
    with subprocess.Popen([named, "600"]) as process:
        until(lambda: system.stat(process.pid).name == named.name, "the process has its name")
        found = system.stat(process.pid)
        assert (found.state != "Z", found.parent) == (True, os.getpid())
        process.kill()


def test_a_process_has_a_program_and_a_command_line(system: Any, child: subprocess.Popen[bytes]):
    assert os.path.basename(system.program(child.pid)) in ("sleep", "coreutils", "busybox")
    until(lambda: system.command_line(child.pid), "the process has the command line of its exec")
    assert system.command_line(child.pid) == b"sleep\x00600\x00"
    assert (system.program(0), system.command_line(0)) == ("", b"")


def test_environments_are_read(system: Any, child: subprocess.Popen[bytes]):
    until(
        lambda: b"MARKED=here" in dict(system.environments()).get(child.pid, b"").split(b"\0"),
        "the environment of the process is read",
    )


def test_the_file_that_a_process_prints_to_is_known(system: Any, tmp_path: Path):
    with (tmp_path / "out").open("wb") as out, subprocess.Popen(SLEEP, stdout=out) as process:
        until(lambda: system.writes_into(process.pid, tmp_path / "out"), "the process prints to it")
        (tmp_path / "other").touch()
        assert not system.writes_into(process.pid, tmp_path / "other")
        process.kill()


OWNER = """
import fcntl, json, os, sys
file = open(sys.argv[1], "r+")
if sys.argv[2] == "owns":
    fcntl.flock(file, fcntl.LOCK_EX)
    json.dump({"pid": os.getpid()}, file); file.truncate(); file.flush()
print(1, flush=True); input()
"""


@contextmanager
def opened(path: Path, how: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the file open; "owns": it has taken the lock, and written its pid, as an owner of a
    ledger does."""
    command = [sys.executable, "-c", OWNER, str(path), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def test_the_holder_of_a_lock_is_found_without_taking_it(system: Any, tmp_path: Path):
    path = tmp_path / "lock"
    assert system.lock_holder(path) == 0
    path.touch()
    assert system.lock_holder(path) == 0
    with opened(path, "owns") as holder:
        assert system.lock_holder(path) == holder.pid
        with path.open() as waiting, pytest.raises(BlockingIOError):  # it is still held
            fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert system.lock_holder(path) == 0


def test_the_pid_of_a_lock_may_be_another_process_by_now(system: Any, tmp_path: Path):
    """Or no pid at all: a power cut may leave anything."""
    path = tmp_path / "lock"
    path.write_text(f'{{"pid": {os.getppid()}}}')
    assert system.lock_holder(path) == 0
    for text in (
        b"",
        b"\0" * 100,
        b"[]",
        b"{}",
        b'{"pid": "1"}',
        b'{"pid": -1}',
        b'{"pid": 1',
        b"\xff" * 5000,
    ):
        path.write_bytes(text)
        assert system.lock_holder(path) == 0


def test_a_process_that_only_has_the_file_open_is_not_the_holder(system: Any, tmp_path: Path):
    """A process that looks at a lock has its file open for a moment, too, and any number may look at once."""
    path = tmp_path / "lock"
    path.touch()
    with opened(path, "looks"), opened(path, "owns") as owner, opened(path, "looks"):
        assert system.lock_holder(path) == owner.pid
    with opened(path, "looks"):
        assert system.lock_holder(path) == 0


def test_a_look_for_the_owner_never_takes_the_lock(
    system: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A daemon that begins at that moment would be turned away."""
    taken: list[int] = []
    path = tmp_path / "lock"
    path.touch()
    monkeypatch.setattr(fcntl, "flock", lambda fd, how: taken.append(how))
    with opened(path, "owns") as owner:
        assert system.lock_holder(path) == owner.pid
    assert system.lock_holder(path) == 0
    assert taken == []


# -- a handle


LAST_THREAD = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_still_there(system: Any):
    """It has its files and its locks as long as another thread runs. The threads of a process that is killed
    end one by one."""
    with subprocess.Popen([sys.executable, "-c", LAST_THREAD]) as process:
        try:
            until(
                lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE,
                "the first thread has ended",
            )
            assert system.stat(process.pid).state == "R"
            handle = system.ProcessHandle(process.pid)
            assert not handle.has_ended(0.1)
            handle.send(signal.SIGKILL)
            assert handle.has_ended(LIMIT)
            assert system.stat(process.pid).state == "Z"
            handle.close()
        finally:
            process.kill()


def test_a_handle_of_nobody_is_an_error(system: Any, child: subprocess.Popen[bytes]):
    child.kill()
    child.wait()
    with pytest.raises(ProcessLookupError):
        system.ProcessHandle(child.pid)


def test_a_handle_signals_and_waits_for_the_end(system: Any, child: subprocess.Popen[bytes]):
    handle = system.ProcessHandle(child.pid)
    assert not handle.has_ended(0.05)
    handle.send(signal.SIGKILL)
    assert handle.has_ended(LIMIT)
    child.wait()
    with pytest.raises(ProcessLookupError):
        handle.send(signal.SIGKILL)
    handle.close()


async def test_a_handle_calls_when_a_process_has_ended(system: Any, child: subprocess.Popen[bytes]):
    handle = system.ProcessHandle(child.pid)
    ended = asyncio.Event()
    handle.on_exit(asyncio.get_running_loop(), ended.set)
    await stays_async(lambda: not ended.is_set(), "nothing is called while the process runs", 0.1)
    child.kill()
    await asyncio.wait_for(ended.wait(), LIMIT)
    handle.close()


async def test_a_closed_handle_does_not_call(system: Any, child: subprocess.Popen[bytes]):
    handle = system.ProcessHandle(child.pid)
    called: list[bool] = []
    handle.on_exit(asyncio.get_running_loop(), lambda: called.append(True))
    handle.close()
    child.kill()
    child.wait()
    await stays_async(lambda: not called, "a closed handle does not call", 0.2)


# -- files and sockets


def test_preallocated_bytes_are_taken_from_the_disk(system: Any, tmp_path: Path):
    with (tmp_path / "reserve").open("wb") as file:
        system.preallocate(file.fileno(), 1 << 20)
        assert os.fstat(file.fileno()).st_blocks * 512 >= 1 << 20


def test_what_is_written_is_synced(system: Any, tmp_path: Path):
    with (tmp_path / "file").open("wb") as file:
        file.write(b"1")
        file.flush()
        system.sync_file(file.fileno())
        system.sync_data(file.fileno())


def test_all_files_but_one_are_closed(system: Any):
    code = (
        f"import os; from {system.__name__} import close_files; kept, other = os.pipe(); close_files(kept)\n"
        "os.fstat(kept); os.fstat(2)\ntry: os.fstat(other)\nexcept OSError: print('closed')"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "closed\n"


def test_a_long_socket_path_has_a_short_name_or_none(system: Any, tmp_path: Path):
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    short = system.short_socket_path(folder, "http.sock")
    assert bool(short) == system.names_long_sockets()
    if short:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(short)
        assert (tmp_path / "http.sock").is_socket()
    os.close(folder)


def test_peers_are_known_where_the_system_says_them(system: Any):
    one, other = socket.socketpair()
    with one, other:
        pid, uid = system.peer_credentials(one)
    assert (pid, uid) == ((os.getpid(), os.geteuid()) if system.KNOWS_PEERS else (None, None))


# -- trees


def test_descendants_are_found_through_the_middle(tree: Any):
    with subprocess.Popen(["sh", "-c", "sh -c 'sleep 600; :' & wait"], start_new_session=True) as top:
        until(lambda: len(tree.descendants(top.pid)) == 2, "both have begun")
        found = tree.descendants(top.pid)
        assert top.pid not in found
        assert {group for _, group in found.values()} == {top.pid}
        assert tree.children(top.pid) == [pid for pid in found if tree.facts(pid)[0] == top.pid]
        assert all(tree.start_time(pid) == started for pid, (started, _) in found.items())
        os.killpg(top.pid, signal.SIGKILL)
    until(lambda: not tree.descendants(top.pid), "all have ended")
    assert tree.facts(top.pid) is None


def test_a_signal_meets_this_very_process(tree: Any, child: subprocess.Popen[bytes]):
    started = tree.start_time(child.pid)
    tree.send(child.pid, started + 1, signal.SIGKILL)
    stays(lambda: child.poll() is None, "a process that began at another time is not met", 0.1)
    tree.send(child.pid, started, signal.SIGKILL)
    assert child.wait(LIMIT) == -signal.SIGKILL
    tree.send(child.pid, started, signal.SIGKILL)


@pytest.mark.breadth
def test_marked_processes_are_found_if_they_are_young_enough(tree: Any, child: subprocess.Popen[bytes]):
    def is_mark(entry: bytes) -> bool:
        return entry == b"MARKED=here"

    until(lambda: child.pid in tree.marked(is_mark, 0), "the process is found")
    started = tree.start_time(child.pid)
    assert tree.marked(is_mark, started)[child.pid] == (started, child.pid)
    assert child.pid not in tree.marked(lambda entry: entry == b"MARKED=elsewhere", 0)


def test_the_end_of_a_child_can_be_polled(tree: Any):
    code = (
        f"import os, select; from {tree.__name__} import exit_descriptor, clear_exit\n"
        "child = os.posix_spawnp('sleep', ['sleep', '0.2'], os.environ); ended = exit_descriptor(child)\n"
        "looks = 0; poll = select.poll(); poll.register(ended, select.POLLIN)\n"
        "while os.waitpid(child, os.WNOHANG)[0] == 0:\n"
        "    poll.poll(); clear_exit(ended); looks += 1; assert looks < 9\n"
        "print('ended')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT)
    assert (done.stdout, done.stderr) == ("ended\n", "")


def test_the_path_of_a_folder_outlives_its_move(tree: Any, tmp_path: Path):
    code = (
        f"import os, sys; from {tree.__name__} import hold_folder\n"
        "place, home = hold_folder(sys.argv[1]); os.chdir('/'); os.chdir(home)\n"
        "os.rename(sys.argv[1], sys.argv[1] + '-moved'); open(place + '/here', 'w').close()"
    )
    (tmp_path / "folder").mkdir()
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "folder")], check=True)
    assert (tmp_path / "folder-moved" / "here").exists()


ORPHANS = """
import os, subprocess, sys
from {tree} import alone, childless_is_alone, descendants, follow, orphan_adopter, send
from tests.waiting import until
os.setsid(); orphan_adopter()()
line = "setsid sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 & (sleep 600 &) ; sleep 600"
command = subprocess.Popen(["sh", "-c", line], env={{**os.environ, "MARK": "1"}}, start_new_session=True)
follow(command.pid, "MARK=1")
until(lambda: len(descendants(os.getpid())) >= 6, "all have begun")
command.kill(); command.wait()
found = descendants(os.getpid())
assert not alone() and not (not found and childless_is_alone())
def are_ended():
    for pid, (started, _) in descendants(os.getpid()).items(): send(pid, started, 9)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError: pass
    return alone()
until(are_ended, "all are ended")
print(len(found))
"""


def test_what_loses_its_parent_is_found_and_ended(tree: Any):
    """A child of its own session that has daemonised, and one that stayed in the session of the command."""
    done = subprocess.run(
        [sys.executable, "-c", ORPHANS.format(tree=tree.__name__)],
        cwd=ROOT,  # it imports tests
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert int(done.stdout or 0) >= 4, done
