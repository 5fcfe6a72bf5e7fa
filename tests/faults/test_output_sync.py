"""The output of a command is on the disk before its exit state, so that no power cut separates them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import strace

pytestmark = pytest.mark.faults

OWNER = """
import asyncio, sys
from meantime import Meantime, Shell

async def main():
    async with Meantime.open(sys.argv[1]) as mt:
        await (await mt.thread("t").start(Shell(sys.argv[2]))).wait()

asyncio.run(main())
"""


def syncs(folder: Path, command: str) -> list[str]:
    """The files of the command that were synced, by their endings, in order."""
    trace = folder / "trace"
    line = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=fsync,fdatasync", "-e", "signal=none"]
    line += [sys.executable, "-c", OWNER, str(folder / "work.db"), command]
    done = subprocess.run(line, capture_output=True, text=True, timeout=strace.OVER)
    assert done.returncode == 0, done.stderr[-2_000:]
    return re.findall(r"sync\(\d+<\S+work\.db\.commands/\S*?(\.\w+)>", trace.read_text())


@pytest.mark.skipif(bool(strace.missing()), reason=strace.missing())
@pytest.mark.parametrize(
    ("command", "before"),
    [
        ("echo hello", {".out"}),
        ("seq 5000", {".out"}),
        ("seq 20000; seq 20000 >&2; echo", {".out", ".err", ".order"}),
    ],
    ids=["little", "much", "both streams"],
)
def test_the_output_is_synced_before_the_exit_state(tmp_path: Path, command: str, before: set[str]) -> None:
    found = syncs(tmp_path, command)
    assert before <= set(found[: found.index(".state")]), found
