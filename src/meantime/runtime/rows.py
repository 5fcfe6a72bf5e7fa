"""rows: what a list shows of a task beyond the task: its delivery, its last line of output, its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import lane_of
from meantime.kernel.model import Task
from meantime.kernel.payloads import one_line
from meantime.kernel.row_facts import COUNTED_CHILDREN, LINE, MOST_FACTS, RowFacts
from meantime.ports.engine import Engine
from meantime.ports.runner import SpeakingRunner
from meantime.ports.worker_pools import HERE, Placing

from .admit import Admission
from .record import Record
from .usual_durations import UsualDurations

TAIL = 4 * LINE  # bytes of output that are looked at for its last line


class Rows:
    def __init__(
        self,
        record: Record,
        admission: Admission,
        engine: Engine,
        usual: UsualDurations,
        placing: Placing = HERE,
    ) -> None:
        self._usual = usual
        self._placing = placing
        self._record = record
        self._admission = admission
        self._engine = engine

    async def facts(self, ids: Sequence[str]) -> Sequence[RowFacts]:
        """Two questions to the store, however many tasks; and a look at the output of each that runs."""
        if len(ids) > MOST_FACTS:
            raise InvalidInput(f"{len(ids)} ids are too many.", hint=f"Ask for {MOST_FACTS} at once.")
        live = self._record.live
        store = self._record.store
        deliveries = await store.deliveries_of([id for id in ids if id not in live])
        children = await store.children_of(ids, COUNTED_CHILDREN)
        places = self._admission.slots.places(
            lane_of(task) for id in ids if (task := live.get(id)) is not None and task.status is Status.QUEUED
        )
        found: list[RowFacts] = []
        for id in ids:
            task = live.get(id)
            if task is None:
                found.append(RowFacts(id=id, delivery=deliveries.get(id), children=children.get(id, 0)))
            else:
                found.append(await self._of_live(task, places.get(id), children.get(id, 0)))
        return found

    async def _of_live(self, task: Task, position: int | None, children: int) -> RowFacts:
        said, said_at = ("", None) if task.status is Status.QUEUED else await self._last_line(task)
        used, total, kind, missing = 0, 0, "", ""
        usual = self._usual.estimates.usual(task)
        if task.status is Status.QUEUED:
            used, total, kind = self._admission.slots.full_limit(lane_of(task))
            missing = self._admission.missing(task)
        return RowFacts(
            id=task.id,
            said=said,
            said_at=said_at,
            position=position,
            slots_used=used,
            slots_total=total,
            slots_of=kind,
            missing=missing,
            children=children,
            usual_ms=None if usual is None else round(usual.seconds * 1_000),
            usual_runs=0 if usual is None else usual.runs,
        )

    async def _last_line(self, task: Task) -> tuple[str, float | None]:
        if task.place:  # a list does not wait for another machine
            return self._placing.last_line(task)
        runner = self._engine.runner(task.work.kind)
        if not runner.abilities.output:
            return "", None
        try:
            chunk = await cast("SpeakingRunner", runner).tail(task, "both", 1, TAIL)
        except Exception:  # of one runner: a list must not fail for one of its rows
            return "", None
        return one_line(chunk.text.strip(), LINE), chunk.at
