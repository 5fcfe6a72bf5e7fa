"""A hook of a coding agent asks here: what is there to tell, now or as soon as there is something."""

from __future__ import annotations

from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from meantime.kernel.errors import InvalidInput, Refused
from meantime.surfaces.hooks.idle_wait import IdleWaits
from meantime.surfaces.hooks.moments import WAIT
from meantime.surfaces.hooks.telling import Boundary, Telling, Told

from . import answers, asking
from .body import Body
from .endpoint import Table, thread_of
from .parts import Parts

LONGEST = 600.0  # seconds of one wait
LONGEST_NAME = 4_096  # characters of a session's name, or of a path


class TellBody(Body):
    moment: Literal["session-start", "user-prompt", "post-tool", "stop", "wait"]
    session: str = ""
    transcript: str = ""
    host: str = ""
    timeout: float = LONGEST


class Hooks:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._waits = IdleWaits(parts.tasks)
        self._telling: Telling | None = None
        if parts.settings.folder is not None:
            self._telling = Telling(parts.tasks, parts.settings.folder, self._waits.nudge)
            self._telling.quiet.clear()
            parts.owner.watch_notices(self._telling.quiet.remove)

    def table(self) -> Table:
        return {"POST /v1/threads/{id}/tell": self.tell}

    async def tell(self, request: Request) -> Response:
        thread = asking.own_thread(request.path_params["id"], thread_of(request))
        body = await self._parts.body(request, TellBody)
        if max(map(len, (body.session, body.transcript, body.host))) > LONGEST_NAME:
            raise InvalidInput(f"session, transcript, host: at most {LONGEST_NAME} characters.")
        if not 0 <= body.timeout <= LONGEST:
            raise InvalidInput(f"timeout: a wait takes from 0 to {LONGEST:g} seconds.")
        if self._telling is None:
            raise Refused("This door keeps no files, so it cannot know what hooks have shown.")
        at = Boundary(thread, body.moment, body.session, body.transcript, body.host)
        waits = body.moment == WAIT
        work = self._waits.wait(self._telling, at) if waits else self._telling.tell(at)
        async with self._parts.polls.waiting(request.receive) as poll:
            told = await poll.first(work, body.timeout if waits else None) or Told()
            if poll.gone.done():  # it came too late
                await self._telling.give_back(at, told)
        return answers.json({"text": told.text, "turn": told.turn or None, "over": told.over})
