"""details: everything about one task that is not in the task itself, gathered from the stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from meantime.kernel.actions import Action, ActionFacts, actions
from meantime.kernel.errors import InvalidInput
from meantime.kernel.estimates import Usual
from meantime.kernel.inbox_page import InboxEntry
from meantime.kernel.limits import NO_LIMIT
from meantime.kernel.model import Progress, Task
from meantime.kernel.notices import NoticeState
from meantime.ports.engine import Engine
from meantime.ports.runner import Standing, TalkingRunner
from meantime.ports.task_details import MOST_CHILDREN, MOST_RUNS, Relative, Spent, TaskDetails

from .admit import Admission
from .announce import Announcing
from .batches import Batches
from .record import Record
from .usual_durations import UsualDurations


class Details:
    def __init__(
        self,
        record: Record,
        engine: Engine,
        admission: Admission,
        announcing: Announcing,
        batches: Batches,
        usual: UsualDurations,
    ) -> None:
        self._record = record
        self._engine = engine
        self._admission = admission
        self._announcing = announcing
        self._batches = batches
        self._usual = usual

    async def of(self, task: Task) -> TaskDetails:
        store = self._record.store
        deliveries = self._announcing.with_leases(await store.deliveries(task.id, MOST_RUNS))
        children = await store.children(task.id, MOST_CHILDREN + 1)
        await self._usual.remembering.wait()
        return TaskDetails(
            task=task,
            actions=self._actions(task, deliveries),
            deliveries=tuple(deliveries),
            usual=self._usual_of(task),
            budget=self._budget(task),
            parent=await self._parent(task),
            children=tuple(self._relative(child) for child in children[:MOST_CHILDREN][::-1]),
            more_children=len(children) > MOST_CHILDREN,
            batch=await self._batches.count(task.batch, task.thread) if task.batch else None,
            position=self._admission.position(task),
            rules=self._standing(task).rules,
        )

    def _usual_of(self, task: Task) -> Usual | None:
        """An ended task that is the only one of its kind is not compared with itself."""
        usual = self._usual.estimates.usual(task)
        return None if usual is None or (task.ended and usual.runs == 1) else usual

    def _actions(self, task: Task, deliveries: Sequence[InboxEntry]) -> tuple[Action, ...]:
        runner = self._engine.runner(task.work.kind)
        talks = runner.abilities.talk
        facts = ActionFacts(
            resumes=runner.abilities.resume,
            talks=talks,
            takes_input=runner.abilities.input,
            session=cast("TalkingRunner", runner).session_of(task) if talks else None,
            parked=tuple(entry.id for entry in deliveries if entry.state is NoticeState.PARKED),
        )
        return actions(task, facts)

    def _budget(self, task: Task) -> tuple[Spent, ...]:
        """Time for every task that has a timeout; the rest for agents."""
        runner = self._engine.runner(task.work.kind)
        limits = self._standing(task).budget
        said = task.progress or Progress()
        run = task.run
        until = run.ended_at if run.ended_at is not None else self._record.clock.now()
        seconds = run.duration if run.duration is not None else until - (run.started_at or until)
        time_limits = [one for one in (run.timeout, limits.seconds) if one is not None and one != NO_LIMIT]
        found = [Spent("seconds", max(0.0, seconds), min(time_limits, default=None))]
        if runner.abilities.talk:
            found += [
                Spent("tokens", said.tokens, _limit(limits.tokens)),
                Spent("cost", said.cost, _limit(limits.cost)),
                Spent("turns", said.turns, _limit(limits.turns)),
                Spent("tool_calls", said.calls, _limit(limits.tool_calls)),
            ]
        return tuple(found)

    def _standing(self, task: Task) -> Standing:
        """Empty for work that is not an agent's, and for an agent whose settings are gone by now."""
        runner = self._engine.runner(task.work.kind)
        if not runner.abilities.talk:
            return Standing()
        try:
            return cast("TalkingRunner", runner).standing(task.work.name)
        except InvalidInput:
            return Standing()

    async def _parent(self, task: Task) -> Relative | None:
        if task.parent is None:
            return None
        known = self._record.live.get(task.parent) or await self._record.store.load(task.parent)
        return None if known is None else self._relative(known)

    def _relative(self, task: Task) -> Relative:
        now = task if task.ended else self._record.live.get(task.id, task)
        return Relative(now.id, now.thread, now.title, now.status)


def _limit(most: float) -> float | None:
    return None if most == NO_LIMIT else most
