"""Work that tries to end the process that runs it ends its own run. A real Ctrl+C still ends a program."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from escaping import WAYS, escape, works
from tests.waiting import LIMIT, until

from meantime import Call, InvalidInput, Meantime, TaskFailed, Thread
from meantime.execution.containment import Escape, contained, run_on, words
from meantime.integrations.python_agent import found
from meantime.runners.function import find

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.anyio


@pytest.mark.breadth
@pytest.mark.in_process("a program of its own opens the ledger")
@pytest.mark.parametrize("how", ["async", pytest.param("blocking", marks=pytest.mark.breadth)])
def test_whatever_work_raises_the_program_goes_on(tmp_path: Path, how: str):
    program = [sys.executable, "-m", "tests.runtime.escaping", str(tmp_path / "work.db"), how]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    ended = json.loads(done.stdout)
    assert {name: status for name, (status, _) in ended.items()} == dict.fromkeys(works(), "failed")
    for name, (_, message) in ended.items():
        way = name.split()[1]
        assert way in message, name
        if way == "SystemExit":
            assert "SystemExit: 3 (work cannot end the process that runs it)" in message, name


async def test_whoever_waits_for_a_call_is_given_an_error_and_not_the_exit(thread: Thread):
    for way in WAYS:
        with pytest.raises(TaskFailed, match=way):
            await thread.call(Call(escape, way))


async def test_a_module_that_exits_when_it_is_imported_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "leaving_module.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert find("leaving_module:work") is None
    with pytest.raises(InvalidInput, match=r"leaving_module raises SystemExit: 3"):
        found("helper", "leaving_module:agent")


# -- the rule itself


async def test_what_is_cancelled_or_fails_is_left_as_it_is():
    for problem in (ValueError("no"), asyncio.CancelledError(), GeneratorExit()):
        with pytest.raises(type(problem)) as raised, contained():
            raise problem
        assert raised.value is problem
    for problem in (SystemExit(3), KeyboardInterrupt()):
        with pytest.raises(Escape) as escaped, contained():
            raise problem
        assert escaped.value.__cause__ is problem


async def test_the_loop_is_given_back_as_it_was():
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    with contained():
        assert loop.get_task_factory() is not before
        with contained():
            pass
        made = asyncio.ensure_future(asyncio.sleep(0, "done"))
        cancelled = asyncio.ensure_future(asyncio.Event().wait())
        cancelled.cancel()
    assert loop.get_task_factory() is before
    assert await made == "done"
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_a_task_factory_of_ones_own_goes_on():
    loop, seen = asyncio.get_running_loop(), []

    def factory(loop, coroutine, **options):
        seen.append(coroutine)
        return asyncio.Task(coroutine, loop=loop, **options)

    loop.set_task_factory(factory)
    try:
        with contained():
            await asyncio.ensure_future(asyncio.sleep(0))
        assert len(seen) == 1
        assert loop.get_task_factory() is factory
    finally:
        loop.set_task_factory(None)


def test_a_loop_of_our_own_goes_on_after_an_escape():
    async def leaves() -> None:
        sys.exit(3)

    async def life() -> str:
        leaving = asyncio.ensure_future(leaves())
        await asyncio.wait([leaving])
        assert isinstance(leaving.exception(), SystemExit)
        return "went on"

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        living = loop.create_task(life())
        assert run_on(lambda: loop.run_until_complete(living), living.done) == "went on"


def test_an_error_that_cannot_be_said_is_named():
    class Mute(BaseException):
        def __str__(self) -> str:
            sys.exit(3)

    assert words(Mute()) == "Mute: (its message could not be read)"
    group = BaseExceptionGroup("two", [ValueError("no"), SystemExit(3)])
    assert words(group) == (
        "BaseExceptionGroup: ValueError: no; SystemExit: 3 (work cannot end the process that runs it)"
    )


# -- a real Ctrl+C

PROGRAM = """
import asyncio, sys, time
from meantime import Agent, Call, Meantime

async def busy(*given):
    print("busy", flush=True)
    time.sleep(600)  # on the loop: an interrupt comes in here

async def idle(*given):
    print("idle", flush=True)
    await asyncio.Event().wait()

work = {"busy": busy, "idle": idle}[sys.argv[1]]

async def main():
    async with Meantime.open(sys.argv[2], agents={"helper": work}) as mt:
        handle = await mt.thread("a").start(Agent("helper", "go") if "agent" in sys.argv else Call(work))
        await handle.wait()
        print("went on", flush=True)

if "run" in sys.argv:
    asyncio.run(main())
else:
    asyncio.new_event_loop().run_until_complete(main())
"""


@pytest.mark.breadth
@pytest.mark.parametrize(
    ("work", "how", "kind"),
    [
        ("idle", "run", "agent"),
        ("busy", "loop", "agent"),
        pytest.param("idle", "run", "function", marks=pytest.mark.breadth),
        pytest.param("busy", "run", "agent", marks=pytest.mark.breadth),
        pytest.param("busy", "loop", "function", marks=pytest.mark.breadth),
    ],
)
@pytest.mark.in_process("a program of its own opens the ledger")
def test_a_real_interrupt_stops_the_program(tmp_path: Path, work: str, how: str, kind: str):
    program = [sys.executable, "-c", PROGRAM, work, str(tmp_path / "work.db"), how, kind]
    with subprocess.Popen(
        program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_heed
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == f"{work}\n"
        os.kill(running.pid, signal.SIGINT)
        if (work, how) == ("busy", "run"):  # asyncio asks its main task first
            until(lambda: not _has_waiting_interrupt(running.pid), "the first interrupt was taken")
            os.kill(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=LIMIT)
    assert running.returncode == -signal.SIGINT, err
    assert "KeyboardInterrupt" in err
    assert out == ""


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1_000):  # it comes in between two instructions
        pass


def _heed() -> None:
    """As a shell leaves it: in the background of a script it would be ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _has_waiting_interrupt(pid: int) -> bool:
    """Two signals that wait are one."""
    return any(
        int(line.split()[1], 16) & 1 << signal.SIGINT - 1
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith(("SigPnd", "ShdPnd"))
    )


async def test_an_interrupt_is_told_from_one_that_work_raises():
    """In the main thread, with Python's own handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), contained():
            _interrupt()
        with pytest.raises(Escape), contained():
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)


async def test_nothing_of_a_run_is_left_when_its_loop_is_ours(mt: Meantime):
    """The slot is free again, whatever was raised."""
    for way in WAYS:
        task = await (await mt.thread("a").start(Call(escape, way))).wait(timeout=LIMIT)
        assert task.status == "failed"
    assert (await mt.stats())["slots.running"] == 0
