"""The values everything else speaks in. All frozen; a change makes a new one with a higher version.

None of them can be part of a cycle, so the garbage collector need not look at them (`gc=False`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from .due_times import DueTime
from .lifecycle import ENDED, Status
from .questions import Question, Reply

Json: TypeAlias = Any  # JSON as Python holds it: None, bool, int, float, str, list, dict


class Work(Struct, frozen=True, omit_defaults=True, gc=False):
    """The order: what kind of runner it needs, what it names there, and its input as JSON."""

    kind: str
    name: str = ""
    input: Json = None
    faithful: bool = True  # False: the input was not JSON, so what is stored is only a picture of it


class Spill(Struct, frozen=True, omit_defaults=True, gc=False):
    """A payload that was over the limits: where it lies, how big it is, how it begins and ends."""

    path: str
    bytes: int
    lines: int
    head: str = ""
    tail: str = ""
    is_text: bool = True  # False: the file holds JSON
    of_runner: bool = False  # the file is its runner's own, not one of the store's
    lost: int = 0  # bytes that were said and not kept: the file is not the whole
    of_message: bool = False  # the file begins with the ending's message, which is cut; then the output
    crc: int | None = None  # of the file's bytes; None where an earlier version wrote it


class Completed(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="ended", tag="completed"):
    """The outcome of a run that returned a result."""

    result: Json = None
    spill: Spill | None = None
    lossy: bool = False  # parts of the result were not JSON and are kept as text
    emitted_vars: dict[str, Json] = {}
    final_message: str = ""
    terminate_reason: str = "GOAL"
    reprs: tuple[str, ...] = ()  # types in the result that are not JSON: only their repr is kept


class Failed(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="ended", tag="failed"):
    """The outcome of a run that raised, exited with an error, or reported one."""

    message: str
    code: str = "error"
    detail: str = ""  # for debugging: a traceback
    exit_code: int | None = None
    partial: Json = None
    emitted_vars: dict[str, Json] = {}
    final_message: str = ""
    terminate_reason: str = "ERROR"
    spill: Spill | None = None  # the whole partial output, where it was over the limits
    signal: int | None = None  # what killed it


class Cancelled(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="ended", tag="cancelled"):
    """The outcome of a run that was stopped because somebody asked."""

    by: str = ""
    reason: str = ""
    partial: Json = None
    abandoned: bool = False  # it would not stop; we stopped waiting, and a late result will be kept
    emitted_vars: dict[str, Json] = {}
    spill: Spill | None = None  # the whole partial output, where it was over the limits
    error: str = ""  # what went wrong while it was being cancelled


class TimedOut(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="ended", tag="timed_out"):
    """The outcome of a run that the clock stopped."""

    seconds: float
    partial: Json = None
    abandoned: bool = False
    emitted_vars: dict[str, Json] = {}
    terminate_reason: str = "TIMEOUT"
    spill: Spill | None = None  # the whole partial output, where it was over the limits


class Lost(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="ended", tag="lost"):
    """The outcome of a run of which nobody can know how it ended, such as after a crash."""

    reason: str
    partial: Json = None
    emitted_vars: dict[str, Json] = {}
    spill: Spill | None = None  # the whole partial output, where it was over the limits


Outcome: TypeAlias = Completed | Failed | Cancelled | TimedOut | Lost


class Progress(Struct, frozen=True, omit_defaults=True, gc=False):
    """How far a run is, as it said itself."""

    percent: float | None = None
    phase: str = ""
    message: str = ""
    tool_calls: dict[str, int] = {}
    last_tools: tuple[str, ...] = ()
    updated_at: float = 0.0
    turns: int = 0  # of an agent: requests to its model,
    tokens: int = 0  # what they took,
    cost: float = 0.0  # and what they cost, where it is reported

    @property
    def calls(self) -> int:
        """How many tools it has called."""
        return sum(self.tool_calls.values())


class CancelRequest(Struct, frozen=True, omit_defaults=True, gc=False):
    by: str
    at: float
    reason: str = ""


class Claim(Struct, frozen=True, omit_defaults=True, gc=False):
    """The claim of a worker that performs a run: what the owner of the ledger, or a later one, asks for."""

    worker: str  # its name
    home: str  # the id of the folder that has its journal
    boot: str  # of its machine: a run that the journal of this boot does not have was never begun
    nonce: str  # of this claim, and of no other


class EventTally(Struct, frozen=True, omit_defaults=True, gc=False):
    """The notices that a run has sent before its end, and the events that wait for one."""

    seq: int = 0  # the last notice's
    recent: tuple[float, ...] = ()  # when those of the last minute were made
    count: int = 0  # events that the last notice stands for,
    first: str = ""  # and the first of them
    waiting: int = 0  # events that wait for a notice,
    waits_first: str = ""  # the first of them,
    waits_last: str = ""  # and the last
    heard: tuple[str, int] = ("", 0)  # the last event of a worker: the nonce of its claim, and its number


class Run(Struct, frozen=True, omit_defaults=True, gc=False):
    """One attempt of a task: the first, or a resume."""

    number: int = 1
    attempt: int = 1
    queued_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    duration: float | None = None  # by the monotonic clock: wall-clock jumps do not touch it
    timeout: float | None = None  # seconds; None is unbounded
    timeout_note: str = ""  # why the timeout is not what was asked for
    prompt: str = ""  # a resume's follow-up
    cancel: CancelRequest | None = None
    retrieved_at: float | None = None  # when an agent first read the ending
    emitted: dict[str, Json] = {}
    claim: Claim | None = None  # where it is not this machine that performs it
    losses: int = 0  # attempts that ended with their worker
    events: EventTally | None = None  # what its thread was told before its end
    cursor: Json = None  # of a watch: how far it has looked; written together with what it tells
    not_before: DueTime | None = None  # of a delayed start: until then it has no place in a queue
    on_limit: str = ""  # of a delayed start: what it is to do then, where no slot is free


_FIRST = (1, 1)  # of most runs: one for all of them


def fence_of(run: Run) -> tuple[int, int]:
    """Which run of its task it is: what a former one still says does not count."""
    return _FIRST if run.number == run.attempt == 1 else (run.number, run.attempt)


class InlineLimits(Struct, frozen=True, omit_defaults=True, gc=False):
    """Up to here, and including it, a payload stays in the message; over it, it is spilled."""

    max_bytes: int = 51_200
    max_lines: int = 1_000


class Task(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """One piece of background work, as the ledger has it: who asked, what it is, and how its current run
    stands.
    """

    id: str
    thread: str
    work: Work
    status: Status
    version: int = 1
    created_at: float = 0.0
    updated_at: float = 0.0
    run: Run
    outcome: Outcome | None = None
    progress: Progress | None = None
    description: str = ""
    batch: str = ""
    tool_call_id: str | None = None
    message_id: str | None = None  # the message of the parent conversation that asked
    parent: str | None = None  # the task whose work started this one
    depth: int = 0
    session: str | None = None  # the working agent's own conversation
    forked: bool = False
    notify: bool = True  # False: the ending is recorded, nobody is told
    retry: str = ""  # "idempotent": may run again after a crash
    inline: InlineLimits | None = None
    hidden: bool = False  # cleared from listings; get still answers
    late_result: Json = None  # what came after the ending; it never changes it
    meta: dict[str, Json] = {}  # what the caller keeps with it: a plugin, a tool, a permission
    executor: str | None = None  # the process that runs it, where that is not the ledger's owner
    place: str = ""  # the pool of workers that it is for; empty is the ledger's owner
    question: Question | None = None  # what it waits for
    answers: tuple[Reply, ...] = ()  # what it was answered: those for all of this task, and the last ones
    follow_up: str = ""  # said to it while it ran, and its next run's prompt
    children: int = -1  # how deep what it starts may go: 0 is that it may start nothing, -1 is any
    above: str | None = (
        None  # the nearest agent above it, which may be its parent: they share a tree's budget
    )
    tells: str = ""  # the thread that is told of it, where that is not its own
    launched_in: str | None = None  # its session, where that was known when it was launched

    @property
    def session_id(self) -> str:
        """Its `sessionID` in the words of seed 001, which never changes: the session that was known when it
        was launched, otherwise its own id."""
        return self.launched_in or self.id

    @property
    def ended(self) -> bool:
        """Whether its current run has ended."""
        return self.status in ENDED

    @property
    def inbox(self) -> str:
        """The thread that is told of it."""
        return self.tells or self.thread

    @property
    def resume_count(self) -> int:
        """How often it was resumed."""
        return self.run.number - 1

    @property
    def resumed(self) -> bool:
        """Whether it was ever resumed."""
        return self.run.number > 1

    @property
    def agent(self) -> str:
        """The name of the agent that works, where one does."""
        return self.work.name if self.work.kind == "agent" else ""

    @property
    def nearest_agent(self) -> str | None:
        """The agent that what it starts belongs to: itself, or the one above it."""
        return self.id if self.work.kind == "agent" else self.above

    @property
    def agent_or_kind(self) -> str:
        """The agent's name, or the kind of work."""
        return self.agent or self.work.kind

    @property
    def title(self) -> str:
        """Its title for people: its description, or the name of its work."""
        name = self.work.name
        if self.work.kind == "call":  # module:function
            name = name.rpartition(":")[2].rpartition("<locals>.")[2]
        return self.description or name or self.work.kind

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.title!r} {self.status}>"


class BatchCount(Struct, frozen=True, gc=False):
    """How far a batch is: n of m have ended."""

    id: str
    ended: int
    total: int
    failed: int = 0

    @property
    def active(self) -> int:
        return self.total - self.ended


class Chunk(Struct, frozen=True):
    """A stretch of what a command said, by absolute offset."""

    data: bytes
    offset: int  # of its first byte
    next: int  # where to read on
    total: int  # bytes that came so far
    lost_bytes: int = 0  # bytes before `offset` that were asked for and are no longer kept
    ended: bool = False  # there will be no more
    at: float | None = None  # when the last of it came, where that is known

    @property
    def text(self) -> str:
        """The bytes as text; bytes that are not UTF-8 are replaced."""
        return self.data.decode("utf-8", "replace")


class Ending(Struct, frozen=True, omit_defaults=True, gc=False):
    """Data that a call that was waited for came with, beside its result. It was never recorded."""

    id: str  # that it would have had as a task
    emitted: dict[str, Json] = {}
    final_message: str = ""
    terminate_reason: str = ""


class Output(Struct, frozen=True):
    """The readable output of a task now; never blocks, and never settles a notice by itself."""

    task: Task
    value: Json = None  # the result, or what there is of it
    emitted: dict[str, Json] = {}
    partial: bool = False  # the run has not ended, or was stopped before it was done
    spill: Spill | None = None  # over the limits: the whole lies in a file, `value` is its beginning and end

    @property
    def text(self) -> str:
        """The value as text."""
        from .payloads import as_text

        return as_text(self.value)


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    """A fact for observers. Never mixed with notices: an observer may miss one, a thread may not."""

    kind: str  # submitted, started, cancelling, ended, resumed, progress, cleared, …
    task_id: str
    thread: str
    run: int
    status: Status
    at: float
    seq: int = 0  # given by the store
