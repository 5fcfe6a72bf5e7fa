"""The count at the end. It does not believe the agent: the journal knows what was handed off and in which
order it ended, and the transcript knows what the conversation holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from meantime.app.meantime import Meantime
from meantime.kernel.notice_sources import parse_notice_id
from meantime.kernel.notices import Notice

PATIENCE = 10.0  # seconds for the journal to show what the ledger says


class DeliveryCheck(NamedTuple):
    handed_off: int
    told: int
    doubled: int  # tellings that were one too many
    lost: int  # handed off and not told
    in_order: bool  # told in the order in which the runs ended

    @property
    def sound(self) -> bool:
        return self.told == self.handed_off and not self.doubled and not self.lost and self.in_order

    def __str__(self) -> str:
        order = "in order" if self.in_order else "NOT in order"
        lost = f", {self.lost} LOST" if self.lost else ""
        return f"{self.handed_off} handed off, {self.told} told, {self.doubled} twice{lost}, {order}"


def compare(
    started: Sequence[str], ended: Sequence[str], held: Sequence[str], heard: Sequence[str]
) -> DeliveryCheck:
    """All are ids of tasks: by the journal, by the journal in order, in the transcript, and by the agent."""
    told = set(held) & set(heard)
    again = sum(max(held.count(id), times) - 1 for id, times in Counter(heard).items())
    in_order = list(held) == list(heard) == [id for id in ended if id in told]
    return DeliveryCheck(len(started), len(told), again, len(set(started) - told), in_order)


async def tally(mt: Meantime, thread: str, heard: Sequence[Notice]) -> DeliveryCheck:
    started, ended = await _journal(mt, thread)
    entries = await mt.thread(thread).transcript.entries()
    held = [told.of for entry in entries if (told := parse_notice_id(entry.notice or ""))]
    return compare(started, ended, held, [notice.task_id for notice in heard])


async def _journal(mt: Meantime, thread: str) -> tuple[list[str], list[str]]:
    """The journal goes on for ever: it is read until it has as many endings as the ledger has ended tasks."""
    endings = sum(task.ended for task in await mt.list(thread=thread, limit=200))
    started: list[str] = []
    ended: list[str] = []
    try:
        async with asyncio.timeout(PATIENCE):
            async for event in mt.events():
                if event.thread == thread and event.kind == "submitted":
                    started.append(event.task_id)
                if event.thread == thread and event.kind == "ended":
                    ended.append(event.task_id)
                if len(ended) >= endings:
                    break
    except TimeoutError:
        pass  # what is missing counts as not in order
    return started, ended
