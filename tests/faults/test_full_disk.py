"""A full disk is called that, by whichever file it shows first, and as soon as it does."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from meantime import Call, Degraded, Meantime, Shell
from meantime.runners.shell.command_paths import Places
from meantime.stores.sqlite.writer import Writer

pytestmark = pytest.mark.anyio


class Full(sqlite3.OperationalError):
    sqlite_errorcode = sqlite3.SQLITE_FULL


async def test_a_refused_start_is_enough_to_be_degraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> None:
        raise Full("database or disk is full")

    async with Meantime.open(tmp_path / "work.db") as mt:
        with monkeypatch.context() as patched:
            patched.setattr(Writer, "_transact", full)
            with pytest.raises(Degraded):
                await mt.thread("t").start(Call(sum, [1]))
        assert (await mt.stats())["degraded"] == 1
        handle = await mt.thread("t").start(Call(sum, [1, 2]))
        assert "degraded" not in await mt.stats()
        assert await handle.result() == 3


async def test_no_room_for_a_commands_files_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with Meantime.open(tmp_path / "work.db") as mt:
        monkeypatch.setattr(Places, "make", full)
        with pytest.raises(Degraded, match="disk is full") as caught:
            await mt.thread("t").start(Shell("true"))
        assert (caught.value.code, "Make room" in caught.value.hint) == ("degraded", True)
