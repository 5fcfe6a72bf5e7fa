"""Seed 004: jobs that tools start. A call answers with its result or with a job, and every ending of a job
is a synthetic message of the assistant at the next boundary."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, assert_never

from msgspec import Meta

from meantime.kernel.change import Disposition
from meantime.kernel.durations import duration
from meantime.kernel.errors import InvalidInput, MeantimeError, RetryNotSupported, TaskEnded
from meantime.kernel.lifecycle import ACTIVE, Status
from meantime.kernel.model import Cancelled, Failed, Lost, Outcome, Task, TimedOut
from meantime.kernel.notices import Message, Notice, Part, payload_text
from meantime.kernel.payloads import as_text, clean, fenced, one_line, preview
from meantime.ports import asks
from meantime.ports.asks import Answer, Ask
from meantime.ports.dialect import Command, Offer, Policy, Problem, Said, Standing, Tool
from meantime.toolset import task_text
from meantime.toolset.arguments import Arguments, tool

__all__ = ["DIALECT"]

SHELL = "shell"  # the tool that is there without being registered: {"command": "…"}
ERROR = 500  # characters of an error in the text; the data has more
INLINE = 10.0  # seconds that a call may take before it is a job
RUN = (
    "Calls a tool. A quick one answers with its result (mode synchronous). A slow one becomes a job (mode "
    "background, with a job_id), and you are told when it ends: do not poll."
)
RUN_INLINE = "Calls a tool, and answers with its result (mode synchronous)."
EVENT = "(Automatic event: no person wrote or approved this.)"
WORDS = {
    Status.QUEUED: "running",
    Status.RUNNING: "running",
    Status.WAITING: "running",
    Status.CANCELLING: "pending_cancel",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
    Status.TIMED_OUT: "timed_out",
    Status.LOST: "failed",
}
JobId: TypeAlias = Annotated[str, Meta(description="Id of the job.", min_length=1)]
Word: TypeAlias = Literal["running", "pending_cancel", "completed", "failed", "cancelled", "timed_out"]


class Run(Arguments):
    tool: Annotated[str, Meta(description="Which tool.", min_length=1)]
    arguments: Annotated[dict[str, Any], Meta(description="What it is called with.")] = {}  # noqa: RUF012  a Struct copies it


class HandedOffRun(Run):
    background: Annotated[bool, Meta(description="Start it as a job at once, and do not wait.")] = False


class List(Arguments):
    statuses: (
        Annotated[list[Word], Meta(description="Only these; running and pending_cancel if not given.")] | None
    ) = None


class Job(Arguments):
    job_id: JobId


class Psi:
    name = "psi"
    policy = Policy(reads_settle=False, cancel_waits=False)

    def status(self, status: Status, run: int) -> str:
        return WORDS[status]

    def tools(self, offer: Offer) -> Sequence[Tool]:
        found = [
            tool("list_jobs", "The background jobs of this thread.", List, _list, _listed, reads=True),
            tool("inspect_job", "The full record of a job of this thread.", Job, _read, _record, reads=True),
        ]
        if offer.cancel:
            text = "Asks a job of this thread to stop. It may still complete."
            found.append(tool("cancel_job", text, Job, _cancel, _cancelled, cancels=True))
        names = (*offer.tools, *((SHELL,) if offer.commands else ()))
        if names:
            takes, text = (HandedOffRun, RUN) if offer.background else (Run, RUN_INLINE)
            starts, enums = offer.background, {"tool": names}
            found.insert(0, tool("run_tool", text, takes, _run, _ran, starts=starts, enums=enums))
        return found

    def commands(self) -> Sequence[Command]:
        every = Command(
            name="jobs", description="The jobs of this thread", usage="/jobs", ask=_all, say=_listed
        )
        cancel = Command(
            name="cancel-job",
            description="Cancel a job",
            usage="/cancel-job <job_id>",
            ask=lambda rest: asks.Cancel(ref=_named(rest)),
            say=_cancelled,
        )
        retry = Command(
            name="retry-job",
            description="Not supported",
            usage="/retry-job <job_id>",
            ask=_retry,
            say=_cancelled,
        )
        return (every, cancel, retry)

    def guidance(self, tools: Sequence[str]) -> str:
        if "run_tool" not in tools:
            return ""
        return (
            "Tools that take long may go on as background jobs: run_tool then answers with a job_id, and a "
            "message with the job's ending is added to this thread by itself. Do not poll jobs, and do not "
            "start the same work again."
        )

    def message(self, notice: Notice) -> Message:
        task, outcome = notice.task, notice.outcome
        took = duration(task.run.duration or 0.0)
        lines = [f"Background job {task.id} ({one_line(task.title)}) is {WORDS[task.status]} after {took}."]
        lines += task_text.reduced(task)
        body = payload_text(outcome)
        if body:
            lines.append(fenced(body, notice.nonce))
        if outcome.spill is not None:
            lines.append(f"The output is over the limits; all of it is in the file {outcome.spill.path}")
        return Message("assistant", (Part("\n".join([*lines, EVENT])),))

    def reminder(self, standing: Standing) -> str:
        row = partial(_row, now=standing.now)
        rows = [*task_text.some(standing.active, row), *task_text.some(standing.untold, row)]
        return "\n".join(["Background jobs of this thread:", *rows]) if rows else ""

    def problem(self, problem: Problem) -> Said:
        error = problem.error
        ref = one_line(str(getattr(problem.ask, "ref", "") or ""), 128)
        if error.code == "not_found" and ref:
            return _refused(f"Job {ref} not found in this thread.", "not_found_in_thread")
        if error.code == "ambiguous":
            ids = ", ".join(one.id for one in problem.candidates)
            return _refused(f"{ref} is the beginning of several jobs: {ids}.", error.code)
        if error.code == "retry_not_supported":
            return _refused("Manual retry not supported.", error.code)
        if isinstance(error, TaskEnded) and error.task.outcome is not None:  # a call that was waited for
            return _failed(error, error.task.outcome)
        return task_text.refusal(error)


DIALECT = Psi()


# -- what a call asks


def _run(given: Run) -> Ask:
    """Without jobs, it is waited for as long as it takes."""
    may = isinstance(given, HandedOffRun)
    how: dict[str, Any] = {"background": may and given.background, "threshold": INLINE if may else None}
    how["meta"] = {"tool": given.tool}
    if given.tool != SHELL:
        return asks.StartTool(name=given.tool, arguments=given.arguments, **how)
    command = given.arguments.get("command")
    if not isinstance(command, str | list) or set(given.arguments) - {"command", "cwd"}:
        raise InvalidInput('shell takes {"command": "…"}, and "cwd" where it is to run elsewhere.')
    cwd = given.arguments.get("cwd")
    return asks.StartCommand(command=command, cwd=cwd, **how)  # pyright: ignore[reportUnknownArgumentType]


def _list(given: List) -> asks.List:
    if given.statuses is None:
        return asks.List(statuses=ACTIVE)
    return asks.List(statuses=frozenset(status for status in Status if WORDS[status] in given.statuses))


def _all(rest: str) -> asks.List:
    return asks.List(statuses=frozenset(Status))


def _read(given: Job) -> asks.Read:
    return asks.Read(ref=given.job_id, told=True)


def _cancel(given: Job) -> asks.Cancel:
    return asks.Cancel(ref=given.job_id)


def _named(rest: str) -> str:
    if not rest:
        raise InvalidInput("Which job?", hint="Give its id.")
    return rest


def _retry(rest: str) -> Ask | Said:
    error: MeantimeError = RetryNotSupported()
    return _refused("Manual retry not supported.", error.code)


# -- what its answer says


def _ran(ask: Ask, answer: Answer) -> Said:
    if answer.inline:
        result = task_text.cleaned(answer.result)
        return Said(task_text.block(as_text(answer.result)), data={"mode": "synchronous", "result": result})
    task = answer.task
    lines = [f"Started background job {task.id}. You are told when it ends; do not poll."]
    text = "\n".join([*lines, *task_text.reduced(task)])
    return Said(text, data={"mode": "background", "job_id": task.id, "status": WORDS[task.status]})


def _failed(error: TaskEnded, outcome: Outcome) -> Said:
    """Inline, and with its output; there is no job either."""
    payload = payload_text(outcome)
    data = {"mode": "synchronous", "error": error.code, "message": error.message, "payload": payload}
    text = f"{error.code}: {clean(error.message)}\n{task_text.block(payload)}".rstrip()
    return Said(text, error.code, data=task_text.cleaned(data))


def _listed(ask: Ask, answer: Answer) -> Said:
    rows = [_row(task, answer.now) for task in answer.tasks]
    data = {"jobs": [_data(task) for task in answer.tasks]}
    return Said("\n".join(rows) or "No background jobs.", data=data)


def _record(ask: asks.Read, answer: Answer) -> Said:
    task = answer.task
    body = task_text.block(answer.output.text if answer.output else "")
    data = {
        **_data(task),
        "payload": task_text.cleaned(answer.output.value if answer.output else None),
        "error": None,
        "exit_code": None,
        "terminal_message_emitted": answer.told,
    }
    if isinstance(task.outcome, Failed | Lost | TimedOut | Cancelled):
        data["error"] = clean(_error(task.outcome)) or None
        data["exit_code"] = getattr(task.outcome, "exit_code", None)
    if task.outcome is not None and task.outcome.spill is not None:
        data["payload_file"] = task.outcome.spill.path
    lines = [_row(task, answer.now), *task_text.reduced(task)]
    if data["error"]:
        lines.append(f"Error: {one_line(str(data['error']), ERROR)}")
    if data["exit_code"] is not None:
        lines.append(f"Exit code: {data['exit_code']}")
    if task.ended:
        lines.append(f"Terminal message emitted: {'yes' if answer.told else 'no'}")
    return Said("\n".join([*lines, body]).rstrip(), data=data)


def _error(outcome: Failed | Lost | TimedOut | Cancelled) -> str:
    match outcome:
        case Failed():
            return preview(outcome.message)
        case TimedOut():
            return f"It did not end within {outcome.seconds:g} s."
        case Cancelled():
            return outcome.error
        case Lost():
            return outcome.reason
        case _:
            assert_never(outcome)


def _cancelled(ask: Ask, answer: Answer) -> Said:
    task = answer.task
    late = Disposition.ALREADY_ENDED in answer.dispositions
    text = f"Job {task.id} is {WORDS[task.status]}{' already' if late else ''}."
    return Said(text, data=_data(task))


def _row(task: Task, now: float) -> str:
    run = task.run
    took = duration(run.duration if run.duration is not None else now - (run.started_at or run.queued_at))
    return f"{task.id} {WORDS[task.status]} {took} {one_line(task.title)}"


def _data(task: Task) -> dict[str, Any]:
    cancel = task.run.cancel
    return {
        "job_id": task.id,
        "thread_id": task.thread,
        "tool_call_id": task.tool_call_id,
        "tool_name": one_line(_tool(task)),
        "status": WORDS[task.status],
        "started_at": task.run.started_at,
        "completed_at": task.run.ended_at,
        "cancel_requested_by": cancel.by if cancel else None,
        "cancel_requested_at": cancel.at if cancel else None,
    }


def _tool(task: Task) -> str:
    """Its name as run_tool has it; if it was started elsewhere, the function's own."""
    named = task.meta.get("tool")
    if isinstance(named, str) and named:
        return named
    name = task.work.name.rpartition(":")[2] if task.work.kind == "call" else task.work.name
    return name.rpartition("<locals>.")[2] or task.work.kind


def _refused(text: str, code: str) -> Said:
    return Said(text, code, data={"error": code, "message": text})
