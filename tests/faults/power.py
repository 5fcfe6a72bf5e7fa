"""Power cuts: the ledger lies on an ext4 of its own, which is shut down in the middle of the load without
writing anything more. What was promised before is there when the disk is mounted again (P1)."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import pause, until

from . import strace
from .judge import Tally, Verdict
from .kills import recover
from .trial import new_folder, trial

SIZE = 64 << 20  # bytes
SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN, and how: what is not on the disk is gone


def missing() -> str:
    """Why no disk can be cut off here, or nothing."""
    if os.getuid() != 0:
        return "only root can mount a disk in a file"
    if shutil.which("mkfs.ext4") is None:
        return "mkfs.ext4 is not installed"
    folder = new_folder()
    try:
        _make(folder)
        with mounted(folder):
            _cut(folder)
        return ""
    except OSError as problem:
        return f"a disk in a file cannot be mounted and cut off here: {problem}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(seed: int, chains: int, cuts: int, reproduce: str) -> Tally:
    tally = Tally("power cuts under load (ext4 shut down)", reproduce)
    for number in range(chains):
        _chain(tally, seed * 101 + number, cuts)
    return tally


def _chain(tally: Tally, seed: int, cuts: int) -> None:
    rng = random.Random(seed)

    def make(folder: Path) -> int:
        _make(folder)
        for life in range(cuts):
            with mounted(folder):
                _live_and_lose_power(folder, seed + life, rng.uniform(0.1, 1.0))
        return cuts

    def look(folder: Path) -> Verdict:
        with mounted(folder):
            return recover(folder)

    trial(tally, f"load with seed {seed}, {cuts} power cuts", make, look)


def _make(folder: Path) -> None:
    (folder / "disk").mkdir()
    with (folder / "image").open("wb") as image:
        image.truncate(SIZE)
    _run("mkfs.ext4", "-q", "-F", str(folder / "image"))


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    disk = folder / "disk"
    until(lambda: _mount(folder / "image", disk), "the disk that was cut off is mounted nowhere else")
    try:
        yield
    finally:
        _unmount(disk)


def _mount(image: Path, disk: Path) -> bool:
    """Not while a program that has just made a namespace of its own holds the disk that was cut off, too."""
    _run("mount", "-o", "loop", str(image), str(disk))
    try:
        disk.chmod(0o700)
    except OSError as problem:
        _unmount(disk)
        if problem.errno != errno.EIO:
            raise
        return False
    return True


def _unmount(disk: Path) -> None:
    umount = ["umount", str(disk)]
    try:
        until(lambda: not subprocess.run(umount, capture_output=True).returncode, "nobody uses the disk")
    except AssertionError:
        _run("umount", "-l", str(disk))
        raise


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip()[-300:])


def _cut(folder: Path) -> None:
    place = os.open(folder / "disk", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(place, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
    finally:
        os.close(place)


def _live_and_lose_power(folder: Path, seed: int, seconds: float) -> None:
    with (folder / "said").open("ab") as said:
        victim = subprocess.Popen(
            strace.command("load", folder, seed), cwd=strace.ROOT, stdout=said, stderr=said
        )
    try:
        _until_busy(folder, victim)
        pause(seconds, "the moment of the cut is what is random here")
        assert victim.poll() is None, (folder / "said").read_text()[-2_000:]
        _freeze(victim.pid)
        _cut(folder)
    finally:
        victim.kill()
        victim.wait()


def _freeze(pid: int) -> None:
    """No thread says anything from now on; those in the middle of a write or a sync stay in it.

    ext4 answers a sync that meets its shutdown with success, and loses the data. A program that only appends,
    syncs and notes it outside was caught by that in its second cut. After a real power cut nobody is there to
    read that answer, so nobody may read it here.
    """
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    until(lambda: all(_state(thread) in "TD" for thread in threads.iterdir()), "all its threads are frozen")


def _state(thread: Path) -> str:
    """T is stopped, D is in the middle of a system call that cannot be interrupted."""
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "T"  # it has ended


def _until_busy(folder: Path, victim: subprocess.Popen[bytes]) -> None:
    ledger = folder / "ledger.jsonl"
    before = ledger.stat().st_size if ledger.exists() else 0

    def is_busy() -> bool:
        assert victim.poll() is None, (folder / "said").read_text()[-2_000:]
        return ledger.exists() and ledger.stat().st_size >= before + 2_000

    until(is_busy, "it is busy")
