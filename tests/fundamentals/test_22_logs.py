"""Lesson 22: what a command says can be read while it runs, and it can be answered."""

from __future__ import annotations

import pytest

from meantime import Shell, Thread

pytestmark = pytest.mark.anyio


async def test_a_log_is_followed(thread: Thread):
    """Every chunk has its absolute offset, so you can go on later where you stopped."""
    handle = await thread.start(
        Shell("echo what is your name?; read name; echo hello $name", open_stdin=True)
    )

    log = handle.log.follow()
    chunk = await anext(log)
    assert (chunk.text, chunk.offset, chunk.next) == ("what is your name?\n", 0, 19)

    await handle.send("Ada\n")
    chunk = await anext(log)
    assert (chunk.text, chunk.offset) == ("hello Ada\n", 19)


async def test_a_tail_is_enough_for_an_agent(thread: Thread):
    """However much there is: the last lines, never more bytes than you ask for."""
    handle = await thread.start(Shell("seq 1 100000"))
    await handle.wait()

    assert (await handle.log.tail(2)).text == "99999\n100000\n"


async def test_the_streams_are_kept_apart(thread: Thread):
    handle = await thread.start(Shell("echo data; echo trouble >&2"))
    await handle.wait()

    assert (await handle.log.read(stream="stdout")).text == "data\n"
    assert (await handle.log.read(stream="stderr")).text == "trouble\n"
