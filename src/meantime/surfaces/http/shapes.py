"""The shapes of seed 001, field by field."""

from __future__ import annotations

from msgspec import Struct

from meantime.kernel.model import Json


class WireProgress(Struct, frozen=True, rename="camel"):
    tool_calls: int
    tool_calls_by_name: dict[str, int]
    last_tools: tuple[str, ...]
    last_update: str | None
    percent: float | None
    phase: str
    message: str
    turns: int = 0  # of an agent
    tokens: int = 0
    cost: float = 0.0


class WireChoice(Struct, frozen=True):
    id: str
    label: str
    allows: bool | None
    scope: str


class WireQuestion(Struct, frozen=True, rename="camel"):
    """What a task waits for; POST …/answer gives it."""

    id: str
    kind: str  # permission or question
    text: str
    choices: tuple[WireChoice, ...]
    several: bool
    subject: str
    arguments: Json
    asked_at: str | None


class WireTask(
    Struct,
    frozen=True,
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
    },
):
    """Seed 001's fields first; from `id` on they are ours."""

    session_id: str
    parent_session_id: str
    parent_message_id: str | None
    description: str
    prompt: str
    agent: str
    status: str
    batch_id: str | None
    resume_count: int
    is_forked: bool
    started_at: str | None
    completed_at: str | None
    retrieved_at: str | None
    progress: WireProgress | None
    result: str | None
    error: str | None
    id: str
    kind: str
    state: str  # the kernel's own word for the status
    parent_task_id: str | None
    tool_call_id: str | None
    created_at: str | None
    updated_at: str | None
    duration: int | None  # milliseconds of the ended run
    result_truncated: bool
    output_file: str | None  # the whole, where the result, the output or the error is cut
    error_detail: str | None
    exit_code: int | None
    restartable: bool  # what it needs to be started is stored
    question: WireQuestion | None = None
    follow_up: str | None = None  # said to an agent while it ran: its next run
