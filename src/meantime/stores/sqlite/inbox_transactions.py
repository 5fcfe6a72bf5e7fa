"""The transactions of the inbox: lease, read, settle, release."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from meantime.kernel.notice_sources import NoticeRef, SourceKind, notice_id, parse_notice_id
from meantime.kernel.notices import Notice, NoticeState
from meantime.ports.store import Entry, Settled

from . import counters
from .checksums import BAD, decode_task, decode_words, of_notice, seal, verify
from .commit import KINDS, SQL, encode

ALONE_AFTER = 2  # failed deliveries after which a notice is leased by itself


def lease(cursor: sqlite3.Cursor, thread: str, turn: str, limit: int, now: float) -> Sequence[Notice]:
    cursor.execute(SQL["unpark_unclaimed"], (thread,))
    if cursor.execute(SQL["held_by_others"], (thread, turn)).fetchone():
        return ()
    while numbers := _choose(cursor.execute(SQL["unread_of"], (thread, limit)).fetchall()):
        turns = _count_turn(cursor, thread, turn, now)
        cursor.execute(SQL["lease_notices"], (turn, thread, numbers[-1], turns))
        rows = cursor.execute(SQL["leased_to"], (thread, turn, encode(numbers).decode())).fetchall()
        if found := list(_readable(cursor, thread, rows)):
            return found
        if not rows:
            return ()
    return ()


def _count_turn(cursor: sqlite3.Cursor, thread: str, turn: str, now: float) -> int | None:
    """The number of this turn among those of its thread that were told something."""
    row = cursor.execute(SQL["count_turn"], (now, turn, thread)).fetchone()
    return row[0] if row else None


def _readable(cursor: sqlite3.Cursor, thread: str, rows: Sequence[Any]) -> Iterator[Notice]:
    """A notice whose task cannot be read is parked: the thread must not wait for it for ever."""
    for row in rows:
        try:
            yield compose(row)
        except BAD:
            cursor.execute(SQL["park_one_unreadable"], (thread, row[1]))


def _choose(unread: Sequence[tuple[int, int]]) -> list[int]:
    """In order; what failed twice goes alone, so that it cannot take its neighbours with it."""
    chosen: list[int] = []
    for number, failures in unread:
        if failures >= ALONE_AFTER:
            return chosen or [number]
        chosen.append(number)
    return chosen


def compose(row: Sequence[Any]) -> Notice:
    """Raises one of BAD where the notice, or its task, cannot be read."""
    *key, stored, words, nonce, deliveries, state, is_current, body, archived = row
    verify(stored, of_notice(*key))
    number, kind, stood = key[1], key[2], key[7]
    if not kind:
        task = decode_task(body if is_current else archived)
        notice = Notice(task, number, nonce, deliveries, NoticeState(state))
        return notice if stood is None else counters.with_standing(notice, stood)
    said = decode_words(words)
    about = None if body is None else decode_task(body)
    return Notice(about, number, nonce, deliveries, NoticeState(state), body=said)


def key_of(row: Sequence[Any]) -> object:
    """By which what cannot be read of it is counted: the notice itself, or its task."""
    *key, stored, words, _, _, _, is_current, body, archived = row
    if stored not in (None, of_notice(*key)):
        return tuple(key[:2])
    return words or (body if is_current else archived)


def read(cursor: sqlite3.Cursor, turn: str, task_id: str, run: int, now: float) -> bool:
    row = cursor.execute(SQL["read_notice"], (turn, task_id, run)).fetchone()
    if row is None:
        return False
    cursor.execute(SQL["number_turn"], (_count_turn(cursor, row[0], turn, now), *row))
    return True


def settle(
    cursor: sqlite3.Cursor,
    thread: str,
    turn: str,
    notices: Sequence[str],
    entries: Sequence[Entry],
    now: float,
) -> Settled:
    rows = cursor.execute(SQL["held_by"], (thread, turn)).fetchall()
    held = {_id(*ref): number for *ref, number in rows}
    wanted = tuple(dict.fromkeys(notices or held))
    told = [id for id in wanted if id in held]
    if len(told) == len(held):
        cursor.execute(SQL["tell_all"], (now, thread, turn))
    else:
        cursor.executemany(SQL["tell"], [(now, thread, held[id]) for id in told])
    if told:
        cursor.execute(SQL["count_settled"], (len(told), NoticeState.TOLD))
    append(cursor, thread, entries)
    ours = {*told, *told_by(cursor, turn, [id for id in wanted if id not in held], thread)}
    return Settled(tuple(id for id in wanted if id in ours), tuple(id for id in wanted if id not in ours))


def told_by(cursor: sqlite3.Cursor, turn: str, notices: Sequence[str], thread: str | None) -> list[str]:
    return [id for id in dict.fromkeys(notices) if _is_told_by(cursor, id, turn, thread)]


def _is_told_by(cursor: sqlite3.Cursor, notice: str, turn: str, thread: str | None) -> bool:
    key = _key_of_id(cursor, notice)
    return key is not None and cursor.execute(SQL["told_by"], (*key, turn, thread)).fetchone() is not None


def _id(kind: int, of: str, run: int, seq: int) -> str:
    if not kind:  # most are endings
        return notice_id(of, run)
    return NoticeRef(KINDS[kind], of, run, seq).id


def _key_of_id(cursor: sqlite3.Cursor, notice: str) -> tuple[int, int, int, int] | None:
    """The key of a notice's row: kind, source, run and sequence number."""
    ref = parse_notice_id(notice)
    if ref is None or ref.kind is SourceKind.MESSAGE:
        return None
    found = SQL["schedule_at" if ref.kind is SourceKind.ALARM else "task_at"]
    row = cursor.execute(found, (ref.of,)).fetchone()
    return None if row is None else (KINDS.index(ref.kind), row[0], ref.run, ref.seq)


def release(cursor: sqlite3.Cursor, thread: str, turn: str, failed: bool, parks_after: int) -> Sequence[str]:
    rows = cursor.execute(SQL["release_turn"], (1 if failed else 0, parks_after, thread, turn)).fetchall()
    return [_id(*ref) for *ref, state in rows if state == NoticeState.UNREAD]


def unpark(cursor: sqlite3.Cursor, thread: str, notices: Sequence[str] | None) -> int:
    """All of the thread's, or these; what is not parked, or is another thread's, is left alone."""
    if notices is None:
        return changed(cursor, "unpark_all", thread)
    back = 0
    for notice in dict.fromkeys(notices):
        if (key := _key_of_id(cursor, notice)) is not None:
            back += changed(cursor, "unpark_one", thread, *key)
    return back


def append(cursor: sqlite3.Cursor, thread: str, entries: Sequence[Entry]) -> None:
    if not entries:
        return
    (position,) = cursor.execute(SQL["next_position"], (thread,)).fetchone()
    for entry in entries:
        cursor.execute(SQL["insert_entry"], (thread, position, entry.notice, seal(encode(entry.message))))
        position += max(0, cursor.rowcount)


def rows(cursor: sqlite3.Cursor, name: str) -> list[Any]:
    return cursor.execute(SQL[name]).fetchall()


def changed(cursor: sqlite3.Cursor, name: str, *args: object) -> int:
    """Runs a named statement and says how many rows it changed."""
    return cursor.execute(SQL[name], args).rowcount
