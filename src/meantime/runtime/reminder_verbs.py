"""The part of the runtime that gives its stages the shape of ports.reminders."""

from __future__ import annotations

from collections.abc import Sequence

from meantime.kernel.argument_checks import check_scope
from meantime.kernel.ids import check_id
from meantime.kernel.schedules import Schedule
from meantime.ports.event_loop import check_loop

from .stages import Stages


class ReminderVerbs(Stages):
    async def remind(
        self,
        thread: str,
        text: str,
        *,
        at: float | None = None,
        delay: float | None = None,
        tool_call_id: str | None = None,
    ) -> Schedule:
        check_loop(self._loop)
        return await self.reminding.remind(check_id(thread, "thread"), text, at, delay, tool_call_id)

    async def schedules(self, thread: str | None, *, limit: int = 100, offset: int = 0) -> Sequence[Schedule]:
        check_loop(self._loop)
        return await self.reminding.schedules(check_scope(thread), limit, offset)

    async def cancel_schedule(self, id: str, thread: str | None) -> Schedule:
        check_loop(self._loop)
        return await self.reminding.cancel(id, check_scope(thread))
