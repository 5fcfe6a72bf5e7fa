"""Family 4: a disk that is full or failing, for a while or for good. Starts may be refused with a typed
error; what was accepted is not lost; endings are recorded when the disk recovers; nothing hangs."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import NamedTuple

from . import strace
from .judge import Tally
from .kills import recover
from .trial import new_folder, side_by_side, trial


class Failing(NamedTuple):
    """Which calls fail, with which error, from the Nth on, and how often; 0 is for good."""

    syscalls: str
    error: str
    first: int
    times: int

    @property
    def inject(self) -> str:
        when = f"{self.first}+" if not self.times else f"{self.first}..{self.first + self.times - 1}"
        return f"inject={self.syscalls}:error={self.error}:when={when}"

    def __str__(self) -> str:
        return f"strace -e {self.inject}"


def run(seed: int, faults: int, reproduce: str) -> Tally:
    tally = Tally("full and failing disk (ENOSPC, EIO)", reproduce)
    rng = random.Random(seed)
    folder = new_folder()
    found = strace.points("story", folder)
    shutil.rmtree(folder)
    kinds = [("pwrite64", "ENOSPC"), ("pwrite64", "EIO"), ("fdatasync", "EIO"), ("fdatasync", "ENOSPC")]
    kinds += [("pwrite64,fallocate", "ENOSPC"), ("ftruncate", "EIO"), ("pread64", "EIO")]
    jobs: list[Failing] = []
    for number in range(faults):
        syscalls, error = kinds[number % len(kinds)]
        numbers = [point.number for point in found if point.syscall == syscalls.partition(",")[0]]
        times = 0 if number % 3 == 2 else rng.choice([1, 2, 3, 6])
        jobs.append(Failing(syscalls, error, rng.choice(numbers), times))
    side_by_side(jobs, lambda failing: _starve(tally, failing))
    return tally


def slow(seed: int, faults: int, reproduce: str) -> Tally:
    """A disk that takes its time: calls take longer, none of them for ever, and nothing else changes."""
    tally = Tally("slow disk (fdatasync takes 20 to 250 ms)", reproduce)
    rng = random.Random(seed)
    delays = [(rng.randrange(20, 250), rng.randrange(1, 4)) for _ in range(faults)]
    side_by_side(delays, lambda delay: _delay(tally, *delay))
    return tally


def _delay(tally: Tally, milliseconds: int, every: int) -> None:
    inject = f"inject=fdatasync:delay_exit={milliseconds * 1_000}:when=1+{every}"

    def make(folder: Path) -> int:
        ended = strace.run(
            "story", folder, "-o", str(folder / "trace"), "-e", "trace=fdatasync", "-e", inject
        )
        assert ended.code == 0, f"the victim ended with {ended.code}:\n{ended.output}"
        return (folder / "trace").read_text().count("DELAYED")

    trial(tally, f"story under strace -e {inject}", make, recover)


def _starve(tally: Tally, failing: Failing) -> None:
    mode = "story" if failing.times else "starved"

    def make(folder: Path) -> int:
        trace = ["-o", str(folder / "trace"), "-e", f"trace={failing.syscalls}", "-e", failing.inject]
        ended = strace.run(mode, folder, *trace)
        assert ended.code == 0, f"the victim ended with {ended.code}:\n{ended.output}"
        return 1

    trial(tally, f"{mode} under {failing}", make, recover)
