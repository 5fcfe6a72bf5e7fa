"""The arguments of our own tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from meantime.toolset.arguments import Arguments
from meantime.toolset.performer import MOST_LISTED

LONGEST_WAIT = 50.0  # seconds: some hosts cut a call off after 60, whatever it says meanwhile

Id: TypeAlias = Annotated[str, Meta(description="Task id, or a unique beginning.", min_length=1)]
Seconds: TypeAlias = Annotated[float, Meta(description="Seconds until it is stopped.", gt=0)]
Batch: TypeAlias = Annotated[str, Meta(description="Name for tasks that belong together.")]
Purpose: TypeAlias = Annotated[str, Meta(description="Purpose, in a few words.")]


class Starting(Arguments, kw_only=True):
    """The arguments of everything that starts something."""

    timeout: Seconds | None = None
    description: Purpose = ""
    batch: Batch | None = None


class Start(Starting, kw_only=True):
    command: Annotated[str | list[str], Meta(description="Line for /bin/sh, or program and arguments.")]
    cwd: Annotated[str, Meta(description="Folder to run it in.")] | None = None
    stdin: Annotated[bool, Meta(description="Keep stdin open, for send.")] = False


class StartTool(Starting, kw_only=True):
    name: Annotated[str, Meta(description="Which tool.")]
    arguments: Annotated[dict[str, Any], Meta(description="Its arguments.")] = {}  # noqa: RUF012  a Struct copies it


class StartAgent(Starting, kw_only=True):
    agent: Annotated[str, Meta(description="Which agent.", min_length=1)]
    prompt: Annotated[str, Meta(description="All that it needs to know.", min_length=1)]


class Resume(Arguments):
    id: Id
    prompt: Annotated[str, Meta(description="The follow-up.", min_length=1)]


class Output(Arguments):
    id: Id
    tail: Annotated[int, Meta(description="Last lines to show.", ge=1, le=10_000)] = 100
    offset: Annotated[int, Meta(description="Read from this byte instead.", ge=0)] | None = None


class List(Arguments):
    status: Literal["active", "ended", "all"] = "active"
    batch: Annotated[str, Meta(description="Only this batch.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 20


class Wait(Arguments):
    ids: Annotated[list[str], Meta(description="Default: all that are active.", max_length=200)] | None = None
    until: Annotated[Literal["all", "any"], Meta(description="All of them, or the first.")] = "all"
    seconds: Annotated[
        float,
        Meta(description="At most so long.", ge=0, le=LONGEST_WAIT),
    ] = LONGEST_WAIT


class Cancel(Arguments):
    id: Id
    reason: Annotated[str, Meta(description="Why, for the record.", max_length=500)] = ""


class Answer(Arguments):
    id: Id
    text: Annotated[str, Meta(description="An offered answer, or a text.", min_length=1)]


class Send(Arguments):
    id: Id
    text: Annotated[str, Meta(description="Written as it is: end a line with a line break.")] = ""
    eof: Annotated[bool, Meta(description="Close stdin after it.")] = False
