"""Processes of others cost the hunt for a command's processes a read or two each, and no time of its own."""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime.runners.shell import orphan_processes
from meantime.runners.shell.shim import cells, process_tree
from meantime.system.platform import linux_tree
from meantime.system.platform.linux_tree import LOOKS

pytestmark = pytest.mark.processes

FOREIGN = 200
SCANS = 4  # of all processes in one hunt: found, held, killed, gone


@pytest.fixture
def foreign() -> Iterator[list[int]]:
    """Without an environment, as shims and zygotes are."""
    started = [subprocess.Popen(["sleep", "600"], env={}) for _ in range(FOREIGN)]
    yield [each.pid for each in started]
    for each in started:
        each.kill()
    for each in started:
        each.wait()


class Costs:
    """Every file of /proc that is read, by the pid in its path, and every pause."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads: Counter[int] = Counter()
        self.pauses = 0
        for reader in ("_read", "_environ"):
            self._count(reader, monkeypatch)
        really = time.sleep

        def pause(seconds: float) -> None:
            self.pauses += 1
            really(seconds)

        monkeypatch.setattr(orphan_processes.time, "sleep", pause)

    def _count(self, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
        read = getattr(linux_tree, reader)

        def counted(path: str) -> bytes | None:
            if found := re.match(r"/proc/(\d+)/", path):
                self.reads[int(found[1])] += 1
            return read(path)

        monkeypatch.setattr(linux_tree, reader, counted)

    def of(self, pids: list[int]) -> int:
        """The dearest of these."""
        return max(self.reads[pid] for pid in pids)


def test_a_hunt_among_two_hundred_shims_pauses_no_longer_than_among_none(
    tmp_path: Path, foreign: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "t_1"
    command = subprocess.Popen(["sleep", "600"], env={cells.MARK: str(base)}, start_new_session=True)
    costs = Costs(monkeypatch)
    found = orphan_processes.kill_orphans(base, None)
    command.wait(LIMIT)
    assert (found.killed, found.left) == (1, ())
    assert costs.pauses <= SCANS * LOOKS, "each foreign process is waited for"
    assert costs.of(foreign) <= SCANS * LOOKS * 2


def test_a_process_that_is_older_than_the_shim_is_looked_at_once(
    tmp_path: Path, foreign: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = Costs(monkeypatch)
    after = max(map(process_tree.start_time, foreign)) + 1
    costs.reads.clear()
    orphan_processes.marked(tmp_path / "t_1", after)
    assert costs.of(foreign) == 2  # its environment and its start


def test_a_process_that_shows_its_mark_a_moment_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it becomes another program it shows none."""
    base = tmp_path / "t_1"
    command = subprocess.Popen(["sleep", "600"], env={cells.MARK: str(base)})
    try:
        read, shown = linux_tree._environ, iter([b"", b""])

        def late(path: str) -> bytes | None:
            return next(shown, read(path)) if path == f"/proc/{command.pid}/environ" else read(path)

        monkeypatch.setattr(linux_tree, "_environ", late)
        assert list(orphan_processes.marked(base)) == [command.pid]
    finally:
        command.kill()
        command.wait(LIMIT)
