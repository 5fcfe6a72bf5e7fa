"""L3: how commands end, and how that is told."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from gates import open_gate
from meantime import Completed, Failed, Limits, Meantime, Settings, Shell, TaskFailed, Thread
from meantime.runners.shell import orphan_processes
from meantime.runners.shell.shim import cells

from .saying import lives

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("F3")
async def test_a_text_goes_to_the_shell(thread: Thread):
    handle = await thread.start(Shell("echo one; echo two"))
    assert await handle.result(LIMIT) == "one\ntwo\n"


@pytest.mark.behaviour("F3")
async def test_a_list_is_started_as_it_is(thread: Thread):
    handle = await thread.start(Shell(["echo", "$HOME; exit 1"]))
    assert await handle.result(LIMIT) == "$HOME; exit 1\n"


async def test_the_command_is_its_title(thread: Thread):
    handle = await thread.start(Shell(["sh", "-c", "echo  a:\nb"]))
    assert handle.task.title == "sh -c 'echo a: b'"
    assert handle.task.work.kind == "shell"
    await handle.wait(LIMIT)


@pytest.mark.behaviour("L3")
async def test_exit_codes_are_failures(thread: Thread):
    handle = await thread.start(Shell("echo so far; echo oh no >&2; exit 3"))
    task = await handle.wait(LIMIT)

    assert task.status == "failed"
    assert isinstance(task.outcome, Failed)
    assert (task.outcome.exit_code, task.outcome.code) == (3, "exit")
    assert sorted(str(task.outcome.partial).split("\n")) == ["", "oh no", "so far"]
    with pytest.raises(TaskFailed, match="exit code 3"):
        await handle.result()


@pytest.mark.behaviour("L3")
async def test_signals_are_named(thread: Thread):
    task = await (await thread.start(Shell("kill -SEGV $$"))).wait(LIMIT)

    assert isinstance(task.outcome, Failed)
    assert (task.outcome.signal, task.outcome.exit_code) == (11, None)
    assert "SIGSEGV" in task.outcome.message


async def test_a_missing_program_is_a_failure_that_says_so(thread: Thread):
    task = await (await thread.start(Shell(["no-such-program", "-x"]))).wait(LIMIT)

    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "program_not_found"
    assert "no-such-program" in task.outcome.message


async def test_a_missing_folder_is_a_failure_that_says_so(thread: Thread, tmp_path: Path):
    task = await (await thread.start(Shell("true", cwd=tmp_path / "nowhere"))).wait(LIMIT)

    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "no_such_folder"
    assert str(tmp_path / "nowhere") in task.outcome.message


async def test_a_file_that_cannot_be_executed_is_a_failure(thread: Thread, tmp_path: Path):
    (tmp_path / "data").write_text("no program")
    task = await (await thread.start(Shell(["./data"], cwd=tmp_path))).wait(LIMIT)

    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "program_not_started"
    assert "Permission denied" in task.outcome.message


@pytest.mark.behaviour("M2")
async def test_what_could_not_be_started_frees_its_slot(ledger: str, tmp_path: Path):
    async with Meantime.open(ledger, settings=Settings(limits=Limits(per_thread=1))) as mt:
        thread = mt.thread("one")
        bad = [await thread.start(Shell(["no-such-program"])) for _ in range(3)]
        good = await thread.start(Shell("echo fine"))
        assert await good.result(LIMIT) == "fine\n"
        assert {(await handle.get()).status for handle in bad} == {"failed"}


async def test_the_thread_is_told_with_the_output(thread: Thread):
    await thread.start(Shell("echo 42"), description="the answer")
    async for _ in thread.wakeups():
        async with thread.turn() as turn:
            assert [notice.text for notice in turn.notices] == ["42\n"]
            text = turn.notices[0].message().text
            assert '"the answer" completed' in text
            await turn.ack()
        break


async def test_a_notice_tells_what_was_left_running(thread: Thread):
    handle = await thread.start(Shell("sleep 600 >/dev/null 2>&1 & echo $!"))
    task = await handle.wait(LIMIT)
    assert isinstance(task.outcome, Completed)
    pid = int(str(task.outcome.result))
    try:
        assert task.outcome.emitted_vars == {"left_running": [pid]}
        async with thread.turn() as turn:
            assert f"still running: {pid}" in turn.notices[0].message().text
            await turn.ack()
    finally:
        os.kill(pid, 9)


@pytest.mark.processes
async def test_cancelling_an_ended_task_ends_what_it_left_behind(thread: Thread):
    handle = await thread.start(Shell("sleep 600 & setsid sleep 600 >/dev/null 2>&1 & echo done"))
    await handle.wait(LIMIT)
    answer = await handle.cancel()
    assert (answer.disposition, answer.killed) == ("already_ended", 2)
    assert (await handle.cancel()).killed == 0


async def test_an_inline_answer_names_what_was_left_running(thread: Thread):
    answer = await thread.call(Shell("sleep 600 >/dev/null 2>&1 & echo $!"), threshold=30)
    [pid] = answer.left_running
    assert pid == int(str(answer.result))
    os.kill(pid, 9)


async def test_leftovers_can_be_killed(thread: Thread):
    handle = await thread.start(Shell("sleep 600 >/dev/null 2>&1 & echo $!", leftovers="kill"))
    pid = int(str(await handle.result(LIMIT)))
    assert not lives(pid)


async def test_a_leftover_that_holds_the_pipe_does_not_hold_the_task(thread: Thread, tmp_path: Path):
    """It goes on undisturbed: what it says later is still taken, and can be read."""
    os.mkfifo(tmp_path / "release")
    handle = await thread.start(Shell("(read line < release; echo late) & echo done", cwd=tmp_path))
    assert await handle.result(LIMIT) == "done\n"

    await asyncio.to_thread(open_gate, tmp_path / "release", "go\n")

    async def is_taken() -> bool:
        return (await handle.log.read()).text == "done\nlate\n"

    await until_async(is_taken, "what it says later is taken", handle.log.read)


async def test_a_program_of_the_given_path_is_found(thread: Thread, tmp_path: Path):
    program = tmp_path / "hello"
    program.write_text("#!/bin/sh\necho hello $WHO\n")
    program.chmod(0o755)
    handle = await thread.start(Shell(["hello"], env={"PATH": f"{tmp_path}:/bin:/usr/bin", "WHO": "you"}))
    assert await handle.result(LIMIT) == "hello you\n"


async def test_a_script_without_a_first_line_says_so(thread: Thread, tmp_path: Path):
    script = tmp_path / "script"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    task = await (await thread.start(Shell([str(script)]))).wait(LIMIT)
    assert isinstance(task.outcome, Failed)
    assert "Exec format error" in task.outcome.message


@pytest.mark.processes
@pytest.mark.behaviour("P8")
def test_a_leftover_is_found_while_it_becomes_another_program(tmp_path: Path):
    """The kernel shows no environment of it for a moment: that it has no mark is not believed at once."""
    same = "[*sys.orig_argv[:4], str(n)]"
    again = f"import os, sys; n = int(sys.argv[1]) - 1; n and os.execv(sys.executable, {same})"
    mark = {cells.MARK: str(tmp_path)}
    with subprocess.Popen([sys.executable, "-S", "-c", again, "100"], env=os.environ | mark) as leftover:
        missed, looks = 0, 0
        while leftover.poll() is None:
            found = leftover.pid in orphan_processes.marked(tmp_path)
            missed += not found and leftover.poll() is None
            looks += 1
    assert looks > 0
    assert missed == 0
