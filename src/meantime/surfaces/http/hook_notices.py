"""The text for a hook of a coding agent, now or as soon as there is something."""

from __future__ import annotations

from starlette.types import Receive

from meantime.kernel.errors import Refused
from meantime.ports.owner import Owner
from meantime.ports.tasks import Tasks
from meantime.surfaces.hooks.hook_delivery import Boundary, HookDelivery, Told
from meantime.surfaces.hooks.hook_events import WAIT
from meantime.surfaces.hooks.idle_wait import IdleWaits

from .hook_hosts import HookHosts
from .http_settings import HttpSettings
from .long_polls import Polls


class HookNotices:
    def __init__(self, tasks: Tasks, owner: Owner, settings: HttpSettings, polls: Polls) -> None:
        self._polls = polls
        self._tasks = tasks
        self.hosts = HookHosts()
        self._waits = IdleWaits(tasks)
        self._telling: HookDelivery | None = None
        if settings.folder is not None:
            self._telling = HookDelivery(tasks, settings.folder, self._waits.nudge)
            self._telling.quiet.clear()
            owner.watch_notices(self._telling.quiet.remove)

    async def tell(self, at: Boundary, timeout: float, receive: Receive) -> Told:
        if self._telling is None:
            raise Refused("This server keeps no files, so it cannot know what hooks have shown.")
        waits = at.moment == WAIT
        host = self.hosts.seen(at, self._tasks.now())
        work = self._waits.wait(self._telling, at) if waits else self._telling.tell(at)
        with host.attending(waits):
            async with self._polls.waiting(receive) as poll:
                told = await poll.first(work, timeout if waits else None) or Told()
                if poll.gone.done():  # it came too late
                    await self._telling.give_back(at, told)
        return told
