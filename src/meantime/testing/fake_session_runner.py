"""An agent runner without a model: sessions with history, scripted replies, gates, model errors."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from meantime.kernel.lines import Line
from meantime.kernel.model import Failed, Json, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import jsonable
from meantime.kernel.provider_errors import judge
from meantime.ports.runner import Abilities, Assignment, Context, Standing


class Reply(Struct, frozen=True):
    """The agent's actions in one run: it calls tools, emits values, then says `text` or fails."""

    text: Json = ""
    tools: tuple[str, ...] = ()
    emits: dict[str, Json] = {}
    error: Failed | None = None
    final_message: str = ""
    terminate_reason: str = ""
    stubborn: bool = False  # it hears a stop, and finishes all the same


class Session:
    """One working conversation. `history` is all it knows: (role, text), oldest first."""

    def __init__(self, id: str, agent: str) -> None:
        self.id = id
        self.agent = agent
        self.history: list[tuple[str, str]] = []
        self.requests = 0  # sent to the model, those that failed included


Script: TypeAlias = "str | Reply | Callable[[Session], str | Reply]"


class FakeSessionRunner:
    """Performs `Agent(name, prompt)`. Hand the same one to a second Meantime.open: sessions survive.

    replies: what every agent says, or a dict by the agent's name; a function sees the session.
    """

    kind = "agent"
    abilities = Abilities(resume=True, talk=True)

    def __init__(self, replies: Script | dict[str, Script] = "done") -> None:
        self._by_agent: dict[str, Script] = replies if isinstance(replies, dict) else {}
        self._replies: Script = "done" if isinstance(replies, dict) else replies
        self.sessions: dict[str, Session] = {}
        self.at_gate: list[str] = []  # ids of tasks that wait at a gate now
        self._gates: dict[str, asyncio.Event] = {}
        self._errors: deque[int] = deque()

    # -- the script

    def hold(self, *agents: str) -> None:
        """Runs of these agents stop before they answer, until `release`; no name is every agent."""
        for agent in agents or ("*",):
            self._gates[agent] = asyncio.Event()

    def release(self, *agents: str) -> None:
        for agent in agents or list(self._gates):
            self._gates.pop(agent, asyncio.Event()).set()

    def new_session(self, id: str, agent: str) -> Session:
        """A session that is there already, as an agent's own store would still have it after a restart."""
        return self.sessions.setdefault(id, Session(id, agent))

    def lose(self, session: str) -> None:
        """The session is gone, as if its store had been deleted."""
        del self.sessions[session]

    def fail_requests(self, *statuses: int) -> None:
        """The next requests to the model get these HTTP statuses; the retryable ones are tried again."""
        self._errors.extend(statuses)

    # -- the port

    def check(self, task: Task, assignment: Assignment) -> None:
        """Every agent is known here."""

    def can_run(self, task: Task) -> bool:
        return task.session is None or task.session in self.sessions

    async def exists(self, task: Task) -> bool:
        return task.session in self.sessions

    def standing(self, name: str) -> Standing:
        return Standing()

    def session_of(self, task: Task) -> str | None:
        return task.session

    async def steer(self, task: Task, text: str) -> bool:
        return False  # so that what is said becomes a follow-up

    async def lines(self, task: Task) -> Sequence[Line]:
        session = self.sessions.get(task.session or "")
        found: list[Line] = []
        for role, text in session.history if session else ():
            begun = role == "user"  # every prompt begins a run
            run = (found[-1].run if found else 0) + begun
            found.append(Line(role=role, text=text, run=run))
        return found

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task = assignment.task
        session = self.new_session(task.session or f"s-{task.id}", task.work.name)
        context.in_session(session.id)
        session.history.append(("user", task.run.prompt or str(task.work.input["prompt"])))
        reply = self._reply(session)
        try:
            refusal = await self._ask_model(session, reply, context)
            await self._pass_gate(task)
        except asyncio.CancelledError:
            if not reply.stubborn:
                # Said here and not raised, so that the session is known and can be taken up again.
                return Report(stopped=True, session=session.id)
            refusal = None
        if (error := refusal or reply.error) is not None:
            return Report(error=error, session=session.id)
        session.history.append(("assistant", str(reply.text)))
        return Report(
            result=jsonable(reply.text),
            final_message=reply.final_message,
            terminate_reason=reply.terminate_reason,
            session=session.id,
        )

    # -- the steps of a run

    def _reply(self, session: Session) -> Reply:
        script = self._by_agent.get(session.agent, self._replies)
        said = script if isinstance(script, str | Reply) else script(session)
        return Reply(said) if isinstance(said, str) else said

    async def _ask_model(self, session: Session, reply: Reply, context: Context) -> Failed | None:
        """A retryable error is retried, and nobody outside is told of it."""
        for tool in reply.tools:
            context.progress(tool=tool)
            session.history.append(("tool", tool))
        for name, value in reply.emits.items():
            context.emit(name, value)
        while True:
            session.requests += 1
            if not self._errors:
                return None
            status = self._errors.popleft()
            if not judge("", status).passes:
                return Failed(f"The model answered HTTP {status}.", code=f"http_{status}")
            await asyncio.sleep(0)

    async def _pass_gate(self, task: Task) -> None:
        gate = self._gates.get(task.work.name) or self._gates.get("*")
        if gate is None:
            return
        self.at_gate.append(task.id)
        try:
            await gate.wait()
        finally:
            self.at_gate.remove(task.id)
