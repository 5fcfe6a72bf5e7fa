"""One verb of ports/tasks.py as a value. A dialect makes an ask of a model's arguments, the toolset performs
it, and the dialect puts the Answer into words. So a dialect can be read and tested without a runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from meantime.kernel.change import Disposition
from meantime.kernel.lifecycle import ACTIVE, Status
from meantime.kernel.limits import Limits
from meantime.kernel.model import Chunk, Ending, Json, Output, Task
from meantime.kernel.schedules import Schedule


class Ask(Struct, frozen=True, kw_only=True):
    """Any of the below."""


class Starting(Ask, frozen=True, kw_only=True):
    """Work that is to be started, with what all kinds of it can be told."""

    description: str = ""
    timeout: float | None = None
    delay: float | None = None  # seconds until it starts
    batch: str | None = None
    background: bool = True  # False: its result is waited for,
    threshold: float | None = None  # and after so many seconds the same run goes on as a task; None never
    meta: dict[str, Json] = {}


class StartAgent(Starting, frozen=True, kw_only=True):
    agent: str
    prompt: str
    fork: bool = False
    input: dict[str, Json] = {}  # what else its runner is told


class StartCommand(Starting, frozen=True, kw_only=True):
    command: str | list[str]
    cwd: str | None = None
    stdin: bool = False


class StartWatch(Starting, frozen=True, kw_only=True):
    """Only our own dialect makes one: the others have no words for what it tells."""

    watch: dict[str, Any]  # the arguments of Watch


class StartTool(Starting, frozen=True, kw_only=True):
    name: str
    arguments: dict[str, Any] = {}


class Resume(Ask, frozen=True, kw_only=True):
    """A new run of an ended task. The policy decides which tasks may be resumed."""

    ref: str
    prompt: str
    timeout: float | None = None


class Send(Ask, frozen=True, kw_only=True):
    """To the stdin of a running command, or to a running agent."""

    ref: str
    text: str = ""
    eof: bool = False


class Respond(Ask, frozen=True, kw_only=True):
    """To a task that waits for an answer. A permission is not an agent's to give."""

    ref: str
    text: str


class Read(Ask, frozen=True, kw_only=True):
    """One task, and what it has said: `wait` gives it so many seconds to end first."""

    ref: str
    wait: float = 0.0
    tail: int | None = None  # of a command: the last lines,
    offset: int | None = None  # or from this byte on; neither is what its ending carries
    told: bool = False  # also ask whether the conversation was told of its ending


class SetReminder(Ask, frozen=True, kw_only=True):
    """Tells the thread a text later: after so many seconds, or at a time. One of the two is given."""

    text: str
    delay: float | None = None
    at: float | None = None


class CancelSchedule(Ask, frozen=True, kw_only=True):
    id: str


class List(Ask, frozen=True, kw_only=True):
    """Newest first. How long ended tasks are listed, the policy says."""

    statuses: frozenset[Status] = ACTIVE
    batch: str | None = None
    limit: int = 200
    meta: dict[str, Json] = {}  # only tasks that were started with these
    schedules: bool = False  # also the reminders that are still to come


class Wait(Ask, frozen=True, kw_only=True):
    refs: Sequence[str] = ()  # none is all that are active
    until: str = "all"
    seconds: float = 0.0


class Cancel(Ask, frozen=True, kw_only=True):
    """Whether the answer is the ending or only the request, the policy says."""

    ref: str
    reason: str = ""


class CancelAll(Ask, frozen=True, kw_only=True):
    batch: str | None = None


class Clear(Ask, frozen=True, kw_only=True):
    """Hides ended tasks from lists; no refs is all of them."""

    refs: Sequence[str] = ()
    batch: str | None = None


class Tools(Ask, frozen=True, kw_only=True):
    """The work that can be started by name."""


class SetLimit(Ask, frozen=True, kw_only=True):
    """How many tasks of one kind a thread may have running; -1 is no limit. For people."""

    kind: str
    most: int


class Answer(Struct, frozen=True, kw_only=True):
    """The result of an ask; parts that it does not have are empty."""

    now: float
    tasks: Sequence[Task] = ()  # those that it is about, as they are now
    output: Output | None = None  # Read
    chunk: Chunk | None = None  # Read, of a command with tail or offset
    told: bool = False  # Read with `told`: a turn has acknowledged the notice of the ending
    inline: bool = False  # Starting: it ended before its threshold. There is no task, only
    result: Json = None
    ending: Ending | None = None  # and what came with it
    dispositions: Sequence[Disposition] = ()  # Cancel, CancelAll: one for each task
    schedules: Sequence[Schedule] = ()  # SetReminder, CancelSchedule, List with `schedules`
    sent: str = ""  # Send: "written", "steered" or "queued"
    count: int = 0  # Clear: how many were hidden
    names: Sequence[str] = ()  # Tools
    agents: Sequence[str] = ()
    limits: Limits | None = None  # SetLimit: as they are now

    @property
    def task(self) -> Task:
        """The one task of an ask that names or starts one."""
        return self.tasks[0]
