"""The one translator of what is told: notices, batches, threads, and the answer to a cancel."""

from __future__ import annotations

from typing import Any

from meantime.kernel.durations import iso
from meantime.kernel.model import BatchCount
from meantime.kernel.notices import Message, Notice
from meantime.ports.tasks import CancelAnswer, ThreadCount

from .wire import wire_task, word_of

Wire = dict[str, Any]


def wire_notice(notice: Notice) -> Wire:
    """`message` is what to put into the conversation; `text` is what the ending carries, by itself."""
    return {
        "id": notice.id,
        "number": notice.number,
        "thread": notice.thread,
        "taskId": notice.task_id,
        "run": notice.run,
        "status": word_of(notice.task),
        "state": notice.state.value,
        "text": notice.text,
        "message": wire_message(notice.message()),
        "at": iso(notice.task.run.ended_at),
        "deliveries": notice.delivery,
        "batch": None if notice.batch is None else wire_batch(notice.batch),
        "task": wire_task(notice.task),
    }


def wire_message(message: Message) -> Wire:
    parts = [{"text": part.text, "hidden": part.hidden} for part in message.parts]
    return {"role": message.role, "parts": parts}


def wire_batch(count: BatchCount) -> Wire:
    return {
        "id": count.id,
        "ended": count.ended,
        "total": count.total,
        "failed": count.failed,
        "active": count.active,
    }


def wire_thread(found: ThreadCount) -> Wire:
    return {
        "id": found.id,
        "active": found.active,
        "unread": found.unread,
        "leased": found.leased,
        "parked": found.parked,
        "lastEventAt": iso(found.last_event_at),
    }


def wire_cancel(answer: CancelAnswer) -> Wire:
    return {
        "task": wire_task(answer.task),
        "disposition": answer.disposition.value,
        "killed": answer.killed,
    }
