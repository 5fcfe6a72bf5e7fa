"""Lesson 21: shell commands are work, too."""

from __future__ import annotations

import pytest

from meantime import Failed, Shell, Thread

pytestmark = pytest.mark.anyio


async def test_a_command_is_handed_off_like_a_function(thread: Thread):
    """A text goes to the shell; its output is the result."""
    handle = await thread.start(Shell("echo building; echo built"), timeout=60)
    assert await handle.result() == "building\nbuilt\n"


async def test_a_list_is_started_as_it_is(thread: Thread):
    """No shell, so nothing to quote."""
    handle = await thread.start(Shell(["echo", "it's", "$5"]))
    assert await handle.result() == "it's $5\n"


async def test_an_exit_code_is_a_failure(thread: Thread):
    """The code is told, and so is what it said until then."""
    task = await (await thread.start(Shell("echo compiling; exit 2"))).wait()

    assert isinstance(task.outcome, Failed)
    assert (task.outcome.exit_code, task.outcome.partial) == (2, "compiling\n")
