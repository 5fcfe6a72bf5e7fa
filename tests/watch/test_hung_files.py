"""A file system that does not answer holds up neither the owner nor other watches, and the watch says so."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from meantime import Meantime, Thread, Watch
from meantime.app.system_clock import SystemClock
from meantime.runners.watch import file_states, file_threads, followed_file
from meantime.runners.watch.file_threads import MOST_STUCK, THREADS, FileCalls, FileThreads, Hangs
from meantime.system.platform import FolderEvents
from meantime.testing import FakeClock

from .told import PATIENCE, first_look, told

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
        while self.blocked:
            try:
                os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:  # the last one has just gone
                continue


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadServer]:
    server = DeadServer(tmp_path)
    look, identity = file_states.FileState._look, followed_file._identity

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

    monkeypatch.setattr(file_states.FileState, "_look", slow_look)
    monkeypatch.setattr(followed_file, "_identity", slow_identity)
    monkeypatch.setattr(file_threads, "PATIENCE", 0.3)
    yield server
    server.come_back()


async def told_by_each(thread: Thread, *ids: str) -> list[str]:
    """All that these tell, until each has told something."""
    found: list[tuple[str, str]] = []
    wakes = aiter(thread.wakeups())
    async with asyncio.timeout(PATIENCE):
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
    for number in range(3 * THREADS):  # more of them than there are threads
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


@pytest.mark.parametrize("match", ["", "ERROR"])
async def test_a_deadline_does_not_wait_for_it(thread: Thread, server: DeadServer, match: str):
    server.is_dead = True
    watch = await thread.start(Watch(file=server.folder / "log", match=match, deadline=0.1))
    async with asyncio.timeout(PATIENCE):
        result = await watch.result()
    assert result.startswith(f"nothing matched until the deadline; {server.folder}/log cannot be looked at")


async def test_a_cancel_and_a_close_do_not_wait_for_it(tmp_path: Path, server: DeadServer):
    server.is_dead = True
    async with asyncio.timeout(PATIENCE):
        async with Meantime.open(tmp_path / "work.db") as mt:
            thread = mt.thread("a")
            for match in ("", "ERROR"):
                watch = await thread.start(Watch(file=server.folder / "log", match=match))
                await thread.start(Watch(file=server.folder / "other", match=match))
                await watch.cancel(wait=True)
    ours = [thread for thread in threading.enumerate() if thread.name == "meantime-files"]
    assert all(thread.daemon for thread in ours), "the program could not end"


async def test_calls_that_hang_use_up_a_bounded_number_of_threads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_threads, "PATIENCE", 0.05)
    threads, back = FileThreads(SystemClock()), threading.Event()
    started: list[int] = []

    def calls(path: str, device: int | None = None) -> FileCalls:
        found = FileCalls(path, threads)
        if device is not None:
            found.place = device
        return found

    def hang(number: int) -> int:
        started.append(number)
        assert back.wait(PATIENCE)
        return number

    async def hung(one: FileCalls, number: int) -> FileCalls:
        with pytest.raises(Hangs):
            await one.make(lambda: hang(number))
        return one

    async def answered(one: FileCalls) -> int:
        while True:
            try:
                return await one.make(lambda: -1)
            except Hangs:
                continue

    dead = await asyncio.gather(*(hung(calls("/a", device=1), number) for number in range(100)))
    assert len(started) <= THREADS, "one dead server uses up the threads"
    assert await calls("/b", device=2).make(lambda: "answered") == "answered"
    unknown = await asyncio.gather(*(hung(calls(f"/{n}"), 100 + n) for n in range(3 * MOST_STUCK)))
    assert await calls("/c", device=2).make(lambda: "answered") == "answered"
    assert threads.count <= THREADS + MOST_STUCK
    back.set()
    async with asyncio.timeout(PATIENCE):
        monkeypatch.setattr(file_threads, "PATIENCE", PATIENCE)
        found = [await answered(one) for one in (*dead, *unknown)]
    assert found == list(range(100 + 3 * MOST_STUCK)), "each has the result of its own call"
    assert sorted(started) == found, "and was made once"
    assert threads.count <= THREADS
    threads.close()


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
