"""Seed 003: the tools of plugins, started in the background by plugin, tool and arguments. Every answer is a
dictionary, for programs as it is and for models as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import structs

from meantime.kernel.change import Disposition
from meantime.kernel.durations import duration
from meantime.kernel.errors import LimitReached, TaskEnded
from meantime.kernel.lifecycle import ACTIVE, Status
from meantime.kernel.limits import PluginDefaults
from meantime.kernel.model import Completed, Task
from meantime.kernel.notices import EVENT, Message, Notice, Part, payload_text
from meantime.kernel.payloads import fenced, one_line
from meantime.ports import asks
from meantime.ports.asks import Answer
from meantime.ports.dialect import Command, Offer, Policy, Problem, Said, Standing, Tool
from meantime.toolset import task_text
from meantime.toolset.arguments import tool
from meantime.toolset.exports import exported
from meantime.toolset.performer import LONGEST

from . import cli_command, jaato_arguments, jaato_tasks, jaato_texts
from .background_config import BackgroundConfig
from .jaato_texts import AUTO_APPROVED
from .plugin_tools import Capable, StartNamed, capable_of, run_command, start

__all__ = ["AUTO_APPROVED", "DIALECT", "BackgroundConfig", "Jaato", "declarations"]

START, RUN = "startBackgroundTask", cli_command.TOOL
_NOT_THERE = frozenset({"not_found", "unknown_server"})


class Jaato:
    """With a config of your own: `thread.toolset(Jaato(BackgroundConfig(max_concurrent_tasks=3)))`. Without
    one, `[plugins]` of the owner's configuration is what counts."""

    name = "jaato"

    def __init__(self, config: BackgroundConfig | None = None) -> None:
        self._own = config is not None
        self._config = config = config or BackgroundConfig()
        self.policy = Policy(
            most_active=config.max_concurrent_tasks, listed_seconds=config.completed_task_retention_seconds
        )

    def configured(self, defaults: PluginDefaults) -> Jaato:
        return self if self._own else Jaato(BackgroundConfig(**structs.asdict(defaults)))

    def status(self, status: Status, run: int) -> str:
        return jaato_tasks.WORDS[status]

    def tools(self, offer: Offer) -> Sequence[Tool]:
        found = _six(capable_of(offer) if offer.background else None, offer.cancel, self._config)
        if offer.commands:
            takes = jaato_arguments.HandedOffCommand if offer.background else jaato_arguments.Command
            ask = partial(run_command, self._config)
            found.append(tool(RUN, "Run a command.", takes, ask, _ran, starts=offer.background))
        return found

    def commands(self) -> Sequence[Command]:
        name, description, usage = jaato_texts.TASKS_COMMAND
        every = Command(name=name, description=description, usage=usage, ask=_all, say=_on_screen)
        name, description, usage = jaato_texts.CANCEL_COMMAND
        cancel = Command(name=name, description=description, usage=usage, ask=_named, say=_stopped)
        return (every, cancel)

    def guidance(self, tools: Sequence[str]) -> str:
        if START not in tools:
            return ""
        threshold = self._config.background_threshold_seconds
        return jaato_texts.instructions(threshold, tools, auto=RUN in tools)

    def message(self, notice: Notice) -> Message:
        task, outcome = notice.task, notice.outcome
        lines = [f"Background task {_line(task, 0.0)}", *task_text.reduced(task)]
        body = payload_text(outcome)
        if body:
            lines.append(fenced(body, notice.nonce))
        if outcome.spill is not None:
            lines.append(f"The output is over the limits; all of it is in the file {outcome.spill.path}")
        return Message("user", (Part("\n".join([*lines, EVENT])),))

    def reminder(self, standing: Standing) -> str:
        def row(task: Task) -> str:
            return f"- {_line(task, standing.now)}"

        rows = [*task_text.some(standing.active, row), *task_text.some(standing.untold, row)]
        return "\n".join(["Background tasks:", *rows]) if rows else ""

    def problem(self, problem: Problem) -> Said:
        error = problem.error
        if isinstance(error, TaskEnded) and error.task.outcome is not None:  # of a call that was waited for
            return _said(jaato_tasks.unfinished(error.task.outcome), error.code)
        text, code = _why(problem)
        return _said(jaato_texts.not_started(text) if problem.tool == START else {"error": text}, code)


def _six(capable: Capable | None, cancel: bool, config: BackgroundConfig) -> list[Tool]:
    """The six tools of the seed; None is that nothing may be started, and then there are fewer."""
    found = [
        tool(
            "getBackgroundTaskStatus", jaato_texts.STATUS, jaato_arguments.Status, _read, _status, reads=True
        ),
        tool(
            "getBackgroundTaskResult", jaato_texts.RESULT, jaato_arguments.Result, _read, _result, reads=True
        ),
        tool("listBackgroundTasks", jaato_texts.LIST, jaato_arguments.List, _list, _listed, reads=True),
    ]
    if cancel:
        stop = tool(
            "cancelBackgroundTask",
            jaato_texts.CANCEL,
            jaato_arguments.Cancel,
            _cancel,
            _cancelled,
            cancels=True,
        )
        found.insert(2, stop)
    if capable is not None:
        ask, say = partial(start, capable, config), partial(_capable, capable)
        name = "listBackgroundCapableTools"
        found.insert(0, tool(START, jaato_texts.START, jaato_arguments.Start, ask, _started, starts=True))
        found.append(
            tool(
                name,
                jaato_texts.CAPABLE,
                jaato_arguments.Capable,
                lambda given: asks.Tools(),
                say,
                reads=True,
            )
        )
    return found


def declarations() -> list[dict[str, Any]]:
    """The six as Gemini takes them."""
    return exported(_six(Capable(True, (), None), True, BackgroundConfig()), "gemini")


DIALECT = Jaato()


# -- what a call asks; what starts something is in plugin_tools.py


def _read(given: jaato_arguments.Status | jaato_arguments.Result) -> asks.Read:
    wait = isinstance(given, jaato_arguments.Result) and given.wait
    return asks.Read(ref=given.task_id, wait=LONGEST if wait else 0.0)


def _cancel(given: jaato_arguments.Cancel) -> asks.Cancel:
    return asks.Cancel(ref=given.task_id)


class _OfPlugin(asks.List, frozen=True, kw_only=True):
    plugin: str = ""  # only its tasks; empty is all


def _list(given: jaato_arguments.List) -> asks.List:
    return _OfPlugin(statuses=ACTIVE, plugin=given.plugin_name or "")


def _all(rest: str) -> asks.List:
    return _OfPlugin(statuses=frozenset(Status), plugin=rest)


def _named(rest: str) -> asks.Cancel | Said:
    return asks.Cancel(ref=rest) if rest else Said(f"Usage: {jaato_texts.CANCEL_COMMAND[2]}")


# -- what its answer says


def _started(ask: asks.Starting, answer: Answer) -> Said:
    task = answer.task
    return _said(
        jaato_tasks.noted(
            task, jaato_texts.started(task.id, *jaato_tasks.origin(task), jaato_tasks.estimate(task))
        )
    )


def _ran(ask: asks.StartCommand, answer: Answer) -> Said:
    """A result, or a task: what was asked to be one, or what took too long."""
    if answer.inline:
        return _said(cli_command.shown(Completed(answer.result)))
    if ask.background:
        return _started(ask, answer)
    return _said(jaato_tasks.noted(answer.task, jaato_texts.backgrounded(answer.task.id, ask.threshold)))


def _status(ask: asks.Read, answer: Answer) -> Said:
    task = answer.task
    return _said(jaato_texts.status(task.id, jaato_tasks.origin(task)[0], jaato_tasks.WORDS[task.status]))


def _result(ask: asks.Read, answer: Answer) -> Said:
    task = answer.task
    return _said(jaato_tasks.result(task, answer.output))._replace(reads=task_text.endings(task))


def _cancelled(ask: asks.Cancel, answer: Answer) -> Said:
    return _said(jaato_texts.cancelled(answer.task.id, jaato_tasks.stopped(answer.task)))


def _listed(ask: _OfPlugin, answer: Answer) -> Said:
    return _said(jaato_texts.listed([jaato_tasks.row(task) for task in _of_plugin(ask, answer)]))


def _capable(capable: Capable, ask: asks.Tools, answer: Answer) -> Said:
    return _said(jaato_texts.capable(capable.now(answer.names, answer.agents)))


def _of_plugin(ask: _OfPlugin, answer: Answer) -> list[Task]:
    """Oldest first, as the seed lists them."""
    return [task for task in reversed(answer.tasks) if ask.plugin in ("", jaato_tasks.origin(task)[0])]


# -- what people see


def _on_screen(ask: _OfPlugin, answer: Answer) -> Said:
    found = _of_plugin(ask, answer)
    rows = [f"- {_line(task, answer.now)}" for task in found]
    data = [{**jaato_tasks.row(task), "status": jaato_tasks.WORDS[task.status]} for task in found]
    return _said(jaato_texts.listed(data))._replace(text="\n".join(rows) or "No background tasks.")


def _stopped(ask: asks.Cancel, answer: Answer) -> Said:
    task, said = answer.task, _cancelled(ask, answer)
    if Disposition.ALREADY_ENDED in answer.dispositions:
        return said._replace(text=f"Task '{task.id}' had ended already: {jaato_tasks.WORDS[task.status]}.")
    if not jaato_tasks.stopped(task):
        return said._replace(text=f"Task '{task.id}' would not stop and was left behind.")
    return said._replace(text=f"Task '{task.id}' is {jaato_tasks.WORDS[task.status]}.")


def _line(task: Task, now: float) -> str:
    run = task.run
    took = duration(run.duration if run.duration is not None else now - (run.started_at or run.queued_at))
    whose = one_line(".".join(jaato_tasks.origin(task)), 100)
    return f"'{task.id}' ({whose}) {jaato_tasks.WORDS[task.status]} after {took}: {one_line(task.title)}"


# -- what went wrong


def _why(problem: Problem) -> tuple[str, str]:
    """As a text, and as a code."""
    error, ask = problem.error, problem.ask
    ref = one_line(str(getattr(ask, "ref", "") or ""), 128)
    text = str(error)
    if isinstance(ask, StartNamed) and error.code in _NOT_THERE:
        plugin, name = (one_line(str(ask.meta[key]), 128) for key in ("plugin", "tool"))
        return jaato_texts.not_capable(plugin, name, ask.capable), "not_capable"
    if error.code == "not_found" and ref:
        text = jaato_texts.not_found(ref)
    elif error.code == "ambiguous":
        text = f"Task '{ref}' is one of several: {', '.join(one.id for one in problem.candidates)}"
    elif isinstance(error, LimitReached):
        text = f"{error.message} Wait for one to end, or cancel one."
    return text, error.code


def _said(data: dict[str, Any], code: str = "") -> Said:
    """The same twice, and as clean both times: what a task said is in it."""
    clean: Any = task_text.cleaned(data)
    return Said(json.dumps(clean, ensure_ascii=False), code, data=clean)
