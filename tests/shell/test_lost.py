"""Shims that are killed or hang, files that vanish, machines that restart: honest endings, no strays."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Failed, Lost, Meantime, Shell
from meantime.runners.shell import command_start
from meantime.runners.shell.output_ring import State
from meantime.runners.shell.shim import cells

from .owners import QUICK, Owner, let_go, released, state_of, wait_for
from .saying import lives, said

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.mark.core("the one killed shim")
async def test_a_killed_shim_leaves_its_task_lost_and_no_process(path: Path, tmp_path: Path):
    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Shell(f"sleep 600 & {released(tmp_path)}"))
        await said(handle, "before")
        os.kill(State(state_of(path).read_bytes())[cells.SHIM_PID], signal.SIGKILL)

        task = await handle.wait(LIMIT)
        assert isinstance(task.outcome, Lost)
        assert task.outcome.partial == "before\n"
        assert "still ran and were killed" in task.outcome.reason
    pid = int((tmp_path / "started").read_text())
    assert not lives(pid)


async def test_a_shim_that_was_killed_meanwhile_too(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()
    os.kill(State(state_of(path).read_bytes())[cells.SHIM_PID], signal.SIGKILL)

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
    pid = int((tmp_path / "started").read_text())
    assert not lives(pid)


async def test_a_restart_of_the_machine_is_honest(owner: Owner, path: Path, tmp_path: Path):
    """A command that was recorded, and of which nothing is known after a reboot, is lost, not run again."""
    id = owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()
    state = state_of(path)
    os.kill(State(state.read_bytes())[cells.SHIM_PID], signal.SIGKILL)
    os.killpg(int((tmp_path / "started").read_text()), signal.SIGKILL)
    (state.parent / "boot").write_text("another boot")
    state.write_bytes(bytes(cells.SIZE))  # what had not reached the disk

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "restarted" in task.outcome.reason


async def test_files_that_vanished_are_honest(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()
    state = state_of(path)
    os.kill(State(state.read_bytes())[cells.SHIM_PID], signal.SIGKILL)
    os.killpg(int((tmp_path / "started").read_text()), signal.SIGKILL)
    state.unlink()

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "gone" in task.outcome.reason
    assert len((tmp_path / "started").read_text().split()) == 1


async def test_a_command_whose_files_vanished_does_not_go_on_as_a_stray(
    owner: Owner, path: Path, tmp_path: Path
):
    id = owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()
    state_of(path).unlink()

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "still ran and were killed" in task.outcome.reason
    assert not lives(int((tmp_path / "started").read_text()))


async def test_an_order_goes_round_a_shim_that_hangs(path: Path, monkeypatch: pytest.MonkeyPatch):
    """As it would on a disk that does not answer: what comes after it is started all the same, once."""
    monkeypatch.setattr(command_start, "STUCK", 0.3)
    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        first = await thread.start(Shell("echo first; read line", open_stdin=True))
        await said(first, "first")
        shim = State(state_of(path).read_bytes())[cells.SHIM_PID]
        zygote = int(Path(f"/proc/{shim}/stat").read_text().rpartition(")")[2].split()[1])
        children = Path(f"/proc/{zygote}/task/{zygote}/children")
        await until_async(lambda: len(children.read_text().split()) == 2, "a spare shim is there")
        [spare] = {int(pid) for pid in children.read_text().split()} - {shim}
        os.kill(spare, signal.SIGSTOP)
        try:
            second = await thread.start(Shell(f"echo ran >> {path}.ran; echo second"))
            assert await second.result(LIMIT) == "second\n"
        finally:
            os.kill(spare, signal.SIGCONT)
        await first.send("go\n")
        assert (await first.wait(LIMIT)).status == "completed"
    assert Path(f"{path}.ran").read_text() == "ran\n"


@pytest.mark.behaviour("P3")
async def test_lost_work_runs_again_only_if_it_may(path: Path, tmp_path: Path):
    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        command = f"echo $$ >> {tmp_path}/started; test $(wc -l < {tmp_path}/started) -eq 2 || sleep 600"
        handle = await thread.start(Shell(command), retry="idempotent")
        await wait_for(tmp_path / "started", "\n")
        os.kill(State(state_of(path).read_bytes())[cells.SHIM_PID], signal.SIGKILL)
        task = await handle.wait(LIMIT)
        assert task.status == "completed"
        assert task.run.attempt == 2
    assert len((tmp_path / "started").read_text().split()) == 2


async def test_a_folder_that_vanishes_while_it_runs_costs_only_its_output(path: Path, tmp_path: Path):
    async with Meantime.open(path, settings=QUICK) as mt:
        handle = await mt.thread("conv-1").start(Shell(released(tmp_path, "exit 5")))
        await said(handle, "before")
        for file in Path(f"{path}.commands").iterdir():
            file.unlink()
        Path(f"{path}.commands").rmdir()
        await asyncio.to_thread(let_go, tmp_path)
        task = await handle.wait(LIMIT)
        assert isinstance(task.outcome, Failed)
        assert task.outcome.exit_code == 5
        again = await mt.thread("conv-1").start(Shell("echo fine"))
        assert await again.result(LIMIT) == "fine\n"


async def test_what_nobody_knows_of_is_swept_away(path: Path):
    async with Meantime.open(path) as mt:
        await (await mt.thread("conv-1").start(Shell("echo kept"))).wait(LIMIT)
    folder = Path(f"{path}.commands")
    stray = hashlib.sha256("\0".join(("t_nobody", "1", "1")).encode()).hexdigest()[: cells.NAME_LENGTH]
    for kind in (cells.STATE_FILE, cells.OUT_FILE):
        (folder / f"{stray}{kind}").write_bytes((bytes(cells.ID) + b"t_nobody").ljust(cells.SIZE, b"\0"))
    async with Meantime.open(path) as mt:
        [task] = await mt.list()
        assert (await mt.log(task.id).read()).text == "kept\n"
    assert not list(folder.glob(f"{stray}*"))


@pytest.mark.parametrize("damage", ["short", "zeros", "another number"])
async def test_a_damaged_state_is_lost_and_its_command_does_not_begin_twice(
    owner: Owner, path: Path, tmp_path: Path, damage: str
):
    id = owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()
    state = state_of(path)
    whole = state.read_bytes()
    os.kill(State(whole)[cells.SHIM_PID], signal.SIGKILL)
    os.killpg(int((tmp_path / "started").read_text()), signal.SIGKILL)
    spoiled = {"short": whole[:100], "zeros": bytes(cells.SIZE), "another number": b"\3" + whole[1:]}[damage]
    state.write_bytes(spoiled)

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "damaged" in task.outcome.reason
    assert (tmp_path / "started").read_text().count("\n") == 1


@pytest.mark.parametrize("damage", ["gone", "short", "another id"])
async def test_the_output_of_an_ended_command_outlives_its_state(path: Path, damage: str):
    """Whoever cleans up must not take files for nobody's because their state is damaged."""
    async with Meantime.open(path, settings=QUICK) as mt:
        handle = await mt.thread("conv-1").start(Shell("seq 1 30000"))
        whole = await handle.result(LIMIT)
    state = state_of(path)
    said = state.read_bytes()
    if damage == "gone":
        state.unlink()
    else:
        another = said[: cells.ID] + b"x" + said[cells.ID + 1 :]
        state.write_bytes(said[:100] if damage == "short" else another)
        os.utime(state, (0, 0))
    async with Meantime.open(path, settings=QUICK) as mt:
        assert await mt.thread("conv-1").result(handle.id) == whole
