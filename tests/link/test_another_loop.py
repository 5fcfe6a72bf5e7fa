"""The link on uvloop, which an owner in Python, or a process that is connected to it, may run on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from meantime import Call, Meantime


def test_owner_and_client_work_on_uvloop(tmp_path: Path):
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with (
            Meantime.open(":memory:", link=tmp_path / "link.sock"),
            Meantime.connect(tmp_path / "link.sock", start=False) as connected,
        ):
            handle = await connected.thread("conv-1").start(Call(int, "1"))
            await handle.wait()
            assert await handle.result() == 1

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
