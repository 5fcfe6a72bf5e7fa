"""Watches of a task's output: every matching line is told, whatever the output is like."""

from __future__ import annotations

import asyncio
import re
import sys

import pytest
from tests.waiting import LIMIT

from meantime import (
    Call,
    InvalidInput,
    Meantime,
    NotFound,
    NoticeRate,
    Refused,
    Settings,
    Shell,
    TaskCancelled,
    Thread,
    Watch,
)

from .told import told

pytestmark = pytest.mark.anyio

ECHO = Shell("cat", open_stdin=True)


def python(code: str) -> Shell:
    return Shell([sys.executable, "-c", code])


async def test_each_matching_line_is_told_before_the_task_ends(thread: Thread):
    server = await thread.start(ECHO)
    watch = await thread.start(Watch(log=server, match="ERROR|panic"))
    for line, expected in (("ok\nERROR one\n", "ERROR one"), ("panic two\nok\n", "panic two")):
        await server.send(line)
        assert await told(thread, watch.id, 1) == [("event", expected)]
    await server.send(eof=True)
    assert await told(thread, watch.id, 1) == [("ending", "matched 2 times until its task ended")]
    assert (await thread.output(watch.id)).emitted == {"matches": 2}


async def test_lines_around_a_match_are_told_with_it(thread: Thread):
    server = await thread.start(Shell("printf 'a\\nb\\nc\\nERROR\\nd\\ne\\nf\\n'"))
    await server.wait()
    watch = await thread.start(Watch(log=server, match="^ERROR$", context=2, once=True))
    assert await told(thread, watch.id, 1) == [("ending", "matched once\n  b\n  c\n> ERROR\n  d\n  e")]


async def test_the_lines_before_a_match_may_have_been_read_long_ago(thread: Thread):
    server = await thread.start(ECHO)
    watch = await thread.start(Watch(log=server, match="ERROR", context=1))
    await server.send("ERROR 1\nbefore\n")
    assert await told(thread, watch.id, 1) == [("event", "> ERROR 1\n  before")]
    await server.send("ERROR 2\n")
    assert await told(thread, watch.id, 1) == [("event", "  before\n> ERROR 2")]


async def test_a_line_ends_the_watch(thread: Thread):
    server = await thread.start(ECHO)
    watch = await thread.start(Watch(log=server, match="WARN", until="^ready"))
    await server.send("WARN 1\nready on 8080\nWARN 2\n")
    assert await told(thread, watch.id, 2) == [
        ("event", "WARN 1"),
        ("ending", "matched once until ^ready\nready on 8080"),
    ]


async def test_until_alone_waits_for_a_line(thread: Thread):
    server = await thread.start(ECHO)
    watch = await thread.start(Watch(log=server, until="^ready", context=1))
    await server.send("starting\nready on 8080\n")
    expected = "found ^ready\n  starting\n> ready on 8080"
    assert await told(thread, watch.id, 1) == [("ending", expected)]


async def test_a_watch_is_named_by_its_task_and_not_by_an_id(thread: Thread):
    server = await thread.start(ECHO, description="dev\nserver " + 80 * "x")
    for watch, name in ((Watch(log=server, match="ERROR"), "log"), (Watch(task=server), "task")):
        title = (await thread.get(await thread.start(watch))).title
        assert title.startswith(f"{name} dev server x"), title
        assert len(title) < 80


async def test_the_name_of_a_watch_says_what_it_waits_for(thread: Thread):
    server = await thread.start(ECHO, description="dev server")
    waits = await thread.start(Watch(log=server, until="^ready"))
    assert (await thread.get(waits)).title == "log dev server until ^ready"
    tells = await thread.start(Watch(log=server, match="ERROR", until="^ready"))
    assert (await thread.get(tells)).title == "log dev server: ERROR"


async def test_nothing_matched_until_the_deadline(thread: Thread):
    server = await thread.start(ECHO)
    watch = await thread.start(Watch(log=server, match="ERROR", deadline=0.05))
    assert await told(thread, watch.id, 1) == [("ending", "nothing matched until the deadline")]


async def test_a_deadline_in_the_past_still_finds_what_is_there(thread: Thread):
    server = await thread.start(Shell("echo ERROR 1; echo ERROR 2; exec sleep 600"))
    async for chunk in server.log.follow():
        if b"ERROR 2" in chunk.data:
            break
    watch = await thread.start(Watch(log=server, match="ERROR", deadline=0))
    found = await told(thread, watch.id, 2)
    assert found == [("event", "ERROR 2"), ("ending", "matched 2 times until the deadline")]


async def test_only_new_lines_are_searched_where_that_is_asked(thread: Thread):
    server = await thread.start(ECHO)
    await server.send("ERROR old\n")
    async with asyncio.timeout(LIMIT):
        async for _ in server.log.follow():
            break
    watch = await thread.start(Watch(log=server, match="ERROR", new=True))
    await server.send("ERROR new\n")
    assert await told(thread, watch.id, 1) == [("event", "ERROR new")]


async def test_a_stream_is_searched_by_itself(thread: Thread):
    server = await thread.start(Shell("echo ERROR out; echo ERROR err >&2"))
    watch = await thread.start(Watch(log=server, match="ERROR", stream="stderr"))
    assert await told(thread, watch.id, 2) == [
        ("event", "ERROR err"),
        ("ending", "matched once until its task ended"),
    ]


async def test_a_cancelled_watch_says_what_it_found(thread: Thread):
    server = await thread.start(ECHO)
    watch = await thread.start(Watch(log=server, match="ERROR"))
    await server.send("ERROR 1\n")
    await told(thread, watch.id, 1)
    await watch.cancel(wait=True)
    assert (await thread.output(watch.id)).value == "matched once until it was stopped"
    with pytest.raises(TaskCancelled) as caught:
        await watch.result()
    head, *rest = str(caught.value).splitlines()
    assert re.search(
        r'"log .*: ERROR" was cancelled after \S+\.$', head
    )  # `meantime result` prints this line
    assert rest[:2] == ["Partial output:", "matched once until it was stopped"]
    await server.send("ERROR 2\n")  # nobody is told


async def test_a_timeout_ends_a_watch(thread: Thread):
    server = await thread.start(ECHO)
    watch = await thread.start(Watch(log=server, match="ERROR"), timeout=0.05)
    await watch.wait(LIMIT)
    assert (await watch.get()).status == "timed_out"


async def test_many_matches_at_once_are_one_notice_with_their_number(mt: Meantime, thread: Thread):
    server = await thread.start(Shell("seq -f 'ERROR %g' 1 5000"))
    await server.wait()
    watch = await thread.start(Watch(log=server, match="ERROR"))
    await watch.wait(LIMIT)
    async with thread.turn() as turn:
        counts = [one.body.count for one in turn.notices if one.body is not None]
        first = next(one.body.first for one in turn.notices if one.body is not None)
        await turn.ack()
    assert (sum(counts), first) == (5_000, "ERROR 1")
    assert await watch.result() == "matched 5000 times until its task ended"


@pytest.mark.parametrize(
    ("printed", "match", "expected"),
    [
        (b"\x1b[1;31mERR\x1b[0mOR: x\x1b]0;title\x07\n", "^ERROR: x$", "ERROR: x"),
        (b"10%\r20%\rERROR in between\r\n", "^ERROR", "ERROR in between"),
        (b"\xff\xfe ERROR \xff\n", "^.. ERROR .$", "\ufffd\ufffd ERROR \ufffd"),
        ("zu groß: Größe ✗\n".encode(), "groß: Größe .$", "zu groß: Größe ✗"),
        (b"nul \0 ERROR\n", "ERROR", "nul  ERROR"),
        (b"no end of line: ERROR", "ERROR", "no end of line: ERROR"),
    ],
    ids=["ansi", "carriage returns", "invalid UTF-8", "UTF-8", "NUL", "no newline"],
)
async def test_output_of_any_kind_is_searched(thread: Thread, printed: bytes, match: str, expected: str):
    code = f"import os,time\nfor byte in {printed!r}: os.write(1, bytes([byte]))"
    server = await thread.start(python(code))
    watch = await thread.start(Watch(log=server, match=match))
    assert (await told(thread, watch.id, 2))[0] == ("event", expected)


async def test_a_line_of_a_megabyte_is_searched_in_pieces(thread: Thread):
    code = "print('x' * 300_000 + ' ERROR ' + 'y' * 700_000)"
    server = await thread.start(python(code))
    watch = await thread.start(Watch(log=server, match="ERROR"))
    found = await told(thread, watch.id, 2)
    assert found[1] == ("ending", "matched once until its task ended")
    assert "ERROR" in found[0][1]
    assert len(found[0][1]) < 1_000


async def test_output_that_was_dropped_unread_is_told_with_its_bytes(ledger: str):
    kept = Settings(output_head=1_000, output_ring=1_000, notices=NoticeRate(0.0, 1_000_000))
    async with Meantime.open(ledger, settings=kept) as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(
            python("print('ERROR first'); print('x\\n' * 100_000); print('ERROR last')")
        )
        await server.wait()
        watch = await thread.start(Watch(log=server, match="ERROR"))
        found = await told(thread, watch.id, 4)
    lost = 12 + 200_001 + 11 - 2_000  # all but the head and the ring
    assert found[0] == ("event", "ERROR first")
    assert found[1][1] == (
        f"{lost:,} bytes of the output (from 1,000 to {1_000 + lost:,}) were overwritten before they "
        "could be searched."
    )
    assert found[2] == ("event", "ERROR last")
    assert found[3] == ("ending", f"matched 2 times until its task ended; {lost:,} bytes were not searched")


@pytest.mark.breadth
async def test_a_thousand_watches_share_one_log(thread: Thread):
    server = await thread.start(ECHO)
    some = [await thread.start(Watch(log=server, match=f"ERROR {n % 500}$", once=True)) for n in range(1_000)]
    await server.send("".join(f"ERROR {n}\n" for n in range(500)))
    async with asyncio.timeout(LIMIT):
        await thread.wait(*some)
    assert {(await one.result()) for one in some[:3]} == {f"matched once\nERROR {n}" for n in range(3)}


async def test_the_task_may_still_be_queued(mt: Meantime, thread: Thread):
    await mt.set_limits(per_thread=1)
    first = await thread.start(ECHO)
    second = await thread.start(Shell("echo ERROR at last"))
    watch = await thread.start(Watch(log=second, match="ERROR"))
    await first.send(eof=True)
    assert (await told(thread, watch.id, 1))[0] == ("event", "ERROR at last")


async def test_a_watch_takes_no_slot_and_joins_no_batch(thread: Thread):
    server = await thread.start(ECHO)
    watches = [await thread.start(Watch(log=server, match="ERROR")) for _ in range(60)]
    next_one = await thread.start(ECHO)
    assert next_one.task.status == "running"
    assert next_one.task.batch == server.task.batch
    assert server.task.batch not in {watch.task.batch for watch in watches}


async def test_whoever_waits_for_everything_does_not_wait_for_a_watch(thread: Thread):
    server = await thread.start(Shell("true"))
    watch = await thread.start(Watch(port=1, match="never"))
    async with asyncio.timeout(LIMIT):
        waited = await thread.wait()
    assert watch.id not in {task.id for task in waited}
    assert {task.id for task in waited} <= {server.id}


async def test_what_cannot_be_watched_is_refused_at_the_start(thread: Thread):
    function = await thread.start(Call(asyncio.Event().wait))
    with pytest.raises(Refused, match="no log"):
        await thread.start(Watch(log=function, match="x"))
    with pytest.raises(NotFound):
        await thread.start(Watch(log="t_nobody", match="x"))
    with pytest.raises(InvalidInput, match="needs match"):
        Watch(log=function)
    with pytest.raises(InvalidInput, match="is not an expression of RE2"):
        await thread.start(Watch(task=function, match="(?=x)"))
    with pytest.raises(InvalidInput, match="not waited for"):
        await thread.call(Watch(task=function))
