"""A close on a failing disk: the mark that says which WAL is the ledger's own cannot be written."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from meantime import Call, Meantime
from meantime.stores.sqlite import wal_mark

pytestmark = pytest.mark.anyio


async def test_a_wal_whose_mark_could_not_be_written_is_not_taken_for_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "work.db"
    real = os.pwrite
    async with Meantime.open(path) as mt:
        handle = await mt.thread("a").start(Call(int, "7"))
        await handle.wait()
        reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tasks").fetchone()  # so no checkpoint can empty the WAL

        def failing(fd: int, data: bytes, offset: int) -> int:
            if any(data[8:24]) and not any(data[24:48]):
                return real(fd, data, offset)  # the claim is lifted, and the next write fails
            raise OSError(errno.EIO, "a disk that fails")

        names = {name: getattr(os, name) for name in dir(os)} | {"pwrite": failing}
        monkeypatch.setattr(wal_mark, "os", SimpleNamespace(**names))  # the lock beside it can be written
    monkeypatch.undo()
    reader.close()
    assert Path(f"{path}-wal").stat().st_size > 0
    async with Meantime.open(path) as mt:
        assert await mt.thread("a").result(handle.id) == 7
