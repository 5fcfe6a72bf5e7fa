"""I4, I5, I7: what a command says, by offset, as a tail, live and afterwards."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Completed, Handle, InvalidInput, Limits, Meantime, Refused, Settings, Shell, Thread
from meantime.conversation.log import Log
from meantime.runners.shell.output_ring import Spool, State
from meantime.runners.shell.shim import cells

pytestmark = pytest.mark.anyio

TURNS = "for i in 1 2 3; do echo out $i; read go; echo err $i >&2; read go; done"


async def ended_turns(thread: Thread) -> Handle:
    """A command that says more when what it has said was read."""
    handle = await thread.start(Shell(TURNS, open_stdin=True))
    log = handle.log.follow()
    for _ in range(6):
        await anext(log)
        await handle.send("go\n")
    await handle.wait(LIMIT)
    return handle


async def whole(log: Log, stream: str = "both") -> bytes:
    return b"".join([chunk.data async for chunk in log.follow(stream=stream)])  # type: ignore[arg-type]


@pytest.mark.behaviour("I4")
async def test_streams_are_read_by_offset(thread: Thread):
    handle = await ended_turns(thread)
    assert (await handle.log.read(stream="stdout")).text == "out 1\nout 2\nout 3\n"
    assert (await handle.log.read(stream="stderr")).text == "err 1\nerr 2\nerr 3\n"
    chunk = await handle.log.read(6, stream="stdout", limit=6)
    assert (chunk.text, chunk.offset, chunk.next, chunk.total, chunk.ended) == ("out 2\n", 6, 12, 18, False)
    assert (await handle.log.read(12, stream="stdout")).ended


@pytest.mark.behaviour("I4")
async def test_both_streams_are_in_the_order_in_which_they_were_read(thread: Thread):
    handle = await ended_turns(thread)
    expected = "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
    assert (await handle.log.read()).text == expected
    assert await handle.result() == expected
    for offset in range(len(expected)):  # from any place, in any piece
        assert (await handle.log.read(offset, limit=7)).text == expected[offset : offset + 7]


async def test_merged_streams_are_in_exact_order(thread: Thread):
    script = "import os\nfor i in range(500): os.write(1 + i % 2, b'%d\\n' % i)"
    handle = await thread.start(Shell([sys.executable, "-c", script], merge=True))
    assert await handle.result(LIMIT) == "".join(f"{i}\n" for i in range(500))


@pytest.mark.behaviour("I7")
async def test_output_can_be_seen_while_it_runs(thread: Thread):
    handle = await thread.start(Shell("echo so far; read line", open_stdin=True))
    async for chunk in handle.log.follow():
        assert (chunk.text, chunk.ended) == ("so far\n", False)
        break
    output = await handle.output()
    assert (output.text, output.partial, output.task.status) == ("so far\n", True, "running")
    await handle.send("go\n")
    assert (await handle.wait(LIMIT)).status == "completed"


async def test_following_is_live(thread: Thread):
    """Each answer is asked for after the one before was read: nothing waits for the end."""
    handle = await thread.start(Shell("while read line; do echo got $line; done", open_stdin=True))
    log = handle.log.follow()
    for word in ("one", "two", "three"):
        await handle.send(f"{word}\n")
        assert (await anext(log)).text == f"got {word}\n"
    await handle.send(eof=True)
    assert [chunk async for chunk in log] == []
    assert (await handle.get()).status == "completed"


@pytest.mark.behaviour("I5")
async def test_a_tail_is_bounded_by_lines_and_bytes(thread: Thread):
    handle = await thread.start(Shell("seq 1 100000"))
    await handle.wait(LIMIT)

    assert (await handle.log.tail(3)).text == "99998\n99999\n100000\n"
    assert (await handle.log.tail(50, limit=20)).text == "\n99998\n99999\n100000\n"
    chunk = await handle.log.tail(2)
    assert (chunk.offset, chunk.next, chunk.total) == (chunk.total - 13, chunk.total, chunk.total)


@pytest.mark.behaviour("I5")
async def test_a_tail_never_begins_in_the_middle_of_a_character(thread: Thread):
    handle = await thread.start(Shell(["printf", "%s", "añ€😀" * 50]))
    text = str(await handle.result(LIMIT))

    for limit in range(4, 40):
        tail = (await handle.log.tail(limit=limit)).text
        assert text.endswith(tail)
        assert tail
        offset, pieces = 0, []
        while not (chunk := await handle.log.read(offset, limit=limit)).ended:
            pieces.append(chunk.text)
            offset = chunk.next
        assert "".join([*pieces, chunk.text]) == text


@pytest.mark.behaviour("I5")
async def test_a_character_that_comes_in_two_halves_stays_whole(thread: Thread):
    handle = await thread.start(Shell(r"printf '\342'; read go; printf '\202\254'", open_stdin=True))

    async def has_half() -> bool:
        return (await handle.log.read()).total == 1

    await until_async(has_half, "the first half is there", handle.log.read)
    await handle.send("go\n")
    assert [chunk.text async for chunk in handle.log.follow()] == ["€"]


async def test_what_is_queued_can_be_followed_too(ledger: str):
    settings = Settings(limits=Limits(per_thread=1), on_close="stop", stop_grace=0.2)
    async with Meantime.open(ledger, settings=settings) as mt:
        await mt.thread("one").start(Shell("sleep 0.2"))
        handle = await mt.thread("one").start(Shell("echo up; sleep 600"))
        async with asyncio.timeout(LIMIT):
            assert (await anext(handle.log.follow())).text == "up\n"


async def test_odd_bytes_are_fine(thread: Thread):
    odd = b"\xff\xfe ok\0 \x1b[31mred\x1b[0m \xe2\x82 \xf0\x9f"
    escaped = "".join(f"\\{byte:03o}" for byte in odd)
    handle = await thread.start(Shell(["printf", escaped]))

    assert "ok\0 \x1b[31mred" in str(await handle.result(LIMIT))
    assert (await handle.log.read()).data == odd
    async with thread.turn() as turn:
        assert "\x1b" not in turn.notices[0].message().text
        await turn.ack()


async def test_a_line_of_200_KB_is_fine(thread: Thread):
    handle = await thread.start(Shell("head -c 200000 /dev/zero | tr '\\0' x"))
    assert await handle.result(LIMIT) == "x" * 200_000


@pytest.fixture
async def small(tmp_path: Path):
    settings = Settings(output_head=1_000, output_ring=2_000)
    async with Meantime.open(tmp_path / "work.db", settings=settings) as mt:
        yield mt.thread("small")


@pytest.mark.behaviour("I4")
async def test_what_the_ring_dropped_is_counted(small: Thread):
    numbers = b"".join(b"%06d\n" % i for i in range(100_000))
    handle = await small.start(Shell("seq -f %06.0f 0 99999"))
    await handle.wait(LIMIT)

    first = await handle.log.read(stream="stdout")
    assert (first.data, first.lost_bytes, first.total) == (numbers[:1_000], 0, len(numbers))
    rest = await handle.log.read(first.next, stream="stdout")
    assert rest.data == numbers[-2_000:]
    assert rest.lost_bytes == len(numbers) - 3_000
    assert rest.ended
    # The same by way of both streams.
    assert [chunk.data async for chunk in handle.log.follow()] == [numbers[:1_000], numbers[-2_000:]]


@pytest.mark.behaviour("I5")
async def test_a_tail_is_the_end_even_after_output_was_dropped(small: Thread):
    handle = await small.start(Shell("seq 1 1000"))
    await handle.wait(LIMIT)
    assert (await handle.log.tail(3)).text == "998\n999\n1000\n"


async def test_output_that_somebody_removed_is_lost_and_not_waited_for(small: Thread, tmp_path: Path):
    handle = await small.start(Shell("echo hello"))
    await handle.wait(LIMIT)
    for file in (tmp_path / "work.db.commands").glob("*.out"):
        file.unlink()
    async with asyncio.timeout(LIMIT):
        [chunk] = [chunk async for chunk in handle.log.follow()]
    assert (chunk.data, chunk.lost_bytes) == (b"", 6)


async def test_a_gap_may_lead_into_what_the_ring_dropped(tmp_path: Path):
    state = [0] * (cells.SIZE // 8)
    state[cells.FORMAT], state[cells.HEAD], state[cells.RING] = cells.VERSION, 10, 20
    state[cells.OUT_TOTAL], state[cells.OUT_GAP_FROM], state[cells.OUT_GAP_TO] = 1_000, 5, 50
    (tmp_path / "x.state").write_bytes(b"".join(cell.to_bytes(8, "little") for cell in state))
    ring = cells.CHUNK + 20
    (tmp_path / "x.out").write_bytes(bytes(1_000).ljust(10 + ring, b"."))
    pieces = [(len(piece.data), piece.offset, piece.lost) for piece in Spool(tmp_path / "x").kept("stdout")]
    assert pieces == [(5, 0, 0), (20, 980, 975)]


async def test_a_result_says_what_is_missing(small: Thread):
    handle = await small.start(Shell("seq 1 1000; exit 1"))
    task = await handle.wait(LIMIT)
    kept = str(task.outcome.partial)  # type: ignore[union-attr]
    assert kept.startswith("1\n2\n3\n")
    assert "bytes were not kept …" in kept
    assert kept.endswith("999\n1000\n")


@pytest.mark.behaviour("I15")
async def test_the_disk_is_bounded(small: Thread, tmp_path: Path):
    handle = await small.start(Shell("head -c 30000000 /dev/zero; head -c 30000000 /dev/zero >&2"))
    await handle.wait(LIMIT)
    used = sum(file.stat().st_size for file in (tmp_path / "work.db.commands").iterdir())
    assert used < 2 * (3_000 + 65_536) + 20_000


async def test_very_many_turns_keep_every_byte(thread: Thread):
    """The order of the newest turns is kept, and of all of them every byte."""
    script = "import os\nfor i in range(3000): os.write(1, b'o'); os.write(2, b'e')"
    handle = await thread.start(Shell([sys.executable, "-c", script]))
    text = str(await handle.result(LIMIT))
    assert (text.count("o"), text.count("e"), len(text)) == (3_000, 3_000, 6_000)


@pytest.mark.behaviour("N17")
async def test_big_output_is_told_as_its_ends_and_a_file(mt: Meantime, thread: Thread):
    handle = await thread.start(Shell("seq 1 400000"))
    task = await handle.wait(LIMIT)

    assert isinstance(task.outcome, Completed)
    assert task.outcome.spill is not None
    assert task.outcome.spill.bytes == len("".join(f"{i}\n" for i in range(1, 400_001)))
    assert task.outcome.spill.lines == 400_000
    assert Path(task.outcome.spill.path).read_text().startswith("1\n2\n3\n")
    assert str(await handle.result()).endswith("399999\n400000\n")
    async with thread.turn() as turn:
        assert task.outcome.spill.path in turn.notices[0].message().text
        await turn.ack()
    await mt.purge(task.id)
    assert not Path(task.outcome.spill.path).exists()


@pytest.mark.processes
@pytest.mark.behaviour("I15")
async def test_what_went_around_its_ring_is_put_in_order(tmp_path: Path):
    """Once: its file can be read from front to back, and takes the disk no second time."""
    settings = Settings(output_head=100_000, output_ring=1_000_000)
    async with Meantime.open(tmp_path / "work.db", settings=settings) as mt:
        handle = await mt.thread("big").start(Shell("seq -f %08.0f 0 999999"))
        task = await handle.wait(LIMIT)
        assert isinstance(task.outcome, Completed)
        assert task.outcome.spill is not None
        text = Path(task.outcome.spill.path).read_text()
        numbers = "".join(f"{number:08}\n" for number in range(1_000_000))
        lost = len(numbers) - 1_100_000
        assert text == f"{numbers[:100_000]}\n… {lost} bytes were not kept …\n{numbers[-1_000_000:]}"
        assert task.outcome.spill.bytes == len(text.encode())
        first = await handle.log.read(99_000, stream="stdout")
        assert first.text == numbers[99_000:100_000]
        rest = await handle.log.read(first.next, stream="stdout", limit=500_000)
        assert (rest.lost_bytes, rest.text) == (lost, numbers[-1_000_000:-500_000])
        assert (await handle.log.tail(1)).text == "00999999\n"
        assert await handle.result() == text
        assert (task.outcome.spill.lost, task.outcome.lossy) == (lost, True)
        async with mt.thread("big").turn() as turn:
            assert "what was kept of the output" in turn.notices[0].message().text
            assert f"{lost} bytes were not" in turn.notices[0].message().text
            await turn.ack()
    used = sum(file.stat().st_size for file in (tmp_path / "work.db.commands").iterdir())
    assert used < 1_100_000 + 10_000


async def test_a_reader_that_looked_before_it_was_put_in_order_loses_nothing(tmp_path: Path):
    settings = Settings(output_head=100_000, output_ring=1_000_000)
    async with Meantime.open(tmp_path / "work.db", settings=settings) as mt:
        await (await mt.thread("big").start(Shell("seq -f %08.0f 0 999999"))).wait(LIMIT)
    [file] = (tmp_path / "work.db.commands").glob("*.state")
    state = bytearray(file.read_bytes())
    assert State(bytes(state))[cells.LINEAR]
    state[8 * cells.LINEAR : 8 * cells.LINEAR + 8] = bytes(8)

    piece = Spool(file.with_suffix(""))._read_one(State(bytes(state)), "stdout", 9_000_000 - 90, 90)
    assert (piece.data, piece.lost) == ("".join(f"{n:08}\n" for n in range(999_990, 1_000_000)).encode(), 0)


async def test_bytes_that_are_no_text_are_kept_as_they_are(thread: Thread):
    """The file that the notice points to has them; the text shown of them says that it is not all."""
    handle = await thread.start(Shell("head -c 300000 /dev/urandom"))
    task = await handle.wait(LIMIT)
    assert isinstance(task.outcome, Completed)
    assert task.outcome.spill is not None
    whole_file = await asyncio.to_thread(Path(task.outcome.spill.path).read_bytes)
    assert whole_file == await whole(handle.log)
    few = await (await thread.start(Shell("printf '\\377\\376'"))).wait(LIMIT)
    assert isinstance(few.outcome, Completed)
    assert few.outcome.lossy


async def test_big_output_of_both_streams_is_one_file(thread: Thread):
    handle = await thread.start(Shell("seq 1 100000; seq 1 100000 >&2"))
    await handle.wait(LIMIT)
    text = str(await handle.result())
    assert text.count("\n") == 200_000


async def test_followers_see_every_byte_of_a_flood(thread: Thread):
    handle = await thread.start(Shell("seq 1 200000"))
    first, second = await asyncio.gather(whole(handle.log), whole(handle.log, "stdout"))
    assert first == second == "".join(f"{i}\n" for i in range(1, 200_001)).encode()


async def test_what_is_left_behind_does_not_change_a_result(thread: Thread, tmp_path: Path):
    later = "until test -e go; do sleep 0.02; done; seq 1 2000000; touch done"
    handle = await thread.start(Shell(f"seq 1 400000; ({later}) & exit 0", cwd=tmp_path))
    await handle.wait(LIMIT)
    (tmp_path / "go").touch()
    await until_async((tmp_path / "done").exists, "what was left behind has ended")
    assert await handle.result() == "".join(f"{i}\n" for i in range(1, 400_001))


async def test_functions_have_no_log(thread: Thread):
    handle = await thread.start(Call(abs, 1))
    with pytest.raises(Refused, match="no log"):
        await handle.log.read()


@pytest.mark.parametrize("bad", [{"offset": -1}, {"limit": 0}, {"limit": 1 << 30}, {"stream": "stdin"}])
async def test_bad_reads_are_refused(thread: Thread, bad: dict[str, object]):
    handle = await thread.start(Shell("true"))
    with pytest.raises(InvalidInput):
        await handle.log.read(**bad)  # type: ignore[arg-type]


@pytest.mark.behaviour("I10", "H25")
async def test_another_threads_log_is_not_found(mt: Meantime, thread: Thread):
    handle = await thread.start(Shell("echo secret"))
    await handle.wait(LIMIT)
    with pytest.raises(KeyError, match="No task"):
        await mt.thread("other").log(handle).read()
    assert (await mt.log(handle.id).read()).text == "secret\n"
