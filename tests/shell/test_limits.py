"""What a command may use, and what becomes of it when it uses more."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Failed, ProcessLimits, Refused, Shell, Thread
from meantime.system.platform import cgroup

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("limits")]  # one looks at the cgroups of all


async def outcome(thread: Thread, command: str | list[str], **limits: int) -> object:
    handle = await thread.start(Shell(command, limits=ProcessLimits(**limits)))
    return (await handle.wait(LIMIT)).outcome


async def test_limits_are_those_of_the_command(thread: Thread):
    handle = await thread.start(
        Shell(
            "ulimit -v; ulimit -t; ulimit -n; ulimit -f",
            limits=ProcessLimits(address_space=1 << 30, cpu_seconds=7, open_files=99, file_size=10 * 512),
        )
    )
    assert await handle.result(LIMIT) == "1048576\n7\n99\n10\n"


async def test_an_argument_list_is_limited_too(thread: Thread):
    handle = await thread.start(
        Shell(["sh", "-c", 'ulimit -n; echo "$1"', "x", "a  b"], limits=ProcessLimits(open_files=64))
    )
    assert await handle.result(LIMIT) == "64\na  b\n"


async def test_too_much_memory_fails(thread: Thread):
    script = "x = bytearray(1 << 30)"
    failed = await outcome(thread, [sys.executable, "-c", script], address_space=500 << 20)
    assert isinstance(failed, Failed)
    assert "MemoryError" in str(failed.partial)


@pytest.mark.processes
async def test_too_much_time_on_the_processor_is_killed(thread: Thread):
    failed = await outcome(thread, "while :; do :; done", cpu_seconds=1)
    assert isinstance(failed, Failed)
    assert failed.signal in (9, 24)  # SIGKILL, or SIGXCPU where the limits differ


async def test_too_big_a_file_fails(thread: Thread, tmp_path: Path):
    failed = await outcome(thread, f"exec head -c 100000 /dev/zero > {tmp_path}/big", file_size=5_120)
    assert isinstance(failed, Failed)
    assert failed.signal == 25  # SIGXFSZ
    assert (tmp_path / "big").stat().st_size <= 5_120


def _may_limit() -> bool:
    try:
        cgroup.check()
    except OSError:
        return False
    return True


@pytest.mark.linux_only("the number of processes is limited by a cgroup")
@pytest.mark.skipif(not _may_limit(), reason="no cgroup that counts processes may be written to here")
async def test_too_many_processes_fail(thread: Thread):
    script = "import os, time\nfor _ in range(50):\n if not os.fork(): time.sleep(600)"
    shell = Shell([sys.executable, "-c", script], leftovers="kill", limits=ProcessLimits(processes=10))
    others = set(cgroup.home().glob("meantime-*"))  # of other runs, perhaps killed ones
    failed = (await (await thread.start(shell)).wait(LIMIT)).outcome
    assert isinstance(failed, Failed)
    assert "BlockingIOError" in str(failed.partial) or "Resource temporarily" in str(failed.partial)
    await until_async(
        lambda: not set(cgroup.home().glob("meantime-*")) - others,
        "its cgroup goes with all that was killed",
    )


@pytest.mark.linux_only("the number of processes is limited by a cgroup")
@pytest.mark.skipif(not _may_limit(), reason="no cgroup that counts processes may be written to here")
async def test_one_process_is_enough_for_one(thread: Thread):
    handle = await thread.start(Shell(["echo", "alone"], limits=ProcessLimits(processes=1)))
    assert await handle.result(LIMIT) == "alone\n"
    shell = Shell("ls; true", limits=ProcessLimits(processes=1))
    task = await (await thread.start(shell)).wait(LIMIT)
    assert isinstance(task.outcome, Failed)
    assert "fork" in str(task.outcome.partial)  # the shell is one, and ls would be the second


async def test_where_processes_cannot_be_limited_that_is_said(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    """Before anything is recorded."""

    def nowhere() -> Path:
        raise FileNotFoundError("no cgroup here counts processes")

    monkeypatch.setattr(cgroup, "home", nowhere)
    with pytest.raises(Refused, match="cannot be limited here: no cgroup"):
        await thread.start(Shell("true", limits=ProcessLimits(processes=5)))
    assert await thread.list("all") == []


async def test_the_owners_environment_is_the_commands(thread: Thread, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLOUR", "red")
    monkeypatch.setenv("SHAPE", "round")
    handle = await thread.start(Shell("echo $COLOUR ${SHAPE-none} $SIZE", env={"SHAPE": None, "SIZE": "9"}))
    assert await handle.result(LIMIT) == "red none 9\n"
    assert handle.task.work.input["env"] == ["SHAPE", "SIZE"]


async def test_a_command_has_none_of_our_descriptors(thread: Thread):
    ours = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        handle = await thread.start(Shell("ls /proc/self/fd | wc -l"))
        assert int(str(await handle.result(LIMIT))) == 4  # its three, and the folder that ls reads
    finally:
        os.close(ours)
