"""A session is a working agent's own conversation. A session host holds sessions and lets an agent take
turns in them: a loop in this process, an ACP agent, an OpenCode server, a command-line agent.

`runners/agent` drives every host the same way (budgets, questions, follow-ups, retries, the journal), so a
host only says what happens. `meantime.testing.exercise_session_host` proves one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from meantime.kernel.lines import Line
from meantime.kernel.model import Failed
from meantime.kernel.payloads import Jsonable
from meantime.kernel.questions import Question, Reply

from .agent_settings import AgentSettings as AgentSettings  # users import it from here


class SessionAbilities(Struct, frozen=True):
    """A host's abilities beyond a first turn; a missing ability is refused clearly, or provided by us."""

    fork: bool = False  # it copies a session, busy ones too
    steer: bool = False  # something can be said in the middle of a turn
    lasting: bool = False  # a turn continues when we are gone: it is a LastingHost
    resume: bool = True  # a session can be gone on with, also after a restart
    history: bool = False  # it gives the real lines of any of its sessions, also those that we did not start
    paced: bool = False  # it passes the gate by itself, at every request to the model
    keeps: bool = False  # its sessions are kept by it alone, and can be removed: it is a KeepingHost


class Brief(Struct, frozen=True):
    """The purpose of a session."""

    task: str
    agent: str  # the configured name
    settings: AgentSettings
    cwd: str
    title: str
    thread: str
    folder: Path  # the task's own, for what the host keeps
    env: dict[str, str] = {}  # for a child process: says whose task it is
    forked_from: str = ""  # the task whose conversation this one goes on from; an agent that keeps a session
    # of its own by task copies that one


class Prompt(Struct, frozen=True):
    """One thing to say to the agent."""

    text: str
    key: str  # the same for the same prompt, also after a crash: a host that can be idempotent uses it
    last: bool = False  # the agent is to hand in what it has: no tools, where that can be arranged
    again: int = 0  # how often it was tried before: then the session may hold it already
    reply: Reply | None = None  # the text brings this answer to a question from before a restart


class Turned(Struct, frozen=True):
    """How a turn ended. One of text, error, stopped and lost says it."""

    text: str = ""  # the last thing the agent said
    result: Jsonable | None = None  # where it is more than that text
    error: Failed | None = None
    retryable: bool = False  # of an error: the provider's, and worth another try (429, 5xx, reset)
    retry_after: float | None = None  # seconds, where the provider named them
    rate_limited: bool = False  # a 429 or the like: too many at once
    stopped: bool = False  # because it was asked to
    lost: str = ""  # the agent is gone; how far it got is not known


class Gate(Protocol):
    """How many requests may go to one model at once: it learns from refusals."""

    async def enter(self) -> None: ...

    def leave(self, *, limited: bool = False, retry_after: float | None = None) -> None:
        """`limited`: the provider said that it is too much."""
        ...


class Hearer(Protocol):
    """A host's reports during a turn. All but `ask` are quick and never raise."""

    @property
    def gate(self) -> Gate: ...

    def said(self, text: str) -> None:
        """A piece of what the agent is saying, as it comes."""
        ...

    def line(self, line: Line) -> None:
        """A whole line: it is kept at once. Calls and results are counted from these. In a turn that is
        adopted, one whose id was kept before is neither kept nor counted twice: so a host whose lines have
        ids may tell the turn from its beginning."""
        ...

    def has(self, id: str) -> bool:
        """Whether a line of this id was kept before a restart."""
        ...

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        """More of it, since the last time."""
        ...

    def phase(self, text: str) -> None:
        """Its activity now, in a word or two: "thinking", "waits for the provider"."""
        ...

    def alive(self) -> None:
        """Something came that is not worth a line: it is not silent."""
        ...

    async def ask(self, question: Question) -> Reply:
        """Asks by rule, then a person. Always answered: `reply.by == "nobody"` is that it was not in time."""
        ...


class SessionHost(Protocol):
    abilities: SessionAbilities

    def check(self, name: str, settings: AgentSettings) -> None:
        """Raises InvalidInput for an agent that can never run: a missing program, extra or option."""
        ...

    def open(self, folder: Path) -> None:
        """`folder` is the host's own, and lasts as long as the ledger. Nothing is started yet. It is named by
        the host's attribute `folder_name`, or by its class if there is none."""
        ...

    async def begin(self, brief: Brief) -> str:
        """A new session's id. It may be lazy: the first prompt makes it really be there."""
        ...

    async def fork(self, session: str, brief: Brief) -> str:
        """A copy, with all that was said; only where `abilities.fork`. Raises Refused if it cannot."""
        ...

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        """One turn, to its end. Cancellation is the request to stop: the host stops the agent (asks, waits
        a little, forces it) and then returns `stopped` or lets CancelledError pass. Only one at a time per
        session is ever asked for."""
        ...

    async def steer(self, session: str, text: str) -> bool:
        """Says it in the running turn; only where `abilities.steer`. False: there is none any more."""
        ...

    async def exists(self, session: str, settings: AgentSettings) -> bool: ...

    async def lines(self, session: str, settings: AgentSettings) -> Sequence[Line]:
        """All that was said; only where `abilities.history`."""
        ...

    async def close(self) -> None: ...


class LastingHost(SessionHost, Protocol):
    async def follow(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        """Continues a turn that a former owner began, or that has just begun: nothing is repeated. A prompt
        that was never given is given now.
        """
        ...

    async def leave(self, session: str) -> bool:
        """We go; the turn continues. False if it cannot: then it is stopped. The prompt's or follow's
        coroutine is cancelled after it, and must leave the agent alone."""
        ...


class KeepingHost(SessionHost, Protocol):
    def forget(self, session: str) -> None:
        """No task works in it any more: nothing is kept of it. It may be gone already."""
        ...

    def old_sessions(self, seconds: float) -> Sequence[str]:
        """Sessions that have not changed for so long."""
        ...
