"""A file system that does not answer holds up neither the owner nor other watches, and the watch says so."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until, until_async

from meantime import Meantime, Refused, Thread, Watch
from meantime.kernel.watches import WatchCursor, cursor_of
from meantime.runners.watch import file_states, file_threads, followed_file
from meantime.runners.watch.file_threads import MOST_DEVICES, MOST_FOLDERS, FileCalls, FileThreads, Hangs
from meantime.system.platform import FolderEvents
from meantime.testing import FakeClock

from .told import first_look, told

pytestmark = pytest.mark.anyio


class DeadServer:
    """Stands in for a mount, a device of its own, whose server is gone: calls below its folder block in the
    kernel, in the `open` of a pipe that nobody writes to, until it comes back."""

    device = 4_711

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "mount"
        self.folder.mkdir()
        self._pipe = folder / "pipe"
        os.mkfifo(self._pipe)
        self.is_dead = False
        self.blocked = 0  # calls that are in the kernel

    def has(self, path: str) -> bool:
        return path.startswith(str(self.folder))

    def pass_by(self, path: str) -> None:
        if self.is_dead and self.has(path):
            self.blocked += 1
            os.close(os.open(self._pipe, os.O_RDONLY))
            self.blocked -= 1

    def come_back(self) -> None:
        self.is_dead = False
        until(self._are_free, "all calls have come back")

    def _are_free(self) -> bool:
        with suppress(OSError):  # nobody is blocked any more
            os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
        return not self.blocked


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadServer]:
    server = DeadServer(tmp_path)
    look, identity = file_states.FileState._look, followed_file._identity
    wait = FileCalls._wait

    def slow_look(self: file_states.FileState, was: object) -> object:
        server.pass_by(self._path)
        found = look(self, was)  # type: ignore[arg-type]
        if server.has(self._path):
            self._calls.place = server.device
        return found

    def slow_identity(path: str) -> list[int] | None:
        server.pass_by(path)
        found = identity(path)
        return [server.device, *found[1:]] if found and server.has(path) else found

    async def patient(self: FileCalls, job: Any) -> None:
        """Calls to others are only slow if the machine is."""
        await wait(self, job)
        while not job.done.done() and not (server.is_dead and server.has(self._path)):
            await wait(self, job)

    monkeypatch.setattr(FileCalls, "_wait", patient)
    monkeypatch.setattr(file_states.FileState, "_look", slow_look)
    monkeypatch.setattr(followed_file, "_identity", slow_identity)
    monkeypatch.setattr(file_threads, "PATIENCE", 0.3)
    yield server
    server.come_back()


async def told_by_each(thread: Thread, *ids: str) -> list[str]:
    """All that these tell, until each has told something."""
    found: list[tuple[str, str]] = []
    wakes = aiter(thread.wakeups())
    async with asyncio.timeout(LIMIT):
        while {id for id, _ in found} < set(ids):
            await anext(wakes)
            async with thread.turn() as turn:
                found += [(one.task_id, one.text) for one in turn.notices if one.task_id in ids]
                await turn.ack()
    return [text for _, text in found]


async def test_other_watches_go_on_and_the_hung_ones_say_so_once(
    thread: Thread, server: DeadServer, tmp_path: Path
):
    there, healthy = server.folder / "app.log", tmp_path / "healthy.log"
    there.write_text("ok\n")
    lines = await thread.start(Watch(file=there, match="ERROR", new=True, every=0.1))
    state = await thread.start(Watch(file=there, every=0.1))
    other = await thread.start(Watch(file=healthy, match="ERROR"))
    await first_look(thread, lines.id)
    await first_look(thread, state.id)
    server.is_dead = True
    for number in range(2 * MOST_FOLDERS):  # more of them than there are threads
        await thread.start(Watch(file=server.folder / f"{number}", match="ERROR"))
    said = await told_by_each(thread, lines.id, state.id)
    for text in said:
        assert text.startswith(f"{there} cannot be looked at: its file system has not answered")
    assert len(said) == 2
    healthy.write_text("ERROR 1\n")
    assert await told(thread, other.id, 1) == [("event", "ERROR 1")]
    with there.open("a") as file:
        file.write("ERROR 2\n")
    server.come_back()
    assert await told(thread, lines.id, 1) == [("event", "ERROR 2")]
    with there.open("a") as file:
        file.write("more\n")
    assert (await told(thread, state.id, 1))[-1][1].startswith(f"{there} changed")


async def test_a_command_in_it_is_refused_and_one_that_was_started_before_says_so(
    thread: Thread, server: DeadServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    isdir = os.path.isdir

    def slow_isdir(path: str) -> bool:
        server.pass_by(os.fspath(path))
        return isdir(path)

    monkeypatch.setattr(os.path, "isdir", slow_isdir)
    watch = await thread.start(Watch(command="true", cwd=server.folder, every=0.1))
    await first_look(thread, watch.id)
    server.is_dead = True
    back = threading.Timer(LIMIT / 2, server.come_back)  # where the loop itself hangs
    back.start()
    with pytest.raises(Refused, match=f"{server.folder} cannot be looked at: .* has not answered") as refused:
        await thread.start(Watch(command="true", cwd=server.folder))
    assert refused.value.code == "no_answer"
    assert (await told(thread, watch.id, 1))[0][1].startswith(f"exit 0 → failed\n{server.folder} cannot be")
    other = await thread.start(Watch(command="echo ok", cwd=tmp_path, match="ok", once=True))
    assert await told(thread, other.id, 1) == [("ending", "matched once\nexit 0\nok")]
    assert server.is_dead
    back.cancel()
    server.come_back()
    assert await told(thread, watch.id, 1) == [("event", "failed → exit 0")]


@pytest.mark.parametrize("match", ["", "ERROR"])
async def test_a_deadline_does_not_wait_for_it(thread: Thread, server: DeadServer, match: str):
    server.is_dead = True
    watch = await thread.start(Watch(file=server.folder / "log", match=match, deadline=0.1))
    async with asyncio.timeout(LIMIT):
        result = await watch.result()
    assert result.startswith(f"nothing matched until the deadline; {server.folder}/log cannot be looked at")


async def test_a_cancel_and_a_close_do_not_wait_for_it(tmp_path: Path, server: DeadServer):
    server.is_dead = True
    async with asyncio.timeout(LIMIT):
        async with Meantime.open(tmp_path / "work.db") as mt:
            thread = mt.thread("a")
            for match in ("", "ERROR"):
                watch = await thread.start(Watch(file=server.folder / "log", match=match))
                await thread.start(Watch(file=server.folder / "other", match=match))
                await watch.cancel(wait=True)


class Dead:
    """Calls that hang until they may come back, for longer than is waited on the clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.back = threading.Event()
        self.begun: list[int] = []

    def hang(self, number: int) -> int:
        self.begun.append(number)
        assert self.back.wait(LIMIT)
        return number

    async def hang_all(self, some: Iterable[FileCalls], first: int = 0) -> None:
        made = [
            asyncio.ensure_future(calls.make(lambda number=number: self.hang(number)))
            for number, calls in enumerate(some, first)
        ]
        await self.clock.advance(file_threads.PATIENCE)
        for one in made:
            with pytest.raises(Hangs):
                await one


@pytest.fixture
def dead() -> Iterator[Dead]:
    dead = Dead()
    yield dead
    dead.back.set()


def of_device(path: str, threads: FileThreads, device: int) -> FileCalls:
    found = FileCalls(path, threads)
    found.place = device
    return found


async def test_a_dead_device_holds_up_one_thread_and_no_other_device(dead: Dead):
    threads = FileThreads(dead.clock)
    await dead.hang_all(of_device("/a/x", threads, device=1) for _ in range(100))
    await until_async(lambda: dead.begun == [0], "the first one is called, and no other", lambda: dead.begun)
    await dead.hang_all((FileCalls(f"/{number}/x", threads) for number in range(3 * MOST_FOLDERS)), first=100)
    await dead.hang_all(of_device(f"/{device}/x", threads, device) for device in range(2, MOST_DEVICES))
    assert await of_device("/b/x", threads, device=0).make(lambda: "answered") == "answered"
    assert threads.count <= MOST_DEVICES + MOST_FOLDERS
    threads.close()


async def test_each_has_the_result_of_its_own_call_once_they_come_back(dead: Dead):
    threads = FileThreads(dead.clock)
    every = [of_device("/a/x", threads, device=number % 3) for number in range(30)]
    await dead.hang_all(every)
    dead.back.set()
    found = [await one.make(lambda: -1) for one in every]
    assert found == list(range(30))
    assert sorted(dead.begun) == found, "each was made once"
    assert all(one.was_late for one in every)
    threads.close()


async def test_a_cancelled_call_says_nothing_of_its_device(dead: Dead):
    threads = FileThreads(dead.clock)
    going = asyncio.ensure_future(of_device("/a/x", threads, device=1).make(lambda: dead.hang(0)))
    await asyncio.sleep(0)
    going.cancel()
    other = asyncio.ensure_future(of_device("/a/y", threads, device=1).make(lambda: "answered"))
    await asyncio.sleep(0)
    dead.back.set()
    assert await other == "answered"
    threads.close()


@pytest.mark.breadth
async def test_watches_that_end_while_it_is_dead_leave_nothing_behind(dead: Dead):
    threads, ended = FileThreads(dead.clock), list[str]()
    first = of_device("/a/x", threads, device=1)
    await dead.hang_all([first])
    await until_async(lambda: dead.begun, "the call is made")
    for _ in range(100):
        calls = of_device("/a/y", threads, device=1)
        await dead.hang_all([calls])
        calls.close(lambda: ended.append("never made"))
    assert not threads._waiting
    first.close(lambda: ended.append("first"))
    dead.back.set()
    await until_async(lambda: ended, "it is closed")
    assert ended == ["first"]
    threads.close()


async def test_no_thread_outlives_an_owner(tmp_path: Path):
    before = set(threading.enumerate())
    for round in range(3):
        async with Meantime.open(tmp_path / f"{round}.db") as mt:
            thread = mt.thread("a")
            for number in range(4):
                folder = tmp_path / f"{number}"
                folder.mkdir(exist_ok=True)
                watch = await thread.start(Watch(file=folder / "log", match="ERROR", new=True))
                await first_look(thread, watch.id)

    def left() -> set[threading.Thread]:
        return {one for one in threading.enumerate() if one.name == "meantime-files"} - before

    await until_async(lambda: not left(), "its threads have ended", left)


async def test_a_slow_first_look_does_not_make_old_lines_new(thread: Thread, server: DeadServer):
    there = server.folder / "app.log"
    there.write_text("ERROR of before\n")
    server.is_dead = True
    watch = await thread.start(Watch(file=there, match="ERROR", new=True, every=0.1))
    (said,) = await told_by_each(thread, watch.id)
    assert "cannot be looked at" in said
    server.come_back()

    async def has_state() -> bool:
        return (cursor_of(await thread.get(watch.id)) or WatchCursor()).state is not None

    await until_async(has_state, "the watch has looked")
    with there.open("a") as file:
        file.write("ERROR of now\n")
    assert await told(thread, watch.id, 1) == [("event", "ERROR of now")]


@pytest.mark.skipif(not hasattr(FolderEvents, "_read"), reason="nothing is reported here, so it is polled")
@pytest.mark.parametrize("match", ["", "ERROR"], ids=["folder", "lines"])
async def test_every_limits_the_looks_at_what_never_rests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, match: str
):
    looks = reports = 0
    renew, read = file_states.FolderListener.renew, getattr(FolderEvents, "_read")  # noqa: B009

    def counted(self: file_states.FolderListener) -> float:
        nonlocal looks
        looks += 1
        return renew(self)

    def reported(self: FolderEvents) -> None:
        nonlocal reports
        read(self)
        reports += 1

    monkeypatch.setattr(file_states.FolderListener, "renew", counted)
    monkeypatch.setattr(FolderEvents, "_read", reported)
    clock, folder = FakeClock(), tmp_path / "busy"
    folder.mkdir()
    file = folder / "0.log"
    file.write_text("ERROR 0\n")
    async with Meantime.open(":memory:", clock=clock) as mt:
        of = file if match else folder
        await mt.thread("a").start(Watch(file=of, match=match, every=60.0, new=bool(match)))
        await clock.until(lambda: looks == 1 and any(50.0 < left < 70.0 for left in clock.due_in))

        async def write(number: int) -> None:
            before = reports
            with file.open("a") as opened:
                opened.write(f"ERROR {number}\n")
            await clock.until(lambda: reports > before)

        for number in range(1, 6):
            await write(number)
            await clock.advance(5.0)
        assert looks == 1
        await clock.advance(60.0)
        await clock.until(lambda: looks == 2)
