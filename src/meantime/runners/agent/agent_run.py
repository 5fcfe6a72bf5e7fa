"""One run of an agent: its session, its turns, and how it ended. The same for every host."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from meantime.execution.containment import contained
from meantime.kernel.errors import MeantimeError
from meantime.kernel.fork_context import COPIED
from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import Line
from meantime.kernel.model import Failed, Task
from meantime.kernel.outcomes import RESTARTED, SESSION_KEPT, Report
from meantime.kernel.payloads import jsonable
from meantime.kernel.questions import Question, Reply
from meantime.ports.clock import Alarm, Clock
from meantime.ports.runner import Assignment, Context
from meantime.ports.session import AgentSettings, Brief, Gate, Prompt, SessionHost, Turned

from . import checkpoint, session_log
from .budget_meter import BudgetMeter
from .checkpoint import TIMEOUT, Halt, Mark
from .run_monitor import RunMonitor
from .run_turns import RunTurns
from .session_log import SessionLog

# What an agent is told by us, and not by whoever started it.
LAST_TURN = (
    "{reason} Do not call any more tools. Hand in now, in one message, what you have so far: what is done, "
    "what you found, and what is left to do."
)
WARNING = "Note of the runtime: {text}. Come to an end in time."
ANSWERED = "You were interrupted while you waited for an answer. {question}\nThe answer: {answer}\nGo on."
REFUSED = (
    "You were interrupted while you waited for an answer. {question}\nIt was refused. {answer}\n"
    "Go on without it, if you can."
)
GONE = "The session of this task is gone."
NEW_TASK = "Start a new task instead."
RESUMABLE = f"{RESTARTED} {SESSION_KEPT}"


class HostedAgent(Struct, frozen=True):
    """An agent by its settings, and the host of its sessions."""

    settings: AgentSettings
    host: SessionHost


class AgentRun:
    def __init__(
        self,
        hosted: HostedAgent,
        assignment: Assignment,
        context: Context,
        brief: Brief,
        mark: Mark | None,
        journal: SessionLog,
        gate: Gate,
        tally: BudgetMeter,
        clock: Clock,
    ) -> None:
        self._host = hosted.host
        self._settings = hosted.settings
        self._task = assignment.task
        self._context = context
        self._brief = brief
        self._journal = journal
        self._clock = clock
        monitor = self._monitor = RunMonitor(
            hosted.settings, journal, context, gate, clock, tally, self.warn, self._question_opened
        )
        self._begun = mark  # what a former owner did of this run
        self._began = clock.monotonic() - checkpoint.age(mark, self._task, clock)
        self._mark = mark or replace(checkpoint.new(self._task, clock), began=self._began)
        self._turns = RunTurns(self._host, brief, monitor, clock)
        self._alarms: list[Alarm] = []
        self._me: asyncio.Task[Any] | None = None
        self._left = False
        self._warning: asyncio.Future[Any] | None = None
        monitor.remember(self._task.answers)
        if self._task.question is not None:
            waited = checkpoint.waited(mark, self._task, clock)
            monitor.open = (self._task.question.id, clock.monotonic() - waited)

    @property
    def session(self) -> str:
        return self._mark.session

    # -- the whole

    async def run(self, seed: str) -> Report:
        """`seed`: the conversation that a fork goes on from, where its host cannot copy it."""
        self._me = asyncio.current_task()
        try:
            return await self._run(seed)
        except asyncio.CancelledError as problem:
            if self._left:
                return Report(detached=True)
            return self._ended(Report(stopped=self._context.stops > 0, exception=problem))
        except MeantimeError as problem:
            return self._ended(Report(error=Failed(str(problem), problem.code)))
        except OSError as problem:
            text = f"The state of this run could not be written: {problem.strerror}."
            return self._ended(Report(error=Failed(text, "not_kept")))
        finally:
            for alarm in self._alarms:
                alarm.cancel()
            self._monitor.close()
            if self._warning is not None:
                self._warning.cancel()

    async def _run(self, seed: str) -> Report:
        self._monitor.look()
        if self._monitor.halt is not None:  # all that it may spend is spent by others
            return self._ended(Report(error=Failed(self._monitor.halt.message, self._monitor.halt.code)))
        begun = self._begun is not None and self._begun.prompt is not None
        first = await (self._taken_up() if begun else self._first(seed))
        if isinstance(first, Report):
            return first
        self._context.in_session(self.session)
        self._set_alarms()
        self._monitor.watch()
        follows = begun and self._host.abilities.lasting
        if self._mark.halt is not None and follows:
            return await self._last_turn(self._mark.halt, first)
        turned = await self._turns.persist(self.session, first, follows=follows)
        return await self._after(turned)

    async def _after(self, turned: Turned) -> Report:
        halt = self._monitor.halt
        if self._left:
            return Report(detached=True)
        if halt is None or self._context.cancelled or turned.lost:
            return self._result(turned)
        if turned.text and not turned.stopped and turned.error is None:
            return self._result(turned)  # it was done just then
        return await self._last_turn(halt)

    # -- the beginning

    async def _first(self, seed: str) -> Prompt | Report:
        """The session is there, and its first prompt is on disk as given: it is never given twice."""
        task = self._task
        if task.status is Status.CANCELLING:
            return self._ended(Report(stopped=True))  # it was cancelled before anything was begun
        text = task.run.prompt or str(_input(task)["prompt"])
        if task.run.number > 1 or (task.session is not None and not task.forked):
            if task.session is None or not await self._host.exists(task.session, self._settings):
                return self._ended(Report(error=Failed(f"{GONE} {NEW_TASK}", "session_gone")))
            session = task.session
        else:
            session = await self._begin(seed)
            inherited = seed or (COPIED if task.forked else "")
            text = "\n\n".join(part for part in (self._settings.instructions, inherited, text) if part)
        self._mark = replace(self._mark, session=session)
        return await self._give(Prompt(text, self._key("prompt")))

    async def _begin(self, seed: str) -> str:
        source = _input(self._task).get("fork_of") if self._task.forked else None
        if source and not seed:
            return await self._host.fork(str(source["session"]), self._brief)
        return await self._host.begin(self._brief)

    async def _give(self, prompt: Prompt, halt: Halt | None = None) -> Prompt:
        self._journal.line(Line(role="user", text=prompt.text))
        mark = self._mark = replace(self._mark, prompt=prompt, question=None, halt=halt)
        await asyncio.to_thread(_keep, self._brief.folder, self._journal, mark)
        return prompt

    def _question_opened(self, question: Question | None, when: float) -> None:
        self._mark = replace(self._mark, question=question, asked=when)
        with self._monitor.keeping():
            checkpoint.save(self._brief.folder, self._mark)

    def _key(self, what: str) -> str:
        return f"{self._task.id}.{self._task.run.number}.{what}"

    async def _taken_up(self) -> Prompt | Report:
        """A former owner gave the prompt."""
        assert self._mark.prompt is not None
        question, reply = self._open_question()
        if self._host.abilities.lasting:
            self._monitor.unheard = reply
            return self._mark.prompt
        if question is None:
            partial = session_log.said_last(self._brief.folder, self._task.run.number)
            return self._ended(Report(lost=RESUMABLE, partial=partial or None))
        if not await self._host.exists(self.session, self._settings):
            return self._ended(Report(lost=f"{RESTARTED} Its session is gone, too."))
        self._context.in_session(self.session)
        reply = reply or await self._monitor.ask(question)
        if reply.allows and reply.scope == "once":
            self._monitor.grant_once(question.subject)
        words = REFUSED if reply.allows is False else ANSWERED
        answer = reply.text or ", ".join(reply.choices)
        text = words.format(question=question.text, answer=answer)
        return await self._give(Prompt(text, self._key(f"answer.{question.id}"), reply=reply))

    def _open_question(self) -> tuple[Question | None, Reply | None]:
        """The question that it still waits for, or one that was answered and perhaps never reached it."""
        if self._task.question is not None:
            return self._task.question, None
        asked = self._mark.question
        if asked is None:
            return None, None
        replies = [reply for reply in self._task.answers if reply.question == asked.id]
        mine = [reply for reply in replies if reply.run == self._task.run.number]
        return (asked, mine[-1]) if mine else (None, None)

    # -- while it goes on

    async def leave(self, *, waits: bool) -> bool:
        """We go; the turn continues, or is begun by the next owner. One that waits for an answer waits on:
        what the agent was about to do is done when the answer is there, as after a crash."""
        abilities = self._host.abilities
        goes_on = abilities.lasting or (waits and abilities.resume)
        if self._me is None or self._mark.prompt is None or not goes_on:
            return False
        self._monitor.leaving = True
        if abilities.lasting and not await self._turns.leave(self.session):
            self._monitor.leaving = False
            return False
        self._left = True
        self._me.cancel()
        return True

    async def steer(self, text: str) -> bool:
        if not self._host.abilities.steer or not self._turns.is_turning or self._monitor.last:
            return False
        if not await self._host.steer(self.session, text):
            return False
        with self._monitor.keeping():
            self._journal.line(Line(role="user", text=text))
        return True

    def warn(self, text: str) -> None:
        """The agent itself is told, if it can be."""
        if self._host.abilities.steer and self._turns.is_turning:
            self._warning = asyncio.ensure_future(self._say(WARNING.format(text=text)))

    async def _say(self, text: str) -> None:
        try:
            with contained():
                await self.steer(text)
        except Exception as problem:  # the host's own troubles; it is only a warning
            self._monitor.noted(f"it could not be warned: {type(problem).__name__}")

    # -- the end

    def _set_alarms(self) -> None:
        """Before its time is up, it is warned, and hands in what it has."""
        now = self._clock.monotonic()
        if (timeout := self._task.run.timeout) is not None:
            halt = Halt(TIMEOUT, "Its time is nearly up.", "TIMEOUT")
            left = timeout - (now - self._began) - self._settings.last_turn
            if self._settings.last_turn > 0 and left > 0:  # else it is too short for a last turn
                self._alarms.append(self._clock.call_later(left, lambda: self._monitor.stop(halt)))
        budget = self._monitor.seconds_left(now)
        if budget is not None:
            over, warning = budget
            spent = Halt("budget_spent", "The budget of time is spent.", "TIMEOUT")
            early = over - max(0.0, self._settings.last_turn)
            end = early if early > 0 else max(0.0, over)
            self._alarms.append(self._clock.call_later(end, lambda: self._monitor.stop(spent)))
            if 0 < warning < end:
                text = "80 % of its time are spent"
                self._alarms.append(self._clock.call_later(warning, lambda: self._monitor.warn("time", text)))

    async def _last_turn(self, halt: Halt, follows: Prompt | None = None) -> Report:
        said, seconds = self._monitor.partial, self._settings.last_turn
        self._monitor.last = True
        if seconds > 0:
            self._monitor.phase("hands in what it has")
            text = LAST_TURN.format(reason=halt.message)
            prompt = follows or await self._give(Prompt(text, self._key("last"), last=True), halt)
            alarm = self._clock.call_later(seconds, self._turns.end)
            try:
                turned = await self._turns.take(self.session, prompt, follows=follows is not None)
            finally:
                alarm.cancel()
            said = turned.text or self._monitor.partial or said
        if self._left:
            return Report(detached=True)
        if self._context.cancelled:
            return self._ended(Report(stopped=True, partial=said or None))
        if halt.code == TIMEOUT:
            return self._ended(Report(timed_out=True, partial=said or None, final_message=said))
        reason = halt.terminate_reason
        error = Failed(halt.message, halt.code, final_message=said, terminate_reason=reason)
        return self._ended(Report(error=error, partial=said or None))

    def _result(self, turned: Turned) -> Report:
        if turned.error is not None:
            return self._ended(Report(error=turned.error))
        if turned.lost:
            return self._ended(Report(lost=turned.lost))
        if turned.stopped:
            return self._ended(Report(stopped=True))
        result = turned.result or jsonable(turned.text)
        return self._ended(Report(result=result, final_message=turned.text))

    def _ended(self, report: Report) -> Report:
        partial = report.partial if report.result or report.partial else self._monitor.partial or None
        return replace(report, session=self.session or self._task.session, partial=partial)


def _keep(folder: Path, journal: SessionLog, mark: Mark) -> None:
    journal.sync()
    checkpoint.save(folder, mark, durable=True)


def _input(task: Task) -> dict[str, Any]:
    return cast("dict[str, Any]", task.work.input)
