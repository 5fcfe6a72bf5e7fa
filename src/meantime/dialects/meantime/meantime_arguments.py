"""The arguments of our own tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from meantime.kernel.watches import LEAST_EVERY, MOST_CONTEXT
from meantime.toolset.arguments import Arguments
from meantime.toolset.performer import MOST_LISTED

LONGEST_WAIT = 50.0  # seconds: some hosts cut a call off after 60, whatever it says meanwhile

Id: TypeAlias = Annotated[str, Meta(description="Task id, or a unique beginning.", min_length=1)]
AnyId: TypeAlias = Annotated[str, Meta(description="Task id, or that of a reminder.", min_length=1)]
Seconds: TypeAlias = Annotated[float, Meta(description="Seconds until it is stopped.", gt=0)]
Batch: TypeAlias = Annotated[str, Meta(description="Name for tasks that belong together.")]
Purpose: TypeAlias = Annotated[str, Meta(description="Purpose, in a few words.")]


class Starting(Arguments, kw_only=True):
    """The arguments of everything that starts something."""

    timeout: Seconds | None = None
    delay: Annotated[float, Meta(description="Seconds until it starts.", ge=0)] | None = None
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


WATCHED = ("id", "file", "port", "url", "command")  # one of which a watch has


class Watch(Arguments, kw_only=True):
    id: Annotated[str, Meta(description="Task whose output is watched, or a unique beginning.")] | None = None
    file: Annotated[str, Meta(description="Absolute path of a file or folder.")] | None = None
    port: Annotated[int, Meta(description="Port of this machine.")] | None = None
    url: Annotated[str, Meta(description="http(s) address: its status.")] | None = None
    command: Annotated[str, Meta(description="Line for /bin/sh, run again and again.")] | None = None
    cwd: Annotated[str, Meta(description="Folder for command.")] | None = None
    match: Annotated[str, Meta(description="RE2 expression: what is told.")] = ""
    context: Annotated[int, Meta(description="Lines around a match.", ge=0, le=MOST_CONTEXT)] = 0
    once: Annotated[bool, Meta(description="End with the first match.")] = False
    until: Annotated[str, Meta(description="Expression that ends it.")] = ""
    every: Annotated[float, Meta(description="Seconds between looks.", ge=LEAST_EVERY)] | None = None
    deadline: Annotated[float, Meta(description="Seconds after which it ends.", ge=0)] | None = None
    description: Purpose = ""


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


class Remind(Arguments):
    text: Annotated[str, Meta(description="What you want to be told.", min_length=1, max_length=4_000)]
    delay: Annotated[float, Meta(description="Seconds from now.", ge=0)] | None = None
    at: Annotated[str, Meta(description="Or ISO 8601 time with its offset.")] | None = None


class Wait(Arguments):
    ids: Annotated[list[str], Meta(description="Default: all that are active.", max_length=200)] | None = None
    until: Annotated[Literal["all", "any"], Meta(description="All of them, or the first.")] = "all"
    seconds: Annotated[
        float,
        Meta(description="At most so long.", ge=0, le=LONGEST_WAIT),
    ] = LONGEST_WAIT


class Cancel(Arguments):
    id: AnyId
    reason: Annotated[str, Meta(description="Why, for the record.", max_length=500)] = ""


class Answer(Arguments):
    id: Id
    text: Annotated[str, Meta(description="An offered answer, or a text.", min_length=1)]


class Send(Arguments):
    id: Id
    text: Annotated[str, Meta(description="Written as it is: end a line with a line break.")] = ""
    eof: Annotated[bool, Meta(description="Close stdin after it.")] = False
