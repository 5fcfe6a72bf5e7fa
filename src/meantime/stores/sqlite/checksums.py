"""Checksums of rows: a flipped bit in a row that still decodes is found where the row is read.

The body of a task, of an earlier run and of a transcript's entry is JSON, and its first field is the checksum
of everything behind it. Notices and events have no body, so they have a column for it. Rows that an earlier
version wrote have no checksum and are taken as they are.
"""

from __future__ import annotations

import zlib
from typing import Any, Generic, TypeVar

import msgspec

from meantime.kernel.model import Task
from meantime.kernel.notice_sources import NoticeBody
from meantime.kernel.notices import Message
from meantime.kernel.schedules import Schedule

T = TypeVar("T", bound=msgspec.Struct)
BAD = (msgspec.MsgspecError, ValueError, TypeError)  # text that is not UTF-8, a body that is a number
_encode = msgspec.json.Encoder().encode
_FIELD = b'{"crc":"'
_SUM = slice(8, 18)  # eight digits, the quote and the comma behind them
_MISMATCH = "its checksum does not match"


def seal(body: bytes) -> bytearray:
    """The JSON of an object, with the checksum of its fields in front of them. A bytearray, because Python's
    sqlite3 looks for an adapter of bytes each time they are bound, which takes longer than the checksum."""
    fields = body[1:]
    return bytearray(b'{"crc":"%08x",%b' % (zlib.crc32(fields), fields))


class SealedDecoder(Generic[T]):
    def __init__(self, type: type[T]) -> None:
        self._decode = msgspec.json.Decoder(type).decode
        # Otherwise a flip in the name of the field would make a row out of it that needs no checksum.
        self._without = b'{"%b":' % msgspec.structs.fields(type)[0].encode_name.encode()

    def decode(self, body: Any) -> T:
        """Raises one of BAD."""
        if body[:8] == _FIELD:
            if body[_SUM] != b'%08x",' % zlib.crc32(memoryview(body)[18:]):
                raise ValueError(_MISMATCH)
        elif not body.startswith(self._without):
            raise ValueError("it does not begin as a record does")
        return self._decode(body)


decode_task = SealedDecoder(Task).decode
decode_message = SealedDecoder(Message).decode
decode_words = SealedDecoder(NoticeBody).decode
decode_schedule = SealedDecoder(Schedule).decode


def is_sealed(body: Any) -> bool:
    return body[:8] == _FIELD


def checksum(joined: str) -> int:
    """The checksum of values that were joined with a zero between them. Callers join them, because they know
    how many there are: each task has four of these sums."""
    return zlib.crc32(joined.encode("utf-8", "surrogatepass"))


def of_notice(
    thread: object,
    number: object,
    kind: object,
    source: object,
    run: object,
    seq: object,
    at: float,
    stood: str | None = None,
) -> int:
    """The checksum of the constant fields of a notice. Its state is held by the constraints of its table; its
    words have a checksum of their own. That of an ending is older than the other kinds, and than `stood`."""
    if not kind:
        more = f"\0{stood}" if stood else ""
        return checksum(f"{thread}\0{number}\0{source}\0{run}\0{_decimal(at)}{more}")
    return checksum(f"{thread}\0{number}\0{kind}\0{source}\0{run}\0{seq}\0{_decimal(at)}")


def of_event(kind: object, task_id: object, thread: object, run: object, status: object, at: float) -> int:
    return checksum(f"{kind}\0{task_id}\0{thread}\0{run}\0{status}\0{_decimal(at)}")


def _decimal(at: float) -> str:
    """The time as Python writes it, of which every checksum was made. msgspec writes a time of these days in
    the same way, four times as fast; other numbers may have another form there."""
    at = float(at)
    return _encode(at).decode() if 1.0 <= at < 1e15 else repr(at)


def verify(stored: int | None, computed: int) -> None:
    """Raises one of BAD."""
    if stored is not None and stored != computed:
        raise ValueError(_MISMATCH)
