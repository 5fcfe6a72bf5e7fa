"""A sync that failed is an error: a second one that succeeds proves nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from meantime.stores.sqlite import sql

from . import strace
from .damaged import STARTS, found

# The sync of a start in the middle. strace counts the calls of each thread by itself: the one that opens the
# ledger has a sync for each migration, and must not meet the one that fails.
FAILING = 3 + len(list((Path(sql.__file__).parent / "migrations").glob("*.sql")))


@pytest.fixture(autouse=True)
def _strace() -> None:
    if strace.missing():
        pytest.skip(strace.missing())


def run(folder: Path, inject: str) -> list[list[str]]:
    """What the owner said of each start: its answer, its id, and whether the ledger was degraded then."""
    calls = "trace=pwrite64,fdatasync,ftruncate"
    line = ["strace", "-f", "-y", "-o", str(folder / "trace"), "-e", calls, "-e", inject]
    line += ["-P", str(folder / "ledger.db"), "-P", str(folder / "ledger.db-wal")]
    line += [sys.executable, "-m", "tests.faults.damaged", str(folder), "until refused"]
    done = subprocess.run(line, cwd=strace.ROOT, capture_output=True, text=True, timeout=strace.OVER)
    said = [answer.split() for answer in done.stdout.splitlines()]
    assert len(said) == STARTS, done.stdout + done.stderr[-2_000:]
    return said


def test_a_failed_sync_refuses_the_write_and_everything_is_written_anew(tmp_path: Path) -> None:
    said = run(tmp_path, f"inject=fdatasync:error=EIO:when={FAILING}")
    refused = [id for answer, id, _ in said if answer == "refused"]
    assert len(refused) == 1
    assert [degraded for answer, _, degraded in said if answer == "refused"] == ["1"]
    assert said[-1][2] == "0", "a commit that was synced ends it"
    assert found(tmp_path / "ledger.db") == {id for answer, id, _ in said if answer == "accepted"}
    assert _written_anew(tmp_path / "trace")


def _written_anew(trace: Path) -> bool:
    """After the failure, before the next frame: pages to the database, its sync, an empty WAL."""
    _, _, after = trace.read_text().partition("(INJECTED)\n")
    assert after, "nothing failed"
    order = (
        r"(?s)fdatasync\(.*?pwrite64\(\S+/ledger\.db>.*?fdatasync\(\S+/ledger\.db>.*?ftruncate\(\S+-wal>, 0\)"
    )
    done = re.search(order, after)
    frame = re.search(r"pwrite64\(\S+-wal>", after)
    return done is not None and frame is not None and done.end() < frame.start()


@pytest.mark.faults
def test_a_disk_that_never_syncs_again_accepts_nothing(tmp_path: Path) -> None:
    said = run(tmp_path, f"inject=fdatasync:error=EIO:when={FAILING}+")
    first = [answer for answer, _, _ in said].index("refused")
    assert {answer for answer, _, _ in said[first:]} == {"refused"}
    assert {degraded for _, _, degraded in said[first:]} == {"1"}
    assert found(tmp_path / "ledger.db") == {id for answer, id, _ in said if answer == "accepted"}
