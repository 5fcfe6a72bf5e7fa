"""Where the machine, or the process that we live in, has not what we need."""

from __future__ import annotations

import errno
import os
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from meantime import Completed, Failed, Shell, Thread
from meantime.runners.shell.shim import cells
from meantime.runners.shell.shim.output_writer import Stream

pytestmark = pytest.mark.anyio


@pytest.mark.processes
@pytest.mark.linux_only("it takes pidfd_open away for a moment")
async def test_without_a_descriptor_for_its_shim_a_command_is_left_alone(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    def no_descriptor(*args: Any) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", no_descriptor)
    task = await (await thread.start(Shell("sleep 0.3; echo fine"))).wait(LIMIT)
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "fine\n"


async def test_where_no_launcher_can_be_started_that_is_said(thread: Thread, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    task = await (await thread.start(Shell("true"))).wait(LIMIT)
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "not_started"


@pytest.mark.parametrize("kills", [1, 3], ids=["once", "each-time"])
async def test_a_launcher_that_is_killed_while_it_starts_is_started_again(
    thread: Thread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
):
    python = tmp_path / "python"
    count = f'echo >> {tmp_path}/starts; [ "$(wc -l < {tmp_path}/starts)" -gt {kills} ] || kill -9 $$'
    python.write_text(f'#!/bin/sh\n{count}\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    task = await (await thread.start(Shell("echo fine"))).wait(LIMIT)
    if kills == 1:
        assert isinstance(task.outcome, Completed)
        return
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "not_started"
    assert "was killed 3 times" in task.outcome.message


class Word(StrEnum):
    HELLO = "hello"


async def test_kinds_of_text_are_texts(thread: Thread):
    shell = Shell(["sh", "-c", Word.HELLO + "() { cat; echo $1 $W; }; hello x"], env={"W": Word.HELLO})
    assert shell.command == ["sh", "-c", "hello() { cat; echo $1 $W; }; hello x"]
    assert await (await thread.start(shell)).result(LIMIT) == "x hello\n"
    handle = await thread.start(Shell(["echo", Word.HELLO], stdin=Word.HELLO))
    assert await handle.result(LIMIT) == "hello\n"


async def test_signals_that_our_process_blocks_are_not_blocked_for_shims(thread: Thread):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:  # silent at its end, so that only the signal tells of it
        handle = await thread.start(Shell("exec >&- 2>&-; sleep 0.2"))
        assert (await handle.wait(LIMIT)).status == "completed"
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


@pytest.mark.linux_only("it takes splice away for a moment")
def test_a_file_system_that_cannot_splice_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def cannot(*args: Any, **options: Any) -> int:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "splice", cannot)
    state = memoryview(bytearray(cells.SIZE)).cast("B").cast("Q")
    state[cells.HEAD], state[cells.RING] = 10, 100
    read, write = os.pipe()
    stream = Stream(read, str(tmp_path / "out"), cells.OUT_TOTAL, cells.OUT_GAP_FROM, state, True)
    for word in (b"hello ", b"world"):
        os.write(write, word)
        stream.pump()
    stream.pump()
    stream.close()
    os.close(write)
    assert (tmp_path / "out").read_bytes() == b"hello world"
    assert (state[cells.OUT_TOTAL], state[cells.OUT_GAP_TO]) == (11, 0)
