"""Work at a worker tells its conversation something before it ends: once, in order, whatever is lost."""

from __future__ import annotations

import os
import random
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.waiting import LIMIT, until_async

from meantime import Call, Handle, NoticeRate, Shell, Status, Thread
from meantime.app.system_clock import SystemClock
from meantime.carriers.memory import MemoryBroker, MessageFaults
from meantime.execution.context import WorkContext
from meantime.kernel.change import notify
from meantime.kernel.errors import Degraded, LedgerError
from meantime.kernel.event_notices import one
from meantime.kernel.model import Claim, Run, Task, Work
from meantime.runtime.record import Record
from meantime.runtime.runtime import Runtime
from meantime.system import event_spool
from meantime.system.event_spool import EventSpool
from meantime.workers.followed_run import FollowedRun
from meantime.workers.messages import FromOwner, FromWorker, GrantedMessage, NotedMessage, NotifiedMessage
from meantime.workers.run_events import RunEvents

from . import jobs
from .conftest import PLACE, Site, ended

pytestmark = pytest.mark.anyio
EACH = NoticeRate(seconds=0.0, per_minute=1_000_000)
FAULTS = MessageFaults(loss=0.2, doubling=0.3, reordering=0.3, delay=0.3)
TEXTS = [f"event {number}" for number in range(12)]


async def told(thread: Thread) -> list[str]:
    async with thread.turn() as turn:
        found = [notice.text for notice in turn.notices]
        await turn.ack()
    return found


def record_of(site: Site) -> Record:
    assert isinstance(site.mt._runtime, Runtime)
    return site.mt._runtime.record


def notices_of(site: Site, id: str) -> int:
    """Those that a running task has made so far."""
    tally = record_of(site).live[id].run.events
    return 0 if tally is None else tally.seq


# -- functions


async def test_a_function_tells_before_it_ends(site: Site):
    mt = await site.open(notices=EACH)
    await site.worker()
    go_on = site.folder / "go"
    handle = await mt.thread("a").start(Call(jobs.tells, ["half", "more"], str(go_on)), place=PLACE)
    await until_async(lambda: notices_of(site, handle.id) == 2, "both texts were told")
    assert await told(mt.thread("a")) == ["half", "more"]
    go_on.touch()
    await handle.wait(LIMIT)
    assert await told(mt.thread("a")) == ["sent"]


async def test_a_function_on_a_thread_can_tell_as_well(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.tells_on_a_thread), place=PLACE)
    await handle.wait(LIMIT)
    assert await told(mt.thread("a")) == ["from a thread", "sent"]


async def test_the_owner_decides_how_often_and_no_event_is_left_out(site: Site):
    mt = await site.open(notices=NoticeRate(seconds=3_600.0))
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.tells, TEXTS), place=PLACE)
    await handle.wait(LIMIT)
    async with mt.thread("a").turn() as turn:
        events = [notice.body for notice in turn.notices if notice.body is not None]
        assert sum(event.count for event in events) == len(TEXTS)
        assert (events[0].first, events[-1].text) == (TEXTS[0], TEXTS[-1])
        await turn.ack()


@pytest.mark.breadth
async def test_each_event_is_told_once_and_in_order_whatever_the_carrier_loses(tmp_path: Path):
    """And whatever becomes of the owner: it leaves while events are under way, and another one follows."""
    site = Site(tmp_path, MemoryBroker(SystemClock(), FAULTS, seed=5))
    try:
        mt = await site.open(notices=EACH)
        await site.worker()
        handle = await mt.thread("a").start(Call(jobs.tells, TEXTS), place=PLACE)
        await until_async(lambda: notices_of(site, handle.id), "something was told")
        await site.close()
        mt = await site.open(notices=EACH)
        assert (await ended(mt, handle.id)).status is Status.COMPLETED
        assert await told(mt.thread("a")) == [*TEXTS, "sent"]
    finally:
        for name in list(site.workers):
            await site.leave(name)
        await site.close()


async def test_a_text_that_says_nothing_is_refused_where_it_was_said(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.tells, [" "]), place=PLACE)
    task = await handle.wait(LIMIT)
    assert task.status is Status.FAILED
    assert "text must say something" in str(task.outcome)


async def test_an_owner_of_an_earlier_version_is_not_sent_what_it_cannot_read(site: Site, monkeypatch: Any):
    granted = FollowedRun.granted
    monkeypatch.setattr(FollowedRun, "granted", lambda run: replace(granted(run), events=False))
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.tells, ["half"]), place=PLACE)
    task = await handle.wait(LIMIT)
    assert task.status is Status.FAILED
    assert "The owner of this task is of an earlier version" in str(task.outcome)


async def test_a_run_that_was_given_up_is_answered_that_it_tells_nothing_more(site: Site):
    """It would wait for its answer otherwise, and keep its slot for good."""
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)
    await handle.wait(LIMIT)
    waiting = await mt.thread("a").start(Call(jobs.add, 1, 2), place="pool:other")
    answers: list[FromOwner] = []
    site.pools._endings._tell = lambda worker, message: answers.append(message)
    for task in (waiting.id, handle.id, "t_gone"):
        event = NotifiedMessage(nonce="n", task=task, fence=(1, 1), number=1, text="nobody hears this")
        site.pools._take("w1", event)
    await until_async(lambda: len(answers) == 2, "both are answered")
    for message in answers:  # the run that waits may be followed in a moment, so that nothing is answered
        assert isinstance(message, NotedMessage)
        assert message.error is not None
        assert message.error.message == "This run was given up, so it tells nothing more."
    await waiting.cancel()


# -- commands


def notify_line(text: str) -> str:
    return f"{shlex.quote(sys.executable)} -m meantime notify {shlex.quote(text)}"


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of the worker has no daemon, and starts none."""
    monkeypatch.setenv("MEANTIME_HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("MEANTIME_NO_START", "1")


@pytest.mark.breadth
async def test_a_command_tells_with_the_same_words_as_at_the_owner(site: Site, away: None):
    mt = await site.open(notices=EACH)
    await site.worker()
    line = f"{notify_line('staging is up')}; {notify_line('and checked')}"
    handle = await mt.thread("a").start(Shell(line), place=PLACE)
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    first, second, ending = await told(mt.thread("a"))
    assert (first, second) == ("staging is up", "and checked")
    assert "sent:" not in ending, "a model reads the output of a command"
    await until_async(
        lambda: not list((site.folder / "home-w1" / "journal").glob("*.events")), "its events were forgotten"
    )


@pytest.mark.breadth
async def test_events_of_a_command_are_told_once_over_restarts_of_owner_and_worker(tmp_path: Path):
    site = Site(tmp_path, MemoryBroker(SystemClock(), FAULTS, seed=7))
    try:
        mt = await site.open(notices=EACH)
        await site.worker()
        waiting = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
        line = f"printenv {event_spool.VARIABLE} > {tmp_path}/spool; {waiting}"
        handle = await mt.thread("a").start(Shell(line), place=PLACE)
        await until_async(
            lambda: (tmp_path / "spool").exists() and (tmp_path / "spool").read_text(),
            "the command has its spool",
        )
        spool = Path((tmp_path / "spool").read_text().strip())
        for number, text in enumerate(TEXTS):
            event_spool.leave(spool, text)
            if number == 3:
                await site.leave()
                await site.worker()
            if number == 7:
                await site.close()
                mt = await site.open(notices=EACH)
        await until_async(lambda: notices_of(site, handle.id) >= 6, "six events were told")
        (tmp_path / "go").touch()
        assert (await ended(mt, handle.id)).status is Status.COMPLETED
        assert (await told(mt.thread("a")))[:-1] == TEXTS
    finally:
        for name in list(site.workers):
            await site.leave(name)
        await site.close()


async def command_with_events_left(site: Site, texts: list[str]) -> Handle[Any]:
    """It ends when there is a file `go`. Its worker passes nothing on before."""
    mt = await site.open(notices=EACH)
    worker = await site.worker()
    line = f"while [ ! -e {site.folder}/go ]; do sleep 0.05; done"
    handle = await mt.thread("a").start(Shell(line), place=PLACE)
    await until_async(lambda: worker.runs and next(iter(worker.runs.values())).speaks, "the command runs")
    (run,) = worker.runs.values()
    assert run._spool is not None
    run.events._is_open = False
    for text in texts:
        event_spool.leave(run._spool.folder, text)
    return handle


async def test_the_events_that_a_command_leaves_at_its_end_are_told_before_its_ending(site: Site):
    handle = await command_with_events_left(site, TEXTS)
    (site.folder / "go").touch()
    await handle.wait(LIMIT)
    assert (await told(site.mt.thread("a")))[:-1] == TEXTS


@pytest.mark.behaviour("P5")
async def test_the_last_events_of_a_command_wait_until_they_can_be_read(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    """A worker whose open files are at their limit for a moment."""
    handle = await command_with_events_left(site, ["the last"])
    left, refusals = EventSpool.left, iter([OSError("Too many open files")] * 2)

    def failing(spool: EventSpool) -> list[tuple[int, str, str]]:
        for problem in refusals:
            raise problem
        return left(spool)

    monkeypatch.setattr(EventSpool, "left", failing)
    (site.folder / "go").touch()
    await handle.wait(LIMIT)
    assert (await told(site.mt.thread("a")))[0] == "the last"


@pytest.mark.behaviour("P5")
async def test_an_event_that_came_with_an_ending_is_tried_until_the_ledger_takes_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    handle = await command_with_events_left(site, ["half", "the last"])
    relay, refusals = WorkContext.relay_event, iter([LedgerError("disk I/O error"), Degraded("full")])

    async def refused(context: WorkContext, number: int, text: str) -> str:
        for problem in refusals:
            raise problem
        return await relay(context, number, text)

    monkeypatch.setattr(WorkContext, "relay_event", refused)
    (site.folder / "go").touch()
    await handle.wait(LIMIT)
    assert (await told(site.mt.thread("a")))[:-1] == ["half", "the last"]


# -- in simulated time


def claimed_task() -> Task:
    claim = Claim("w1", "home", "boot", "n1")
    return Task(id="t1", thread="a", work=Work("shell", "f"), status=Status.RUNNING, run=Run(claim=claim))


class LossyWay:
    """Messages that are lost, doubled and come late, by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.under_way: list[tuple[int, Callable[[], None]]] = []
        self.now = 0

    def send(self, deliver: Callable[[], None]) -> None:
        for _ in range(self.random.choice((0, 1, 1, 2))):
            self.under_way.append((self.now + self.random.randrange(8), deliver))

    def step(self) -> None:
        self.now += 1
        due = [deliver for at, deliver in self.under_way if at <= self.now]
        self.under_way = [one for one in self.under_way if one[0] > self.now]
        self.random.shuffle(due)
        for deliver in due:
            deliver()


class LedgerOwner:
    """The owner, which has its ledger only: it may be killed between any two steps."""

    def __init__(self) -> None:
        self.task = claimed_task()
        self.told: list[str] = []

    def take(self, message: NotifiedMessage, answer: Callable[[NotedMessage], None]) -> None:
        change = notify(self.task, one(message.text, message.number), 100.0, EACH, joins=True)
        if change.writes:
            self.task = change.task
            self.told.append(message.text)
        answer(NotedMessage(nonce=message.nonce, number=message.number, answer="sent"))


@pytest.mark.parametrize("seed", range(20))
async def test_lives_of_a_worker_tell_each_event_of_a_command_once(tmp_path: Path, seed: int):
    way, owner = LossyWay(seed), LedgerOwner()
    granted = GrantedMessage(nonce="n1", task=owner.task, events=True)
    spool = EventSpool(tmp_path)
    lives: list[RunEvents] = []

    def say(message: FromWorker) -> None:
        assert isinstance(message, NotifiedMessage)
        way.send(lambda: owner.take(message, lambda noted: way.send(lambda: lives[-1].noted(noted))))

    def begin() -> None:
        lives.append(RunEvents(granted, say, EventSpool(tmp_path)))
        lives[-1].open()

    begin()
    for text in TEXTS:
        event_spool.leave(tmp_path, text)
    for _ in range(2_000):
        way.step()
        lives[-1].tick()
        if way.random.random() < 0.05:
            begin()  # the one before was killed
        if way.random.random() < 0.002:
            break  # the command ends, perhaps long before all is told
    for event in RunEvents(granted, say, spool).left():
        change = notify(owner.task, one(event.text, event.number), 100.0, EACH, joins=True)
        if change.writes:
            owner.task = change.task
            owner.told.append(event.text)
    assert owner.told == TEXTS


def test_another_attempt_counts_from_one_again():
    task = notify(claimed_task(), one("one", 1), 100.0, EACH, joins=True).task
    assert not notify(task, one("one", 1), 101.0, EACH, joins=True).writes
    again = replace(task, run=replace(task.run, attempt=2, claim=Claim("w2", "home", "boot", "n2")))
    change = notify(again, one("one", 1), 102.0, EACH, joins=True)
    assert change.writes
    assert change.notices[0].body is not None
    assert change.notices[0].body.seq == 2


# -- the folder


def test_a_folder_holds_a_bounded_number_of_events(tmp_path: Path):
    for _ in range(event_spool.MOST_WAITING):
        event_spool.leave(tmp_path, "one")
    with pytest.raises(BlockingIOError, match="100 events wait"):
        event_spool.leave(tmp_path, "one more")


def test_what_a_command_puts_there_that_is_not_an_event_is_removed(tmp_path: Path):
    spool = EventSpool(tmp_path)
    (tmp_path / "0-big.event").write_bytes(b"x" * (event_spool.MOST_BYTES + 1))
    os.mkfifo(tmp_path / "0-pipe.event")
    (tmp_path / "0-link.event").symlink_to("/etc/passwd")
    (tmp_path / "0-folder.event").mkdir()
    (tmp_path / "0-bytes.event").write_bytes(b"\xff\xfe")
    event_spool.leave(tmp_path, "the last")
    assert [text for _, _, text in spool.left()] == ["\ufffd\ufffd", "the last"]
    assert sorted(path.name for path in tmp_path.iterdir())[:2] == ["0-bytes.event", "0-folder.event"]


def test_an_event_after_the_end_is_refused(tmp_path: Path):
    spool = EventSpool(tmp_path)
    waits = event_spool.leave(tmp_path, "in time")
    late = event_spool.leave(tmp_path, "while it ended")
    spool.close([waits], {"answer": "sent"})
    assert event_spool.answer_to(tmp_path, waits) == {"answer": "sent"}
    assert event_spool.answer_to(tmp_path, late) == {
        "error": "The task of this command has ended.",
        "hint": "",
    }
    with pytest.raises(FileNotFoundError, match="its task has ended"):
        event_spool.leave(tmp_path, "too late")
