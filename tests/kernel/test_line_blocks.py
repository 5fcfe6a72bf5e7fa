"""Pieces of output become blocks of whole lines, however they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.line_blocks import MOST_LINE, LineBlocks


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), min_size=1))
def test_no_byte_is_searched_twice_or_never(data: bytes, sizes: list[int]):
    plain = data.replace(b"\x1b", b"?").replace(b"\r", b"\n")
    lines, blocks, at = LineBlocks(1_000), [], 0
    for place in range(len(plain)):
        if at >= len(plain):
            break
        size = sizes[place % len(sizes)]
        blocks.append(lines.feed(plain[at : at + size]))
        at += size
        assert lines.at == 1_000 + min(at, len(plain))
        assert lines.searched <= lines.at
    blocks.append(lines.feed(b"", last=True))
    assert lines.searched == 1_000 + len(plain)
    whole = [one for block in blocks for one in block.split(b"\n") if one]
    by_line = [line for line in plain.split(b"\n") if line]
    assert whole == [line.decode("utf-8", "replace").encode() for line in by_line]


def test_a_line_that_never_ends_is_cut_between_words_and_between_characters():
    lines = LineBlocks(0)
    words = b"word " * (MOST_LINE // 5 + 10)
    first = lines.feed(words)
    assert first.endswith(b"word ")
    assert len(first) <= MOST_LINE
    signs = "ß".encode() * MOST_LINE
    block = LineBlocks(0).feed(signs)
    assert 0 < len(block) <= MOST_LINE
    assert block.decode() == "ß" * (len(block) // 2)


def test_of_a_line_that_never_ends_little_is_kept_however_much_comes_at_once():
    lines, found = LineBlocks(0), 0
    for piece in (b"x" * (4 * MOST_LINE), b"a\n" + b"y" * (4 * MOST_LINE), b"z" * (4 * MOST_LINE)):
        found += len(lines.feed(piece))
        assert lines.searched == found
        assert lines.at - lines.searched <= MOST_LINE


def test_a_gap_ends_the_line_before_it():
    lines = LineBlocks(0)
    assert lines.feed(b"one\ntw") == b"one\n"
    assert lines.skip(100) == b"tw"
    assert (lines.at, lines.searched) == (100, 100)
    assert lines.feed(b"o\n") == b"o\n"


def test_terminal_codes_and_carriage_returns_are_no_text():
    assert LineBlocks(0).feed(b"\x1b[31mred\x1b[0m\r50%\r\n") == b"red\n50%\n\n"
