"""Lines out of bytes, however these are cut on their way."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT

from meantime.system.line_splitter import PIECE, LineSplitter, LineTooLong, LongLine, StreamLines

MOST = 10
pytestmark = pytest.mark.anyio


def read(splitter: LineSplitter, *pieces: bytes) -> list[bytes | int]:
    """All lines; in place of one that is too long, its size."""
    found = [line for piece in pieces for line in splitter.feed(piece)] + list(splitter.end())
    return [line.size if isinstance(line, LongLine) else line for line in found]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_the_same_however_their_bytes_are_cut(size: int):
    data = b"one\n\ntwo\r\n" + b"x" * MOST + b"\n" + b"y" * 25 + b"\nlast"
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert read(LineSplitter(MOST, LongLine), *pieces) == [b"one", b"", b"two\r", b"x" * MOST, 25, b"last"]


def test_a_stream_that_ends_with_a_line_has_no_other():
    assert read(LineSplitter(MOST), b"one\n") == [b"one"]
    assert read(LineSplitter(MOST)) == []


@pytest.mark.parametrize("pieces", [[b"x" * MOST + b"\n"], [b"x" * MOST, b"\n"], [b"x"] * MOST])
def test_a_line_may_have_as_many_bytes_as_the_limit(pieces: list[bytes]):
    assert read(LineSplitter(MOST), *pieces) == [b"x" * MOST]
    assert read(LineSplitter(MOST, LongLine), *pieces) == [b"x" * MOST]


@pytest.mark.parametrize("pieces", [[b"x" * MOST + b"x\n"], [b"x" * MOST, b"x"], [b"x"] * (MOST + 1)])
def test_one_byte_more_is_too_long(pieces: list[bytes]):
    assert read(LineSplitter(MOST, LongLine), *pieces) == [MOST + 1]
    with pytest.raises(LineTooLong, match="more than 10 bytes"):
        read(LineSplitter(MOST), *pieces)


def test_a_line_that_is_too_long_raises_before_its_end_and_after_the_lines_before_it():
    splitter = LineSplitter(MOST)
    lines = splitter.feed(b"one\n" + b"x" * 11)
    assert next(lines) == b"one"
    with pytest.raises(LineTooLong):
        next(lines)
    assert splitter.is_too_long
    with pytest.raises(LineTooLong):  # nothing that follows can be believed to begin a line
        list(splitter.feed(b"\ntwo\n"))


def test_a_line_in_the_middle_of_a_piece_has_the_same_limit():
    lines = LineSplitter(MOST).feed(b"one\n" + b"x" * 11 + b"\ntwo\n")
    assert next(lines) == b"one"
    with pytest.raises(LineTooLong):
        next(lines)
    assert read(LineSplitter(MOST, LongLine), b"one\n" + b"x" * 11 + b"\ntwo\n") == [b"one", 11, b"two"]


def test_nothing_is_kept_of_a_line_that_is_too_long():
    splitter = LineSplitter(MOST, LongLine)
    for _ in range(100):
        assert list(splitter.feed(b"x" * 100)) == []
        assert splitter.begun == b""
    assert splitter.size == 10_000


def test_each_line_that_is_too_long_can_be_looked_at_as_it_passes():
    class Seen(LongLine):
        def __init__(self) -> None:
            super().__init__()
            self.seen = b""

        def feed(self, data: bytes) -> None:
            super().feed(data)
            self.seen += data

    splitter = LineSplitter(3, Seen)
    found = [line for piece in (b"ab", b"cd", b"e\nfghij\nk") for line in splitter.feed(piece)]
    assert [line.seen for line in found if isinstance(line, Seen)] == [b"abcde", b"fghij"]
    assert splitter.begun == b"k"


def test_a_forgotten_beginning_is_not_a_part_of_the_next_line():
    splitter = LineSplitter(MOST, LongLine)
    assert list(splitter.feed(b"x" * 11)) == []
    splitter.clear()
    assert not splitter.is_too_long
    assert list(splitter.feed(b"two\n")) == [b"two"]


def stream(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def test_a_stream_is_read_by_line():
    data = b"one\n" + b"x" * 250 + b"\ntwo\n" + b"y" * 101 + b"\nrest"
    lines = StreamLines(stream(data), LineSplitter(100, LongLine))
    found = [line.size if isinstance(line, LongLine) else line async for line in lines]
    assert found == [b"one", 250, b"two", 101, b"rest"]


async def test_a_line_of_a_stream_may_be_longer_than_a_piece():
    long = b"x" * (3 * PIECE)
    assert [line async for line in StreamLines(stream(long + b"\nrest"), LineSplitter(1 << 20))] == [
        long,
        b"rest",
    ]


async def test_a_last_line_without_an_end_can_be_left_out():
    splitter = LineSplitter(100)
    assert [line async for line in StreamLines(stream(b"one\ncut"), splitter, with_rest=False)] == [b"one"]
    assert splitter.begun == b"cut"


async def test_a_stream_without_an_end_of_line_has_the_limit_too():
    lines = StreamLines(stream(b"x" * 1_000), LineSplitter(100, LongLine))
    assert [line.size async for line in lines if isinstance(line, LongLine)] == [1_000]
    with pytest.raises(LineTooLong):
        await anext(StreamLines(stream(b"x" * 1_000), LineSplitter(100)))


async def test_a_reader_that_is_cancelled_loses_nothing():
    reader = asyncio.StreamReader()
    lines = StreamLines(reader, LineSplitter(100))
    reader.feed_data(b"be")
    waiting = asyncio.ensure_future(anext(lines))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    reader.feed_data(b"gun\n")
    async with asyncio.timeout(LIMIT):
        assert await anext(lines) == b"begun"
