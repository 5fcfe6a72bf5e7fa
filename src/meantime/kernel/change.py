"""The one decision: a task, a move and the facts give a Change. All that is written comes from here."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .event_notices import Events, NoticeRate, flush, is_heard, send
from .lifecycle import ENDED, Move, Status, after
from .model import (
    Cancelled,
    CancelRequest,
    Claim,
    Completed,
    Event,
    EventTally,
    Failed,
    Json,
    Lost,
    Outcome,
    Progress,
    Run,
    Task,
    TimedOut,
    fence_of,
)
from .notice_sources import Draft
from .questions import TASK, Question, Reply

LAST_ANSWERS = 20
ASKED = 200  # characters of the question that are kept with its answer
PARENT = "parent"  # `by` of a cancel that comes with the end of the conversation
SHUTDOWN = "shutdown"  # `by` of a cancel that comes with the end of the process


class Disposition(StrEnum):
    """The answer to whoever asked, which is not the state of the task."""

    APPLIED = "applied"
    ALREADY_ENDED = "already_ended"
    ALREADY_CANCELLING = "already_cancelling"
    ILLEGAL = "illegal"


class Facts(Struct, frozen=True, gc=False):
    """Facts from outside about a move."""

    outcome: Outcome | None = None
    by: str = ""
    reason: str = ""
    elapsed: float | None = None
    run: tuple[int, int] | None = None  # number and attempt of the run that reports: fences stale ones
    late: Json = None  # what a run has to say after its ending
    progress: Progress | None = None  # the last it said
    session: str | None = None  # where it worked
    next_run: Run | None = None  # for RESUME and RETRY
    batch: str | None = None  # for RESUME: the batch that it joins, where that is not its own
    question: Question | None = None  # for ASK
    reply: Reply | None = None  # for ANSWER
    claim: Claim | None = None  # for START: the worker that performs it


NOTHING = Facts()


class Change(Struct, frozen=True, gc=False):
    """The content of one transaction: all of it, or nothing if the version moved on."""

    task: Task
    replaces: int  # the version it replaces; 0 creates, -1 writes nothing
    disposition: Disposition = Disposition.APPLIED
    event: Event | None = None
    notices: tuple[Draft, ...] = ()  # in the order in which their threads are told
    archives: Task | None = None  # the ended run that a resume moves into history
    durable: bool = True  # False: may be lost in a power cut, never in a crash

    @property
    def writes(self) -> bool:
        return self.replaces >= 0

    @property
    def ends(self) -> bool:
        """Whether the run has ended: its notice comes last."""
        return bool(self.notices) and self.notices[-1].body is None


_MOVES: dict[type, Move] = {
    Completed: Move.COMPLETE,
    Failed: Move.FAIL,
    Cancelled: Move.STOP,
    TimedOut: Move.TIME_OUT,
    Lost: Move.LOSE,
}

PURGED = "purged"  # the event of a task that was deleted
_EVENTS: dict[Move, str] = {
    Move.START: "started",
    Move.ASK: "asked",
    Move.ANSWER: "answered",
    Move.CANCEL: "cancelling",
    Move.RETRY: "retried",
    Move.RESUME: "resumed",
}


def ending(outcome: Outcome) -> Move:
    return _MOVES[type(outcome)]


def submit(task: Task) -> Change:
    return Change(task, 0, event=_event("submitted", task, task.created_at))


def purged(task: Task, now: float) -> Event:
    """The last event of a task: it was deleted."""
    return _event(PURGED, task, now)


def decide(task: Task, move: Move, facts: Facts, now: float) -> Change:
    """A second ending is a no-op that says so; an illegal move changes nothing."""
    stale = facts.run is not None and facts.run != fence_of(task.run)
    if stale:
        return Change(task, -1, Disposition.ALREADY_ENDED, durable=False)
    if task.status in ENDED and move is not Move.RESUME:
        return _too_late(task, facts, now)
    status = after(task.status, move)
    if move is Move.ANSWER and not _answers_open_question(task, facts):
        status = None
    if status is None:
        cancelling = task.status is Status.CANCELLING and move is Move.CANCEL
        return Change(
            task, -1, Disposition.ALREADY_CANCELLING if cancelling else Disposition.ILLEGAL, durable=False
        )
    if move in (Move.RESUME, Move.RETRY):
        return _new_run(task, move, status, facts, now)
    return _end(task, move, status, facts, now) if status in ENDED else _go_on(task, move, status, facts, now)


def _answers_open_question(task: Task, facts: Facts) -> bool:
    """An answer is for the question that it answers, and for no later one."""
    return task.question is not None and facts.reply is not None and facts.reply.question == task.question.id


def amend(task: Task, now: float, *, event: str = "", durable: bool = False, **fields: Any) -> Change:
    """A change that is not a move: progress, a retrieved time, a cleared list. Never touches the status."""
    new = replace(task, version=task.version + 1, updated_at=now, **fields)
    said = _event(event, new, now) if event else None
    return Change(new, task.version, event=said, durable=durable)


def notify(
    task: Task, events: Events, now: float, rate: NoticeRate, *, joins: bool, cursor: Json = None
) -> Change:
    """Events that the thread is told of before the run ends. An ended run has nothing more to tell. A worker
    numbers its events, because it repeats them: each number is recorded once. `cursor`: of a watch, how far
    it has looked for them."""
    if task.status in ENDED:
        return Change(task, -1, Disposition.ALREADY_ENDED, durable=False)
    if is_heard(task, events.number):
        return Change(task, -1, Disposition.ILLEGAL, durable=False)
    told = send(task, events, now, rate, joins=joins)
    return _with_events(task, *told, now, task.run.cursor if cursor is None else cursor)


def notify_waiting(task: Task, now: float) -> Change:
    """The events that were too many to be told one by one, together."""
    tally, draft = flush(task, now)
    if draft is None or task.status in ENDED:
        return Change(task, -1, Disposition.ILLEGAL, durable=False)
    return _with_events(task, tally, draft, now, task.run.cursor)


def _with_events(task: Task, tally: EventTally, draft: Draft | None, now: float, cursor: Json) -> Change:
    run = replace(task.run, events=tally, cursor=cursor)
    new = replace(task, version=task.version + 1, updated_at=now, run=run)
    said = None if draft is None else _event("notified", new, now)
    return Change(new, task.version, event=said, notices=() if draft is None else (draft,))


def _go_on(task: Task, move: Move, status: Status, facts: Facts, now: float) -> Change:
    run = task.run
    if move is Move.START:
        run = replace(run, started_at=now, claim=facts.claim)
    elif move is Move.CANCEL:
        run = replace(run, cancel=CancelRequest(facts.by, now, facts.reason))
    new = replace(task, status=status, version=task.version + 1, updated_at=now, run=run)
    if move is Move.ASK:
        new = replace(new, question=facts.question)
    elif move is Move.ANSWER:
        new = replace(new, question=None, answers=_answers(task, facts))
    return Change(new, task.version, event=_event(_EVENTS[move], new, now))


def _answers(task: Task, facts: Facts) -> tuple[Reply, ...]:
    assert facts.reply is not None, "an answer needs its words"
    lasting = tuple(reply for reply in task.answers[:-LAST_ANSWERS] if reply.scope == TASK)
    asked = task.question
    reply = replace(
        facts.reply,
        run=task.run.number,
        asked_at=0.0 if asked is None else asked.asked_at,
        asked="" if asked is None else asked.text[:ASKED],
    )
    return (*lasting, *task.answers[-LAST_ANSWERS:], reply)


def _end(task: Task, move: Move, status: Status, facts: Facts, now: float) -> Change:
    outcome = facts.outcome
    cancel = task.run.cancel
    if move is Move.CANCEL:  # it never started
        outcome = Cancelled(facts.by, facts.reason)
        cancel = CancelRequest(facts.by, now, facts.reason)
    assert outcome is not None, f"{move} needs an outcome"
    events, waiting = flush(task, now) if task.run.events is not None else (None, None)
    run = replace(
        task.run, ended_at=now, duration=_elapsed(task.run, facts, now), cancel=cancel, events=events
    )
    new = replace(
        task,
        status=status,
        version=task.version + 1,
        updated_at=now,
        run=run,
        outcome=outcome,
        progress=facts.progress or task.progress,
        session=facts.session or task.session,
        late_result=task.late_result if facts.late is None else facts.late,
        question=None,
        follow_up=task.follow_up if _goes_on(outcome) else "",
        hidden=task.hidden or (cancel is not None and cancel.by == PARENT),  # nobody is there to clear it
    )
    told = Draft(new.inbox, now, muted=not new.notify)
    notices = (told,) if waiting is None else (waiting, told)
    return Change(new, task.version, event=_event("ended", new, now), notices=notices)


def _goes_on(outcome: Outcome) -> bool:
    """A cancel means that the task should be over; the close of a process does not."""
    return not isinstance(outcome, Cancelled) or outcome.by == SHUTDOWN


def _new_run(task: Task, move: Move, status: Status, facts: Facts, now: float) -> Change:
    assert facts.next_run is not None, f"{move} needs the next run"
    new = replace(
        task,
        status=status,
        version=task.version + 1,
        updated_at=now,
        run=facts.next_run,
        batch=task.batch if facts.batch is None else facts.batch,
        outcome=None,
        progress=None,
        late_result=None,
        hidden=False,
        question=None,
        follow_up=task.follow_up if move is Move.RETRY else "",
    )
    archives = task if move is Move.RESUME else None
    return Change(new, task.version, event=_event(_EVENTS[move], new, now), archives=archives)


def _too_late(task: Task, facts: Facts, now: float) -> Change:
    """An ending is final. A late result is kept beside it, once, and never shown as success."""
    if facts.late is None or task.late_result is not None or task.status not in ENDED:
        return Change(task, -1, Disposition.ALREADY_ENDED, durable=False)
    kept = amend(task, now, late_result=facts.late)
    return replace(kept, disposition=Disposition.ALREADY_ENDED)


def _elapsed(run: Run, facts: Facts, now: float) -> float:
    if facts.elapsed is not None:
        return max(0.0, facts.elapsed)
    return max(0.0, now - (run.started_at or run.queued_at))


def _event(kind: str, task: Task, now: float) -> Event:
    return Event(kind, task.id, task.thread, task.run.number, task.status, now)
