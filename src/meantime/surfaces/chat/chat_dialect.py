"""The chat's dialect: seed 002's, and one tool more. `run` is to commands what its `task` is to agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import replace

from meantime.conversation.dialect_lookup import dialect_of
from meantime.kernel.errors import TaskEnded
from meantime.kernel.model import Task
from meantime.kernel.notices import payload_text
from meantime.kernel.payloads import as_text, clean
from meantime.ports import asks
from meantime.ports.asks import Answer, Ask
from meantime.ports.dialect import Offer, Problem, Said, Tool
from meantime.toolset.arguments import Arguments, tool
from meantime.toolset.task_text import block

SEED = "llxprt"
MAX_ASYNC = 5
MOST = 16_000  # characters of an output that the model is shown
RUN_HERE = (
    "Runs a command line in the shell and returns its output. The person can send it to the background "
    "while it runs."
)
RUN_ASYNC = "With async: true it is handed off, and this returns at once."


class Run(Arguments):
    command: Annotated[str | list[str], Meta(description="A line for /bin/sh, or a program and arguments.")]
    description: Annotated[str, Meta(description="A few words that say what it is for.")] = ""
    cwd: Annotated[str, Meta(description="The folder to run it in.")] | None = None
    timeout_seconds: Annotated[float, Meta(description="Seconds until it is stopped.")] | None = None


class AsyncRun(Run):
    is_async: bool = field(default=False, name="async")


class Speech:
    name = "chat"

    def __init__(self, most: int = MAX_ASYNC) -> None:
        """`most`: tasks of the conversation that may run at once. A cancel does not wait for the ending:
        somebody wants to go on typing."""
        self._seed = seed = dialect_of(SEED)
        self.status, self.commands, self.guidance = seed.status, seed.commands, seed.guidance
        self.message, self.reminder = seed.message, seed.reminder
        self.policy = replace(self._seed.policy, most_active=most, on_limit=None, cancel_waits=False)
        self._task = next(one for one in self._seed.tools(Offer(agents=())) if one.name == "task")

    def word(self, task: Task) -> str:
        return self.status(task.status, task.run.number)

    def tools(self, offer: Offer) -> Sequence[Tool]:
        run = [self._run_tool(offer.background)] if offer.commands else []
        return [*run, *self._seed.tools(offer)]

    def _run_tool(self, background: bool) -> Tool:
        if not background:
            return tool("run", RUN_HERE, Run, _run, self._ran)
        found = tool("run", f"{RUN_HERE} {RUN_ASYNC}", AsyncRun, _run, self._ran, starts=True)
        described: str = self._task.schema["properties"]["async"]["description"]
        found.schema["properties"]["async"]["description"] = described.replace("subagent", "command")
        return found

    def problem(self, problem: Problem) -> Said:
        error = problem.error
        if problem.tool == "run" and isinstance(error, TaskEnded):
            output = payload_text(error.task.outcome) if error.task.outcome else error.message
            return Said(f"It failed.\n{_cut(output)}", error.code, data={"output": clean(output)})
        return self._seed.problem(problem)

    def launched(self, task: Task) -> Said:
        """The text for a task that has just begun, whatever it is."""
        return self._task.say(None, Answer(now=0.0, tasks=[task]))

    def _ran(self, ask: Ask, answer: Answer) -> Said:
        if not answer.inline:
            return self._task.say(ask, answer)
        output = as_text(answer.result)
        return Said(f"Done.\n{_cut(output)}", data={"output": clean(output)})


def _run(given: Run) -> Ask:
    return asks.StartCommand(
        command=given.command,
        cwd=given.cwd,
        description=given.description,
        timeout=given.timeout_seconds,
        background=isinstance(given, AsyncRun) and given.is_async,
    )


def _cut(text: str) -> str:
    if len(text) > MOST:
        text = f"(cut: the last {MOST:,} of {len(text):,} characters)\n{text[-MOST:]}"
    return block(text) or "(no output)"
