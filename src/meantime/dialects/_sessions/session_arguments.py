"""The arguments of the tools."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from meantime.toolset.arguments import Arguments
from meantime.toolset.performer import LONGEST

TaskId: TypeAlias = Annotated[str, Meta(description="ID of the task.", min_length=1)]
BatchId: TypeAlias = Annotated[str, Meta(description="All tasks of this batch.", min_length=1)]


class Task(Arguments):
    prompt: Annotated[
        str,
        Meta(description="What the agent is to do; with resume, the follow-up message.", min_length=1),
    ]
    description: Annotated[str, Meta(description="Short description of the task.", min_length=1)] | None = (
        None
    )
    agent: Annotated[str, Meta(description="Which agent does it.", min_length=1)] | None = None
    resume: (
        Annotated[
            str, Meta(description="ID of a completed task to go on with, in its session.", min_length=1)
        ]
        | None
    ) = None


class ForkingTask(Task):
    fork: Annotated[
        bool,
        Meta(description="Start with the context of this conversation. Not together with resume."),
    ] = False


class Output(Arguments):
    task_id: TaskId
    block: Annotated[bool, Meta(description="Wait until the task has ended. Default: false.")] = False
    timeout: Annotated[float, Meta(description="Seconds to wait at most, with block.", gt=0, le=LONGEST)] = (
        LONGEST
    )


class List(Arguments):
    batch_id: BatchId | None = None


class Cancel(Arguments):
    task_id: TaskId | None = None
    batch_id: BatchId | None = None


class Clear(Arguments):
    task_id: TaskId | None = None
    batch_id: BatchId | None = None
