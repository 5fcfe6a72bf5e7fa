"""A dialect is one vocabulary on the one kernel: data, text and policy, without a lifecycle of its own.

It holds no state, starts nothing and waits for nothing: the same values give the same words. A model's
arguments become an ask (ports/asks.py), the toolset performs it, the Answer becomes text. Errors are texts
with a stable code, never exceptions. Output of a task is cleaned (kernel.payloads.clean) before it is put
into a text. `meantime.testing.exercise_dialect` proves all this.

Agents see their own thread, in every dialect; another thread's task is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from meantime.kernel.errors import MeantimeError
from meantime.kernel.lifecycle import ENDED, Status
from meantime.kernel.limits import PluginDefaults
from meantime.kernel.model import Event, Json, Task
from meantime.kernel.notices import Message, Notice

from .asks import Answer, Ask


class Said(NamedTuple):
    """The answer of a call. `reads` are the notices of endings that it shows whole: where the policy lets
    reads settle, they need not be told again."""

    text: str
    code: str = ""  # of an error
    reads: tuple[str, ...] = ()
    data: Json = None  # the same for programs, as clean as the text: some show it to the model


class Tool(Struct, frozen=True, kw_only=True):
    """One tool for a model."""

    name: str
    description: str
    takes: type[Struct]  # its arguments, checked before `ask` sees them
    schema: dict[str, Any]  # the same as JSON schema, without references
    ask: Callable[[Any], Ask]  # may raise a MeantimeError
    say: Callable[[Any, Answer], Said]  # of the ask and its answer
    reads: bool = False  # it changes nothing
    starts: bool = False  # it can hand work off
    cancels: bool = False


class Command(Struct, frozen=True, kw_only=True):
    """One command that a person types, with a slash before it. Reading it settles nothing."""

    name: str  # words: "tasks list"
    description: str
    usage: str
    ask: Callable[[str], Ask | Said]  # of the rest of the line
    say: Callable[[Any, Answer], Said]
    aliases: tuple[str, ...] = ()


class Policy(Struct, frozen=True, kw_only=True):
    reads_settle: bool = True  # an agent's read of an ending counts as told, with the ack of its turn
    resumable: frozenset[Status] = ENDED
    cancel_waits: bool = True  # a cancel answers with the ending; else with the request
    model_cancels: bool = True  # there is a tool for it
    on_limit: str | None = None  # "queue" or "reject"; None is what the limits say
    most_active: int | None = None  # tasks of a thread, of all kinds together; a start over it is refused
    # How long ended tasks are listed. None is the thread's newest, as its retention says; "cleared" is
    # until somebody clears them.
    listed: str | None = None
    listed_seconds: float | None = None  # and not longer than this after their end
    # and at most so many for each of `most_active`, or else for each agent that may run,
    listed_per_slot: int | None = None
    listed_most: int | None = None  # or so many, where there is no such limit


class Offer(Struct, frozen=True, kw_only=True):
    """The work that can be offered, here and to this agent."""

    agents: tuple[str, ...] | None = None  # by name; empty is any name, None is no runner for agents
    purposes: dict[str, str] = {}  # what each of them is for, as far as it was said
    tools: tuple[str, ...] = ()  # registered ones, by name
    commands: bool = True
    plain_commands: bool = True  # False: by a factory of the program; no watch runs a command or reads a file
    background: bool = True  # False: nothing may be handed off (F17, F20)
    cancel: bool = True


class Problem(Struct, frozen=True, kw_only=True):
    """Why a call did not do what it was asked."""

    tool: str
    error: MeantimeError  # .code is stable; NotResumable has "not_completed", "being_resumed", …
    ask: Any = None  # None where the arguments themselves were wrong
    candidates: Sequence[Task] = ()  # of an id that fits several
    task: Task | None = None  # the one that the ask names, where the answer is no


class Standing(Struct, frozen=True, kw_only=True):
    """The state of a thread at the beginning of a turn."""

    active: Sequence[Task] = ()
    untold: Sequence[Task] = ()  # ended, and not yet told
    parked: int = 0
    now: float = 0.0


@runtime_checkable
class Configurable(Protocol):
    """A dialect whose numbers are in the configuration of who owns the ledger."""

    def configured(self, defaults: PluginDefaults) -> Dialect:
        """The same with these; one that was made with others keeps its own."""
        ...


@runtime_checkable
class Published(Protocol):
    """A dialect that also has a text for system instructions and a message bus, as seed 002 does."""

    def summary(self, tasks: Sequence[Task]) -> str:
        """How the tasks of a thread stand, newest first as given; empty where there are none."""
        ...

    def published(self, event: Event, task: Task) -> dict[str, Any] | None:
        """The message that an event puts on the bus; None for what the bus does not carry."""
        ...


class Dialect(Protocol):
    """A vocabulary: the tools, texts and policy by which one kind of agent knows Meantime. It has no state of
    its own.
    """

    name: str
    policy: Policy

    def status(self, status: Status, run: int) -> str:
        """The dialect's word for where a task stands. Every status has one.

        status: the kernel's status.
        run: the number of the run; a later one than the first was resumed.
        """
        ...

    def tools(self, offer: Offer) -> Sequence[Tool]:
        """Without background, none that `starts` (a parameter that asks for it is gone from its schema);
        without cancel, none that `cancels`."""
        ...

    def commands(self) -> Sequence[Command]:
        """The slash commands that a person can type."""
        ...

    def guidance(self, tools: Sequence[str]) -> str:
        """For the system prompt of an agent that has these tools; empty where it has none."""
        ...

    def message(self, notice: Notice) -> Message:
        """The message for the conversation: parts that people see, and parts for the model only."""
        ...

    def reminder(self, standing: Standing) -> str:
        """The status text for every turn; empty where there is nothing to say."""
        ...

    def problem(self, problem: Problem) -> Said:
        """Never without a code."""
        ...
