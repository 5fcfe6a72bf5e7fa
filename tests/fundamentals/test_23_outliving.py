"""Lesson 23: a command outlives the process that started it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gates import open_gate
from meantime import Meantime, Shell

pytestmark = pytest.mark.anyio


@pytest.mark.in_process("the worker of these tests ends with the ledger, before the command has begun")
async def test_the_next_owner_takes_it_up_where_it_stands(tmp_path: Path):
    """Closed, crashed or killed: the command goes on. Whoever opens the ledger next has the same task,
    with its whole output, and its thread is told how it ended."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with Meantime.open(tmp_path / "work.db") as mt:
        command = Shell(f"echo before; read line < {gate}; echo after $line")
        handle = await mt.thread("conv-1").start(command)

    open_gate(gate, "the restart\n")  # nobody owns the ledger now; the command reads this all the same

    async with Meantime.open(tmp_path / "work.db") as mt:
        thread = mt.thread("conv-1")
        [task] = await thread.wait(handle.id)
        assert await thread.result(task) == "before\nafter the restart\n"
        async with thread.turn() as turn:
            assert [notice.task_id for notice in turn.notices] == [handle.id]
            await turn.ack()
