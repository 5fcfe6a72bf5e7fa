"""The verbs: the contract of every server and every user's object, in process or over a wire.

`thread` is the scope: an agent's verbs carry its thread and see nothing else; None is a person,
who sees all. `ref` is an id or a unique prefix of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Annotated, Any, Protocol

from msgspec import Struct

from meantime.kernel.argument_checks import check_text
from meantime.kernel.constraints import FLAG, TIMEOUT, Constraint, one_of
from meantime.kernel.due_times import check_delay, check_time
from meantime.kernel.ids import check_id
from meantime.kernel.inbox_page import InboxPage
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import ON_LIMIT, Limits, PluginDefaults
from meantime.kernel.lines import Line, LinePage, check_lines
from meantime.kernel.model import BatchCount, Chunk, Event, InlineLimits, Json, Output, Task
from meantime.kernel.notice_sources import check_new_id
from meantime.kernel.notices import Notice
from meantime.kernel.overview import Overview
from meantime.kernel.placement import check_place
from meantime.kernel.row_facts import RowFacts
from meantime.kernel.stats import Statistics
from meantime.kernel.work import Order, ToolInfo, check_meta

from .reminders import Reminders
from .store import Entry, Query, Settled
from .task_details import Attendance, TaskDetails
from .verb_answers import Answer, CancelAnswer, OpenTurn, Page, ThreadCount

MAX_DESCRIPTION = 2_000  # characters
RETRY = one_of("", "idempotent")


def _is_inline(value: Any) -> bool:
    return isinstance(value, InlineLimits) and all(
        type(most) is int and most >= 0 for most in (value.max_bytes, value.max_lines)
    )


_INLINE = Constraint(
    "InlineLimits",
    _is_inline,
    error="{name} takes InlineLimits(max_bytes, max_lines), whole numbers from 0 up.",
)
_description = partial(check_text, most=MAX_DESCRIPTION)


class Options(Struct, frozen=True, kw_only=True):
    """Everything about a start that is not the work itself; `check_fields` checks their constraints."""

    timeout: Annotated[float | None, TIMEOUT] = None  # seconds; None is the default, -1 is none
    description: Annotated[str, _description] = ""
    batch: Annotated[str | None, check_id] = None
    tool_call_id: Annotated[str | None, check_id] = None
    message_id: Annotated[str | None, check_id] = None
    id: Annotated[str | None, check_new_id] = None
    notify: Annotated[bool, FLAG] = True
    retry: Annotated[str, RETRY] = ""
    on_limit: Annotated[str | None, ON_LIMIT] = None  # "queue" or "reject"; None is what the limits say
    inline: Annotated[InlineLimits | None, _INLINE] = None
    # To go on from a conversation: `fork_of`, `context`, `session`, or the thread's own.
    fork: Annotated[bool, FLAG] = False
    fork_of: Annotated[str | None, check_id] = None  # a task whose session is copied
    context: Annotated[tuple[Line, ...], check_lines] = ()  # the conversation itself
    session: Annotated[str | None, check_id] = None
    meta: Annotated[dict[str, Json], check_meta] = {}  # a JSON object that is kept with the task
    executor: Annotated[str | None, check_id] = None  # the connected process that runs it; None is the owner
    # Where it runs: "pool:NAME", or "here"; None is what the configuration says.
    place: Annotated[str | None, check_place] = None
    parent: Annotated[str | None, check_id] = None  # the task for which another program asks
    delay: Annotated[float | None, check_delay] = None  # seconds until it may start
    at: Annotated[float | None, check_time] = None  # or the time, by the wall clock


def options_from(request: Struct, **more: Any) -> Options:
    """The fields of a surface's request that are named as in Options; `more` replaces or adds some."""
    return Options(**{name: getattr(request, name) for name in _shared(type(request))} | more)


@cache
def _shared(kind: type[Struct]) -> tuple[str, ...]:
    return tuple(name for name in Options.__struct_fields__ if name in kind.__struct_fields__)


class Tasks(Reminders, Protocol):
    async def start(self, thread: str, order: Order, options: Options) -> Task: ...

    async def call(self, thread: str, order: Order, options: Options, threshold: float | None) -> Answer: ...

    async def calls(self, thread: str | None) -> Sequence[Task]:
        """The calls that somebody waits for now, as they would be as tasks. They are not recorded."""
        ...

    async def promote(self, ref: str, thread: str | None) -> Task:
        """Records a call that runs inline as a task, at once; its caller gets that task. NotFound for
        no such call, Refused for one that has ended or is a task; any other error leaves it inline."""
        ...

    async def adopt(self, thread: str, order: Order, options: Options, running_for: float) -> Task:
        """Records what runs already, outside of us: `order.target` only waits for its ending."""
        ...

    async def resume(self, ref: str, thread: str | None, prompt: str, options: Options) -> Task: ...

    async def get(self, ref: str, thread: str | None) -> Task: ...

    async def list(
        self,
        thread: str | None,
        statuses: Iterable[Status] | None,
        *,
        batch: str | None = None,
        history: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Task]: ...

    async def page(self, query: Query, *, counted: bool = True, most: int | None = None) -> Page:
        """For people: any thread's tasks, by everything that a query can ask. Not counted, the total is
        only what is on the page; it is not counted beyond `most`."""
        ...

    async def row_facts(self, ids: Sequence[str]) -> Sequence[RowFacts]:
        """The part of each row that is not in its task, in the order of the ids; at most 1,200 at once. An
        unknown id has no facts."""
        ...

    async def overview(self, thread: str | None) -> Overview:
        """Everything in a few numbers, of one thread or of all. It costs the same for any history."""
        ...

    async def runs_of(self, ref: str, thread: str | None) -> Sequence[Task]:
        """The task as each of its runs left it, oldest first; the last is as it is now."""
        ...

    async def details(self, ref: str, thread: str | None) -> TaskDetails:
        """The task with what can be done with it, who was told, its spending and its family."""
        ...

    async def position(self, ref: str, thread: str | None) -> int | None:
        """A queued task's place in its queue: 1 is next."""
        ...

    async def output(
        self, ref: str, thread: str | None, *, wait: float = 0, turn: str | None = None
    ) -> Output: ...

    async def read(self, ref: str, thread: str | None, stream: str, offset: int, limit: int) -> Chunk:
        """The output of a command, from an absolute offset; `stream` is both, stdout or stderr."""
        ...

    async def tail(self, ref: str, thread: str | None, stream: str, lines: int, limit: int) -> Chunk: ...

    async def wait_output(self, ref: str, thread: str | None, stream: str, seen: int) -> None:
        """Returns when there is more than `seen` bytes, or when the task has ended."""
        ...

    async def send(self, ref: str, thread: str | None, data: str | bytes, *, eof: bool = False) -> str:
        """To the stdin of a running command (`eof` closes it), or to a running agent. The answer says what
        became of it: "written", "steered" into the turn, or "queued" as the follow-up that runs next."""
        ...

    async def notify(self, ref: str, thread: str | None, text: str) -> str:
        """Tells its thread something before it ends: "sent" in a notice, or "waiting" for a later one."""
        ...

    async def lines(
        self,
        ref: str,
        thread: str | None,
        *,
        kinds: Sequence[str] = (),
        roles: Sequence[str] = (),
        last: int | None = None,
    ) -> Sequence[Line]:
        """An agent's conversation, over all its runs, oldest first; only lines of these kinds and roles
        (no name is any), and of those the newest `last`."""
        ...

    async def line_page(
        self, ref: str, thread: str | None, *, offset: int = 0, most: int = 1 << 20
    ) -> LinePage:
        """Whole lines of an agent's conversation from a place on, at most so many bytes (1 to 8 MiB). Below
        0 the place counts from the end."""
        ...

    async def answer(
        self,
        ref: str,
        thread: str | None,
        text: str,
        *,
        scope: str | None = None,
        by: str = "user",
        question: str | None = None,
    ) -> Task:
        """To a task that waits: one of the offered answers (by id, label or number) or a text. `scope` is
        "once" or "task". An agent cannot give a permission; a person can. `question`
        is the id of the one that is meant: AlreadyAnswered where somebody was first."""
        ...

    async def result(self, ref: str, thread: str | None) -> Json:
        """The whole result of a completed task, even if it was spilled; TaskEnded otherwise."""
        ...

    async def wait(
        self,
        refs: Sequence[str],
        thread: str | None,
        *,
        until: str = "all",
        timeout: float | None = None,
        turn: str | None = None,
    ) -> Sequence[Task]: ...

    async def cancel(
        self,
        ref: str,
        thread: str | None,
        *,
        by: str = "user",
        reason: str = "",
        wait: bool = False,
        turn: str | None = None,
    ) -> CancelAnswer: ...

    async def cancel_all(
        self, thread: str, *, batch: str | None = None, descendants: bool = False, by: str = "user"
    ) -> Sequence[CancelAnswer]: ...

    async def clear(
        self,
        thread: str,
        refs: Sequence[str] | None = None,
        *,
        batch: str | None = None,
        older_than: float = 0.0,
    ) -> int: ...

    async def purge(self, refs: Sequence[str]) -> int: ...

    async def retry(self, ref: str, thread: str | None) -> Task:
        """Always refused: resume is the way."""
        ...

    async def batch(self, id: str, thread: str | None) -> BatchCount: ...

    async def reminder(self, thread: str, *, turn: str | None = None) -> str:
        """turn: an open one, which tells the notices that it holds: they are left out."""
        ...

    # -- turns: an id is enough for who opened one; `thread` is the scope of a caller that is bound to it
    async def open_turn(self, thread: str, *, lease: float | None, limit: int) -> OpenTurn: ...

    async def boundary(self, turn: str, *, limit: int, thread: str | None = None) -> Sequence[Notice]: ...

    async def ack(
        self,
        turn: str,
        notices: Sequence[str],
        entries: Sequence[Entry],
        reads: Sequence[str] = (),
        *,
        thread: str | None = None,
    ) -> Settled:
        """Settles exactly `notices`, which the turn must still hold (LeaseLost otherwise), and those
        of `reads` that it holds; appends `entries` to our own transcript in the same transaction.
        Notices that this turn has told before count as held, even when it is closed, and even for a later
        owner of the ledger: an ack whose answer was lost can be sent again, and gets the same answer. (One
        with entries needs its turn to be open: only that says whether they were written.)
        """
        ...

    async def renew(self, turn: str, *, thread: str | None = None) -> None: ...

    async def close_turn(self, turn: str, *, failed: bool, thread: str | None = None) -> None: ...

    async def wait_wake(self, thread: str, seen: int) -> int:
        """Returns when the thread is idle with something unread, and something happened since
        `seen`; the answer is the next `seen`. Start with -1."""
        ...

    def has_empty_inbox(self, thread: str) -> bool:
        """Whether it is known, without asking anybody, that a turn would find nothing. False does not
        promise that there is something: open a turn to see."""
        ...

    async def unpark(self, thread: str, notices: Sequence[str] | None = None) -> int:
        """Puts parked notices of the thread back into its inbox: all, or these. How many."""
        ...

    async def notices(
        self, thread: str | None, states: Iterable[str], *, limit: int = 1_000, offset: int = 0
    ) -> Sequence[Notice]:
        """By thread, in the order of their endings; at most 1,000 at once."""
        ...

    async def count_notices(self, thread: str | None, states: Iterable[str]) -> int:
        """How many there are in these states."""
        ...

    async def attendance(self, thread: str) -> Attendance:
        """The newest open turn of the thread, and how many callers wait for its wake."""
        ...

    async def inbox(self, thread: str, *, before: int | None = None, limit: int = 50) -> InboxPage:
        """Every notice of the thread with what became of it, newest first, `limit` of them below the number
        `before`. For people: it settles nothing."""
        ...

    # -- a transcript of our own
    async def append(self, thread: str, entries: Sequence[Entry]) -> None: ...

    async def transcript(self, thread: str) -> Sequence[Entry]: ...

    async def has_entry(self, thread: str, notice: str) -> bool: ...

    # -- for people
    async def events(self, after: int, limit: int) -> Sequence[Event]: ...

    async def wait_events(self, after: int) -> None: ...

    async def last_event(self) -> int:
        """The newest event's sequence number; 0 where there never was one."""
        ...

    async def stats(self) -> dict[str, int]: ...

    async def threads(self, limit: int) -> Sequence[ThreadCount]:
        """Every thread that has tasks; where something happened last comes first."""
        ...

    async def thread(self, id: str) -> ThreadCount: ...

    async def statistics(self, thread: str | None) -> Statistics: ...

    async def tools(self, server: str | None) -> Sequence[ToolInfo]:
        """The tools of an MCP server that the owner knows, asked now. None is all of them, without those
        that cannot be asked."""
        ...

    async def set_limits(self, limits: Limits) -> None: ...

    def limits(self) -> Limits: ...

    def check_agent(self, name: str) -> None:
        """Raises InvalidInput for an agent that is known not to be here, without asking anybody: a connected
        process does not know its owner's."""
        ...

    def plugin_defaults(self) -> PluginDefaults: ...

    def now(self) -> float:
        """Wall time by the clock that the ledger goes by. A connected process is on the same machine."""
        ...
