"""A close whose ledger takes no writes any more: quick, without an error of the system, and with a log of
what is not recorded."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Call, Meantime, Settings

from . import power
from .trial import new_folder

pytestmark = pytest.mark.faults

# A close waits for the ends of its runs for longer than the limit of the test.
SETTINGS = Settings(stop_grace=LIMIT, stop_deadline=2 * LIMIT)


def read_only(folder: Path) -> None:
    """As Linux does it by itself where a disk reports an error."""
    device = next(
        line.split()[0] for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line
    )
    trigger = Path(f"/sys/fs/ext4/{Path(device).name}/trigger_fs_error")
    try:
        power._run("mount", "-o", "remount,errors=remount-ro", str(folder / "disk"))
        trigger.write_text("a disk that fails")
    except OSError as problem:
        pytest.skip(f"no error can be made on a file system here: {problem}")


@pytest.fixture
def folder() -> Iterator[Path]:
    if why_not := power.missing():
        pytest.skip(why_not)
    made = new_folder()
    power._make(made)
    with power.mounted(made):
        yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize("fail", [power._cut, read_only], ids=["shut down", "read-only"])
def test_a_close_gives_up_soon_and_says_what_is_not_recorded(
    folder: Path, fail: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def story() -> str:
        mt = await Meantime.open(folder / "disk" / "work.db", settings=SETTINGS)
        handle = await mt.thread("conv-1").start(Call(work))
        await asyncio.sleep(0)
        fail(folder)
        async with asyncio.timeout(LIMIT):
            await mt.close()
            await stopped.wait()
        return handle.id

    id = asyncio.run(story())
    (said,) = [record.getMessage() for record in caplog.records if "not recorded" in record.getMessage()]
    assert id in said
