"""kill -9 of an owner around the making and removing of a quiet file: no notice is missed.

The host runs the very line that `meantime install` writes, in the shell, and writes down what it prints. So a
stale file shows: the line says nothing, and what it should have told is missing from the transcript.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.waiting import pause, until

from meantime.daemon.home import Home
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.install.hook_lines import line
from meantime.surfaces.terminal.errors import CliError

from . import strace
from .hooked import SESSION, THREAD
from .judge import Tally, Told, Verdict, judge, read_facts
from .strace import Ended, Point
from .trial import new_folder, side_by_side, trial

IDS = re.compile(r'<task-notification id=\\"([^"\\]+)\\"')
TASKS = 8
SYSCALLS = ("unlink", "openat", "mkdir", "pwrite64", "fdatasync", "write")
GUARD = line([sys.executable, "-m", "meantime"], "post-tool", "claude-code")


def sweep(seed: int, count: int, reproduce: str) -> Tally:
    tally = Tally("kill -9 around a quiet file", reproduce)
    folder = new_folder()
    try:
        trace = folder / "trace"
        owner = story(folder, seed, *strace.tracing(trace, SYSCALLS))
        assert owner.code == 0, owner.output
        found = _points(trace)
        tally.add(recover(folder), "nobody killed it", 0)
    finally:
        shutil.rmtree(folder)
    rng = random.Random(seed)
    side_by_side(
        [(rng.choice(found), rng.randrange(1_000_000)) for _ in range(count)], lambda one: _kill(tally, *one)
    )
    return tally


def _kill(tally: Tally, point: Point, seed: int) -> None:
    def make(folder: Path) -> int:
        owner = story(folder, seed, *strace.killing(folder / "trace", point))
        assert owner.killed or owner.code == 0, f"the owner ended with {owner.code}:\n{owner.output}"
        return int(owner.killed)

    trial(tally, f"{tally.family}: {point}, seed {seed}", make, recover)


def _points(trace: Path) -> list[Point]:
    """Calls that touch a quiet file, and as many around each: a commit follows a removal."""
    every = strace.points_of(trace)
    text = [line for line in trace.read_text().splitlines() if "/quiet/" in line]
    assert any("unlink(" in line for line in text), "no quiet file was removed"
    assert any("openat(" in line for line in text), "no quiet file was made"
    share = len([point for point in every if point.syscall in ("pwrite64", "fdatasync")])
    near = [point for point in every if point.syscall in ("unlink", "openat", "mkdir")]
    return near * max(1, share // max(1, len(near))) + every


def story(folder: Path, seed: int, *options: str, plant: str = "") -> Ended:
    """Tasks end at any moment, and hooks run at any moment, until all is told or the owner is gone."""
    rng = random.Random(seed)
    with owned(folder, *options, plant=plant) as owner:

        def gone() -> bool:
            return owner.poll() is not None

        starting = threading.Thread(target=_start_all, args=(folder, rng.random(), gone))
        starting.start()
        while starting.is_alive() and not gone():
            hook(folder)
            pause(rng.random() * 0.01, "a host does something else")
        starting.join()
        with suppress(CliError):  # it was killed
            if not _tell_all(folder):
                (folder / "missed").touch()
    return Ended(owner.returncode, (folder / "owner.log").read_text(errors="replace")[-3_000:])


@contextmanager
def owned(folder: Path, *options: str, plant: str = "") -> Iterator[subprocess.Popen[bytes]]:
    tracer = ["strace", "-f", *options] if options else []
    words = [*tracer, *strace.command("serve", folder, program="hooked"), *([plant] if plant else [])]
    (folder / "http.sock").unlink(missing_ok=True)
    with (folder / "owner.log").open("ab") as log:
        owner = subprocess.Popen(words, cwd=strace.ROOT, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        until(lambda: (folder / "http.sock").exists() or owner.poll() is not None, "the owner listens")
        yield owner
        assert owner.stdin is not None
        owner.stdin.close()
        owner.wait(strace.OVER)
    finally:
        owner.kill()
        owner.wait()


def _start_all(folder: Path, seed: float, gone: Callable[[], bool]) -> None:
    rng = random.Random(seed)
    asking = _daemon(folder)
    facts = os.open(folder / "ledger.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        for number in range(TASKS):
            id = f"q-{number}"
            if rng.random() < 0.7:  # an ending that comes when the file was just made, or is not there yet
                until(lambda: _is_quiet(folder) or gone(), "there is a quiet file")
                pause(rng.random() * 0.02, "the file is there for a moment")
            _say(facts, "attempt", id)
            with suppress(CliError):
                work = {"tool": "noted", "arguments": {"id": f"{id}.1"}}
                asking.post("/v1/tasks", {"thread": THREAD, "id": id, **work})
                _say(facts, "accepted", id)
    finally:
        os.close(facts)


def _is_quiet(folder: Path) -> bool:
    return (folder / "quiet" / THREAD).exists()


def _say(facts: int, what: str, id: str) -> None:
    os.write(facts, json.dumps([what, THREAD, f"{id}.1", ""]).encode() + b"\n")


def hook(folder: Path) -> bool:
    """What a host does at the end of a tool call. Whether it was told something."""
    transcript = folder / "transcript.jsonl"
    said = {"session_id": SESSION, "transcript_path": str(transcript), "hook_event_name": "PostToolUse"}
    environ = {**os.environ, "MEANTIME_HOME": str(folder), "CLAUDE_CODE_SESSION_ID": SESSION}
    done = subprocess.run(
        ["/bin/sh", "-c", GUARD], input=json.dumps(said).encode(), env=environ, capture_output=True,
        timeout=strace.OVER, check=True,
    )  # fmt: skip
    if done.stdout:
        with transcript.open("ab") as to:
            to.write(done.stdout)
    return bool(done.stdout)


def _tell_all(folder: Path) -> bool:
    """Hooks until all is told; False when there is more, and the file keeps them from saying so."""
    asking = _daemon(folder)

    def told() -> str:
        hook(folder)
        counted = asking.get(f"/v1/threads/{THREAD}")
        if counted["unread"] and _is_quiet(folder):
            return "not all"
        return "" if counted["unread"] or counted["leased"] or counted["active"] else "all"

    return until(told, "all is told") == "all"


def recover(folder: Path, plant: str = "") -> Verdict:
    """The next owner, and hooks until all is told, or nothing more is."""
    with owned(folder, plant=plant) as owner:
        _tell_all(folder)
    if owner.returncode != 0:
        said = (folder / "owner.log").read_text(errors="replace")[-3_000:]
        return Verdict(lost=(f"it could not be opened again (exit {owner.returncode}):\n{said}",))
    path = folder / "transcript.jsonl"
    told = [Told(id) for id in IDS.findall(path.read_text())] if path.exists() else []
    found = judge(read_facts(folder / "ledger.jsonl"), {THREAD: told})
    missed = ("hooks said nothing, and there was something to tell",) if (folder / "missed").exists() else ()
    return found._replace(lost=(*found.lost, *missed))


def _daemon(folder: Path) -> Daemon:
    return Daemon(Home(folder, folder / "config.toml"), start=False)
