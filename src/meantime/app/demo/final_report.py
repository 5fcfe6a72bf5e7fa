"""The demo's account of itself at the end, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from meantime import __version__
from meantime.app.meantime import Meantime
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.kernel.notices import Notice
from meantime.surfaces.http.task_encoding import exit_code

from .delivery_check import DeliveryCheck, tally
from .demo_agent import ScriptedAgent
from .layout import finding
from .subagent import Subagent


class DemoReport(NamedTuple):
    url: str
    seconds: float
    tasks: Sequence[Task]  # as they were handed off
    children: Sequence[Task]  # the subagent's
    heard: Sequence[Notice]
    subheard: Sequence[Notice]
    tally: DeliveryCheck
    subtally: DeliveryCheck

    @property
    def subagent_done(self) -> bool:
        """A subagent that was stopped half-way was not told of all its children, and rightly so."""
        parents = {child.parent for child in self.children}
        return any(task.status is Status.COMPLETED and task.id in parents for task in self.tasks)

    @property
    def sound(self) -> bool:
        return self.tally.sound and (self.subtally.sound or not self.subagent_done)


async def take_account(
    mt: Meantime, agent: ScriptedAgent, subagent: Subagent, url: str, seconds: float
) -> DemoReport:
    everything = (await mt.list(limit=200))[::-1]
    return DemoReport(
        url,
        seconds,
        [task for task in everything if task.thread == agent.thread.id],
        [task for task in everything if task.thread == subagent.thread.id],
        agent.heard,
        subagent.heard,
        await tally(mt, agent.thread.id, agent.heard),
        await tally(mt, subagent.thread.id, subagent.heard),
    )


def as_json(account: DemoReport, kept: str | None) -> str:
    whole = {
        "version": __version__,
        "url": account.url,
        **_counts(account.tally),
        "seconds": round(account.seconds, 3),
        "kept": kept,
        "tasks": [_task(task, account) for task in account.tasks],
        "notices": [_notice(notice) for notice in account.heard],
        "subagent": {
            **_counts(account.subtally),
            "notices": [_notice(notice) for notice in account.subheard],
        },
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode()


def _counts(count: DeliveryCheck) -> dict[str, Any]:
    return {
        "handedOff": count.handed_off,
        "told": count.told,
        "doubled": count.doubled,
        "lost": count.lost,
        "inOrder": count.in_order,
    }


def _task(task: Task, account: DemoReport) -> dict[str, Any]:
    numbers = {notice.task_id: notice.number for notice in (*account.heard, *account.subheard)}
    shown: dict[str, Any] = {
        "id": task.id,
        "title": task.title,
        "kind": task.work.kind,
        "status": task.status,
        "seconds": round(task.run.duration or 0.0, 3),
        "exitCode": exit_code(task),
        "told": numbers.get(task.id),
    }
    children = [_task(child, account) for child in account.children if child.parent == task.id]
    return {**shown, "children": children} if children else shown


def _notice(notice: Notice) -> dict[str, Any]:
    return {
        "number": notice.number,
        "id": notice.id,
        "task": notice.task_id,
        "status": notice.task.status,
        "delivery": notice.delivery,
        "text": finding(notice),
    }
