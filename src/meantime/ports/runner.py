"""A runner performs one kind of work. It does not know about statuses, notices or the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context as CallersContext
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from meantime.kernel.budgets import Budget
from meantime.kernel.errors import NotInWork
from meantime.kernel.lines import Line, LinePage
from meantime.kernel.model import Chunk, Json, Task, fence_of
from meantime.kernel.outcomes import Report
from meantime.kernel.questions import PermissionRules, Question, Reply
from meantime.kernel.work import ToolInfo


class Stopped(Exception):
    """Raised by `context.check()` in work that was asked to stop; let it pass."""


class Abilities(Struct, frozen=True):
    """A runner's abilities beyond running once; a missing ability is refused clearly."""

    resume: bool = False  # an ended task can be resumed in its session
    adopt: bool = False  # its work survives this process and can be found again: it is a LastingRunner
    output: bool = False  # it says something while it runs, that can be read: it is a SpeakingRunner
    input: bool = False  # it can be sent something while it runs
    talk: bool = False  # it holds a conversation: it is a TalkingRunner
    pages: bool = False  # and gives it in pieces: it is a PagingRunner
    keep: bool = False  # and keeps it, until no task works in it any more: it is a KeepingRunner


class Assignment(Struct, frozen=True):
    """One run to perform. `target` is the live function, where this process has it."""

    task: Task
    target: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    foreground: bool = False  # somebody waits for it: it must not wait behind background work
    again: bool = False  # a former owner may have begun it
    context: CallersContext | None = None  # the caller's context variables, where it had to queue

    @property
    def fence(self) -> tuple[int, int]:
        return fence_of(self.task.run)


class Context(Protocol):
    """The reports that work may make while it runs. Every method is quick, thread-safe and never raises for
    a run that is over."""

    @property
    def task_id(self) -> str:
        """The id of the task that this run belongs to."""
        ...

    @property
    def thread(self) -> str:
        """The id of the thread that asked."""
        ...

    @property
    def cancelled(self) -> bool:
        """True once somebody asked this run to stop: sync functions look at it, and return."""
        ...

    @property
    def noticed(self) -> bool:
        """Whether the work has seen that it should stop: then its return is a stop, not a finish."""
        ...

    on_thread: bool  # set by a runner whose work cannot be interrupted, while it runs

    @property
    def stops(self) -> int:
        """How often this run was asked to stop; any further cancellation comes from outside."""
        ...

    def count_stop(self) -> None:
        """The engine's side of `stops`."""
        ...

    def check(self) -> None:
        """Raises Stopped once this run should stop."""
        ...

    def progress(
        self,
        percent: float | None = None,
        message: str | None = None,
        *,
        phase: str | None = None,
        tool: str | None = None,
    ) -> None:
        """Says how far the work is: `progress(30, "half of the files")`. A value that is left out stays as it
        was.

        percent: 0 to 100.
        message: a short text for people.
        phase: the stage that the work is in.
        tool: the tool that it uses now; calls are counted by name.
        """
        ...

    def in_session(self, id: str) -> None:
        """The session this run works in, as soon as it has one: it is recorded at once, so that the
        task can be resumed even if this process is killed."""
        ...

    def emit(self, name: str, value: Json) -> None:
        """Keeps a named value with the outcome, whatever the outcome will be.

        name: the name to keep it under; the last value of a name wins.
        value: JSON.
        """
        ...

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        """Adds to what this run has spent; part of its progress. Each argument is what came since the last
        time.

        turns: requests to a model.
        tokens: tokens of a model.
        cost: what they cost, where it is reported.
        """
        ...

    @property
    def children(self) -> int:
        """How deep what this work starts may go: 0 is nothing, -1 is any."""
        ...

    def limit_children(self, depth: int) -> None:
        """Never to more than it has."""
        ...

    async def notify(self, text: str) -> str:
        """Tells the conversation something before the work ends: `await current().notify("half done")`. It is
        told once and in order, as the ending is.

        text: what it should know; it is cut at 4,000 characters.

        Returns:
            "sent" once it is in a notice, alone or with those before it; "waiting" if it came too soon after
            a notice that somebody was given: a later one tells it.

        Raises:
            Refused: The run has ended, somebody waits for its result, or it runs at a worker.
        """
        ...

    def warn(self, text: str) -> None:
        """For those who watch: its progress says it, and an event of its own."""
        ...

    def withdraw(self, question: str, reply: Reply | None = None) -> None:
        """The open question was answered where it was asked, or is to have this reply: the task waits no
        longer. An earlier answer is not overruled."""
        ...

    async def ask(self, question: Question) -> Reply:
        """Makes the task wait until somebody answers, over any interface. The same question (by its id) asked
        again after a restart is not asked twice, and gets the answer that it got meanwhile. Work that no
        longer waits for it withdraws it."""
        ...


class Runner(Protocol):
    kind: str
    abilities: Abilities

    def check(self, task: Task, assignment: Assignment) -> None:
        """Raises InvalidInput for work that can never run, before anything is recorded."""
        ...

    def can_run(self, task: Task) -> bool:
        """Whether a stored task can still be run by this process, after a restart."""
        ...

    async def run(self, assignment: Assignment, context: Context) -> Report:
        """Performs the run. Cancellation of this coroutine is the request to stop; what it does
        then decides: it may finish (L7), or raise CancelledError, which means it stopped."""
        ...

    async def exists(self, task: Task) -> bool:
        """Whether the task's session can still be resumed; only asked where `abilities.resume`."""
        ...


class Leftovers(NamedTuple):
    """Processes that an ended work had left running."""

    killed: int = 0
    left: tuple[int, ...] = ()  # pids of those that could not be killed


class LastingRunner(Runner, Protocol):
    """A runner whose work keeps running when its owner is gone. `run` begins the work if nobody has, and
    follows it to its end; a later owner's `run` of the same task adopts it where it stands."""

    def open(self) -> None: ...

    async def close(self) -> None:
        """No run is followed any more; what was left behind ends with the process."""
        ...

    def prepare(self, task: Task) -> None:
        """Before the task is recorded, so that what was recorded and never begun can be told from
        what has vanished."""
        ...

    def knows_whose(self, task: Task) -> bool:
        """Asked in a ledger that was copied, of a task that was active: whether `run` can tell if the work
        belongs to this ledger or to the original, and leaves it alone if it is the original's."""
        ...

    def age(self, task: Task) -> float | None:
        """Seconds since the work began, 0 if it has not. None: nobody here knows; the performer reports it to
        the run's context, as soon as it is known.
        """
        ...

    async def detach(self, task: Task) -> bool:
        """Leaves a running work to the next owner: its `run` reports `detached`. False if it cannot."""
        ...

    def keep(self, task: Task, kept: bool) -> None:
        """Whether a foreground run is to outlive us; until it is a task, it is not."""
        ...

    async def end_leftovers(self, task: Task) -> Leftovers:
        """Ends what the work of an ended task has left running."""
        ...

    def forget(self, task: Task) -> None:
        """The task is gone for good: so is all that was kept of its work."""
        ...

    async def sweep(
        self, active: Iterable[Task], known: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None:
        """Removes what belongs to no task that is active or known, and stops it where it still runs."""
        ...


class Standing(Struct, frozen=True):
    """Defaults for every task of an agent, if its start names nothing else."""

    timeout: float | None = None  # seconds
    depth: int = -1  # how deep what it starts may go
    budget: Budget = Budget()  # of one run
    rules: PermissionRules | None = None


class TalkingRunner(Runner, Protocol):
    """A runner whose work is a conversation."""

    def standing(self, name: str) -> Standing:
        """Raises InvalidInput for a name that nobody has."""
        ...

    def session_of(self, task: Task) -> str | None:
        """Where a running task works, even before that is on record."""
        ...

    async def steer(self, task: Task, text: str) -> bool:
        """Says something in the middle of a run. False: not now, and it has not been said."""
        ...

    async def lines(self, task: Task) -> Sequence[Line]:
        """All that was said, over all runs, oldest first."""
        ...


class KeepingRunner(TalkingRunner, Protocol):
    """Everything that it keeps of a session is removed when no task that is on record works in it."""

    def forget_session(self, task: Task) -> None:
        """That of a task which is gone for good."""
        ...

    async def sweep_sessions(
        self, active: Iterable[Task], used: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None:
        """Removes sessions that nobody uses and that have not changed for so many seconds. A session of an
        active task may not be on record yet."""
        ...


class PagingRunner(TalkingRunner, Protocol):
    """A runner whose conversations can be long: they are read in pieces."""

    async def line_page(self, task: Task, offset: int, most: int) -> LinePage:
        """Whole lines from this place on, at most so many bytes. Below 0 it counts from the end."""
        ...


class ServedRunner(Runner, Protocol):
    """A runner whose work is done by servers, each with tools of its own."""

    async def tools(self, server: str | None) -> Sequence[ToolInfo]:
        """The tools of one server; None is all, without servers that cannot be asked."""
        ...


class SpeakingRunner(Runner, Protocol):
    """A runner whose work can be read while it runs, and afterwards, by absolute offset. The work may run on
    another machine, so every read is awaited."""

    async def read(self, task: Task, stream: str, offset: int, most: int) -> Chunk: ...

    async def tail(self, task: Task, stream: str, lines: int, most: int) -> Chunk: ...

    async def changed(self, task: Task, stream: str, seen: int) -> bool:
        """Returns True when there is more than `seen` bytes, False when there will be no more."""
        ...

    async def whole(self, path: str) -> bytes:
        """The output of an ended task, if it is in a file of its own."""
        ...

    async def write(self, task: Task, data: bytes, *, eof: bool) -> None:
        """Sends something to running work; only where `abilities.input`."""
        ...


CURRENT: ContextVar[Context] = ContextVar("meantime.current")
DIRECT: ContextVar[Context] = ContextVar("meantime.direct")  # of a function that is called without a task


def current() -> Context:
    """The context of the work that is running here: `current().progress(50)`."""
    context = CURRENT.get(None) or DIRECT.get(None)
    if context is None:
        raise NotInWork(
            "current() works only inside background work.", hint="Start it with thread.start(...)."
        )
    return context
