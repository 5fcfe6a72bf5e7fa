"""The journal of a worker: what is in it, when it is synced, and a disk that is full."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Shell, Status
from meantime.kernel.errors import Degraded
from meantime.kernel.model import Task
from meantime.runners.shell.runner import ShellRunner
from meantime.workers import worker_process
from meantime.workers.effects import Begin, Keep, Say
from meantime.workers.journal import ClaimJournal
from meantime.workers.messages import GrantedMessage, OfferMessage
from meantime.workers.worker_state import ENDED_AGAIN, SYNC_AT, JournalEntry, WorkerSideState, lost_ending

from . import jobs
from .conftest import PLACE, Site
from .simulation import Row, as_task

pytestmark = pytest.mark.anyio


def _granted() -> tuple[WorkerSideState, GrantedMessage]:
    state = WorkerSideState("home", "boot")
    task = as_task(Row("t1", "call", False))
    state.offered(OfferMessage(task="t1", fence=(1, 1), pool="default", work="call"), "n1")
    return state, GrantedMessage(nonce="n1", task=task)


def test_a_claim_is_in_the_journal_before_its_run_begins_and_costs_no_sync():
    state, granted = _granted()
    assert state.granted(granted) == [Keep("n1"), Begin(granted)]


def test_an_ending_is_synced_once_when_the_owner_does_not_acknowledge_it():
    state, granted = _granted()
    state.granted(granted)
    ended = lost_ending(granted)
    assert state.finished("n1", ended) == [Say(ended), Keep("n1")]
    for seconds in ENDED_AGAIN[:SYNC_AT]:
        assert state.tick(seconds) == [Say(ended)]
    assert state.tick(ENDED_AGAIN[SYNC_AT]) == [Keep("n1", synced=True), Say(ended)]
    assert state.tick(ENDED_AGAIN[-1]) == [Say(ended)]


@pytest.mark.breadth
async def test_an_ending_is_sent_first_and_then_written_down(site: Site, monkeypatch: pytest.MonkeyPatch):
    """The conversation waits for the message, and nobody for the file."""
    mt = await site.open()
    worker = await site.worker()
    happened = list[str]()
    to_owner, keep = worker._carrier.to_owner, ClaimJournal.keep

    def sent(data: bytes) -> bool:
        happened.extend(["sent"] if b'"ended"' in data else [])
        return False  # it is lost

    def kept(self: ClaimJournal, entry: JournalEntry, *, synced: bool) -> None:
        happened.extend(["kept"] if entry.ended else [])
        keep(self, entry, synced=synced)

    monkeypatch.setattr(ClaimJournal, "keep", kept)
    handle = await mt.thread("a").start(Call(jobs.waits_for, str(site.folder / "go")), place=PLACE)
    await until_async(lambda: worker.state.running, "the run is under way")
    monkeypatch.setattr(worker._carrier, "to_owner", sent)
    (site.folder / "go").touch()
    await until_async(lambda: "kept" in happened, "the ending was written down")
    assert happened[:2] == ["sent", "kept"]
    monkeypatch.setattr(worker._carrier, "to_owner", to_owner)
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED


async def test_a_worker_that_closes_has_written_the_endings_that_nobody_acknowledged(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker_process, "ENDED_KEPT", 600.0)
    mt = await site.open()
    worker = await site.worker()
    handle = await mt.thread("a").start(Call(jobs.waits_for, str(site.folder / "go")), place=PLACE)
    await until_async(lambda: worker.state.running, "the run is under way")
    site.broker.stop()
    (site.folder / "go").touch()
    await until_async(lambda: not worker.state.running, "the run has ended")
    await site.leave()
    site.broker.start()
    await site.worker()
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED


async def test_a_command_whose_files_find_no_room_is_another_workers(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    """Its claim was written down, and then the disk was full: it never began, so it is not failed."""
    mt = await site.open()
    await site.worker("w1")
    prepare, full = ShellRunner.prepare, [True]

    def prepared(self: ShellRunner, task: Task) -> None:
        if full.pop():
            full.append(False)
            raise Degraded(f"The disk is full: {errno.ENOSPC}.")
        full.append(False)
        prepare(self, task)

    monkeypatch.setattr(ShellRunner, "prepare", prepared)
    handle = await mt.thread("a").start(Shell("echo done"), place=PLACE)
    await until_async(lambda: not full[0], "the disk was full once")
    await until_async(
        lambda: site.pools.counters().get("workers.unbegun"), "the owner knows that it never began"
    )
    assert not list((site.folder / "home-w1" / "journal").glob("*.json"))
    await site.worker("w2")  # the first one rests, though it was waiting for offers
    task = await handle.wait(LIMIT)
    assert task.status is Status.COMPLETED
    assert task.run.claim is not None
    assert task.run.claim.worker == "w2"


async def test_the_trace_of_a_command_is_there_before_its_claim_is_written_down(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    """A worker that is killed in between has begun nothing. The other way round, half a trace would belong to
    a claim that is on record, and the command would be lost."""
    mt = await site.open()
    await site.worker("w1")
    prepare, written = ShellRunner.prepare, list[Path]()

    def prepared(self: ShellRunner, task: Task) -> None:
        written.extend((site.folder / "home-w1" / "journal").glob("*.json"))
        prepare(self, task)

    monkeypatch.setattr(ShellRunner, "prepare", prepared)
    handle = await mt.thread("a").start(Shell("echo done"), place=PLACE)
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    assert not written


def test_what_the_journal_holds_is_there_after_the_process_is_gone(tmp_path: Path):
    from meantime.workers.journal import ClaimJournal
    from meantime.workers.worker_state import JournalEntry

    _, granted = _granted()
    journal = ClaimJournal(tmp_path / "journal")
    journal.open()
    journal.keep(JournalEntry(granted), synced=False)
    journal.close()
    assert set(ClaimJournal(tmp_path / "journal").open()) == {"n1"}
