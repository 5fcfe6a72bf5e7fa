"""Query strings and bodies of the routes about tasks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from meantime.conversation.log import Stream
from meantime.kernel.lines import Kind
from meantime.kernel.search_query import EXAMPLE, LONGEST
from meantime.kernel.watches import LEAST_EVERY, MOST_CONTEXT, MOST_EXPRESSION
from meantime.ports.store import Sort
from meantime.ports.tasks import MAX_DESCRIPTION

from .schemas import (
    Body,
    Id,
    Most,
    OnLimit,
    Params,
    StatusText,
    StatusWord,
    described,
    documented,
    one_of,
    refused,
)

MOST_OFFSET = 1_000_000_000
DEFAULT_PAGE, MOST_PAGE = 50, 200  # tasks
MOST_COUNTED = 10_000  # tasks of a page of rows; beyond, `total` is at least this
DEFAULT_WAIT, LONGEST_WAIT = 60.0, 600.0  # seconds
MOST_WAITED = 1_000  # tasks of one wait
PIECE = 1 << 20  # bytes of a command's output that are read at once
MOST_HISTORY = 8_000_000  # bytes of a command's output in one history; its last message says where to read on
_PARENT = (
    "The task for which this is asked: its depth and its budget count. An unknown one is nobody's parent. "
    "With the token of a thread, it is a task of that thread, or the agent whose thread it is; another's is "
    "404."
)


# -- query strings


class TaskFilter(Params, frozen=True):
    status: Annotated[
        tuple[StatusWord, ...], described("One of seed 001's words, or several with commas.")
    ] = ()
    agent: Annotated[str | None, described("The agent's name, or the kind of work.")] = None
    search: Annotated[
        Annotated[str, Meta(max_length=1_000)] | None, described("A part of the description, in any case.")
    ] = None
    thread: Annotated[str | None, described("Beyond the seed: of one thread.")] = None
    batch: Annotated[str | None, described("Beyond the seed: of one batch.")] = None
    sort: Annotated[Sort, described("Beyond the seed.")] = Sort.NEWEST
    cleared: Annotated[bool, described("Beyond the seed: with cleared tasks.")] = False
    limit: Annotated[
        int, described(f"At most {MOST_PAGE}; more is taken as {MOST_PAGE}.", ge=1, le=MOST_OFFSET)
    ] = DEFAULT_PAGE
    offset: Annotated[int, Meta(ge=0, le=MOST_OFFSET)] = 0
    format: Annotated[
        Literal["tasks", "rows"], described("Beyond the seed: rows is what a list shows, newest first.")
    ] = "tasks"
    q: Annotated[
        Annotated[str, Meta(max_length=LONGEST)] | None,
        described(f"Beyond the seed: a search, such as `{EXAMPLE}`."),
    ] = None
    cursor: Annotated[
        Annotated[str, Meta(max_length=40)] | None,
        described("Beyond the seed, with format=rows: the `cursor` of the page before."),
    ] = None


class SearchText(Params, frozen=True):
    q: Annotated[
        Annotated[str, Meta(max_length=LONGEST)] | None, described("A search, as far as it is written.")
    ] = None


class HistoryRange(Params, frozen=True):
    stream: Annotated[Stream, described("For a command.")] = "both"
    offset: Annotated[
        int,
        described(
            "Bytes of a command's output to skip, or lines of an agent's conversation.", ge=0, le=MOST_OFFSET
        ),
    ] = 0
    limit: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_HISTORY)] | None,
        described(
            f"Bytes of a command's output ({MOST_HISTORY} if absent), or lines of an agent's conversation "
            "(10000 if absent)."
        ),
    ] = None
    role: Annotated[
        Literal["user", "assistant", "tool", "system"] | None,
        described("Only these lines of an agent's conversation."),
    ] = None
    type: Annotated[Kind | None, described("Only these lines of an agent's conversation.")] = None


class OutputRange(Params, frozen=True):
    stream: Stream = "both"
    offset: Annotated[int, described("Bytes.", ge=0, le=1 << 53)] = 0  # as far as JSON can count everywhere
    limit: Annotated[int, described("Bytes.", ge=1, le=PIECE)] = 65_536
    tail: Annotated[Annotated[int, Meta(ge=1, le=100_000)] | None, described("The last lines.")] = None
    encoding: Literal["text", "base64"] = "text"
    follow: Annotated[
        bool, described("Until the task has ended; broken off if the server closes before.")
    ] = False
    format: Annotated[
        Literal["raw", "chunks"],
        described("With follow: chunks is one Output a line, with dataBase64, and tells of lost bytes."),
    ] = "raw"


class WaitTime(Params, frozen=True):
    timeout: Annotated[float, described("Seconds.", ge=0, le=LONGEST_WAIT)] = DEFAULT_WAIT


class ThreadFilter(Params, frozen=True):
    thread: str | None = None


# -- bodies


class WatchBody(Body):
    """A watch looks at one thing, which is one of log to batch."""

    log: Annotated[Id | None, described("A task: each line of its output that `match` fits is told.")] = None
    file: Annotated[str | None, described("The absolute path of a file or a folder.")] = None
    port: Annotated[int | str | None, described('A port of this machine, or "host:port".')] = None
    url: Annotated[str | None, described("An http or https address.")] = None
    command: Annotated[str | list[str] | None, described("Run again and again; a text goes to /bin/sh.")] = (
        None
    )
    pid: Annotated[int | None, described("A process that is not a task.")] = None
    task: Annotated[Id | None, described("Another task: its status.")] = None
    thread: Annotated[Id | None, described("A thread: how many of its tasks are active.")] = None
    batch: Annotated[Id | None, described("A batch: how many of its tasks have ended.")] = None
    match: Annotated[str, documented("An expression of RE2: what is told.", maxLength=MOST_EXPRESSION)] = ""
    context: Annotated[int, documented("Lines to tell around a match.", minimum=0, maximum=MOST_CONTEXT)] = 0
    stream: Annotated[str, one_of("both", "stdout", "stderr")] = "both"
    new: Annotated[bool, described("Search only what comes from now on, of a log or a file.")] = False
    value: Annotated[str | None, described('A value of the JSON of an address, as "jobs.0.state".')] = None
    cwd: Annotated[str | None, described("Where the command runs.")] = None
    once: Annotated[bool, described("The first match ends the watch.")] = False
    every: Annotated[
        float | None, documented("Seconds: how often to look, and to tell, at most.", minimum=LEAST_EVERY)
    ] = None
    until: Annotated[
        str, documented("An expression; what it fits ends the watch.", maxLength=MOST_EXPRESSION)
    ] = ""
    deadline: Annotated[float | None, documented("Seconds after which it ends.", minimum=0)] = None


class StartBody(Body):
    """Exactly one of command, tool, agent and watch; cwd to merge belong to command, arguments to tool,
    prompt, cwd, fork and forkOf to agent."""

    thread: Annotated[Id | None, described('"default" if absent; a thread\'s token means its own.')] = None
    command: Annotated[
        Annotated[str, documented(minLength=1)] | Annotated[list[str], documented(minItems=1)] | None,
        described("A text goes to /bin/sh; a list is started as it is."),
    ] = None
    cwd: str | None = None
    env: Annotated[
        dict[str, str | None] | None, described("Added to `environment`, or to the owner's own.")
    ] = None
    environment: Annotated[
        dict[str, str] | None,
        described("The command's environment, in place of the owner's own. It is not stored."),
    ] = None
    stdin: str | None = None
    open_stdin: bool | None = None
    pty: bool | None = None
    merge: bool | None = None
    tool: Annotated[str | None, described("A registered function; /v1/info lists them.")] = None
    arguments: dict[str, Any] | None = None
    agent: str | None = None
    watch: Annotated[WatchBody | None, described("A watch, which tells the thread what it finds.")] = None
    prompt: str | None = None
    fork: Annotated[
        bool | None,
        described("The agent continues from the thread's conversation, as our transcript has it."),
    ] = None
    fork_of: Annotated[Id | None, described("The agent continues from this task's conversation.")] = None
    parent: Annotated[Id | None, described(_PARENT)] = None
    timeout: Annotated[float | None, described("Seconds; -1 is none.")] = None
    description: Annotated[str, documented(maxLength=MAX_DESCRIPTION)] = ""
    batch: Id | None = None
    tool_call_id: Annotated[
        Id | None,
        described("A second start of the same call of a thread is refused, and names the first."),
    ] = msgspec.field(default=None, name="toolCallID")
    message_id: Id | None = None
    id: Id | None = None
    notify: bool = True
    retry: Annotated[str, one_of("", "idempotent")] = ""
    on_limit: OnLimit | None = None
    meta: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    place: Annotated[
        str | None, described('"pool:NAME" runs it at a worker of that pool, "here" at the owner.')
    ] = None
    delay: Annotated[
        float | str | None,
        described('Starts it later: seconds, or a text such as "20m". Needs no environment, env or stdin.'),
    ] = None
    at: Annotated[
        float | str | None, described("The same, at a time: ISO 8601 with its offset, or seconds since 1970.")
    ] = None
    older_tool_call_id: Annotated[
        Id | None, documented("The older spelling of toolCallID.", deprecated=True)
    ] = msgspec.field(default=None, name="toolCallId")


class ResumeBody(Body):
    prompt: str
    timeout: Annotated[float | None, described("Seconds; -1 is none.")] = None


class ForkBody(Body):
    prompt: Annotated[str, documented(minLength=1)]
    parent: Annotated[Id | None, described(_PARENT)] = None
    timeout: Annotated[float | None, described("Seconds; -1 is none.")] = None
    description: Annotated[str, documented(maxLength=MAX_DESCRIPTION)] = ""


class PromoteBody(Body):
    pass


class CancelBody(Body):
    reason: str = ""
    wait: Annotated[bool, described("Answer with the ending, or after 60 seconds.")] = False


class CancelAllBody(Body):
    thread: Id | None = None
    batch: Id | None = None
    descendants: bool = False


class SendBody(Body):
    """Either data or dataBase64."""

    data: str | None = None
    data_base64: str | None = None
    eof: bool = False


class NotifyBody(Body):
    text: Annotated[str, documented("The text to tell its conversation.", minLength=1, maxLength=100_000)]


class AnswerBody(Body):
    answer: Annotated[str, documented("One of the choices by id, label or number, or a text.", minLength=1)]
    scope: Annotated[
        Annotated[str, one_of("once", "task")] | None,
        described("How far the answer reaches; as the chosen answer says, if absent."),
    ] = None
    question: Annotated[
        str | None, described("The id of the question that was seen: no later one is answered by mistake.")
    ] = None


class ClearBody(Body):
    thread: Id | None = None
    ids: list[str] | None = None
    batch: Id | None = None
    older_than: Annotated[float, documented("Seconds since they ended.", minimum=0)] = 0.0


class PurgeBody(Body):
    """Either ids or endedBefore."""

    ids: list[str] | None = None
    ended_before: Annotated[Annotated[float, documented(minimum=0)] | None, described("Seconds ago.")] = None
    statuses: list[StatusText] | None = None


class WaitBody(Body):
    """The named tasks, a batch, or what is active in a thread."""

    ids: (
        Annotated[
            list[str],
            refused(
                f"ids: name at most {MOST_WAITED} tasks, and no batch with them.", max_length=MOST_WAITED
            ),
        ]
        | None
    ) = None
    batch: Id | None = None
    thread: Id | None = None
    until: Literal["all", "any"] = "all"
    timeout: Annotated[
        float,
        refused(f"timeout: a wait takes from 0 to {LONGEST_WAIT:g} seconds.", ge=0, le=LONGEST_WAIT),
    ] = DEFAULT_WAIT


class LimitsBody(Body):
    """-1 is no limit; an absent field stays as it is."""

    per_thread: Most | None = None
    total: Most | None = None
    per_kind: dict[str, Most] | None = None
    on_limit: OnLimit | None = None
