"""kill -9 of the owner: a call that was under way is lost and told once; a server's task is taken up
again; and nothing of the server outlives us."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Lost, Meantime, Status, Thread, Tool
from outcomes import completed

from .conftest import PATIENT, Peer, lives, seen

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
ROOT = Path(__file__).parents[3]


class Owner:
    def __init__(self, ledger: Path, peer: Peer, era: bool) -> None:
        self._ledger = ledger
        words = [str(ledger), str(peer.folder), "modern" if era else "older"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.integrations.mcp.owner", *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},  # as pytest finds `runtimes`
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, name: str, **arguments: object) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def session(self, id: str) -> str | None:
        """The server's id of the work, as it is stored."""
        with closing(sqlite3.connect(f"file:{self._ledger}?mode=ro", uri=True)) as db:
            ((body,),) = db.execute("SELECT body FROM tasks WHERE id = ?", (id,))
        return json.loads(body).get("session")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


async def told(thread: Thread) -> list[tuple[str, str]]:
    async with thread.turn() as turn:
        found = [(notice.task_id, str(notice.task.status)) for notice in turn.notices]
        await turn.ack()
    return found


async def test_a_call_that_was_under_way_is_lost_and_told_once(tmp_path: Path, peer: Peer, era: bool):
    ledger = tmp_path / "work.db"
    owner = Owner(ledger, peer, era)
    id = owner.start("s/gate", mark="m")
    await peer.until("waiting", "m")
    owner.kill()
    for expected in ([(id, "lost")], []):
        async with Meantime.open(ledger, settings=PATIENT, servers={"s": peer.server(modern=era)}) as mt:
            (task,) = await mt.thread("a").wait(id, timeout=LIMIT)
            assert isinstance(task.outcome, Lost)
            assert "not known" in task.outcome.reason
            assert await told(mt.thread("a")) == expected
    assert peer.lines("calls") == ["gate m"]


async def test_a_servers_task_is_taken_up(tmp_path: Path, peer: Peer, era: bool):
    ledger, tool = tmp_path / "work.db", "s/task" if era else "s/task_of_2025"
    owner = Owner(ledger, peer, era)
    id = owner.start(tool, mark="m", id="theirs")
    await until_async(lambda: owner.session(id), "the server's id of the work is on disk")
    owner.kill()
    peer.open_gate()
    async with Meantime.open(ledger, settings=PATIENT, servers={"s": peer.server(modern=era)}) as mt:
        (task,) = await mt.thread("a").wait(id, timeout=LIMIT)
        assert completed(task).result == "done m"
        assert await told(mt.thread("a")) == [(id, "completed")]
    assert len(peer.lines("calls")) == 1


async def test_what_was_queued_runs_then(tmp_path: Path, peer: Peer, era: bool):
    ledger = tmp_path / "work.db"
    owner = Owner(ledger, peer, era)
    running = [owner.start("s/gate", mark=str(n)) for n in range(10)]
    queued = owner.start("s/echo", text="at last", mark="queued")
    await until_async(lambda: len(peer.lines("waiting")) == 10, "ten calls are under way")
    owner.kill()
    async with Meantime.open(ledger, settings=PATIENT, servers={"s": peer.server(modern=era)}) as mt:
        tasks = await mt.thread("a").wait(*running, queued, timeout=LIMIT)
        assert [task.status for task in tasks] == [Status.LOST] * 10 + [Status.COMPLETED]
    assert peer.lines("calls").count("echo queued") == 1


async def test_a_servers_task_that_was_taken_up_can_be_cancelled(tmp_path: Path, peer: Peer, era: bool):
    ledger, tool = tmp_path / "work.db", "s/task" if era else "s/task_of_2025"
    async with Meantime.open(ledger, settings=PATIENT, servers={"s": peer.server(modern=era)}) as mt:
        thread = mt.thread("a")
        handle = await thread.start(Tool(tool, {"id": "theirs"}))
        await seen(handle, lambda task: task.session)
    async with Meantime.open(ledger, settings=PATIENT, servers={"s": peer.server(modern=era)}) as mt:
        answer = await mt.thread("a").cancel(handle.id, wait=True)
        assert answer.task.status is Status.CANCELLED
    assert "tasks/cancel theirs" in peer.lines("asked")


async def test_nothing_of_a_server_outlives_a_killed_owner(tmp_path: Path, peer: Peer, era: bool):
    """This one clings: it does not go when its stdin is closed, and has double-forked a child."""
    owner = Owner(tmp_path / "work.db", peer, era)
    owner.start("s/leaves")
    await until_async(lambda: len(peer.pids) == 2, "the server has left a child")
    assert all(map(lives, peer.pids))
    owner.kill()
    await until_async(lambda: not any(map(lives, peer.pids)), "the server and its child are gone")
