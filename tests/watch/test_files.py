"""Watches of files and folders: they appear, change, are cut, replaced and removed."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import InvalidInput, LedgerError, Meantime, NoticeRate, Settings, Thread, Watch
from meantime.kernel.event_notices import Events
from meantime.kernel.model import Json, Task
from meantime.runners.watch import file_states, followed_file
from meantime.runtime.watched_work import WatchedWork
from meantime.system.platform import FolderEvents

from .told import first_look, told, told_ending

pytestmark = pytest.mark.anyio

KEEP = Settings(notices=NoticeRate(0.0, 1_000_000), reconcile_every=0.2)


@pytest.fixture(params=["inotify", "polling"])
def events(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "polling":
        monkeypatch.setattr(FolderEvents, "listen", lambda self, folder, wake: -1)


def put(file: Path, text: str) -> None:
    """At once: no look meets a file that is not written yet."""
    aside = file.with_name("aside")
    aside.write_text(text)
    aside.rename(file)


@pytest.mark.breadth
@pytest.mark.usefixtures("events")
async def test_a_file_that_appears_changes_and_goes_is_told_each_time(thread: Thread, tmp_path: Path):
    file = tmp_path / "report.txt"
    watch = await thread.start(Watch(file=file, every=0.1))
    await first_look(thread, watch.id)
    put(file, "one")
    assert await told(thread, watch.id, 1) == [("event", f"{file} appeared (3 bytes)")]
    with file.open("a") as opened:
        opened.write(" two")
    assert (await told(thread, watch.id, 1))[-1] == ("event", f"{file} changed (7 bytes)")
    file.unlink()
    assert (await told(thread, watch.id, 1))[-1] == ("event", f"{file} is gone")


async def test_entries_of_a_folder_are_told_by_name(thread: Thread, tmp_path: Path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "old.log").touch()
    watch = await thread.start(Watch(file=folder, match=r"\.log$"))
    assert await told(thread, watch.id, 1) == [("event", f"{folder} already has\n+ old.log")]
    (folder / "other.txt").touch()
    (folder / "new.log").write_text("x")
    assert await told(thread, watch.id, 1) == [("event", f"{folder} changed\n+ new.log")]
    folder.rename(tmp_path / "elsewhere")
    assert (await told(thread, watch.id, 1))[-1][1].endswith("is gone")


@pytest.mark.breadth
async def test_entries_that_are_there_already_are_not_new(thread: Thread, tmp_path: Path):
    (tmp_path / "old.log").touch()
    watch = await thread.start(Watch(file=tmp_path, match=r"\.log$", new=True, once=True))
    await first_look(thread, watch.id)
    (tmp_path / "new.log").touch()
    assert await told(thread, watch.id, 1) == [("ending", f"matched once\n{tmp_path} changed\n+ new.log")]


async def test_a_folder_without_such_an_entry_is_not_told(thread: Thread, tmp_path: Path):
    folder = tmp_path / "out"
    watch = await thread.start(Watch(file=f"{folder}/", match=r"\.log$", once=True, every=0.1))
    await first_look(thread, watch.id)
    for change, state in ((folder.mkdir, {"/": [0, 0]}), (folder.rmdir, {}), (folder.mkdir, {"/": [0, 0]})):
        change()

        async def is_seen(state: object = state) -> bool:
            return (await thread.get(watch)).run.cursor == {"state": state}

        await until_async(is_seen, f"the watch has seen {state}")
    (folder / "other.txt").touch()
    (folder / "new.log").touch()
    assert await told(thread, watch.id, 1) == [("ending", f"matched once\n{folder}/ changed\n+ new.log")]


async def test_an_entry_of_a_folder_ends_its_watch_by_its_name(thread: Thread, tmp_path: Path):
    """Whether it is one of those that are told or not; the name of the folder itself ends nothing."""
    folder = tmp_path / "done"
    watch = await thread.start(Watch(file=f"{folder}/", match=r"\.log$", until="^done", every=0.1))
    await first_look(thread, watch.id)
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside" / "a.log").touch()
    (tmp_path / "aside").rename(folder)
    assert await told(thread, watch.id, 1) == [("event", f"{folder}/ appeared\n+ a.log")]
    (folder / "done.txt").touch()
    expected = f"matched once until ^done\n{folder}/ changed\n+ done.txt"
    assert await told(thread, watch.id, 1) == [("ending", expected)]


@pytest.mark.parametrize(("match", "words"), [("", "found"), ("txt", "nothing matched until")])
async def test_an_entry_that_is_there_already_ends_a_watch_unless_it_must_be_new(
    thread: Thread, tmp_path: Path, match: str, words: str
):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a.done").touch()
    at_once = await thread.start(Watch(file=folder, match=match, until=r"\.done$"))
    expected = f"{words} \\.done$\n{folder} already has\n+ a.done"
    assert await told(thread, at_once.id, 1) == [("ending", expected)]
    later = await thread.start(Watch(file=folder, match=match, until=r"\.done$", new=True, every=0.1))
    await first_look(thread, later.id)
    (folder / "a.done").write_text("again")
    (folder / "b.done").touch()
    text = await told_ending(thread, later.id)
    assert text.startswith(f"{words} \\.done$\n{folder} changed\n+ b.done")


async def test_one_entry_more_than_very_many_ends_a_watch(
    thread: Thread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(file_states, "MOST_ENTRIES", 5)
    folder = tmp_path / "out"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.done").touch()
    watch = await thread.start(Watch(file=folder, match="txt", until=r"\.done$", new=True, every=0.1))
    await first_look(thread, watch.id)
    (folder / "a.txt").touch()
    assert await told(thread, watch.id, 1) == [("event", f"{folder} changed\n+ a.txt")]
    (folder / "new.done").touch()
    assert (await told(thread, watch.id, 1))[-1][0] == "ending"


@pytest.mark.usefixtures("events")
async def test_new_lines_of_a_file_are_searched_over_a_cut_and_a_replacement(thread: Thread, tmp_path: Path):
    log = tmp_path / "app.log"
    watch = await thread.start(Watch(file=log, match="ERROR", every=0.1))
    log.write_text("ERROR 1\nok\n")
    assert await told(thread, watch.id, 1) == [("event", "ERROR 1")]
    with log.open("a") as file:
        file.write("ERR")
        file.flush()
        file.write("OR 2\n")
    assert await told(thread, watch.id, 1) == [("event", "ERROR 2")]
    log.rename(tmp_path / "app.log.1")
    log.write_text("ERROR 3\n")
    assert await told(thread, watch.id, 1) == [("event", "ERROR 3")]
    os.truncate(log, 0)
    log.write_text("ERROR 4\n")
    found = await told(thread, watch.id, 1)
    assert found == [("event", "ERROR 4")]


async def test_lines_that_came_without_an_owner_are_found_once(tmp_path: Path):
    ledger, log = tmp_path / "work.db", tmp_path / "app.log"
    log.write_text("ERROR old\n")
    async with Meantime.open(ledger, settings=KEEP) as mt:
        watch = await mt.thread("a").start(Watch(file=log, match="ERROR", new=True))
        await first_look(mt.thread("a"), watch.id)
    with log.open("a") as file:
        file.write("ERROR alone\n")
    async with Meantime.open(ledger, settings=KEEP) as mt:
        assert await told(mt.thread("a"), watch.id, 1) == [("event", "ERROR alone")]
    log.unlink()
    log.write_text("a file in its place, which may have its number\nERROR new\n" * 3)
    async with Meantime.open(ledger, settings=KEEP) as mt:
        assert await told(mt.thread("a"), watch.id, 1) == [("event", "ERROR new")]


async def test_a_line_that_was_read_and_could_not_be_told_is_left_to_the_next_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ledger, log = tmp_path / "work.db", tmp_path / "app.log"
    log.write_text("ok\n")
    tries = asyncio.Event()

    async def full_disk(self: WatchedWork, task: Task, events: Events, cursor: Json) -> bool:
        tries.set()
        raise LedgerError("The disk is full.")

    async with Meantime.open(ledger, settings=KEEP) as mt:
        watch = await mt.thread("a").start(Watch(file=log, match="ERROR", new=True))
        await first_look(mt.thread("a"), watch.id)
        monkeypatch.setattr(WatchedWork, "found", full_disk)
        with log.open("a") as file:
            file.write("ERROR untold\n")
        async with asyncio.timeout(LIMIT):
            await tries.wait()
    monkeypatch.undo()
    async with Meantime.open(ledger, settings=KEEP) as mt:
        assert await told(mt.thread("a"), watch.id, 1) == [("event", "ERROR untold")]


@pytest.mark.breadth
async def test_a_folder_of_very_many_files_is_compared_as_a_whole(thread: Thread, tmp_path: Path):
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(1_100):
        (folder / str(number)).touch()
    watch = await thread.start(Watch(file=folder))
    await first_look(thread, watch.id)
    assert len(str((await thread.get(watch.id)).run.cursor)) < 1_000
    (folder / "one more").touch()
    assert await told(thread, watch.id, 1) == [("event", f"{folder} changed: 1,101 entries")]


async def test_a_path_that_has_no_lines_is_waited_for(thread: Thread, tmp_path: Path):
    place = tmp_path / "later"
    os.mkfifo(place)
    watch = await thread.start(Watch(file=place, match="ERROR", new=True, every=0.1))
    trouble = f"{place} is not a regular file, so it has no lines to follow."
    assert await told(thread, watch.id, 1) == [("event", trouble)]
    place.unlink()
    place.write_text("ERROR at last\n")
    assert await told(thread, watch.id, 1) == [("event", "ERROR at last")]


@pytest.mark.parametrize("new", [False, True])
async def test_a_file_that_cannot_be_read_for_a_while_is_told_once_and_read_later(
    thread: Thread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: bool
):
    log, pread, tries = tmp_path / "app.log", os.pread, 0
    log.write_text("ok\n")

    def broken(fd: int, size: int, at: int) -> bytes:
        nonlocal tries
        tries += 1
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(followed_file.os, "pread", broken)
    watch = await thread.start(Watch(file=log, match="ERROR", new=new, every=0.1))
    trouble = f"{log} cannot be looked at: {os.strerror(errno.EIO)}."
    assert await told(thread, watch.id, 1) == [("event", trouble)]
    seen = tries
    await until_async(lambda: tries >= seen + 6, "it looks again, more than once")
    monkeypatch.setattr(followed_file.os, "pread", pread)
    with log.open("a") as file:
        file.write("ERROR 1\n")
    assert await told(thread, watch.id, 1) == [("event", "ERROR 1")]


async def test_until_alone_follows_the_lines_of_a_file(thread: Thread, tmp_path: Path):
    log = tmp_path / "app.log"
    log.write_text("starting\n")
    watch = await thread.start(Watch(file=log, until="READY", every=0.1))
    with log.open("a") as file:
        file.write("READY to serve\n")
    assert await told(thread, watch.id, 1) == [("ending", "found READY\nREADY to serve")]


async def test_a_name_forges_no_line_of_a_notice(thread: Thread, tmp_path: Path):
    folder = tmp_path / "out"
    folder.mkdir()
    watch = await thread.start(Watch(file=folder, every=0.1))
    await first_look(thread, watch.id)
    (folder / "a\n- b\x1b[1m\u2028c").touch()
    expected = f"{folder} changed\n+ a\\n- b\\x1b[1m\\u2028c"
    assert await told(thread, watch.id, 1) == [("event", expected)]


async def test_a_file_that_can_never_be_there_is_refused(thread: Thread):
    for match in ("", "ERROR"):
        with pytest.raises(InvalidInput, match="has a name that is too long"):
            await thread.start(Watch(file="/tmp/" + 300 * "x", match=match))
