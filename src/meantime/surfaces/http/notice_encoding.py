"""Notices, batches, threads and answers to a cancel, as they are on the wire."""

from __future__ import annotations

from msgspec.structs import asdict

from meantime.kernel.durations import iso
from meantime.kernel.model import BatchCount
from meantime.kernel.notices import LATE, Message, Notice
from meantime.ports.tasks import CancelAnswer, ThreadCount

from .notice_schemas import (
    OpenTurnAnswer,
    ThreadDetail,
    ThreadHost,
    WireMessage,
    WireNotice,
    WirePart,
    WireThread,
)
from .task_encoding import wire_task, word_of
from .task_schemas import Cancelled, WireBatch


def wire_notice(notice: Notice) -> WireNotice:
    return WireNotice(
        id=notice.id,
        number=notice.number,
        thread=notice.thread,
        task_id=notice.task_id,
        run=notice.run,
        status=None if notice.about is None else word_of(notice.about),
        state=notice.state,
        text=notice.text,
        message=wire_message(notice.message()),
        at=iso(notice.at),
        deliveries=notice.delivery,
        batch=None if notice.batch is None else wire_batch(notice.batch),
        task=None if notice.about is None else wire_task(notice.about),
        kind=notice.kind,
        events=1 if notice.body is None else notice.body.count,
        late=notice.body.late if notice.body is not None and notice.body.late >= LATE else 0.0,
    )


def wire_message(message: Message) -> WireMessage:
    return WireMessage(message.role, [WirePart(part.text, part.hidden) for part in message.parts])


def wire_batch(count: BatchCount) -> WireBatch:
    return WireBatch(count.id, count.ended, count.total, count.failed, count.active)


def wire_thread(found: ThreadCount) -> WireThread:
    return WireThread(
        id=found.id,
        active=found.active,
        unread=found.unread,
        leased=found.leased,
        parked=found.parked,
        last_event_at=iso(found.last_event_at),
    )


def wire_thread_detail(
    found: ThreadCount, reminder: str, hosts: list[ThreadHost], turn: OpenTurnAnswer | None
) -> ThreadDetail:
    return ThreadDetail(**asdict(wire_thread(found)), reminder=reminder, hosts=hosts, turn=turn)


def wire_cancel(answer: CancelAnswer) -> Cancelled:
    return Cancelled(task=wire_task(answer.task), disposition=answer.disposition, killed=answer.killed)
