"""Changes of many rows as one event: encoded once, and sent as it is to everybody who looks at everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from meantime.kernel.model import Task

from .event_encoding import frame
from .responses import encode


class EncodedRow(NamedTuple):
    task: Task
    text: bytes
    is_open: bool  # it can change without an event: it has not ended, or nobody was told yet


class GoneRow(NamedTuple):
    """A task that no list shows any more: it was cleared, or it was deleted."""

    id: str
    thread: str


class Patch(NamedTuple):
    seq: int  # of the journal, up to which this goes
    rows: Sequence[EncodedRow]
    gone: Sequence[GoneRow]
    overview: bytes  # of all threads; empty if it is as it was
    frame: bytes

    @classmethod
    def of(cls, seq: int, rows: Sequence[EncodedRow], gone: Sequence[GoneRow], overview: bytes) -> Patch:
        whole = patch_frame(seq, [row.text for row in rows], [one.id for one in gone], overview)
        return cls(seq, rows, gone, overview, whole)

    def part(self, thread: str | None, fits: Callable[[Task], bool]) -> bytes:
        """The part for somebody who looks at less: a row that does not fit any more is gone. Empty if there
        is nothing to tell. The overview is of all threads, so it is not for the token of one."""
        seen = [row for row in self.rows if thread in (None, row.task.thread)]
        rows = [row.text for row in seen if fits(row.task)]
        gone = [row.task.id for row in seen if not fits(row.task)]
        gone += [one.id for one in self.gone if thread in (None, one.thread)]
        overview = self.overview if thread is None else b""
        return patch_frame(self.seq, rows, gone, overview) if rows or gone or overview else b""


def patch_frame(seq: int, rows: Sequence[bytes], gone: Sequence[str], overview: bytes) -> bytes:
    parts = [b'{"rows":[', b",".join(rows), b'],"gone":', encode(gone)]
    if overview:
        parts += [b',"overview":', overview]
    return frame("patch", b"".join([*parts, b',"seq":%d}' % seq]), seq)
