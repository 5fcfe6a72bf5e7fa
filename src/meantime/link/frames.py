"""The messages of a link: one JSON array a line. A connected process asks and runs its own functions;
the owner answers, and says what to run and to stop."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Raw, Struct

from meantime.kernel.limits import Limits, PluginDefaults
from meantime.kernel.model import Failed, Json, Progress, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import Jsonable
from meantime.kernel.questions import Question, Reply

from .wire_errors import WireError

PROTOCOL = 1
MAX_FRAME = 64 << 20  # bytes
Fence: TypeAlias = tuple[int, int]  # a run's number and attempt: which run of a task is meant


class Frame(Struct, frozen=True, array_like=True):
    pass


class WorkState(Struct, frozen=True, array_like=True):
    """The output of work so far: always the whole of it."""

    progress: Progress | None
    emitted: dict[str, Json]
    session: str | None


class WireReport(Struct, frozen=True, omit_defaults=True):
    """A Report without what only its own process has."""

    result: Jsonable | None = None
    error: Failed | None = None
    stopped: bool = False
    lost: str = ""
    partial: Json = None
    final_message: str = ""
    terminate_reason: str = ""
    session: str | None = None
    timed_out: bool = False
    reprs: tuple[str, ...] = ()


class Bye(Frame, frozen=True, tag="bye"):
    """Either side, when it stops and means to."""


class Ping(Frame, frozen=True, tag="ping"):
    """A sign of life; the owner answers with the same."""


# -- from a connected process


class Hello(Frame, frozen=True, tag="hello"):
    protocol: int
    version: str
    executor: str
    turns: list[str]  # that it still holds
    wants_inbox: bool = False  # to be told when an inbox is empty; an older client knows no such frame


class Request(Frame, frozen=True, tag="ask"):
    id: int
    verb: str
    arguments: Raw
    work: tuple[str, int] | None = None  # asked from inside this task, at this depth


class Forget(Frame, frozen=True, tag="forget"):
    """Nobody waits for this answer any more."""

    id: int


class Ended(Frame, frozen=True, tag="ended"):
    """Resent after every reconnect, until it is acknowledged."""

    task: str
    fence: Fence
    report: WireReport
    said: WorkState
    age: float = 0.0  # seconds that it ran, by the clock of its own process


class Saying(Frame, frozen=True, tag="saying"):
    task: str
    fence: Fence
    said: WorkState
    age: float = 0.0  # seconds that it has been running, by the clock of its own process
    is_deaf: bool = False  # it was asked to stop, and has never asked whether it should


class QuestionAsked(Frame, frozen=True, tag="asks"):
    """A function that runs here needs an answer. Said again after every reconnect, until it has one."""

    task: str
    fence: Fence
    question: Question
    again: bool = False  # it may have been answered already


class Withdraws(Frame, frozen=True, tag="withdraws"):
    """It needs none any more, or has this one."""

    task: str
    fence: Fence
    question: str
    reply: Reply | None = None


class Hosting(Frame, frozen=True, tag="hosting"):
    """The hosts that this process pushes notices to: thread, what it can promise, kind."""

    hosts: list[tuple[str, str, str]]


class UnknownFrame(Frame, frozen=True, tag="unknown"):
    """Asked to run something that this process does not have."""

    task: str
    fence: Fence


# -- from the owner


class Welcome(Frame, frozen=True, tag="welcome"):
    version: str
    instance: str  # another one after every start of the owner
    lease: float  # seconds within which the owner wants to hear something
    limits: Limits
    plugins: PluginDefaults = PluginDefaults()
    has_catalog: bool = False  # it serves ports.owner.Catalog; an older owner does not


class Refuse(Frame, frozen=True, tag="refuse"):
    error: WireError


class Answered(Frame, frozen=True, tag="answered"):
    id: int
    value: Raw


class ProblemFrame(Frame, frozen=True, tag="problem"):
    id: int
    error: WireError


class RunFrame(Frame, frozen=True, tag="run"):
    task: Task
    again: bool  # it may have begun already
    foreground: bool


class Stop(Frame, frozen=True, tag="stop"):
    task: str
    fence: Fence


class EndingAcknowledged(Frame, frozen=True, tag="heard"):
    """The ending is on record: it need not be said again."""

    task: str
    fence: Fence


class Replied(Frame, frozen=True, tag="replied"):
    """To a function's question: the answer, or why there can be none."""

    task: str
    fence: Fence
    question: str
    reply: Reply | None = None
    error: WireError | None = None


class Limited(Frame, frozen=True, tag="limited"):
    limits: Limits


class InboxFrame(Frame, frozen=True, tag="inbox"):
    """Whether a turn of this thread would find anything: `is_empty` after a turn that found nothing, and
    not any more as soon as there may be something. Only for clients whose Hello wants it."""

    thread: str
    is_empty: bool


FromClient: TypeAlias = (
    Hello
    | Request
    | Forget
    | Ended
    | Saying
    | QuestionAsked
    | Withdraws
    | Hosting
    | UnknownFrame
    | Ping
    | Bye
)
FromOwner: TypeAlias = (
    Welcome
    | Refuse
    | Answered
    | ProblemFrame
    | RunFrame
    | Stop
    | EndingAcknowledged
    | Replied
    | Limited
    | InboxFrame
    | Ping
    | Bye
)


def to_wire(report: Report) -> WireReport:
    return WireReport(
        report.result,
        report.error,
        report.stopped,
        report.lost,
        report.partial,
        report.final_message,
        report.terminate_reason,
        report.session,
        timed_out=report.timed_out,
        reprs=report.reprs,
    )


def from_wire(report: WireReport) -> Report:
    return Report(
        report.result,
        report.error,
        report.stopped,
        report.lost,
        report.partial,
        report.final_message,
        report.terminate_reason,
        report.session,
        timed_out=report.timed_out,
        reprs=report.reprs,
    )
