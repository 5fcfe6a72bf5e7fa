"""Watches of ports, addresses, commands, processes and of what else the ledger has."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import (
    Call,
    InvalidInput,
    Meantime,
    NotFound,
    NoticeRate,
    Settings,
    Shell,
    Status,
    Thread,
    Watch,
)
from meantime.kernel.watches import cursor_of
from meantime.runners.watch import network_states, process_states
from meantime.runners.watch.expressions import expression
from meantime.testing import FakeClock

from .told import EACH, first_look, told

pytestmark = pytest.mark.anyio
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


def http(status: int, body: bytes = b"", head: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def test_a_port_that_opens_is_told_even_if_it_was_open_before(thread: Thread):
    async def silent(writer: asyncio.StreamWriter) -> None: ...

    async with server(silent) as port:
        watch = await thread.start(Watch(port=port, once=True))
        assert await told(thread, watch.id, 1) == [("ending", "matched once\nopen")]
    watch = await thread.start(Watch(port=port, every=0.1))
    await first_look(thread, watch.id)
    listening = await asyncio.start_server(lambda r, w: None, "127.0.0.1", port)
    assert await told(thread, watch.id, 1) == [("event", "closed → open")]
    listening.close()


async def test_a_port_is_watched_without_re2(thread: Thread, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    expression.cache_clear()
    listening = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    watch = await thread.start(Watch(port=port, once=True))
    assert await told(thread, watch.id, 1) == [("ending", "matched once\nopen")]
    listening.close()


async def test_the_status_of_an_address_is_told_when_it_changes(thread: Thread):
    status = 503

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(http(status))

    async with server(answer) as port:
        watch = await thread.start(Watch(url=f"http://127.0.0.1:{port}/health", match="^200", every=0.1))
        await first_look(thread, watch.id)
        status = 200
        assert await told(thread, watch.id, 1) == [("event", "503 → 200")]


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_value_of_a_json_answer_is_told_when_it_changes(thread: Thread, chunked: bool):
    state = "queued"

    async def answer(writer: asyncio.StreamWriter) -> None:
        body = b'{"jobs": [{"state": "%s"}]}' % state.encode()
        if chunked:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        else:
            writer.write(http(200, body))

    async with server(answer) as port:
        url = f"http://127.0.0.1:{port}/"
        watch = await thread.start(Watch(url=url, value="jobs.0.state", until="green|red", every=0.1))
        await first_look(thread, watch.id)
        state = "running"
        assert await told(thread, watch.id, 1) == [("event", "queued → running")]
        state = "green"
        expected = "matched once until green|red\nrunning → green"
        assert await told(thread, watch.id, 1) == [("ending", expected)]


async def test_an_address_that_hangs_or_never_stops_is_no_answer(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(network_states, "LONGEST", 0.2)
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            sent += 65_536
            await writer.drain()

    async def hangs(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def no_http(writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n\r\n")

    async def long_head(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n")
        await writer.drain()

    for answer in (endless, hangs, no_http, long_head):
        async with server(answer) as port:
            watch = await thread.start(
                Watch(url=f"http://127.0.0.1:{port}/", value="a", once=True, match=".")
            )
            (kind, text), *_ = await told(thread, watch.id, 1)
            assert (kind, text.startswith("matched once\nno answer")) == ("ending", True)
    assert sent < 50_000_000


@pytest.mark.parametrize(
    ("body", "value", "expected"),
    [
        (b'{"a": "%s"}' % (b"x" * 900_000), "a", "x" * network_states.MOST_VALUE),
        (b"[" * 500_000 + b"]" * 500_000, "a", "no JSON"),
        (b'{"a": [1, 2]}', "a.\u00b2", "null"),
        (b'{"a": [1, 2]}', "a.1", "2"),
    ],
    ids=["long", "deep", "no number", "number"],
)
async def test_a_value_of_any_kind_is_kept_and_is_short(
    thread: Thread, body: bytes, value: str, expected: str
):
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, body))
        await writer.drain()

    async with server(answer) as port:
        watch = await thread.start(Watch(url=f"http://127.0.0.1:{port}/", value=value, every=60))
        await first_look(thread, watch.id)
        cursor = cursor_of(await thread.get(watch.id))
        assert cursor is not None
        assert cursor.state == expected


async def test_a_command_is_run_until_it_says_what_is_wanted(thread: Thread, tmp_path: Path):
    mark = tmp_path / "green"
    command = f"echo looked >> {tmp_path}/looks; test -e {mark} && echo all green"
    watch = await thread.start(Watch(command=command, match="^exit 0", every=0.1, once=True))
    await first_look(thread, watch.id)
    mark.touch()
    assert await told(thread, watch.id, 1) == [("ending", "matched once\nexit 1 → exit 0\nall green")]


async def test_changed_output_of_a_command_is_told(thread: Thread, tmp_path: Path):
    file = tmp_path / "state"
    file.write_text("one")
    watch = await thread.start(Watch(command=["cat", str(file)], every=0.1))
    await first_look(thread, watch.id)
    file.write_text("two")
    assert (await told(thread, watch.id, 1))[-1] == ("event", "exit 0\ntwo")


async def test_a_polled_command_that_never_ends_is_stopped_and_never_runs_twice(
    thread: Thread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process_states, "LONGEST", 0.3)
    pids = tmp_path / "pids"
    command = f"echo $$ >> {pids}; exec sleep 600"
    watch = await thread.start(Watch(command=command, match="failed", every=0.1))
    ((kind, text),) = await told(thread, watch.id, 1)
    assert (kind, "did not end within" in text) == ("event", True)
    await until_async(pids.exists, "one of its runs has begun")
    await watch.cancel(wait=True)
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.breadth
async def test_a_polled_command_that_ignores_signals_does_not_outlive_the_deadline(
    tmp_path: Path,
):
    pids, clock = tmp_path / "pids", FakeClock()
    command = f"trap '' TERM INT; echo $$ >> {pids}; sleep 1001"
    async with Meantime.open(":memory:", clock=clock, settings=EACH) as mt:
        thread = mt.thread("conv-1")
        watch = await thread.start(Watch(command=command, deadline=30))
        await until_async(pids.exists, "the command runs")
        telling = asyncio.ensure_future(told(thread, watch.id, 1))

        async def is_told() -> bool:
            await clock.advance(1.0)
            return telling.done()

        await until_async(is_told, "the watch has ended")
        expected = "nothing matched until the deadline, while a look was under way"
        assert await telling == [("ending", expected)]
    for pid in pids.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


async def test_a_deadline_of_nothing_runs_a_command_once_and_to_its_end(thread: Thread, tmp_path: Path):
    looks = tmp_path / "looks"
    command = f"echo begun >> {looks}; sleep 0.1; echo ended >> {looks}"
    watch = await thread.start(Watch(command=command, match="never", deadline=0))
    assert await told(thread, watch.id, 1) == [("ending", "nothing matched until the deadline")]
    assert looks.read_text() == "begun\nended\n"


async def test_a_command_that_cannot_be_started_is_told_as_failed(thread: Thread):
    watch = await thread.start(Watch(command=["/no/such/program"], match=".", once=True))
    ((_, text),) = await told(thread, watch.id, 1)
    assert text.startswith("matched once\nfailed")


async def test_a_command_without_its_folder_is_refused_and_later_fails_the_watch(
    thread: Thread, tmp_path: Path
):
    with pytest.raises(InvalidInput, match="is not a folder"):
        await thread.start(Watch(command="true", cwd="/no/such/folder", match="^exit"))
    folder = tmp_path / "project"
    folder.mkdir()
    watch = await thread.start(Watch(command="true", cwd=folder, match="^exit 1", every=0.1))
    await first_look(thread, watch.id)
    folder.rmdir()
    ((kind, text),) = await told(thread, watch.id, 1)
    assert (kind, f"The folder {folder} is not there any more" in text) == ("ending", True), text
    assert "NotFound" not in text
    assert (await thread.get(watch.id)).status is Status.FAILED


async def test_durations_of_a_watch_are_written_as_those_of_a_reminder():
    watch = Watch(port=80, every="1m", deadline=timedelta(hours=1))
    assert (watch.spec.every, watch.spec.deadline) == (60.0, 3_600.0)
    assert Watch(port=80, deadline="10m").spec.deadline == 600.0
    with pytest.raises(InvalidInput, match="deadline='soon' is not a duration"):
        Watch(port=80, deadline="soon")
    with pytest.raises(InvalidInput, match="every must be a number of seconds"):
        Watch(port=80, every="0s")


async def test_a_process_that_is_not_a_task_is_told_when_it_ends(thread: Thread):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)  # noqa: ASYNC220
    watch = await thread.start(Watch(pid=process.pid))
    await first_look(thread, watch.id)
    process.communicate(b"\n")
    expected = f"matched once until the process ended\nprocess {process.pid} is gone"
    assert await told(thread, watch.id, 1) == [("ending", expected)]
    with pytest.raises(NotFound):
        await thread.start(Watch(pid=process.pid))


async def test_another_task_is_told_when_its_state_changes(mt: Meantime, thread: Thread):
    other = mt.thread("conv-2")
    task = await other.start(Shell("cat", open_stdin=True))
    watch = await thread.start(Watch(task=task))
    await first_look(thread, watch.id)
    await task.send(eof=True)
    ((kind, text),) = await told(thread, watch.id, 1)
    assert kind == "ending"
    assert text.startswith(f"matched once until its task ended\ntask {task.id}: running → completed")


async def test_a_thread_and_a_batch_are_told_when_they_are_done(mt: Meantime, thread: Thread):
    other = mt.thread("conv-2")
    tasks = [await other.start(Shell("cat", open_stdin=True), batch="build") for _ in range(2)]
    idle = await thread.start(Watch(thread="conv-2", match="^idle", once=True))
    done = await thread.start(Watch(batch="build", match="^2 of 2 ended$", once=True))
    await first_look(thread, idle.id)
    for task in tasks:
        await first_look(thread, done.id)
        await task.send(eof=True)
    async with asyncio.timeout(LIMIT):
        await thread.wait(idle, done)
    assert str(await idle.result()).endswith("active → idle")
    said = str(await done.result())
    assert said.startswith("matched once until its batch ended\nbatch build: ")
    assert said.endswith("→ 2 of 2 ended")


async def test_a_watch_of_a_batch_ends_with_it(mt: Meantime, thread: Thread):
    task = await mt.thread("conv-2").start(Shell("cat", open_stdin=True), batch="build")
    watch = await thread.start(Watch(batch="build", match="never"))
    await first_look(thread, watch.id)
    await task.send(eof=True)
    assert await told(thread, watch.id, 1) == [("ending", "nothing matched until its batch ended")]


async def test_a_change_that_nobody_saw_is_told_by_the_next_owner(tmp_path: Path):
    settings = Settings(notices=NoticeRate(0.0, 1_000_000), reconcile_every=0.2)
    ledger, file = tmp_path / "work.db", tmp_path / "state"
    file.write_text("one")
    async with Meantime.open(ledger, settings=settings) as mt:
        watch = await mt.thread("a").start(Watch(command=["cat", str(file)], every=0.1))
        await first_look(mt.thread("a"), watch.id)
    file.write_text("two")
    async with Meantime.open(ledger, settings=settings) as mt:
        assert await told(mt.thread("a"), watch.id, 1) == [("event", "exit 0\ntwo")]


async def test_a_function_can_be_watched_as_a_task(thread: Thread):
    task = await thread.start(Call(asyncio.Event().wait))
    watch = await thread.start(Watch(task=task, deadline=0.05))
    assert await told(thread, watch.id, 1) == [("ending", "nothing matched until the deadline")]
