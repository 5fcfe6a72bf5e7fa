"""What a command reads: text with the order, more of it later, or a terminal."""

from __future__ import annotations

import contextlib

import pytest
from tests.waiting import LIMIT

from meantime import Call, InvalidInput, Refused, Shell, Thread

from .saying import said

pytestmark = pytest.mark.anyio


async def test_without_stdin_it_reads_nothing(thread: Thread):
    handle = await thread.start(Shell("cat; echo end"))
    assert await handle.result(LIMIT) == "end\n"


@pytest.mark.parametrize("given", ["two\nlines\n", b"two\nlines\n"])
async def test_stdin_goes_with_the_order(thread: Thread, given: str | bytes):
    handle = await thread.start(Shell("cat; echo end", stdin=given))
    assert await handle.result(LIMIT) == "two\nlines\nend\n"


async def test_a_megabyte_of_stdin_is_fine(thread: Thread):
    handle = await thread.start(Shell("wc -c", stdin="x" * (1 << 20)))
    assert str(await handle.result(LIMIT)).strip() == str(1 << 20)


async def test_a_command_that_does_not_read_is_not_hurt(thread: Thread):
    handle = await thread.start(Shell("exec <&-; echo fine", stdin="x" * 500_000))
    assert await handle.result(LIMIT) == "fine\n"


async def test_more_can_be_sent_later(thread: Thread):
    handle = await thread.start(Shell("cat", stdin="first\n", open_stdin=True))
    await said(handle, "first")
    await handle.send("second\n")
    await thread.send(handle, b"third\n", eof=True)
    assert await handle.result(LIMIT) == "first\nsecond\nthird\n"


async def test_much_can_be_sent_at_once(thread: Thread):
    handle = await thread.start(Shell("wc -c", open_stdin=True))
    await handle.send("x" * 300_000, eof=True)
    assert str(await handle.result(LIMIT)).strip() == "300000"


async def test_a_command_that_never_reads_is_said_so(thread: Thread):
    """P10: what waits for it is bounded, and the sender hears of it."""
    handle = await thread.start(Shell("sleep 600", open_stdin=True))

    async def flood() -> None:
        for _ in range(40):
            await handle.send("x" * 100_000)

    with pytest.raises(Refused, match="has not read"):
        await flood()
    assert (await handle.cancel(wait=True)).task.status == "cancelled"


async def test_what_cannot_be_sent_is_refused(thread: Thread):
    closed = await thread.start(Shell("sleep 600"))
    with pytest.raises(Refused, match="closed"):
        await closed.send("x")
    await closed.cancel(wait=True)
    with pytest.raises(Refused, match="has ended"):
        await closed.send("x")
    function = await thread.start(Call(abs, 1))
    with pytest.raises(Refused):
        await function.send("x")


async def test_what_is_sent_to_one_that_is_just_ending_harms_nobody(thread: Thread):
    for _ in range(5):
        handle = await thread.start(Shell("true", open_stdin=True))
        with contextlib.suppress(Refused):  # and not a descriptor that is closed, or another's by now
            await handle.send("x")


async def test_on_a_terminal_it_is_interactive(thread: Thread):
    script = "test -t 0 && test -t 1 && stty size; read name; echo hello $name"
    handle = await thread.start(Shell(script, pty=True, size=(30, 100)))
    await said(handle, "30 100")
    await handle.send("you\n")
    assert "hello you\r\n" in str(await handle.result(LIMIT))


async def test_stdin_on_a_terminal_ends_too(thread: Thread):
    handle = await thread.start(Shell("cat; echo end", stdin="one\n", pty=True))
    assert str(await handle.result(LIMIT)).endswith("end\r\n")


async def test_too_much_at_once_is_refused(thread: Thread):
    handle = await thread.start(Shell("cat", open_stdin=True))
    with pytest.raises(InvalidInput, match="in pieces"):
        await handle.send("x" * 2_000_000)
    await handle.cancel(wait=True)


async def test_a_terminal_has_an_end_of_input(thread: Thread):
    handle = await thread.start(Shell("cat; echo end", pty=True))
    await handle.send("one\n")
    await said(handle, "one")
    await handle.send(eof=True)
    assert str(await handle.result(LIMIT)).endswith("end\r\n")


async def test_a_terminal_hangs_up_with_a_cancel(thread: Thread):
    handle = await thread.start(Shell("echo ready; sleep 600", pty=True))
    await said(handle, "ready")
    assert (await handle.cancel(wait=True)).task.status == "cancelled"
