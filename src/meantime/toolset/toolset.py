"""The tools of one conversation, in one dialect. The carrier of the calls (MCP, a framework, a loop of one's
own) gets names, schemas and texts from here; errors are texts with a stable code, never exceptions.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any

from msgspec import Struct

from meantime.conversation.dialect_lookup import OWN, Wording, configured, dialect_of
from meantime.conversation.turn import Turn
from meantime.kernel.argument_checks import check_kind, check_text, shown
from meantime.kernel.errors import Ambiguous, Closed, InvalidInput, MeantimeError, NotFound, Refused
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import NO_LIMIT
from meantime.kernel.lines import Line
from meantime.kernel.model import Event, InlineLimits, Task
from meantime.kernel.plain_text import plain
from meantime.ports import asks
from meantime.ports.asks import Ask, Starting
from meantime.ports.dialect import Command, Dialect, Offer, Problem, Published, Said, Tool
from meantime.ports.runner import CURRENT
from meantime.ports.tasks import Tasks
from meantime.toolset.arguments import parsed
from meantime.toolset.exports import Form, exported
from meantime.toolset.performer import Beat, Forking, Performer, silent
from meantime.toolset.work_catalog import Works, names_of

LOG = logging.getLogger("meantime.toolset")
MOST_LINE = 100_000  # characters of what a person types
NO_SUCH_AGENT = "Do this work yourself, or tell your user that the agent is missing."
AT_ONCE = 500  # events that are read at once


class Toolset:
    """The options of one agent's toolset.

    turn: reads of endings count as told with its ack, where the dialect says so.
    allow: only the tools with these names; an empty list is none.
    background: False takes away what hands work off. So does a depth at which no more may be started:
        `depth` is that of the task that this agent works on, and None is asked of the work that runs here.
    session, context: what a fork of this agent continues from: its session, where the host of the new agent
        can copy it, or a function that gives what was said. Otherwise it is the thread's own transcript.
    """

    def __init__(
        self,
        tasks: Tasks,
        works: Works,
        thread: str,
        dialect: Wording = OWN,
        *,
        turn: Turn | None = None,
        allow: Collection[str] | None = None,
        background: bool = True,
        allow_model_cancel: bool = True,
        depth: int | None = None,
        session: str | None = None,
        context: Callable[[], Sequence[Line]] | None = None,
        inline: InlineLimits | None = None,
    ) -> None:
        self.dialect: Dialect = configured(dialect_of(dialect), tasks)
        self._tasks = tasks
        self._thread = thread
        self._works = works
        self._turn = turn
        self._allow = None if allow is None else frozenset(names_of(allow, "allow"))
        self._background = background
        self._cancel = allow_model_cancel
        self._depth = depth
        forking = Forking(session, context)
        self._performer = Performer(tasks, works, thread, self.dialect.policy, inline, forking)
        self._offered: dict[str, Tool] | None = None

    # -- for models

    def begin(self, turn: Turn | None) -> None:
        """Endings that the model reads from now on count as told with the ack of this turn.

        turn: the one that has just been opened; None where there is none.
        """
        self._turn = None if turn is None else check_kind(turn, Turn, "turn")

    def declare(self) -> list[Tool]:
        """The model's tools now, as `tools()` gives them, for a constructor that cannot await. A connected
        process asks the owner for some of them: there `tools()` is awaited once before.

        Raises InvalidInput where the tools are not known without asking.
        """
        asking = self.tools()
        try:
            asking.send(None)
        except StopIteration as found:
            return found.value
        asking.close()
        if self._offered is None:
            raise InvalidInput(
                "These tools are not known without asking the owner of the ledger.",
                hint="Once before: await toolset.tools()",
            )
        return list(self._offered.values())

    async def tools(self) -> list[Tool]:
        """The model's tools now: name, description and schema of each."""
        agents = await self._works.agents()
        offer = Offer(
            agents=None if agents is None else tuple(agents),
            purposes=dict(agents or {}),
            tools=tuple(await self._works.registered_tools()),
            commands=self._works.commands,
            plain_commands=self._works.plain_commands,
            background=self._background and self._may_start(),
            cancel=self._cancel and self.dialect.policy.model_cancels,
        )
        found = list(self.dialect.tools(offer))
        if self._allow is not None:
            found = [tool for tool in found if tool.name in self._allow]
        self._offered = {tool.name: tool for tool in found}
        return found

    async def schemas(self, form: Form) -> list[dict[str, Any]]:
        """The tools as "openai", "anthropic", "mcp" or "gemini" wants them."""
        return exported(await self.tools(), form)

    async def guidance(self) -> str:
        """For the system prompt of an agent that has these tools."""
        return self.dialect.guidance([tool.name for tool in await self.tools()])

    async def call(
        self,
        name: str,
        arguments: object = None,
        beat: Beat = silent,
        *,
        tool_call_id: str | None = None,
        message_id: str | None = None,
    ) -> Said:
        """Performs a tool call of the model. Never raises for what a model did wrong: the answer says it.

        name: the tool.
        arguments: a mapping, or the JSON text of one.
        beat: is told how long a wait has lasted, and how long it lasts at most.
        tool_call_id: a second start for the same one is refused.
        message_id: the message of the conversation that asked.
        """
        ask: Ask | None = None
        name = _name(name)
        try:
            tool = await self._tool(name)
            ask = tool.ask(parsed(tool.takes, arguments))
            answer = await self._performer.perform(
                ask, beat, tool_call_id=tool_call_id, message_id=message_id
            )
            said = tool.say(ask, answer)
        except MeantimeError as error:
            return await self.refusal(name, _for_model(error, ask), ask)
        except Exception:
            return await self.refusal(name, _internal(name), ask)
        return await self._settled(said)

    async def starts(self, name: str) -> bool:
        """Whether this tool can hand work off."""
        try:
            return (await self._tool(name)).starts
        except NotFound:
            return False

    async def started(self, name: str, arguments: object, **options: Any) -> Task | None:
        """Starts what a tool call starts, and returns the task; None for a call that starts no new one.
        Raises.

        name: the tool.
        arguments: a mapping, or the JSON text of one.
        options: those of `Thread.start`.
        """
        tool = await self._tool(name)
        ask = tool.ask(parsed(tool.takes, arguments))
        if not isinstance(ask, Starting) or not ask.background:
            return None
        return await self._performer.start(ask, **options)

    # -- for people

    def commands(self) -> list[Command]:
        """A person's commands, with a slash before them."""
        return list(self.dialect.commands())

    async def command(self, line: str) -> Said:
        """A line that a person typed: `/tasks list`. It sees this thread, and settles nothing."""
        line = check_text(line, "line", MOST_LINE)
        words = " ".join(line.strip().removeprefix("/").split())
        ask: Ask | Said | None = None
        try:
            command, rest = self._command(words)
            ask = command.ask(rest)
            if isinstance(ask, Said):
                return ask
            said = command.say(ask, await self._performer.perform(ask, by="user"))
        except MeantimeError as error:
            return await self.refusal(f"/{words}", error, ask)
        except Exception:
            return await self.refusal(f"/{words}", _internal(words), ask)
        return said._replace(reads=())

    def _command(self, words: str) -> tuple[Command, str]:
        """The longest name that the line begins with."""
        every = self.dialect.commands()
        named = {name: command for command in every for name in (command.name, *command.aliases)}
        for name in sorted(named, key=len, reverse=True):
            if words == name or words.startswith(f"{name} "):
                return named[name], words[len(name) :].strip()
        there = ", ".join(f"/{name}" for name in named) or "none"
        raise NotFound(f"There is no command /{words[:100]}.", hint=f"There are: {there}.")

    # -- for programs, in dialects that have them

    async def summary(self) -> str:
        """How this thread's tasks stand, for a system instruction; empty where there are none."""
        dialect = self._published("summary")
        answer = await self._performer.perform(asks.List(statuses=frozenset(Status)))
        return dialect.summary(answer.tasks)

    async def bus(self) -> AsyncIterator[dict[str, Any]]:
        """Subscribes to the dialect's message bus: the messages of this thread, from now on, until this
        Meantime is closed. Raises InvalidInput for a dialect without one."""
        return self._messages(self._published("message bus"), await self._tasks.last_event())

    async def _messages(self, dialect: Published, seen: int) -> AsyncIterator[dict[str, Any]]:
        while True:
            for event in await self._tasks.events(seen, AT_ONCE):
                seen = event.seq
                if event.thread != self._thread:
                    continue
                try:
                    message = dialect.published(event, await self._as_left(event))
                except NotFound:  # purged in the meantime
                    continue
                if message is not None:
                    yield message
            try:
                await self._tasks.wait_events(seen)
            except Closed:
                return

    async def _as_left(self, event: Event) -> Task:
        """The task as the event's run left it. The journal may be ahead of what `get` answers."""
        task = await self._performer.get(event.task_id)
        if event.kind != "ended":
            return task
        if task.run.number > event.run:
            runs = await self._tasks.runs_of(task.id, self._thread)
            return next((run for run in runs if run.run.number == event.run), task)
        return task if task.ended else (await self._tasks.wait([task.id], self._thread))[0]

    def _published(self, what: str) -> Published:
        if not isinstance(self.dialect, Published):
            raise InvalidInput(
                f"The dialect {self.dialect.name} has no {what}.",
                hint='Use thread.toolset("llxprt"), or thread.reminder() for the status in any dialect.',
            )
        return self.dialect

    # -- the steps of a call

    async def _tool(self, name: str) -> Tool:
        name = _name(name)
        found = (self._offered or {}).get(name)
        if found is None:  # there may be more than when it was last asked
            await self.tools()
            found = (self._offered or {}).get(name)
        if found is None:
            there = ", ".join(self._offered or ()) or "none"
            raise NotFound(f"There is no tool {shown(name)}.", hint=f"There are: {there}.")
        return found

    async def refusal(self, name: str, error: MeantimeError, ask: Any = None) -> Said:
        """An error in the words of the dialect.

        name: the tool that was called.
        error: what is wrong.
        ask: what the call asked for, where that was understood.
        """
        name, error = _name(name), check_kind(error, MeantimeError, "error")
        if ask is not None:
            check_kind(ask, Struct, "ask")
        candidates: list[Task] = []
        task: Task | None = None
        try:
            if isinstance(error, Ambiguous):
                candidates = [await self._performer.get(id) for id in error.candidates]
            elif isinstance(error, Refused) and isinstance(ref := getattr(ask, "ref", None), str):
                task = await self._performer.get(ref)
        except MeantimeError as gone:
            LOG.debug("The requested task cannot be read: %s", gone)
        return self.dialect.problem(
            Problem(tool=name, ask=ask, error=error, candidates=candidates, task=task)
        )

    async def _settled(self, said: Said) -> Said:
        if not self.dialect.policy.reads_settle:
            return said._replace(reads=())
        if self._turn is not None and said.reads:
            try:
                await self._turn.read(*said.reads)
            except MeantimeError as problem:  # its turn is over: the notice tells it again, with the same id
                LOG.warning("Endings that were read here will be told again: %s", problem)
        return said

    def _may_start(self) -> bool:
        """Work that may not start work gets no tool for it."""
        most = self._tasks.limits().depth
        depth = self._depth
        if depth is None:
            depth = getattr(CURRENT.get(None), "depth", None)
        return most == NO_LIMIT or depth is None or depth < most


def _name(given: object) -> str:
    """A name that is not a text names no tool: it is refused as what it looks like."""
    return plain(given) if isinstance(given, str) else shown(given)


def _for_model(error: MeantimeError, ask: Ask | None) -> MeantimeError:
    """The owner's advice is to change its configuration, which a model cannot."""
    if error.code != "unknown_agent" or not isinstance(ask, asks.StartAgent):
        return error
    hint = error.hint if error.hint.startswith("There are: ") else NO_SUCH_AGENT
    return InvalidInput(f"There is no agent {shown(ask.agent)} here.", hint=hint, code=error.code)


def _internal(name: str) -> MeantimeError:
    LOG.exception("The tool %s failed.", name)
    return MeantimeError("The call failed; the log of this process says why.", code="internal")
