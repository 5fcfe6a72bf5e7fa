"""The tools of seed 003, as they are declared to a model."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from meantime.toolset.arguments import Arguments

TaskId: TypeAlias = Annotated[str, Meta(description="Task ID returned from startBackgroundTask")]


class Start(Arguments):
    plugin_name: Annotated[str, Meta(description="Name of the plugin providing the tool")]
    tool_name: Annotated[str, Meta(description="Name of the tool to execute")]
    arguments: Annotated[dict[str, Any], Meta(description="Arguments to pass to the tool")]
    timeout_seconds: Annotated[float, Meta(description="Optional timeout in seconds")] | None = None


class Status(Arguments):
    task_id: TaskId


class Result(Arguments):
    task_id: TaskId
    wait: Annotated[bool, Meta(description="If true, block until task completes (default: false)")] = False


class Cancel(Arguments):
    task_id: Annotated[str, Meta(description="Task ID to cancel")]


class List(Arguments):
    plugin_name: Annotated[str, Meta(description="Optional: filter by plugin name")] | None = None


class Capable(Arguments):
    """Nothing."""


class Command(Arguments):
    """`runCommand` of the plugin cli, which the seed's usage patterns call directly."""

    command: Annotated[str, Meta(description="The command, as one would type it")]
    cwd: Annotated[str, Meta(description="Folder to run it in")] | None = None
    timeout_seconds: Annotated[float, Meta(description="Optional timeout in seconds")] | None = None


class HandedOffCommand(Command):
    background: Annotated[bool, Meta(description="If true, do not wait for it (default: false)")] = False
