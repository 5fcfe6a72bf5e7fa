"""Seed 002: `task` with async, and check_async_tasks. The model has no cancel; a person has /task end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta, field

from meantime.kernel import model as kernel
from meantime.kernel.bounds import values
from meantime.kernel.change import Disposition
from meantime.kernel.errors import InvalidInput, LimitReached, TaskEnded
from meantime.kernel.ids import display
from meantime.kernel.lifecycle import Status
from meantime.kernel.notices import Message, Notice, Part
from meantime.kernel.payloads import as_text, clean, one_line
from meantime.ports import asks
from meantime.ports.asks import Answer, Ask
from meantime.ports.dialect import Command, Offer, Policy, Problem, Said, Standing, Tool
from meantime.toolset import task_text
from meantime.toolset.arguments import Arguments, tool

from . import llxprt_texts, message_bus

__all__ = ["DIALECT"]

PEEKED, SHOWN = 100, 20  # lines of a running command, for the model and for a person
MOST_ASYNC = 1_000_000  # far more than any machine runs: a number above it is a slip of the keys

TASK = (
    "Launches a named subagent with a goal. By default you wait for its output; with async it runs beside "
    "you, and you are notified when it completes."
)
CHECK = (
    "Check the status of async subagent tasks. With no arguments, lists all async tasks and their status. "
    "With a task_id, shows detailed status and emitted output for that specific task (useful for peeking at "
    "progress)."
)
ASYNC = (
    "When true, launches the subagent asynchronously without blocking. The foreground agent continues "
    "immediately and receives a notification when the task completes. Use check_async_tasks tool to monitor "
    "status."
)
WHICH = (
    "Optional. The ID (or ID prefix) of a specific task to inspect. If provided, shows detailed status and "
    "any emitted output. If omitted, lists all async tasks with their status."
)


class Task(Arguments):
    subagent_name: Annotated[str, Meta(description="Name of the subagent.", min_length=1)]
    goal_prompt: Annotated[str, Meta(description="What it is to achieve.", min_length=1)]
    behaviour_prompts: Annotated[list[str], Meta(description="How it is to go about it.")] = []  # noqa: RUF012  a Struct copies it
    tool_whitelist: Annotated[list[str], Meta(description="The only tools that it may use.")] | None = None
    output_spec: Annotated[dict[str, str], Meta(description="Values that it is to emit, by name.")] | None = (
        None
    )
    context: Annotated[dict[str, Any], Meta(description="What it is to know.")] | None = None
    timeout_seconds: (
        Annotated[float, Meta(description="Seconds until it is stopped; -1 for as long as is allowed.")]
        | None
    ) = None


class AsyncTask(Task):
    is_async: Annotated[bool, Meta(description=ASYNC)] = field(default=False, name="async")


class Check(Arguments):
    task_id: Annotated[str, Meta(description=WHICH)] | None = None


class Llxprt:
    name = "llxprt"
    policy = Policy(
        reads_settle=False,
        resumable=frozenset(),
        model_cancels=False,
        on_limit="reject",
        listed_per_slot=2,
        listed_most=10,
    )

    def status(self, status: Status, run: int) -> str:
        return llxprt_texts.WORDS[status]

    def tools(self, offer: Offer) -> Sequence[Tool]:
        check = tool("check_async_tasks", CHECK, Check, _check, _checked, reads=True)
        if offer.agents is None:
            return [check] if offer.background else []
        takes = AsyncTask if offer.background else Task
        enums = {"subagent_name": offer.agents}
        task = tool("task", TASK, takes, _task, _ran, starts=offer.background, enums=enums)
        return [task, check] if offer.background else [task]

    def commands(self) -> Sequence[Command]:
        return (
            Command(
                name="tasks list",
                aliases=("tasks",),
                description="List all async tasks and their status",
                usage="/tasks list",
                ask=lambda rest: asks.List(statuses=frozenset(Status)),
                say=_on_screen,
            ),
            Command(
                name="task end",
                description="Cancel a running async task. Usage: /task end <id>",
                usage="/task end <id>",
                ask=_end,
                say=_ended,
            ),
            Command(
                name="task show",
                description="One async task in detail, and what it gave so far",
                usage="/task show <id>",
                ask=_show,
                say=_shown,
            ),
            Command(
                name="set task-max-async",
                description="Maximum number of concurrent async tasks (default: 5, -1 for unlimited)",
                usage="/set task-max-async <n>",
                ask=_set,
                say=_is_set,
            ),
        )

    def guidance(self, tools: Sequence[str]) -> str:
        if "check_async_tasks" not in tools or "task" not in tools:
            return ""
        return (
            "Use task with async=true for subagents whose result you do not need at once. You see the status "
            "of async tasks on every turn, and the output of each when it completes: do not poll "
            "check_async_tasks, and do not launch the same task again."
        )

    def summary(self, tasks: Sequence[kernel.Task]) -> str:
        return llxprt_texts.summary(_launched(tasks[::-1]))

    published = staticmethod(message_bus.message)

    def message(self, notice: Notice) -> Message:
        return Message("user", (Part(llxprt_texts.ended(notice.task)),))

    def reminder(self, standing: Standing) -> str:
        """Completed and failed as the seed says; cancelled in a line of its own."""
        short = llxprt_texts.ids([*standing.active, *standing.untold])
        untold = _launched(standing.untold)
        ended = [task for task in untold if task.status is not Status.CANCELLED]
        gone = [task for task in untold if task.status is Status.CANCELLED]
        lines = ["Async tasks status:"]
        for title, tasks in (
            ("Running", _launched(standing.active)),
            ("Completed (pending acknowledgement)", ended),
            ("Cancelled (pending acknowledgement)", gone),
        ):
            if tasks:
                lines.append(f"{title}: {llxprt_texts.some(tasks, short)}")
        return llxprt_texts.note("\n".join(lines)) if len(lines) > 1 else ""

    def problem(self, problem: Problem) -> Said:
        error = problem.error
        ref = one_line(str(getattr(problem.ask, "ref", "") or ""), 128)
        if isinstance(error, LimitReached):
            shown = llxprt_texts.full_on_screen(error.limit, error.running)
            message = f"Max async tasks ({error.limit}) reached"
            data = {"error": error.code, "message": message, "returnDisplay": shown}
            return Said(llxprt_texts.full(error.limit, error.running), error.code, data=data)
        if error.code in ("not_found", "invalid_input") and ref:  # what can be no id is not found either
            return _refused(f"Task not found: {ref}", error.code)
        if error.code == "invalid_input" and problem.tool.startswith("/set "):
            return _refused(error.message, error.code)  # the seed's text, and nothing beside it
        if isinstance(error, TaskEnded):  # a subagent that was waited for
            found = llxprt_texts.output(error.task)
            return Said(llxprt_texts.as_json(found), error.code, data=found)
        if error.code == "ambiguous":
            bullet = "  " if problem.tool.startswith("/") else "- "
            head, rows = llxprt_texts.several(ref, problem.candidates, bullet).split("\n", 1)
            message, shown = f"Ambiguous task ID: {ref}", f"Ambiguous ID. Matches:\n{rows}"
            data = {"error": error.code, "message": message, "returnDisplay": shown}
            return Said(f"{head}\n{rows}", error.code, data=data)
        said = task_text.refusal(error)
        if isinstance(problem.ask, asks.StartAgent) and problem.ask.background:
            name = one_line(problem.ask.agent, 100)
            return said._replace(text=f"Failed to launch async subagent '{name}'.\n{said.text}")
        return said


DIALECT = Llxprt()


# -- what a call asks


def _task(given: Task) -> asks.StartAgent:
    """Its runner knows which tools it may use; all the rest is what it is told."""
    more: dict[str, Any] = {"goal": given.goal_prompt}
    if given.tool_whitelist is not None:
        more["tools"] = given.tool_whitelist
    parts = [given.goal_prompt, *given.behaviour_prompts]
    if given.context:
        parts.append("Context:\n" + llxprt_texts.as_json(given.context))
    if given.output_spec:
        wanted = [f"- {name}: {about}" for name, about in given.output_spec.items()]
        parts.append("\n".join(["When you are done, give these values by name:", *wanted]))
    prompt = "\n\n".join(parts)
    return asks.StartAgent(
        agent=given.subagent_name,
        prompt=prompt,
        timeout=given.timeout_seconds,
        background=isinstance(given, AsyncTask) and given.is_async,
        input=more,
    )


def _check(given: Check) -> Ask:
    if not given.task_id:
        return asks.List(statuses=frozenset(Status))
    return asks.Read(ref=given.task_id, tail=PEEKED)


def _end(rest: str) -> Ask | Said:
    return asks.Cancel(ref=rest) if rest else Said(llxprt_texts.USAGE.format(verb="end"))


def _show(rest: str) -> Ask | Said:
    return asks.Read(ref=rest, tail=SHOWN) if rest else Said(llxprt_texts.USAGE.format(verb="show"))


def _set(rest: str) -> Ask:
    """Any positive number that can be meant, as the seed has it; there are no parts of tasks, so it is
    rounded up."""
    try:
        most = float(rest)
    except ValueError:
        most = 0.0
    if most != -1 and not 0 < most <= MOST_ASYNC:
        raise InvalidInput(llxprt_texts.MAX_ASYNC)
    return asks.SetLimit(kind="agent", most=math.ceil(most))


# -- what its answer says


def _ran(ask: asks.StartAgent, answer: Answer) -> Said:
    if answer.ending is not None:
        found = llxprt_texts.completed(answer.ending, answer.ending.final_message or as_text(answer.result))
        return Said(llxprt_texts.as_json(found), data=found)
    task = answer.task
    data = {
        "agentId": task.id,
        "async": True,
        "status": llxprt_texts.word(task),
        "returnDisplay": llxprt_texts.launched_on_screen(task),
    }
    return Said(llxprt_texts.launched(task), data=data)


def _checked(ask: Ask, answer: Answer) -> Said:
    if isinstance(ask, asks.List):
        tasks = _launched(answer.tasks[::-1])
        return Said(llxprt_texts.listed(tasks), data={"count": len(tasks)})
    task = answer.task
    text = llxprt_texts.peek(task, _emitted(answer, task_text.block), answer.now)
    return Said(
        text, reads=task_text.endings(task), data={"taskId": task.id, "status": llxprt_texts.word(task)}
    )


def _shown(ask: asks.Read, answer: Answer) -> Said:
    """The same for a person, who needs no fence around what a command says."""
    task = answer.task
    text = llxprt_texts.peek(task, _emitted(answer, clean), answer.now)
    return Said(text, data={"taskId": task.id, "status": llxprt_texts.word(task)})


def _emitted(answer: Answer, put: Callable[[str], str]) -> str:
    """A subagent emits values; of a command it is what it says."""
    if answer.task.work.kind != "agent":
        return put(answer.chunk.text) if answer.chunk else ""
    emitted = answer.output.emitted if answer.output else {}
    return llxprt_texts.as_json(task_text.cleaned(values(emitted))) if emitted else ""


def _on_screen(ask: Ask, answer: Answer) -> Said:
    tasks = _launched(answer.tasks[::-1])
    return Said(llxprt_texts.on_screen(tasks, answer.now), data={"count": len(tasks)})


def _launched(tasks: Sequence[kernel.Task]) -> list[kernel.Task]:
    """In the order in which they were launched, whichever ended first; those of one instant stay as given."""
    return sorted(tasks, key=lambda task: task.created_at)


def _ended(ask: asks.Cancel, answer: Answer) -> Said:
    task, short = answer.task, display(answer.task.id)
    if Disposition.ALREADY_ENDED in answer.dispositions:
        return _refused(f"Task {short} is not running (status: {llxprt_texts.word(task)})", "not_running")
    if task.status is not Status.CANCELLED and task.ended:
        return _refused(f"Failed to cancel task: {short}", "not_cancelled")
    return Said(f"Cancelled task: {llxprt_texts.name(task)} ({short})", data={"taskId": task.id})


def _is_set(ask: asks.SetLimit, answer: Answer) -> Said:
    return Said(f"task-max-async set to {ask.most}", data={"task-max-async": ask.most})


def _refused(text: str, code: str) -> Said:
    return Said(text, code, data={"error": code, "message": text})
