"""Where the CPU time of a task goes: the stacks of no-op tasks, from start to told, sampled in a real run.

A thread looks at the stacks of all others about two thousand times a second. Each stack is weighted with the
CPU time that its own thread has used since the look before, so a thread that waits weighs nothing.
tools/write_benchmarks.py draws the flame graph of it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from . import end_to_end
from .measure import TABLES, folder, table

EVERY = 0.0005  # seconds between two looks
LEAST = 0.004  # part of the whole: a smaller frame is counted with the one that called it
PACKAGES = ("meantime", "asyncio", "benchmarks")
Stack = tuple[str, ...]


class Sampler(threading.Thread):
    """`stacks` has the seconds of CPU of each stack, the outermost frame first."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stacks: Counter[Stack] = Counter()
        self.looks = 0
        self._over = threading.Event()
        self._used: dict[int, float] = {}

    def run(self) -> None:
        while not self._over.wait(EVERY):
            self.looks += 1
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            for id, frame in sys._current_frames().items():
                if id in names and id != self.ident:
                    spent = self._spent(id)
                    if spent > 0:
                        self.stacks[stack_of(frame, names[id])] += spent  # type: ignore[assignment]

    def _spent(self, id: int) -> float:
        try:
            now = time.clock_gettime(time.pthread_getcpuclockid(id))
        except OSError:  # it has ended meanwhile
            return 0.0
        before = self._used.get(id, now)
        self._used[id] = now
        return now - before

    def stop(self) -> None:
        self._over.set()
        self.join(5)


def stack_of(frame: FrameType | None, thread: str) -> Stack:
    frames: list[str] = []
    while frame is not None:
        frames.append(label(frame.f_code.co_filename, frame.f_code.co_qualname))
        frame = frame.f_back
    first = "the event loop" if thread == "MainThread" else thread.partition("_")[0]
    return (first, *reversed([name for name in frames if name]))


def label(file: str, function: str) -> str:
    """Module and function; nothing for what starts a thread or a benchmark."""
    parts = Path(file).with_suffix("").parts
    for package in PACKAGES:
        if package in parts:
            module = ".".join(parts[len(parts) - 1 - parts[::-1].index(package) :])
            return "" if package == "benchmarks" or module == "asyncio.runners" else f"{module}:{function}"
    return "" if file.startswith("<") or parts[-1] in ("threading", "runpy") else f"{parts[-1]}:{function}"


def pruned(stacks: Counter[Stack], least: float = LEAST) -> Counter[Stack]:
    """Frames that are less than this part of the whole are counted with the frame that called them."""
    whole: Counter[Stack] = Counter()
    for stack, seconds in stacks.items():
        for depth in range(1, len(stack) + 1):
            whole[stack[:depth]] += seconds  # type: ignore[assignment]
    limit = least * sum(stacks.values())
    kept: Counter[Stack] = Counter()
    for stack, seconds in stacks.items():
        while len(stack) > 1 and whole[stack] < limit:
            stack = stack[:-1]
        kept[stack] += seconds  # type: ignore[assignment]
    return kept


async def run() -> None:
    interval = sys.getswitchinterval()
    sampler = Sampler()
    with folder() as path:
        sys.setswitchinterval(EVERY)  # otherwise a look waits up to 5 ms for the interpreter
        sampler.start()
        _, used = await end_to_end.once(path / "work.db")
        sampler.stop()
        sys.setswitchinterval(interval)
    stacks = pruned(sampler.stacks)
    TABLES["flame"] = [
        {"stack": list(stack), "us": seconds * 1e6 / end_to_end.TASKS}
        for stack, seconds in sorted(stacks.items())
    ]
    threads: Counter[str] = Counter()
    for stack, seconds in stacks.items():
        threads[stack[0]] += seconds  # type: ignore[assignment]
    total = sum(stacks.values())
    table(
        f"CPU of {end_to_end.TASKS:,} no-op tasks; {sampler.looks:,} looks saw {total / used:.0%} of it",
        ["", "per task", "part"],
        [
            [name, f"{s * 1e6 / end_to_end.TASKS:.0f} µs", f"{s / total:.0%}"]
            for name, s in threads.most_common()
        ],
    )
