"""What our own tools take."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from meantime.toolset.arguments import Arguments
from meantime.toolset.performing import MOST_LISTED

LONGEST_WAIT = 50.0  # seconds: some hosts cut a call off after 60, whatever it says meanwhile

Id: TypeAlias = Annotated[str, Meta(description="A task's id, or a unique beginning of it.", min_length=1)]
Seconds: TypeAlias = Annotated[float, Meta(description="Seconds until it is stopped.", gt=0)]
Batch: TypeAlias = Annotated[str, Meta(description="A name for tasks that belong together.")]
Purpose: TypeAlias = Annotated[str, Meta(description="A few words that say what it is for.")]


class Starting(Arguments, kw_only=True):
    """What everything that starts something can be told."""

    timeout: Seconds | None = None
    description: Purpose = ""
    batch: Batch | None = None


class Start(Starting, kw_only=True):
    command: Annotated[
        str | list[str], Meta(description="A line for /bin/sh, or a program and its arguments as a list.")
    ]
    cwd: Annotated[str, Meta(description="The folder to run it in.")] | None = None
    stdin: Annotated[bool, Meta(description="Keep its stdin open, for send.")] = False


class StartTool(Starting, kw_only=True):
    name: Annotated[str, Meta(description="Which tool.")]
    arguments: Annotated[dict[str, Any], Meta(description="What to call it with.")] = {}  # noqa: RUF012  a Struct copies it


class StartAgent(Starting, kw_only=True):
    agent: Annotated[str, Meta(description="Which agent.", min_length=1)]
    prompt: Annotated[str, Meta(description="All that it needs to know.", min_length=1)]


class Resume(Arguments):
    id: Id
    prompt: Annotated[str, Meta(description="What it is told next.", min_length=1)]


class Output(Arguments):
    id: Id
    tail: Annotated[int, Meta(description="The last lines only.", ge=1, le=10_000)] = 100
    offset: (
        Annotated[int, Meta(description="Read on from this byte, in place of the last lines.", ge=0)] | None
    ) = None


class List(Arguments):
    status: Annotated[
        Literal["active", "ended", "all"], Meta(description="Which of this conversation's tasks.")
    ] = "active"
    batch: Annotated[str, Meta(description="Only those of this batch.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 20


class Wait(Arguments):
    ids: (
        Annotated[
            list[str], Meta(description="Which tasks; all that are active, if none is named.", max_length=200)
        ]
        | None
    ) = None
    until: Annotated[Literal["all", "any"], Meta(description="All of them, or the first.")] = "all"
    seconds: Annotated[
        float,
        Meta(description="At most this long; then it says how far they are.", ge=0, le=LONGEST_WAIT),
    ] = LONGEST_WAIT


class Cancel(Arguments):
    id: Id
    reason: Annotated[str, Meta(description="Why; it is kept with the task.", max_length=500)] = ""


class Answer(Arguments):
    id: Id
    text: Annotated[str, Meta(description="One of the offered answers, or a text.", min_length=1)]


class Send(Arguments):
    id: Id
    text: Annotated[str, Meta(description="It is written as it is: end a line with a line break.")] = ""
    eof: Annotated[bool, Meta(description="Close its stdin after that.")] = False
