"""Answers about tasks. `Task` has seed 001's fields, field by field."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from meantime.kernel.change import Disposition
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Json

from .schemas import Answer, Count, Positive, StatusText, Time, described, one_of

CONVERSATION = ("text", "thought", "call", "summary")  # types of a line; "result" is one, too


class WireProgress(Answer):
    tool_calls: Count
    tool_calls_by_name: dict[str, Count]
    last_tools: tuple[str, ...]
    last_update: Time
    percent: float | None
    phase: str
    message: str
    turns: Annotated[Count, described("An agent's requests to its model.")]
    tokens: Count
    cost: Annotated[float, Meta(ge=0)]


class WireChoice(Answer):
    id: str
    label: str
    allows: bool | None
    scope: Annotated[str, one_of("once", "task")]


class WireQuestion(Answer):
    """The question of a waiting task; `POST /v1/tasks/{id}/answer` answers it."""

    id: str
    kind: Annotated[str, one_of("permission", "question")]
    text: str
    choices: tuple[WireChoice, ...]
    several: bool
    subject: str
    arguments: Json
    asked_at: Time
    deadline_at: Annotated[Time, described("When it counts as refused if nobody has answered.")]


class WireTask(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={
        "session_id": "sessionID",
        "parent_session_id": "parentSessionID",
        "parent_message_id": "parentMessageID",
        "parent_task_id": "parentTaskID",
        "tool_call_id": "toolCallID",
        "batch_id": "batchId",
        "resume_count": "resumeCount",
        "is_forked": "isForked",
        "created_at": "createdAt",
        "started_at": "startedAt",
        "completed_at": "completedAt",
        "updated_at": "updatedAt",
        "retrieved_at": "retrievedAt",
        "result_truncated": "resultTruncated",
        "output_file": "outputFile",
        "error_detail": "errorDetail",
        "exit_code": "exitCode",
        "follow_up": "followUp",
        "not_before": "notBefore",
    },
):
    """A task. Seed 001's fields come first; from `id` on they are ours."""

    session_id: Annotated[
        str, described("Never changes: the session that it was launched in, otherwise the task's own id.")
    ]
    parent_session_id: Annotated[str, described("The thread that asked.")]
    parent_message_id: str | None
    description: str
    prompt: str
    agent: Annotated[str, described("The agent's name, otherwise the kind of work.")]
    status: StatusText
    batch_id: str | None
    resume_count: Count
    is_forked: bool
    started_at: Time
    completed_at: Time
    retrieved_at: Time
    progress: WireProgress | None
    result: Annotated[str | None, described("In lists and events long results are cut to their two ends.")]
    error: str | None
    id: str
    kind: str
    state: Annotated[Status, described("Our own word for the status.")]
    parent_task_id: str | None
    tool_call_id: str | None
    created_at: Time
    updated_at: Time
    duration: Annotated[Count | None, described("Milliseconds of the ended run.")]
    result_truncated: bool
    output_file: Annotated[
        str | None,
        described("Path of the file with the whole text, if the result, output or error is over its limit."),
    ]
    error_detail: str | None
    exit_code: Annotated[int | None, described("For a command that ended by itself; 0 if it completed.")]
    restartable: Annotated[
        bool,
        described("A queued task can be started by the next owner of the ledger: all it needs is stored."),
    ]
    question: WireQuestion | None
    follow_up: Annotated[str | None, described("Said to an agent while it ran: its next run.")]
    worker: Annotated[str | None, described("The worker that performs the run, on another machine.")]
    not_before: Annotated[Time, described("When a delayed start is due, by the wall clock.")]
    place: Annotated[str | None, described("The pool of workers that it is for, as pool:NAME.")]


class Error(Answer):
    """A refusal: `error` for people, a stable `code`, and a `hint` that says what to do."""

    error: str
    code: str
    hint: str
    candidates: Annotated[tuple[str, ...] | UnsetType, described("Tasks that an ambiguous prefix fits.")] = (
        UNSET
    )
    existing: Annotated[str | UnsetType, described("The task that a duplicate start names.")] = UNSET
    running: Count | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    notices: Annotated[tuple[str, ...] | UnsetType, described("Notices that a lost lease held.")] = UNSET
    task: Annotated[WireTask | UnsetType, described("The task whose result is not there.")] = UNSET
    by: Annotated[str | UnsetType, described("The one who answered first.")] = UNSET
    at: Annotated[Time | UnsetType, described("When that was.")] = UNSET
    answer: Annotated[str | UnsetType, described("The answer that was first.")] = UNSET
    count: Annotated[Count | UnsetType, described("How many tasks match now.")] = UNSET


class TaskPage(Answer):
    tasks: Annotated[list[WireTask], Meta(max_length=200)]
    total: Annotated[Count, described("Counted before paging.")]
    limit: Annotated[int, Meta(ge=1, le=200)]
    offset: Count


class TaskGroup(Answer):
    batch_id: str
    completed: Count
    running: Annotated[Count, described("A resumed task counts as running.")]
    error: Count
    cancelled: Count
    total: Positive
    completion_rate: Annotated[float, Meta(ge=0, le=1)]
    total_tool_calls: Count
    duration: Annotated[Count, described("Milliseconds from the first start to the last ending, or to now.")]
    tasks: list[WireTask]


class LogMessage(Answer):
    """One message of a task's history. The fields after `text` depend on its type."""

    role: Annotated[str, one_of("user", "assistant", "tool", "system")]
    type: Annotated[
        str,
        one_of("prompt", "progress", "emitted", "output", "result", "error", *CONVERSATION),
    ]
    run: Positive
    at: Time
    text: str
    stream: Annotated[str | UnsetType, described("For output.")] = UNSET
    offset: Count | UnsetType = UNSET
    next: Annotated[Count | UnsetType, described("Where to read on.")] = UNSET
    total: Count | UnsetType = UNSET
    lost_bytes: Count | UnsetType = UNSET
    name: Annotated[
        str | UnsetType, described("The name of a tool, of the work, or of an emitted value.")
    ] = UNSET
    call: Annotated[str | UnsetType, described("The id of a tool call.")] = UNSET
    arguments: Annotated[Json | UnsetType, described("For a tool call.")] = UNSET
    failed: bool | UnsetType = UNSET
    value: Annotated[Json | UnsetType, described("For an emitted value.")] = UNSET
    percent: Annotated[float | UnsetType | None, described("For progress.")] = UNSET
    phase: str | UnsetType = UNSET
    tool_calls: dict[str, Count] | UnsetType = UNSET
    last_tools: tuple[str, ...] | UnsetType = UNSET
    detail: Annotated[str | UnsetType, described("For an error.")] = UNSET


class Result(Answer):
    result: Any


class Runs(Answer):
    runs: list[WireTask]


class InlineCalls(Answer):
    tasks: list[WireTask]


class WaitedTasks(Answer):
    tasks: list[WireTask]
    done: bool


class Output(Answer):
    offset: Count
    next: Annotated[Count, described("Where to read on.")]
    total: Count
    lost_bytes: Annotated[Count, described("Bytes before offset that were asked for and are not kept.")]
    ended: Annotated[bool, described("The task has ended, and this is the end of its output.")]
    data: Annotated[str | UnsetType, described("With encoding=text.")] = UNSET
    data_base64: Annotated[str | UnsetType, described("With encoding=base64.")] = UNSET


class Cancelled(Answer):
    task: WireTask
    disposition: Disposition
    killed: Count


class CancelledTasks(Answer):
    answers: list[Cancelled]


class Notified(Answer):
    notified: Annotated[
        str,
        one_of("sent", "waiting"),
        described(
            '"sent" in a notice, alone or with those before it; "waiting" for the next one: too many came.'
        ),
    ]


class Sent(Answer):
    sent: Annotated[
        str,
        one_of("written", "steered", "queued"),
        described('"written" to a command, "steered" into an agent\'s turn, or "queued" as its next run.'),
    ]


class Cleared(Answer):
    cleared: Count


class Purged(Answer):
    purged: Count


class WireBatch(Answer):
    """A batch: n of m."""

    id: str
    ended: Count
    total: Count
    failed: Count
    active: Count
