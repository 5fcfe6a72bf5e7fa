"""Commands at a worker: terminals, limits, folders, what they leave behind, and what lists show of them."""

from __future__ import annotations

import os
import time

import pytest
from tests.waiting import LIMIT, until_async

from meantime import ProcessLimits, Refused, Shell, Status, Watch
from meantime.kernel.row_facts import LINE, last_event_at
from meantime.workers.messages import AliveMessage, SayingMessage

from . import jobs
from .conftest import PLACE, Site

pytestmark = pytest.mark.anyio


async def _facts(site: Site, id: str):
    (facts,) = await site.mt._runtime.row_facts([id])
    return facts


async def test_a_command_has_a_terminal_at_its_worker(site: Site):
    mt = await site.open()
    await site.worker()
    work = Shell("test -t 0 && stty size; read x; echo got $x", pty=True, size=(33, 77))
    handle = await mt.thread("a").start(work, place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    await handle.send("hello\n")
    await handle.wait(LIMIT)
    text = (await handle.log.read()).text
    assert "33 77" in text
    assert "got hello" in text


async def test_limits_of_a_command_hold_at_its_worker(site: Site):
    mt = await site.open()
    await site.worker()
    limits = ProcessLimits(open_files=32, file_size=1_000)
    line = f"ulimit -n; head -c 5000 /dev/zero > {site.folder}/big"
    handle = await mt.thread("a").start(Shell(line, limits=limits), place=PLACE)
    task = await handle.wait(LIMIT)
    assert task.status is Status.FAILED
    assert (await handle.log.read()).text.splitlines()[0] == "32"
    assert (site.folder / "big").stat().st_size < 2_000


async def test_a_folder_that_is_not_at_the_worker_is_a_failure_that_names_it(site: Site):
    mt = await site.open()
    await site.worker()
    gone = site.folder / "gone"
    gone.mkdir()
    work = Shell("pwd", cwd=gone)
    gone.rmdir()
    task = await (await mt.thread("a").start(work, place=PLACE)).wait(LIMIT)
    assert task.status is Status.FAILED
    assert str(gone) in str(task.outcome)


async def test_head_and_ring_of_a_long_output_are_kept(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(
        Shell("head -c 8000000 /dev/zero | tr '\\0' x; echo; echo last"), place=PLACE
    )
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    assert (await handle.log.tail(1)).text == "last\n"
    chunk = await handle.log.read(offset=2_000_000)
    assert chunk.lost_bytes > 0  # between the head and the ring, as locally
    assert (await handle.log.read(limit=10)).text == "x" * 10


async def test_processes_that_an_ended_command_left_are_ended_by_a_cancel(site: Site):
    mt = await site.open()
    await site.worker()
    pid = site.folder / "pid"
    handle = await mt.thread("a").start(Shell(f"sleep 600 & echo $! > {pid}"), place=PLACE)
    task = await handle.wait(LIMIT)
    assert task.status is Status.COMPLETED
    left = int(pid.read_text())
    os.kill(left, 0)
    await until_async(lambda: not site.workers["w1"].state.journal, "the worker has forgotten the run")
    answer = await handle.cancel()
    assert answer.killed == 1
    await until_async(lambda: not _lives(left), "what it left behind has ended")


async def test_a_command_that_leaves_nothing_ends_its_children_itself(site: Site):
    mt = await site.open()
    await site.worker()
    pid = site.folder / "pid"
    work = Shell(f"sleep 600 & echo $! > {pid}", leftovers="kill")
    await (await mt.thread("a").start(work, place=PLACE)).wait(LIMIT)
    await until_async(lambda: not _lives(int(pid.read_text())), "what it left behind has ended")


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# -- what lists show


@pytest.mark.breadth
async def test_a_list_shows_the_last_line_of_a_placed_command_and_when_it_came(site: Site):
    mt = await site.open()
    await site.worker()
    line = f"echo one; while [ ! -e {site.folder}/go ]; do sleep 0.05; done; echo {'y' * 999}; read x"
    handle = await mt.thread("a").start(Shell(line, open_stdin=True), place=PLACE)

    async def said() -> bool:
        return (await _facts(site, handle.id)).said == "one"

    await until_async(said, "the first line is shown")
    first = await _facts(site, handle.id)
    assert first.said_at is not None
    assert abs(first.said_at - time.time()) < LIMIT
    (site.folder / "go").touch()

    async def said_more() -> bool:
        return (await _facts(site, handle.id)).said.startswith("yyy")

    await until_async(said_more, "the next line is shown")
    facts = await _facts(site, handle.id)
    assert len(facts.said) <= LINE
    assert last_event_at(await handle.get(), facts) >= first.said_at
    await handle.cancel(wait=True)


async def test_a_flood_of_output_and_progress_is_not_a_flood_of_messages(site: Site):
    mt = await site.open()
    worker = await site.worker()
    sent: list[object] = []
    say = worker._say

    def counted(message: object) -> None:
        sent.append(message)
        say(message)  # type: ignore[arg-type]

    worker._say = counted  # type: ignore[method-assign]
    from meantime import Call

    flood = await mt.thread("a").start(Call(jobs.floods, 3_000), place=PLACE)
    lines = await mt.thread("a").start(Shell("yes | head -n 200000"), place=PLACE)
    began = time.monotonic()
    assert (await flood.wait(LIMIT)).status is Status.COMPLETED
    assert (await lines.wait(LIMIT)).status is Status.COMPLETED
    took = time.monotonic() - began
    saying = [message for message in sent if isinstance(message, SayingMessage)]
    assert len(saying) < 20 + 10 * took
    await until_async(
        lambda: any(isinstance(message, AliveMessage) for message in sent), "the worker says that it lives"
    )
    task = await flood.get()
    assert task.progress is not None
    assert task.progress.message == "2999"


async def test_the_clock_of_a_worker_does_not_date_its_progress(site: Site, monkeypatch: pytest.MonkeyPatch):
    """A worker whose clock is an hour behind is not silent for an hour."""
    from meantime import Call

    mt = await site.open()
    worker = await site.worker()
    now = worker._clock.now
    monkeypatch.setattr(worker._clock, "now", lambda: now() - 3_600)
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE)

    async def said() -> bool:
        return (await handle.get()).progress is not None

    await until_async(said, "its progress is known")
    progress = (await handle.get()).progress
    assert progress is not None
    assert abs(progress.updated_at - time.time()) < 1_800
    await handle.cancel(wait=True)


# -- a worker that is away


@pytest.mark.breadth
async def test_the_log_of_a_task_whose_worker_is_away_says_so_and_is_there_when_it_returns(site: Site):
    mt = await site.open()
    await site.worker()
    line = f"echo begun; while [ ! -e {site.folder}/go ]; do sleep 0.05; done; echo done"
    handle = await mt.thread("a").start(Shell(line), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")

    async def begun() -> bool:
        return bool((await handle.log.read()).text)

    await until_async(begun, "the command has begun")
    await site.lose()
    assert (await handle.wait(LIMIT)).status is Status.LOST
    with pytest.raises(Refused, match=r"Worker w1 has been away since .* UTC; the output is there") as caught:
        await handle.log.read()
    assert caught.value.code == "worker_away"
    assert "when the worker is back" in caught.value.hint
    worker = await site.worker()

    async def back() -> bool:
        try:
            return (await handle.log.read()).text == "begun\n"
        except Refused:
            return False

    await until_async(back, "the output can be read again")  # it still runs there, and is read from there
    (site.folder / "go").touch()
    await until_async(lambda: not worker.state.journal, "the worker has forgotten the run")
    await site.leave()
    assert (await handle.log.read()).text == "begun\ndone\n"  # fetched before the worker forgot it
    assert (await handle.get()).status is Status.LOST


@pytest.mark.breadth
async def test_a_watch_of_a_log_outlasts_the_silence_of_a_worker(site: Site):
    mt = await site.open()
    await site.worker()
    line = f"echo begun; while [ ! -e {site.folder}/go ]; do sleep 0.05; done; echo done"
    handle = await mt.thread("a").start(Shell(line), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    await site.leave_for_a_while()
    watch = await mt.thread("a").start(Watch(log=handle, match="^done", once=True))
    late = await mt.thread("a").start(Watch(log=handle, match="^done", deadline=0))
    await late.wait(LIMIT)
    assert await late.result() == "nothing matched until the deadline, while its worker was away"
    assert (await watch.get()).status is Status.RUNNING
    await site.worker()
    (site.folder / "go").touch()
    await watch.wait(LIMIT)
    assert await watch.result() == "matched once\ndone"
    await handle.wait(LIMIT)


async def test_a_worker_that_is_silent_is_not_waited_for_by_a_reader(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Shell("echo one; sleep 600"), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    await site.leave_for_a_while()
    asked: list[object] = []
    monkeypatch.setattr(site.pools._requests, "_tell", lambda *given: asked.append(given))
    with pytest.raises(Refused, match="has been away since"):
        await handle.log.read()
    assert not asked
    monkeypatch.undo()
    await site.worker()
    await handle.cancel(wait=True)
