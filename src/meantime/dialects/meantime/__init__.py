"""Our own words: few tools, short texts that tell a model not to poll, endings as `<task-notification>`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from meantime.kernel.change import Disposition
from meantime.kernel.due_times import time_of
from meantime.kernel.durations import duration, iso
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.model import Task
from meantime.kernel.notices import canonical, payload_text
from meantime.kernel.reminder import reminder
from meantime.kernel.schedules import Schedule, is_schedule
from meantime.ports import asks
from meantime.ports.asks import Answer
from meantime.ports.dialect import Command, Offer, Policy, Problem, Said, Standing, Tool
from meantime.toolset import task_text
from meantime.toolset.arguments import tool
from meantime.toolset.performer import MOST_READ

from . import meantime_arguments, meantime_texts
from .meantime_arguments import LONGEST_WAIT


class Meantime:
    name = "meantime"
    policy = Policy()

    def status(self, status: Status, run: int) -> str:
        return status.value

    def tools(self, offer: Offer) -> Sequence[Tool]:
        found = [*self._starting(offer)] if offer.background else []
        found += [
            tool("output", meantime_texts.OUTPUT, meantime_arguments.Output, _read, _output, reads=True),
            tool("list", meantime_texts.LIST, meantime_arguments.List, _list, _listed, reads=True),
            tool(
                "wait",
                meantime_texts.WAIT.format(seconds=LONGEST_WAIT),
                meantime_arguments.Wait,
                _wait,
                _waited,
                reads=True,
            ),
        ]
        if offer.cancel:
            found.append(
                tool(
                    "cancel",
                    meantime_texts.CANCEL,
                    meantime_arguments.Cancel,
                    _cancel,
                    _cancelled,
                    cancels=True,
                )
            )
        if offer.commands or offer.agents is not None:
            text = meantime_texts.SEND if offer.agents is None else meantime_texts.SEND_AGENT
            found.append(tool("send", text, meantime_arguments.Send, _send, _sent))
        if offer.agents is not None:
            found.append(
                tool("answer", meantime_texts.ANSWER, meantime_arguments.Answer, _respond, _responded)
            )
        return found

    def _starting(self, offer: Offer) -> Sequence[Tool]:
        found: list[Tool] = []
        if offer.commands:
            found.append(
                tool("start", meantime_texts.START, meantime_arguments.Start, _start, _started, starts=True)
            )
            text, without = meantime_texts.WATCH, ()
            if not offer.plain_commands:
                text, without = meantime_texts.WATCH_NO_COMMAND, ("file", "command", "cwd")
            offered = [name for name in meantime_arguments.WATCHED if name not in without]
            takes, ask = meantime_arguments.Watch, partial(_watch, offered=offered)
            found.append(tool("watch", text, takes, ask, _watching, starts=True, without=without))
        if offer.tools:
            enums = {"name": offer.tools}
            found.append(
                tool(
                    "start_tool",
                    meantime_texts.START_TOOL,
                    meantime_arguments.StartTool,
                    _start_tool,
                    _started,
                    starts=True,
                    enums=enums,
                )
            )
        if offer.agents is not None:
            enums = {"agent": offer.agents}
            text = meantime_texts.start_agent(offer.purposes)
            found.append(
                tool(
                    "start_agent",
                    text,
                    meantime_arguments.StartAgent,
                    _start_agent,
                    _started,
                    starts=True,
                    enums=enums,
                )
            )
            found.append(
                tool(
                    "resume", meantime_texts.RESUME, meantime_arguments.Resume, _resume, _started, starts=True
                )
            )
        found.append(
            tool("remind", meantime_texts.REMIND, meantime_arguments.Remind, _remind, _reminded, starts=True)
        )
        return found

    def commands(self) -> Sequence[Command]:
        return ()  # people have the command line and the dashboard

    def guidance(self, tools: Sequence[str]) -> str:
        start = next((name for name in tools if name.startswith("start")), "")
        return meantime_texts.INSTRUCTIONS.format(start=start) if start else ""

    message = staticmethod(canonical)

    def reminder(self, standing: Standing) -> str:
        return reminder(standing.active, standing.untold, standing.parked, standing.now)

    def problem(self, problem: Problem) -> Said:
        return task_text.refusal(problem.error)


DIALECT = Meantime()


# -- what a call asks


def _start(given: meantime_arguments.Start) -> asks.StartCommand:
    more = _told(given)
    return asks.StartCommand(command=given.command, cwd=given.cwd, stdin=given.stdin, **more)


def _watch(given: meantime_arguments.Watch, offered: Sequence[str]) -> asks.StartWatch:
    shared = (
        "file",
        "port",
        "url",
        "command",
        "cwd",
        "match",
        "context",
        "once",
        "until",
        "every",
        "deadline",
    )
    named = [name for name in meantime_arguments.WATCHED if getattr(given, name) is not None]
    if len(named) != 1:
        raise InvalidInput(
            f"A watch looks at one thing, not {len(named)}.",
            hint=f"Give one of: {', '.join(offered)}.",
        )
    watch = {name: getattr(given, name) for name in shared}
    return asks.StartWatch(watch={"log": given.id, **watch}, description=given.description)


def _start_tool(given: meantime_arguments.StartTool) -> asks.StartTool:
    return asks.StartTool(name=given.name, arguments=given.arguments, **_told(given))


def _start_agent(given: meantime_arguments.StartAgent) -> asks.StartAgent:
    return asks.StartAgent(agent=given.agent, prompt=given.prompt, **_told(given))


def _told(given: meantime_arguments.Starting) -> dict[str, Any]:
    return {
        "timeout": given.timeout,
        "delay": given.delay,
        "description": given.description,
        "batch": given.batch,
    }


def _resume(given: meantime_arguments.Resume) -> asks.Resume:
    return asks.Resume(ref=given.id, prompt=given.prompt)


def _read(given: meantime_arguments.Output) -> asks.Read:
    return asks.Read(ref=given.id, tail=given.tail, offset=given.offset)


def _list(given: meantime_arguments.List) -> asks.List:
    statuses = {"active": ACTIVE, "ended": ENDED, "all": ACTIVE | ENDED}[given.status]
    coming = given.status != "ended" and given.batch is None
    return asks.List(statuses=statuses, batch=given.batch, limit=given.limit, schedules=coming)


def _wait(given: meantime_arguments.Wait) -> asks.Wait:
    return asks.Wait(refs=given.ids or (), until=given.until, seconds=given.seconds)


def _remind(given: meantime_arguments.Remind) -> asks.SetReminder:
    return asks.SetReminder(text=given.text, delay=given.delay, at=time_of(given.at))


def _cancel(given: meantime_arguments.Cancel) -> asks.Cancel | asks.CancelSchedule:
    if is_schedule(given.id):
        return asks.CancelSchedule(id=given.id)
    return asks.Cancel(ref=given.id, reason=given.reason)


def _send(given: meantime_arguments.Send) -> asks.Send:
    return asks.Send(ref=given.id, text=given.text, eof=given.eof)


def _respond(given: meantime_arguments.Answer) -> asks.Respond:
    return asks.Respond(ref=given.id, text=given.text)


# -- what its answer says


def _started(ask: asks.Ask, answer: Answer) -> Said:
    return _under_way(answer.task, meantime_texts.STARTED)


def _watching(ask: asks.StartWatch, answer: Answer) -> Said:
    return _under_way(answer.task, meantime_texts.WATCHING)


def _under_way(task: Task, told: str) -> Said:
    queued = " (queued)" if task.status is Status.QUEUED else ""
    lines = [f"Started {task.id}{queued}: {told}", *task_text.reduced(task)]
    return Said("\n".join(lines), data=_data(task))


def _output(ask: asks.Read, answer: Answer) -> Said:
    task = answer.task
    head = "\n".join([task_text.line(task, answer.now), *task_text.reduced(task)])
    if answer.chunk is not None:
        body = task_text.said(answer.chunk)
    elif task.outcome is not None and task.work.kind != "shell":  # with what went wrong, which counts as read
        body = task_text.block(payload_text(task.outcome))
    else:
        body = task_text.block(answer.output.text if answer.output else "")
    spill = task.outcome.spill if task.outcome is not None else None
    where = f"This is a part: the whole is in {spill.path}" if spill is not None else ""
    text = "\n".join(part for part in (head, body, where) if part)
    return Said(text, reads=task_text.endings(task), data=_data(task))


def _listed(ask: asks.List, answer: Answer) -> Said:
    nothing = "Nothing runs." if ask.statuses == ACTIVE else "There are no such tasks."
    data: dict[str, object] = {"tasks": [_data(task) for task in answer.tasks]}
    lines = [task_text.listed(answer.tasks, answer.now) or nothing]
    if answer.schedules:
        lines += [_coming(one, answer.now) for one in answer.schedules]
        data["reminders"] = [_schedule_data(one) for one in answer.schedules]
    return Said("\n".join(lines), data=data)


def _waited(ask: asks.Wait, answer: Answer) -> Said:
    """Endings as whole as there is room for. The others are a line each, and are told by their notices."""
    if not answer.tasks:
        return Said("Nothing runs, so there is nothing to wait for.", data={"tasks": []})
    lines: list[str] = []
    reads: list[str] = []
    room = MOST_READ
    for task in answer.tasks:
        text = task_text.shown(task, answer.now)
        if task.ended and (room == MOST_READ or len(text) <= room):
            room -= len(text)
            reads += task_text.endings(task)
        else:
            text = task_text.line(task, answer.now)
        lines.append(text)
    if not all(task.ended for task in answer.tasks):
        lines.append(meantime_texts.STILL)
    data = {"tasks": [_data(task) for task in answer.tasks]}
    return Said("\n".join(lines), reads=tuple(reads), data=data)


def _reminded(ask: asks.SetReminder, answer: Answer) -> Said:
    (schedule,) = answer.schedules
    said = _coming(schedule, schedule.created_at)  # as it was asked for: a moment has passed since
    return Said(f"{said}\n{meantime_texts.REMINDED}", data=_schedule_data(schedule))


def _coming(schedule: Schedule, now: float) -> str:
    wait = duration(max(0, round(schedule.due_at - now)))
    return f"Reminder {schedule.id}, in {wait}: {schedule.title}"


def _cancelled(ask: asks.Cancel | asks.CancelSchedule, answer: Answer) -> Said:
    if answer.schedules:
        schedule = answer.schedules[0]
        return Said(f"Cancelled the reminder {schedule.id}.", data=_schedule_data(schedule))
    task = answer.task
    late = "\nIt had ended before." if Disposition.ALREADY_ENDED in answer.dispositions else ""
    text = f"{task_text.shown(task, answer.now)}{late}"
    return Said(text, reads=task_text.endings(task), data=_data(task))


def _sent(ask: asks.Send, answer: Answer) -> Said:
    said = meantime_texts.SENT.get(answer.sent) or ("Sent." if not ask.eof else "Sent, and closed.")
    return Said(said, data=_data(answer.task))


def _responded(ask: asks.Respond, answer: Answer) -> Said:
    return Said(f"Answered {task_text.line(answer.task, answer.now)}", data=_data(answer.task))


def _schedule_data(schedule: Schedule) -> dict[str, object]:
    return {"id": schedule.id, "state": schedule.state.value, "due": iso(schedule.due_at)}


def _data(task: Task) -> dict[str, object]:
    return {"id": task.id, "status": task.status.value, "run": task.run.number}
