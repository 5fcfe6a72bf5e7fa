"""P4, L27: commands outlive us. The owner is killed for real, and another one opens the ledger."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meantime import Completed, Failed, Lost, Meantime, Settings, Shell, Thread, TimedOut
from meantime.runners.shell import runner
from meantime.runners.shell.launcher import Launcher
from meantime.runners.shell.shim import cells
from meantime.runners.shell.spool import State
from meantime.runners.shell.watch import Watch

from .saying import lives, said, until

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
QUICK = Settings(stop_grace=0.5, stop_deadline=8.0)


class Owner:
    """A process that owns the ledger, until it is killed."""

    def __init__(self, ledger: Path) -> None:
        command = [sys.executable, "-m", "tests.shell.owner", str(ledger), "0.5"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **wanted: Any) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def start(self, command: str, *, options: dict[str, Any] | None = None, **shell: Any) -> str:
        return self.ask(shell={"command": command, **shell}, options=options or {})

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._end()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("close\n")
        self._process.stdin.flush()
        self._end()

    def _end(self) -> None:
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def owner(path: Path) -> Iterator[Owner]:
    owner = Owner(path)
    yield owner
    owner.kill()


def released(tmp_path: Path, then: str = "") -> str:
    """A command that says that it is up, and goes on when it is let go."""
    return f"echo $$ >> {tmp_path}/started; echo before; cat {tmp_path}/gate; echo after; {then}"


def let_go(tmp_path: Path) -> None:
    (tmp_path / "gate").write_text("")


@pytest.fixture(autouse=True)
def gate(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")


async def wait_for(path: Path, text: str) -> None:
    await until(lambda: path.exists() and text in path.read_text())


async def told(thread: Thread) -> list[tuple[str, str]]:
    async with thread.turn() as turn:
        found = [(notice.task_id, str(notice.task.status)) for notice in turn.notices]
        await turn.ack()
    return found


async def test_P4_a_running_command_is_found_again(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path, "exit 3"))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        assert (await thread.get(id)).status == "running"
        follow = thread.log(id).follow()
        assert (await anext(follow)).text == "before\n"
        await asyncio.to_thread(let_go, tmp_path)
        chunk = await anext(follow)
        assert (chunk.text, chunk.offset) == ("after\n", len("before\n"))
        [task] = await thread.wait(id, timeout=10)
        assert isinstance(task.outcome, Failed)
        assert (task.outcome.exit_code, task.outcome.partial) == (3, "before\nafter\n")
        assert await told(thread) == [(id, "failed")]
        assert await told(thread) == []
    assert len((tmp_path / "started").read_text().split()) == 1


async def test_P4_one_that_ended_meanwhile_tells_its_true_exit_code(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path, f"echo gone > {tmp_path}/gone"))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()
    await asyncio.to_thread(let_go, tmp_path)
    await wait_for(tmp_path / "gone", "gone")

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        [task] = await thread.wait(id, timeout=10)
        assert isinstance(task.outcome, Completed)
        assert task.outcome.result == "before\nafter\n"
        assert await told(thread) == [(id, "completed")]


async def test_a_found_command_can_be_cancelled(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        answer = await mt.cancel(id, wait=True)
        assert answer.task.status == "cancelled"
    pid = int((tmp_path / "started").read_text())
    assert not lives(pid)


async def test_a_cancel_is_carried_out_by_the_next_owner(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(f"trap '' TERM; {released(tmp_path)}")
    await wait_for(tmp_path / "started", "\n")
    assert owner.ask(cancel=id) == "applied"
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=10)
        assert task.status == "cancelled"


async def test_at_once_if_its_shim_was_never_told(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    slow = Settings(stop_grace=5.0)
    mt = await Meantime.open(path, settings=slow)
    with monkeypatch.context() as killed:
        killed.setattr(Watch, "stop", lambda self, grace: None)
        handle = await mt.thread("conv-1").start(Shell(released(tmp_path)))
        await wait_for(tmp_path / "started", "\n")
        await handle.cancel()
        await mt._runtime.store.close()  # pyright: ignore[reportPrivateUsage]
    async with Meantime.open(path, settings=slow) as mt:
        [task] = await mt.thread("conv-1").wait(handle.id, timeout=3)
        assert task.status == "cancelled"


async def test_P9_its_timeout_goes_on(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path), options={"timeout": 1.0})
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=10)
        assert isinstance(task.outcome, TimedOut)
        assert task.outcome.partial == "before\n"


async def test_stdin_can_still_be_sent(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(f"echo up > {tmp_path}/started; cat", open_stdin=True)
    await wait_for(tmp_path / "started", "up")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        await thread.send(id, "hello\n", eof=True)
        [task] = await thread.wait(id, timeout=10)
        assert isinstance(task.outcome, Completed)
        assert task.outcome.result == "hello\n"


async def test_what_was_queued_is_started_once(owner: Owner, path: Path, tmp_path: Path):
    for _ in range(4):
        owner.start(released(tmp_path))
    queued = owner.start(f"echo ran >> {tmp_path}/queued")
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        await mt.set_limits(per_thread=10)
        [task] = await thread.wait(queued, timeout=10)
        assert task.status == "completed"
        await thread.cancel_all()
        await thread.wait(timeout=10)
    assert (tmp_path / "queued").read_text() == "ran\n"


async def test_values_of_the_environment_are_not_stored(owner: Owner, path: Path, tmp_path: Path):
    """So what was queued with some cannot be run by another owner, and says why."""
    for _ in range(4):
        owner.start(released(tmp_path))
    queued = owner.start("echo $TOKEN", env={"TOKEN": "hunter2"})
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(queued, timeout=10)
        assert isinstance(task.outcome, Lost)
        assert "was not stored" in task.outcome.reason
        await mt.thread("conv-1").cancel_all()
        await mt.thread("conv-1").wait(timeout=10)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert not any(b"hunter2" in file.read_bytes() for file in files)


async def test_nor_is_it_begun_without_them(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Killed after the task was recorded, before anybody had its order."""

    async def too_late(self: Launcher, order: object) -> None:
        await asyncio.sleep(600)

    mt = await Meantime.open(path, settings=QUICK)
    with monkeypatch.context() as killed:
        killed.setattr(Launcher, "launch", too_late)
        handle = await mt.thread("conv-1").start(Shell(f"touch {tmp_path}/ran", env={"TOKEN": "hunter2"}))
        await mt._runtime.store.close()  # pyright: ignore[reportPrivateUsage]
    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(handle.id, timeout=10)
        assert isinstance(task.outcome, Lost)
        assert "not stored" in task.outcome.reason
    assert not (tmp_path / "ran").exists()


async def test_a_graceful_close_leaves_it_running(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path))
    owner.close()
    await wait_for(tmp_path / "started", "\n")
    await asyncio.to_thread(let_go, tmp_path)

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=10)
        assert task.status == "completed"
    assert len((tmp_path / "started").read_text().split()) == 1


async def test_a_close_does_not_wait_for_a_launcher_that_hangs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def hangs(self: Launcher, order: object) -> None:
        await asyncio.sleep(600)

    monkeypatch.setattr(runner, "UNANSWERED", 0.2)
    with monkeypatch.context() as hanging:
        hanging.setattr(Launcher, "launch", hangs)
        async with asyncio.timeout(5), Meantime.open(path, settings=QUICK) as mt:
            handle = await mt.thread("conv-1").start(Shell(f"echo ran >> {tmp_path}/ran"))
    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(handle.id, timeout=10)
        assert task.status == "completed"
    assert (tmp_path / "ran").read_text() == "ran\n"


async def test_a_close_can_stop_it_instead(path: Path, tmp_path: Path):
    stopping = Settings(stop_grace=0.5, on_close="stop")
    async with Meantime.open(path, settings=stopping) as mt:
        handle = await mt.thread("conv-1").start(Shell(released(tmp_path)))
        await said(handle, "before")
    pid = int((tmp_path / "started").read_text())
    assert not lives(pid)
    async with Meantime.open(path) as mt:
        assert (await mt.get(handle.id)).status == "cancelled"


async def test_a_ledger_that_forgets_takes_its_commands_with_it(tmp_path: Path):
    owner = Owner(Path(":memory:"))
    owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    pid = int((tmp_path / "started").read_text())
    await until(lambda: not lives(pid))


async def test_a_call_that_somebody_waited_for_ends_with_its_owner(owner: Owner, path: Path, tmp_path: Path):
    """It is no task: nobody could be told of it."""
    assert owner.ask(call={"command": released(tmp_path)}) == "calling"
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    pid = int((tmp_path / "started").read_text())
    await until(lambda: not lives(pid))
    async with Meantime.open(path) as mt:
        assert await mt.list() == []


async def test_a_call_that_is_a_task_before_its_shim_is_there_outlives_us(path: Path, tmp_path: Path):
    async with Meantime.open(path, settings=QUICK) as mt:
        answer = await mt.thread("conv-1").call(Shell(released(tmp_path)), threshold=0.001)
        assert answer.task is not None
        await wait_for(tmp_path / "started", "\n")
    async with Meantime.open(path, settings=QUICK) as mt:
        assert (await mt.get(answer.task.id)).status == "running"
        await asyncio.to_thread(let_go, tmp_path)
        [task] = await mt.thread("conv-1").wait(answer.task.id, timeout=10)
        assert isinstance(task.outcome, Completed)


def state_of(path: Path) -> Path:
    [state] = Path(f"{path}.commands").glob("*.state")
    return state


async def test_a_killed_shim_leaves_its_task_lost_and_no_process(path: Path, tmp_path: Path):
    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Shell(f"sleep 600 & {released(tmp_path)}"))
        await said(handle, "before")
        os.kill(State(state_of(path).read_bytes())[cells.SHIM_PID], signal.SIGKILL)

        task = await handle.wait(10)
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
        [task] = await mt.thread("conv-1").wait(id, timeout=10)
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
        [task] = await mt.thread("conv-1").wait(id, timeout=10)
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
        [task] = await mt.thread("conv-1").wait(id, timeout=10)
        assert isinstance(task.outcome, Lost)
        assert "gone" in task.outcome.reason
    assert len((tmp_path / "started").read_text().split()) == 1


async def test_P3_lost_work_runs_again_only_if_it_may(path: Path, tmp_path: Path):
    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        command = f"echo $$ >> {tmp_path}/started; test $(wc -l < {tmp_path}/started) -eq 2 || sleep 600"
        handle = await thread.start(Shell(command), retry="idempotent")
        await wait_for(tmp_path / "started", "\n")
        os.kill(State(state_of(path).read_bytes())[cells.SHIM_PID], signal.SIGKILL)
        task = await handle.wait(10)
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
        task = await handle.wait(10)
        assert isinstance(task.outcome, Failed)
        assert task.outcome.exit_code == 5
        again = await mt.thread("conv-1").start(Shell("echo fine"))
        assert await again.result(10) == "fine\n"


async def test_what_nobody_knows_of_is_swept_away(path: Path):
    async with Meantime.open(path) as mt:
        await (await mt.thread("conv-1").start(Shell("echo kept"))).wait(10)
    folder = Path(f"{path}.commands")
    for kind in (cells.STATE_FILE, cells.OUT_FILE):
        (folder / f"{'0' * 24}{kind}").write_bytes(bytes(cells.SIZE))
    async with Meantime.open(path) as mt:
        [task] = await mt.list()
        assert (await mt.log(task.id).read()).text == "kept\n"
    assert not list(folder.glob("000*"))
