"""One run of an agent: its session, its turns, and how it ended. The same for every host."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from meantime.kernel.conversation import Line
from meantime.kernel.errors import MeantimeError
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Failed, Task
from meantime.kernel.outcomes import RESTARTED, Report
from meantime.kernel.payloads import jsonable
from meantime.ports.clock import Clock
from meantime.ports.runner import Assignment, Context
from meantime.ports.session import AgentSettings, Brief, LastingHost, Prompt, SessionHost, Turned

from .ear import Ear, Halt
from .journal import Journal
from .words import ANSWERED, LAST_TURN, REFUSED, WARNING

RESUMABLE = f"{RESTARTED} Its session is kept: resume it to go on."
PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)  # seconds between tries, where the provider names none


class Employed(Struct, frozen=True):
    """An agent by its settings, and the host of its sessions."""

    settings: AgentSettings
    host: SessionHost


class Drive:
    def __init__(
        self,
        employed: Employed,
        assignment: Assignment,
        context: Context,
        brief: Brief,
        seed: str,
        journal: Journal,
        ear: Ear,
        clock: Clock,
        age: float,
    ) -> None:
        self._host = employed.host
        self._settings = employed.settings
        self._task = assignment.task
        self._again = assignment.again
        self._context = context
        self._brief = brief
        self._seed = seed
        self._journal = journal
        self._ear = ear
        self._clock = clock
        self._began = clock.monotonic() - age
        self._left = False
        self._turning: asyncio.Future[Turned] | None = None
        self.session = ""

    # -- the whole

    async def run(self) -> Report:
        task = self._task
        try:
            first = await self._first()
            if isinstance(first, Report):
                return first
        except MeantimeError as problem:
            return self._ended(Report(error=Failed(str(problem), problem.code)))
        self._context.in_session(self.session)
        alarm = self._near_the_end()
        self._ear.watch()
        try:
            follows = self._again and self._host.abilities.lasting and task.status is not Status.WAITING
            turned = await self._persist(first, follows=follows)
            if self._left:
                return Report(detached=True)
            if self._ear.halt is not None and not turned.stopped and turned.text:
                return self._result(turned)  # it was done just then
            if self._ear.halt is not None and not self._context.cancelled:
                return await self._last_turn(self._ear.halt)
            return self._result(turned)
        finally:
            if alarm is not None:
                alarm.cancel()
            self._ear.close()
            self._journal.sync()

    async def _first(self) -> Prompt | Report:
        """The session is there, and what is to be said in it first; or why there is nothing to be said."""
        task = self._task
        if self._again:
            return await self._taken_up()
        text = task.run.prompt or str(_input(task)["prompt"])
        if task.run.number > 1 or (task.session is not None and not task.forked):
            if task.session is None or not await self._host.exists(task.session, self._settings):
                return Report(error=Failed("The session of this task is gone.", "session_gone"))
            self.session = task.session
        else:
            self.session = await self._begin()
            if self._settings.instructions:
                text = f"{self._settings.instructions}\n\n{text}"
            if self._seed:
                text = f"{self._seed}\n\n{text}"
        self._journal.line(Line(role="user", text=text))
        return Prompt(text, self._key("prompt"))

    async def _begin(self) -> str:
        source = _input(self._task).get("fork_of") if self._task.forked else None
        if source and self._host.abilities.fork and not self._seed:
            return await self._host.fork(str(source["session"]), self._brief)
        return await self._host.begin(self._brief)

    async def _taken_up(self) -> Prompt | Report:
        """A former owner began this run."""
        task = self._task
        if task.session is None:
            return Report(lost=RESTARTED)
        self.session = task.session
        if self._host.abilities.lasting:
            return Prompt(task.run.prompt or str(_input(task)["prompt"]), self._key("prompt"))
        if task.question is None:
            return Report(lost=RESUMABLE, session=task.session, partial=None)
        question = task.question
        self._context.in_session(self.session)
        reply = await self._ear.ask(question)
        if reply.allows and reply.scope == "once":
            self._ear.grant_once(question.subject)
        words = REFUSED if reply.allows is False else ANSWERED
        answer = reply.text or ", ".join(reply.choices)
        text = words.format(question=question.text, answer=answer)
        self._journal.line(Line(role="user", text=text))
        return Prompt(text, self._key(f"answer.{question.id}"))

    def _key(self, what: str) -> str:
        return f"{self._task.id}.{self._task.run.number}.{what}"

    # -- turns

    async def _persist(self, prompt: Prompt, *, follows: bool = False) -> Turned:
        """A provider's troubles are waited out, and nobody hears of them."""
        while True:
            turned = await self._paced(prompt, follows=follows)
            if turned.error is None or not turned.retryable or self._ear.halt or self._context.cancelled:
                return turned
            self._ear.phase(f"waits for the provider (try {prompt.again + 2})")
            pause = PAUSES[min(prompt.again, len(PAUSES) - 1)]
            await self._sleep(pause if turned.retry_after is None else turned.retry_after)
            if self._ear.halt:
                return turned
            prompt, follows = replace(prompt, again=prompt.again + 1), False

    async def _paced(self, prompt: Prompt, *, follows: bool) -> Turned:
        if self._host.abilities.paced:
            return await self._turn(prompt, follows=follows)
        await self._ear.gate.enter()
        turned = Turned()
        try:
            turned = await self._turn(prompt, follows=follows)
            return turned
        finally:
            self._ear.gate.leave(limited=turned.rate_limited, retry_after=turned.retry_after)

    async def _turn(self, prompt: Prompt, *, follows: bool = False) -> Turned:
        """To its end, or to a halt. A stop of ours is passed on, and a second one again: harder."""
        host = self._host
        say = cast("LastingHost", host).follow if follows else host.prompt
        turning = asyncio.ensure_future(say(self.session, prompt, self._brief, self._ear))
        halting = asyncio.ensure_future(self._ear.halted.wait())
        self._turning = turning
        try:
            if not prompt.last:
                await asyncio.wait({turning, halting}, return_when=asyncio.FIRST_COMPLETED)
                if not turning.done():
                    turning.cancel()
            await self._outlast(turning)
        except asyncio.CancelledError:
            turning.cancel()
            await self._outlast(turning)
        finally:
            halting.cancel()
            self._turning = None
        return Turned(stopped=True) if turning.cancelled() else turning.result()

    async def _outlast(self, turning: asyncio.Future[Turned]) -> None:
        while not turning.done():
            try:
                await asyncio.wait({turning})
            except asyncio.CancelledError:
                turning.cancel()

    async def leave(self) -> bool:
        """We go; the turn goes on, where it can."""
        if not self._host.abilities.lasting or not self.session or self._turning is None:
            return False
        self._ear.leaving = True
        if not await cast("LastingHost", self._host).leave(self.session):
            self._ear.leaving = False
            return False
        self._left = True
        self._turning.cancel()
        return True

    async def steer(self, text: str) -> bool:
        if not self._host.abilities.steer or self._turning is None or self._turning.done():
            return False
        if not await self._host.steer(self.session, text):
            return False
        self._journal.line(Line(role="user", text=text))
        return True

    def warn(self, text: str) -> None:
        """The agent itself is told, where it can hear it."""
        if self._host.abilities.steer and self.session:
            warning = asyncio.ensure_future(self._host.steer(self.session, WARNING.format(text=text)))
            self._warning = warning  # kept, so that it is not collected before it is done

    # -- the end

    def _near_the_end(self) -> Any:
        """Before its time is up, it hands in what it has."""
        limits = [self._task.run.timeout, self._settings.budget.seconds]
        ends = [end for end in limits if end is not None and end > 0]
        if not ends or (last := self._settings.last_turn) <= 0:
            return None
        left = min(ends) - last - (self._clock.monotonic() - self._began)
        if left <= 0:
            return None  # too short for a last turn
        timed = self._task.run.timeout is not None and min(ends) == self._task.run.timeout
        halt = Halt("timeout" if timed else "budget_spent", "Its time is nearly up.", "TIMEOUT")
        return self._clock.call_later(left, lambda: self._ear.stop(halt))

    async def _last_turn(self, halt: Halt) -> Report:
        said = self._ear.partial
        self._ear.last = True
        if self._settings.last_turn > 0:
            self._ear.phase("hands in what it has")
            prompt = Prompt(LAST_TURN.format(reason=halt.message), self._key("last"), last=True)
            self._journal.line(Line(role="user", text=prompt.text))
            alarm = self._clock.call_later(self._settings.last_turn, self._end_turn)
            try:
                turned = await self._turn(prompt)
            finally:
                alarm.cancel()
            said = turned.text or self._ear.partial or said
        partial = said or None
        if halt.code == "timeout":
            return self._ended(Report(timed_out=True, partial=partial, final_message=said))
        error = Failed(halt.message, halt.code, partial=partial, final_message=said,
                       terminate_reason=halt.terminate_reason)  # fmt: skip
        return self._ended(Report(error=error, partial=partial))

    def _end_turn(self) -> None:
        if self._turning is not None:
            self._turning.cancel()

    def _result(self, turned: Turned) -> Report:
        partial = self._ear.partial or None
        if turned.error is not None:
            return self._ended(Report(error=turned.error, partial=partial))
        if turned.lost:
            return self._ended(Report(lost=turned.lost, partial=partial))
        if turned.stopped:
            return self._ended(Report(stopped=True, partial=partial))
        result = turned.result or jsonable(turned.text)
        return self._ended(Report(result=result, final_message=turned.text))

    def _ended(self, report: Report) -> Report:
        return replace(report, session=self.session or None)

    async def _sleep(self, seconds: float) -> None:
        """Until then, or until the run is to end."""
        halting = asyncio.ensure_future(self._ear.halted.wait())
        alarm = self._clock.call_later(seconds, halting.cancel)
        try:
            await asyncio.wait({halting})
        finally:
            alarm.cancel()
            halting.cancel()


def _input(task: Task) -> dict[str, Any]:
    return cast("dict[str, Any]", task.work.input)
