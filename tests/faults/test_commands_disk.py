"""The folder of the commands: full, read-only, removed. Endings are true, gaps are told, nothing hangs."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Meantime, ProcessLimits, Refused, Settings, Shell, Thread

from .adoption import clear
from .trees import lives

pytestmark = pytest.mark.faults

SETTINGS = Settings(stop_grace=0.3, stop_deadline=LIMIT)
LINES = 60_000  # of 8 bytes: more than the small disk has


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    clear(tmp_path)


@pytest.fixture
def small(folder: Path) -> Iterator[Path]:
    """The folder of the commands on a file system of its own, of 256 KB; the ledger is not on it."""
    commands = folder / "ledger.db.commands"
    commands.mkdir()
    if os.getuid() != 0:
        pytest.skip("only root can mount a small tmpfs")
    mounted = _mount("-t", "tmpfs", "-o", "size=256k", "tmpfs", commands)
    if mounted:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted}")
    yield commands
    clear(folder)
    subprocess.run(["umount", "-l", str(commands)], check=True)


def _mount(*words: object) -> str:
    return subprocess.run(["mount", *map(str, words)], capture_output=True, text=True).stderr.strip()


def play(folder: Path, story: Callable[[Thread], Coroutine[Any, Any, None]]) -> None:
    async def on_a_ledger() -> None:
        async with Meantime.open(folder / "ledger.db", settings=SETTINGS) as meantime:
            await story(meantime.thread("t"))

    asyncio.run(asyncio.wait_for(on_a_ledger(), 3 * LIMIT))


async def pid_of(folder: Path) -> int:
    file = folder / "pid"
    await until_async(lambda: file.exists() and file.read_bytes().endswith(b"\n"), "it has begun")
    return int(file.read_text())


def gated(folder: Path, code: int) -> Shell:
    return Shell(
        f"echo $$ >{folder}/pid; until [ -e {folder}/gate ]; do sleep 0.02; done; echo done; exit {code}"
    )


def test_a_removed_folder_hides_no_exit_code(folder: Path) -> None:
    async def story(thread: Thread) -> None:
        handle = await thread.start(gated(folder, 7))
        await pid_of(folder)
        shutil.rmtree(folder / "ledger.db.commands")
        (folder / "gate").touch()
        assert getattr((await handle.wait(timeout=LIMIT)).outcome, "exit_code", None) == 7
        after = await thread.start(Shell("echo next; exit 3"))
        assert getattr((await after.wait(timeout=LIMIT)).outcome, "exit_code", None) == 3
        assert (await after.log.read()).text == "next\n"

    play(folder, story)


def test_a_removed_folder_saves_nothing_from_a_cancel(folder: Path) -> None:
    """Its shim cannot be told anything, so it is put down, and its command hunted."""

    async def story(thread: Thread) -> None:
        handle = await thread.start(gated(folder, 7))
        pid = await pid_of(folder)
        shutil.rmtree(folder / "ledger.db.commands")
        await handle.cancel()
        assert (await handle.wait(timeout=LIMIT)).status == "cancelled"
        assert not lives(pid)

    play(folder, story)


def test_output_that_finds_no_room_is_counted_as_lost(folder: Path, small: Path) -> None:
    async def story(thread: Thread) -> None:
        script = f"i=0; while [ $i -lt {LINES} ]; do echo $((1000000+i)); i=$((i+1)); done; exit 5"
        handle = await thread.start(Shell(script))
        assert getattr((await handle.wait(timeout=LIMIT)).outcome, "exit_code", None) == 5
        offset = kept = lost = 0
        while not (chunk := await handle.log.read(offset)).ended or chunk.data or chunk.lost_bytes:
            assert chunk.next > offset, "the log does not go on"
            first = chunk.data.partition(b"\n")[0]
            if chunk.offset % 8 == 0 and chunk.data:
                assert int(first) == 1_000_000 + chunk.offset // 8, "a line is not where it was said"
            kept, lost, offset = kept + len(chunk.data), lost + chunk.lost_bytes, chunk.next
        assert kept + lost == 8 * LINES == chunk.total
        assert lost > 0
        assert kept > 100_000

    play(folder, story)


def test_a_command_that_fills_the_disk_is_told_and_the_next_is_refused(folder: Path, small: Path) -> None:
    async def story(thread: Thread) -> None:
        handle = await thread.start(Shell(f"cat /dev/zero >{small}/big; echo $?; exit 9"))
        assert getattr((await handle.wait(timeout=LIMIT)).outcome, "exit_code", None) == 9
        with pytest.raises(Refused, match=os.strerror(errno.ENOSPC)):
            await thread.start(Shell("true"))
        (small / "big").unlink()
        after = await thread.start(Shell("echo again"))
        assert (await after.wait(timeout=LIMIT)).outcome.result == "again\n"  # type: ignore[union-attr]

    play(folder, story)


def test_a_read_only_folder_is_a_refusal(folder: Path, small: Path) -> None:
    async def story(thread: Thread) -> None:
        assert not _mount("-o", "remount,ro", small)
        with pytest.raises(Refused, match=os.strerror(errno.EROFS)):
            await thread.start(Shell("true"))
        assert not _mount("-o", "remount,rw", small)
        after = await thread.start(Shell("echo again"))
        assert (await after.wait(timeout=LIMIT)).outcome.result == "again\n"  # type: ignore[union-attr]

    play(folder, story)


def test_a_limit_of_its_files_stops_a_command_that_writes_without_end(folder: Path) -> None:
    async def story(thread: Thread) -> None:
        work = Shell(f"exec cat /dev/zero >{folder}/big", limits=ProcessLimits(file_size=1 << 20))
        ended = await (await thread.start(work)).wait(timeout=LIMIT)
        assert ended.status == "failed"
        assert (folder / "big").stat().st_size == 1 << 20

    play(folder, story)
