"""Answers about threads, turns and notices."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from meantime.kernel.notice_sources import SourceKind
from meantime.kernel.notices import NoticeState

from .schemas import Answer, Count, Positive, StatusText, Time, described, one_of
from .task_schemas import WireBatch, WireTask

MOST = 100  # notices of one turn


class WirePart(Answer):
    text: str
    hidden: Annotated[bool, described("For the model only.")]


class WireMessage(Answer):
    """The text to put into the conversation."""

    role: str
    parts: list[WirePart]


class WireNotice(Answer):
    """One notice of a thread: the ending of a run, or what its kind says."""

    id: Annotated[str, described("The same for every delivery: look for it in the transcript.")]
    number: Annotated[Positive, described("Per thread, in the order of completion.")]
    thread: str
    task_id: Annotated[str, described("The id of the task, the alarm or the message.")]
    run: Count
    status: Annotated[StatusText | None, described("The status of the task; null where there is none.")]
    state: NoticeState
    text: Annotated[str, described("The content of the ending, by itself.")]
    message: WireMessage
    at: Time
    deliveries: Count
    batch: WireBatch | None
    task: WireTask | None
    kind: SourceKind
    events: Annotated[Positive, described("How many events it stands for; 1 for an ending.")]
    late: Annotated[float, described("Seconds that a reminder came late; below 5, and otherwise, 0.", ge=0)]


class NoticePage(Answer):
    notices: list[WireNotice]
    total: Count


class NewNotices(Answer):
    notices: list[WireNotice]


class WireTurn(Answer):
    turn: str
    thread: str
    notices: Annotated[list[WireNotice], Meta(max_length=MOST)]


class Acknowledged(Answer):
    told: tuple[str, ...]


class WireThread(Answer):
    id: str
    active: Count
    unread: Count
    leased: Count
    parked: Count
    last_event_at: Time


class ThreadHost(Answer):
    """A host that is told of a thread's endings."""

    name: str
    delivery: Annotated[
        Annotated[str, one_of("A", "B", "C")] | None,
        described("Its delivery class: A and B are told exactly once, C at least once; null if unknown."),
    ]
    connected: bool
    since: Time
    last_turn: Annotated[Time, described("When it asked last.")]


class OpenTurnAnswer(Answer):
    id: str
    opened_at: Time
    held: Annotated[Count, described("Notices that are leased to it.")]


class ThreadDetail(WireThread):
    hosts: Annotated[list[ThreadHost], described("Hosts that are known now; nothing of them is recorded.")]
    turn: Annotated[OpenTurnAnswer | None, described("The newest open turn.")]
    reminder: Annotated[str, described("For every turn; it is never acknowledged.")]


class ThreadPage(Answer):
    threads: Annotated[list[WireThread], Meta(max_length=1_000)]


class Unparked(Answer):
    unparked: Count


class Wake(Answer):
    seen: Annotated[int, described("For the next call.")]
    idle: bool


class HookText(Answer):
    text: Annotated[str, described("For the model; empty if there is nothing to tell.")]
    turn: Annotated[str | None, described("The turn that it is leased to.")]
    over: Annotated[bool, described("Nothing is left to wait for.")]
