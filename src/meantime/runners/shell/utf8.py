"""Bytes that are cut somewhere, as text: never from the middle of a character."""

from __future__ import annotations


def as_text(data: bytes) -> str:
    """As text, without the halves of code points that were cut at either end."""
    return trim(data)[0].decode("utf-8", "replace")


def trim(data: bytes, *, begin: bool = True, end: bool = True) -> tuple[bytes, int, int]:
    """Without a cut code point at its ends; also says how many bytes that took off each."""
    front = back = 0
    if begin:
        while front < min(3, len(data)) and data[front] & 0xC0 == 0x80:
            front += 1
    if end:
        back = _unfinished(data)
    return data[front : len(data) - back], front, back


def _unfinished(data: bytes) -> int:
    """How many bytes at the end begin a code point that is not all there."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        return back if need > back else 0
    return 0


def last_lines(data: bytes, lines: int) -> bytes:
    place = len(data) - data.endswith(b"\n")
    for _ in range(lines):
        place = data.rfind(b"\n", 0, place)
        if place < 0:
            return data
    return data[place + 1 :]
