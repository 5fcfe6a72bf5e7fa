"""The benchmark of peers: its figures are computed as its tables say, and its own programs really run."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections import Counter
from types import ModuleType
from typing import Any

import pytest
from benchmarks.peers.crew import OWN, PROGRAMS, ROOT, crew_of
from benchmarks.peers.peer_figures import LISTS, LONG, crashed, judged, percentile, pinned, version_of
from benchmarks.peers.peer_rows import MEANTIME, MEANTIME_AGAIN, PEERS
from benchmarks.peers.peer_run import crash_cells, ratios_of
from tests.waiting import LIMIT, pause_async

pytestmark = pytest.mark.docs

SOME: dict[str, Any] = {"cpu_us": 100.0}


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 201)]
    assert (percentile(values, 50), percentile(values, 99), percentile([7.0], 99)) == (100.0, 198.0, 7.0)


def test_a_crash_is_judged_by_the_record_outside() -> None:
    begun = Counter({"again": 2, "twice": 2, "known": 1, "lost": 1})
    ended = Counter({"again": 1, "twice": 2})
    ids = ["again", "twice", "known", "lost"]
    found = judged(ids, begun, ended, {"again": "a result", "twice": "a result", "known": "lost"})
    assert found == {"tasks": 4, "finished": 2, "run_twice": 2, "doubled": 1, "told": 3, "lost": 1}


def test_cells_of_a_crash_that_was_not_played_have_its_reason() -> None:
    assert crash_cells("no server")[0] == "not played: no server"
    played = {"tasks": 4, "finished": 1, "run_twice": 2, "doubled": 3, "told": 4, "lost": 0}
    assert crash_cells(played) == ["1", "2", "3", "4", "0"]


def test_the_watched_ratio_is_the_geometric_mean_of_all_others() -> None:
    ours = {**SOME, "crash": {"told": 3, "tasks": 4}}
    others = [{**SOME, "cpu_us": 200.0}, {**SOME, "cpu_us": 800.0}]
    found = ratios_of(ours, others)
    assert found["peers/CPU of a task, mean of the others in ours"] == pytest.approx((4.0, "more"))
    assert found["peers/told after a kill -9, part of the tasks"] == (0.75, "more")


def test_every_peer_is_pinned_and_has_its_program() -> None:
    names = [peer.name for peer in PEERS]
    assert len(names) == len(set(names))
    for peer in PEERS:
        assert (PROGRAMS / peer.client[0]).exists(), peer.name
        assert bool(version_of(peer)) == (peer.program != OWN), peer.name


@pytest.mark.parametrize("list", sorted(LISTS.glob("*.txt")), ids=lambda path: path.stem)
def test_every_line_of_an_environment_has_one_version(list: Any) -> None:
    lines = [line for line in list.read_text().splitlines() if not line.startswith("#")]
    assert all("==" in line and pinned(line) for line in lines)


def test_a_peer_that_is_not_installed_is_named() -> None:
    absent = MEANTIME._replace(program=ROOT / ".peers" / "nobody" / "bin" / "python").absent
    assert absent == ".peers/nobody/bin/python is not installed"
    assert MEANTIME._replace(needs=lambda: False, missing="no server").absent == "no server"
    assert MEANTIME.absent == ""


def facts() -> ModuleType:
    """The programs are no package: each is run in an environment of its own."""
    spec = importlib.util.spec_from_file_location("facts", PROGRAMS / "facts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_latencies_are_of_the_submit_and_of_the_time_after_the_end() -> None:
    ends: dict[str, float] = {}

    async def submit(id: str, seconds: float) -> None:
        await pause_async(0.01, "a submit that takes a moment")
        ends[id] = time.monotonic()

    async def result(id: str) -> float:
        await pause_async(0.02, "a result that takes a moment")
        return ends[id]

    found = asyncio.run(facts().Commands(submit, result).one_by_one(2))
    assert [len(times) for times in found.values()] == [2, 2]
    assert all(taken >= 0.01 for taken in found["submits"])
    assert all(taken >= 0.02 for taken in found["tellings"])


def test_an_error_is_an_ending_and_silence_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def result(id: str) -> float:
        if id == "silent":
            await asyncio.Event().wait()
        if id == "failed":
            raise RuntimeError("no")
        return 1.0

    module = facts()
    monkeypatch.setattr(module, "TOLD_WITHIN", 0.05)
    found = asyncio.run(module.Commands(result, result).told(["done", "failed", "silent"]))
    assert found == {"done": "a result", "failed": "RuntimeError: no"}


def test_our_own_row_is_measured_and_counts_its_processes() -> None:
    with crew_of(MEANTIME, 5.0) as crew:
        before = crew.cpu()
        crew.ask(do="noops", count=2_000)
        assert crew.cpu() > before
        assert crew.memory() > 2**20


@pytest.mark.parametrize(("peer", "again"), [(MEANTIME, 0), (MEANTIME_AGAIN, 4)], ids=["once", "again"])
def test_a_kill_of_everything_is_told_by_us(peer: Any, again: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.peers.peer_figures.WATCH", LIMIT if again else 2 * LONG)
    found = crashed(peer)
    wanted = {"tasks": 4, "finished": again, "run_twice": again, "doubled": 0, "told": 4, "lost": 0}
    assert found == wanted
