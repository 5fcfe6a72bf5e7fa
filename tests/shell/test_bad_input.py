"""What cannot be a command is refused before anything is recorded, and says what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from gates import Gate
from meantime import (
    Call,
    InvalidInput,
    Limits,
    Meantime,
    ProcessLimits,
    Refused,
    Settings,
    Shell,
    Thread,
)
from meantime.kernel.errors import Duplicate

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "command",
    ["", "  ", [], [""], None, 5, b"ls", ["ls", 5], ["ls", None], {"ls": 1}, "a\0b", ["a", "b\0"], "\ud800"],
    ids=repr,
)
def test_a_command_that_is_none_is_refused(command: Any):
    with pytest.raises(InvalidInput):
        Shell(command)


@pytest.mark.parametrize(
    "options",
    [
        {"cwd": 5},
        {"cwd": b"/tmp"},
        {"cwd": "a\0b"},
        {"env": "A=1"},
        {"env": {"A": 1}},
        {"env": {"": "1"}},
        {"env": {"A=B": "1"}},
        {"env": {"A": "b\0c"}},
        {"env": {1: "x"}},
        {"stdin": 5},
        {"stdin": "x" * ((1 << 20) + 1)},
        {"pty": 1},
        {"merge": "yes"},
        {"open_stdin": None},
        {"size": (0, 80)},
        {"size": (24,)},
        {"size": "24x80"},
        {"leftovers": "adopt"},
        {"limits": {"processes": 4}},
        {"limits": ProcessLimits(processes=0)},
        {"limits": ProcessLimits(cpu_seconds=-1)},
        {"limits": ProcessLimits(open_files=True)},
        {"limits": ProcessLimits(address_space=1.5)},  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_bad_options_of_a_command_are_refused(options: dict[str, Any]):
    with pytest.raises(InvalidInput):
        Shell("true", **options)


@pytest.mark.parametrize(
    "settings", [{"on_close": "ask"}, {"output_head": -1}, {"output_ring": "4 MB"}], ids=str
)
def test_bad_settings_of_commands_are_refused(settings: dict[str, Any]):
    with pytest.raises(InvalidInput):
        Meantime.open(":memory:", settings=Settings(**settings))


@pytest.mark.processes
async def test_arguments_that_are_too_long_for_the_system(thread: Thread):
    """The system refuses them: that is a failure, not a hang."""
    task = await (await thread.start(Shell(["true", "x" * 500_000]))).wait(LIMIT)
    assert task.status == "failed"
    assert "Argument list too long" in task.outcome.message  # type: ignore[union-attr]


@pytest.mark.processes
async def test_hostile_ids_are_no_paths(thread: Thread):
    handle = await thread.start(Shell("echo fine"), id="..")
    assert await handle.result(LIMIT) == "fine\n"


@pytest.mark.processes
@pytest.mark.behaviour("F8")
async def test_a_duplicate_id_does_not_hurt_the_first(thread: Thread):
    first = await thread.start(Shell("read line; echo $line", open_stdin=True), id="mine")
    with pytest.raises(Exception, match="exists already"):
        await thread.start(Shell("echo second"), id="mine")
    await first.send("hello\n")
    assert await first.result(LIMIT) == "hello\n"


@pytest.mark.behaviour("F7")
async def test_a_duplicate_tool_call_leaves_no_file(ledger: str, thread: Thread, tmp_path: Any):
    await (await thread.start(Shell("true"), tool_call_id="call-1")).wait(LIMIT)
    with pytest.raises(Exception, match="has its task already"):
        await thread.start(Shell("true"), tool_call_id="call-1")
    if ledger != ":memory:":
        assert len(list(tmp_path.glob("work.db.commands/*.state"))) == 1


@pytest.mark.behaviour("F17")
async def test_work_starts_work_only_as_deep_as_it_may(ledger: str):
    """Work that starts work that starts work: as deep as it may, and no deeper."""
    async with Meantime.open(ledger, settings=Settings(limits=Limits(depth=1))) as mt:
        thread = mt.thread("conv-1")
        reached: list[int] = []

        async def dig(depth: int) -> None:
            reached.append(depth)
            await (await thread.start(Call(dig, depth + 1))).wait()

        task = await (await thread.start(Call(dig, 0))).wait(LIMIT)
        assert reached == [0, 1]
        [refused] = await thread.list("failed")
        assert refused.depth == 1
        assert "depth" in refused.outcome.message  # type: ignore[union-attr]
        assert task.status == "completed"
        await mt.set_limits(depth=0)
        reached.clear()
        await (await thread.start(Call(dig, 0))).wait(LIMIT)
        assert reached == [0]


async def test_an_id_of_a_command_that_somebody_waits_for_is_taken(thread: Thread, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    slow = asyncio.ensure_future(thread.call(Shell(f"{gate.wait}; echo fine"), id="slow"))
    await until_async(thread.calls, "the call has begun")
    with pytest.raises(Duplicate):
        await thread.start(Shell("echo other"), id="slow")
    await asyncio.to_thread(gate.open)
    assert (await slow).result == "fine\n"


async def test_a_call_whose_files_could_not_be_made_can_be_made_again(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        (tmp_path / "work.db.commands").write_text("in the way")
        with pytest.raises(Refused, match="files"):
            await mt.thread("one").call(Shell("echo fine"), tool_call_id="call-1")
        (tmp_path / "work.db.commands").unlink()
        answer = await mt.thread("one").call(Shell("echo fine"), tool_call_id="call-1")
        assert answer.result == "fine\n"


@pytest.mark.parametrize("bad", [float("inf"), float("nan"), -1, "5", None])
def test_times_that_are_none(bad: Any):
    with pytest.raises(InvalidInput, match="stop_grace"):
        Meantime.open(":memory:", settings=Settings(stop_grace=bad))
