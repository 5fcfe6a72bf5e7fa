"""Five tools for agents in sessions, by a prefix."""

from __future__ import annotations

from collections.abc import Sequence

from meantime.kernel.change import Disposition
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.model import Task
from meantime.kernel.payloads import one_line
from meantime.ports import asks
from meantime.ports.asks import Answer, Ask
from meantime.ports.dialect import Command, Offer, Policy, Problem, Said, Standing, Tool
from meantime.toolset import task_text
from meantime.toolset.arguments import tool

from . import session_arguments, session_texts

NOTHING = "No background tasks found"


class SessionDialect:
    """`name` is also the prefix of the tools. `forks`: a task can begin with its parent's context."""

    def __init__(self, name: str, *, forks: bool, reads_settle: bool) -> None:
        self.name = name
        self.policy = Policy(
            reads_settle=reads_settle, resumable=frozenset({Status.COMPLETED}), listed="cleared"
        )
        self._forks = forks

    status = staticmethod(session_texts.status_word)

    def tools(self, offer: Offer) -> Sequence[Tool]:
        name, found = self.name, list[Tool]()
        if offer.background:
            found.append(self._task_tool(offer))
        found += [
            tool(
                f"{name}_output",
                "How a background task stands, or its result. Returns at once unless block is true. "
                "You are notified when a task ends: do not poll.",
                session_arguments.Output,
                _read,
                self._detail,
                reads=True,
            ),
            tool(
                f"{name}_list",
                "The background tasks of this conversation.",
                session_arguments.List,
                _list,
                self._listed,
                reads=True,
            ),
        ]
        if offer.cancel:
            text = "Cancels a running background task, or all of a batch."
            found.append(
                tool(f"{name}_cancel", text, session_arguments.Cancel, _cancel, self._cancelled, cancels=True)
            )
        text = "Removes ended background tasks from the list: one, those of a batch, or all."
        found.append(tool(f"{name}_clear", text, session_arguments.Clear, _clear, _cleared))
        return found

    def _task_tool(self, offer: Offer) -> Tool:
        fork = " With fork, it starts with the context of this conversation." if self._forks else ""
        return tool(
            f"{self.name}_task",
            "Launches an agent in the background and returns its task ID at once. You are notified when it "
            f"ends: do not poll. With resume, a completed task is sent a follow-up in its session.{fork}",
            session_arguments.ForkingTask if self._forks else session_arguments.Task,
            self._start,
            self._started,
            starts=True,
            enums={"agent": offer.agents or ()},
        )

    def commands(self) -> Sequence[Command]:
        return ()

    def guidance(self, tools: Sequence[str]) -> str:
        start = f"{self.name}_task"
        if start not in tools:
            return ""
        return (
            f"Use {start} for work that takes long or can be done beside yours: it returns at once, and you "
            "are notified of every ending. Do not poll. To ask a completed task something more, call "
            f"{start} with resume. If there is nothing else to do, say so and stop: a notification wakes you."
        )

    def reminder(self, standing: Standing) -> str:
        lines = self._some("Background tasks that run:", standing.active, standing.now)
        ended = "Background tasks that ended, with a notification on its way:"
        lines += self._some(ended, standing.untold, standing.now)
        if standing.parked:
            lines.append(f"{standing.parked} notifications could not be delivered and are parked.")
        return "\n".join([*lines, "You are notified when a task ends; do not poll."]) if lines else ""

    def _some(self, head: str, tasks: Sequence[Task], now: float) -> list[str]:
        rows = task_text.some(tasks, lambda task: session_texts.row(task, now, forks=self._forks))
        return [head, *rows] if rows else []

    # -- what a call asks

    def _start(self, given: session_arguments.Task) -> Ask:
        fork = isinstance(given, session_arguments.ForkingTask) and given.fork
        if given.resume is not None:
            if fork:
                raise InvalidInput(
                    "fork and resume are mutually exclusive: a fork begins a new task with this "
                    "conversation's context, a resume goes on with a task that has its own.",
                    hint="Choose one. No task was created.",
                    code="fork_and_resume",
                )
            return asks.Resume(ref=given.resume, prompt=given.prompt)
        if given.description is None or given.agent is None:
            raise InvalidInput(
                "A new task needs description, prompt and agent.",
                hint="To go on with a completed task give resume and prompt.",
            )
        return asks.StartAgent(
            agent=given.agent, prompt=given.prompt, description=given.description, fork=fork
        )

    # -- what its answer says

    def _started(self, ask: Ask, answer: Answer) -> Said:
        task = answer.task
        what = f"Resume #{task.resume_count} started" if isinstance(ask, asks.Resume) else "Task launched"
        lines = [
            f"{what} in the background.",
            f"Task ID: {session_texts.marked(task, forks=self._forks)}",
            f"Description: {one_line(task.title)}",
            f"Agent: {one_line(task.agent_or_kind, 60)}",
            f"Status: {session_texts.word(task)}",
            *task_text.reduced(task),
            "You are notified when it ends. Do not poll; go on with other work, or end your turn. To wait "
            f'for it, use {self.name}_output(task_id="{task.id}", block=true).',
        ]
        return Said("\n".join(lines), data=session_texts.data_of(task))

    def _detail(self, ask: asks.Read, answer: Answer) -> Said:
        task = answer.task
        text = session_texts.detail(answer, forks=self._forks)
        if ask.wait and not task.ended:
            text += "\nThe wait is over; the task goes on. You are notified when it ends."
        return Said(text, reads=task_text.endings(task), data=session_texts.data_of(task))

    def _listed(self, ask: asks.List, answer: Answer) -> Said:
        data = {"tasks": [session_texts.data_of(task) for task in answer.tasks]}
        rows = [session_texts.row(task, answer.now, forks=self._forks) for task in answer.tasks]
        if len(rows) >= ask.limit:
            rows.append(f"Only the newest {ask.limit} are shown.")
        return Said("\n".join(["Background tasks:", *rows]) if rows else NOTHING, data=data)

    def _cancelled(self, ask: Ask, answer: Answer) -> Said:
        if not answer.tasks:
            return Said("No running background tasks to cancel.", data={"tasks": []})
        lines: list[str] = []
        for task, disposition in zip(answer.tasks, answer.dispositions, strict=True):
            named, word = session_texts.marked(task, forks=self._forks), session_texts.word(task)
            if disposition is Disposition.ALREADY_ENDED:
                lines.append(f"Task {named} is not running: it is {word}.")
            elif task.status is Status.CANCELLED:
                lines.append(f"Task {named} cancelled after {session_texts.took(task, answer.now)}.")
            else:
                lines.append(f"Task {named} ended before it could be cancelled: it is {word}.")
        # A cancel says that it has ended, and not with what: only what was cancelled has been told so.
        reads = task_text.endings(*(task for task in answer.tasks if task.status is Status.CANCELLED))
        data = {"tasks": [session_texts.data_of(one) for one in answer.tasks]}
        return Said("\n".join(lines), reads=reads, data=data)

    def problem(self, problem: Problem) -> Said:
        error, task = problem.error, problem.task
        ref = one_line(str(getattr(problem.ask, "ref", "") or ""), 128)
        match error.code:
            case "not_found" if ref:
                text = f"Task not found: {ref}. Use {self.name}_list to see the tasks of this conversation."
            case "ambiguous":
                several = problem.candidates
                found = [f"- {one.id} [{session_texts.word(one)}] {one_line(one.title)}" for one in several]
                text = "\n".join([f"Several tasks match '{ref}'. Be more specific:", *found])
            case "not_completed" | "still_active":
                stands = f" Task {task.id} has the status {session_texts.word(task)}." if task else ""
                return _refused(f"Only completed tasks can be resumed.{stands}", "not_completed")
            case "being_resumed":
                text = f"Task {ref} is currently being resumed. Wait for its answer, then resume it again."
            case "session_gone" | "not_resumable":
                text = f"The session of task {ref} no longer exists. Start a new {self.name}_task instead."
            case _:
                return task_text.refusal(error)
        return _refused(text, error.code)


def _refused(text: str, code: str) -> Said:
    return Said(text, code, data={"error": code, "message": text})


def _read(given: session_arguments.Output) -> asks.Read:
    return asks.Read(ref=given.task_id, wait=given.timeout if given.block else 0.0)


def _list(given: session_arguments.List) -> asks.List:
    return asks.List(statuses=ACTIVE | ENDED, batch=given.batch_id)


def _cancel(given: session_arguments.Cancel) -> Ask:
    if (given.task_id is None) == (given.batch_id is None):
        raise InvalidInput("Give task_id or batch_id.")
    if given.task_id is not None:
        return asks.Cancel(ref=given.task_id)
    return asks.CancelAll(batch=given.batch_id)


def _clear(given: session_arguments.Clear) -> asks.Clear:
    return asks.Clear(refs=[given.task_id] if given.task_id is not None else (), batch=given.batch_id)


def _cleared(ask: asks.Clear, answer: Answer) -> Said:
    count = answer.count
    text = f"Cleared {count} ended task{'' if count == 1 else 's'}. What runs stays listed."
    return Said(text, data={"cleared": count})
