"""Performs `Agent(name, prompt)`: finds who is meant, and drives its host."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from meantime.kernel.budgets import Spending
from meantime.kernel.errors import InvalidInput, MeantimeError, NotFound, Refused
from meantime.kernel.fork_context import seed
from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import Line, LinePage
from meantime.kernel.model import Chunk, Failed, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.questions import PermissionRules
from meantime.ports.clock import Clock
from meantime.ports.runner import Abilities, Assignment, Context, Leftovers, Standing
from meantime.ports.session import AgentSettings, Brief, KeepingHost, SessionHost

from . import checkpoint, session_log
from .agent_run import AgentRun, HostedAgent
from .budget_meter import BudgetMeter
from .concurrency_limit import Capacities
from .segmented_log import Segments
from .session_log import SessionLog

HOME = "MEANTIME_HOME"
TALLIES = 1_000  # of runs that are over, for what they have started


class AgentRunner:
    kind = "agent"
    abilities = Abilities(resume=True, adopt=True, output=True, talk=True, keep=True, pages=True)

    def __init__(self, agents: Mapping[str, HostedAgent], clock: Clock, root: Path | None = None) -> None:
        """`root`: where conversations are kept; None forgets them."""
        self.agents = dict(agents)
        self._clock = clock
        self._root = root
        self._forgets = root is None
        self._capacities = Capacities(clock)
        self._runs: dict[str, AgentRun] = {}
        self._journals: dict[str, SessionLog] = {}
        self._tallies: dict[str, BudgetMeter] = {}

    # -- life

    def open(self) -> None:
        if self._forgets:
            self._root = Path(tempfile.mkdtemp(prefix="meantime-agents-"))
        assert self._root is not None
        names: Counter[str] = Counter()
        for host in self._session_hosts():
            name = _folder_name(host)
            names[name] += 1
            folder = self._root / (name if names[name] == 1 else f"{name}.{names[name]}")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            host.open(folder)

    def _session_hosts(self) -> list[SessionHost]:
        return list({id(hosted.host): hosted.host for hosted in self.agents.values()}.values())

    async def close(self) -> None:
        await asyncio.gather(*(host.close() for host in self._session_hosts()), return_exceptions=True)
        if self._forgets and self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    def _folder(self, id: str) -> Path:
        assert self._root is not None, "not open"
        return self._root / f"@{id}"  # so that no id is a name with a meaning

    def _agent(self, name: str) -> HostedAgent:
        found = self.agents.get(name)
        if found is not None:
            return found
        near = get_close_matches(name, self.agents, 3) or sorted(self.agents)[:20]
        known = f"There are: {', '.join(near)}." if near else "Name one: [agents.NAME] in the configuration."
        raise InvalidInput(f"There is no agent {name!r} here.", hint=known, code="unknown_agent")

    def _agent_for(self, task: Task) -> HostedAgent:
        """A task may have fewer tools than its agent, and never more."""
        hosted, given = self._agent(task.work.name), _input(task).get("tools")
        if given is None:
            return hosted
        if not isinstance(given, list) or not all(isinstance(one, str) for one in cast("list[Any]", given)):
            raise InvalidInput("tools is a list of names.", hint="An empty one is none.")
        own = hosted.settings.tools
        fewer = tuple(one for one in cast("list[str]", given) if own is None or one in own)
        return replace(hosted, settings=replace(hosted.settings, tools=fewer))

    def check(self, task: Task, assignment: Assignment) -> None:
        hosted = self._agent_for(task)
        hosted.host.check(task.work.name, hosted.settings)
        given = _input(task)
        if task.forked and not given.get("context") and not given.get("fork_of"):
            raise InvalidInput(
                "There is no conversation to fork.",
                code="nothing_to_fork",
                hint="Give its lines as context=[…], or the task to fork as fork_of=….",
            )
        source, abilities = given.get("fork_of"), hosted.host.abilities
        if task.forked and source and not source["task"] and not (abilities.fork or abilities.history):
            raise InvalidInput(
                f"{task.work.name} cannot fork a session that it has not worked in here.",
                code="nothing_to_fork",
                hint="Give the conversation as context=[…].",
            )

    def can_run(self, task: Task) -> bool:
        return task.work.faithful and task.work.name in self.agents

    async def exists(self, task: Task) -> bool:
        hosted = self.agents.get(task.work.name)
        if hosted is None or task.session is None or not hosted.host.abilities.resume:
            return False
        return await hosted.host.exists(task.session, hosted.settings)

    def standing(self, name: str) -> Standing:
        settings = self._agent(name).settings
        rules = PermissionRules(
            allow=settings.allow,
            deny=settings.deny,
            otherwise=settings.otherwise,
            answer_within=settings.answer_within,
        )
        return Standing(settings.timeout, settings.depth, settings.budget, rules)

    # -- one run

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task = assignment.task
        hosted = self._agent_for(task)
        settings, folder = hosted.settings, self._folder(task.id)
        context.limit_children(settings.depth)
        mark = checkpoint.load(folder, task) if assignment.again else None
        began = self._clock.monotonic() - checkpoint.age(mark, task, self._clock)
        journal = SessionLog(folder, self._clock, task.run.number, again=assignment.again)
        tally = self._tally(task, settings, began)
        key = settings.model or settings.url or task.work.name
        gate = self._capacities.of(key, beside=task.above in self._runs)
        brief = self._brief(task, hosted)
        run = AgentRun(hosted, assignment, context, brief, mark, journal, gate, tally, self._clock)
        self._journals[task.id], self._tallies[task.id], self._runs[task.id] = journal, tally, run
        try:
            return await run.run(await self._seed(task, hosted))
        except MeantimeError as problem:
            return Report(error=Failed(str(problem), problem.code))
        finally:
            del self._runs[task.id], self._journals[task.id]
            self._let_go(task.id)
            journal.stir()

    def _tally(self, task: Task, settings: AgentSettings, began: float) -> BudgetMeter:
        """Spending from before a restart counts."""
        tally = BudgetMeter(settings.budget, settings.tree, self._tallies.get(task.above or ""), began)
        if (was := task.progress) is not None:
            tally.add(Spending(was.turns, was.calls, was.tokens, was.cost))
        return tally

    def _let_go(self, id: str) -> None:
        """Tasks that it has started may go on, or not even have begun, and still belong to its tree."""
        self._tallies[id] = self._tallies.pop(id)
        if len(self._tallies) > TALLIES:
            done = next((one for one in self._tallies if one not in self._runs), None)
            if done is not None:
                del self._tallies[done]

    def _brief(self, task: Task, hosted: HostedAgent) -> Brief:
        cwd = str(_input(task).get("cwd") or hosted.settings.cwd or Path.cwd())
        env = {
            "MEANTIME_TASK": task.id,
            "MEANTIME_THREAD": task.id,
        }  # what it starts is its own
        home = os.environ.get(HOME)
        if home and HOME not in hosted.settings.env:
            env[HOME] = home  # else it would hand its work to another daemon than ours
        folder = self._folder(task.id)
        source = _input(task).get("fork_of") or {}
        return Brief(
            task.id,
            task.work.name,
            hosted.settings,
            cwd,
            task.title,
            task.thread,
            folder,
            env,
            forked_from=str(source.get("task") or ""),
        )

    async def _seed(self, task: Task, hosted: HostedAgent) -> str:
        """The conversation that a fork goes on from, where its host cannot copy it."""
        given = _input(task)
        if not task.forked or task.run.number > 1:
            return ""
        if given.get("context"):
            return str(given["context"])
        source = cast("dict[str, str]", given["fork_of"])
        same_host = self._session_host_of(source, task) is hosted.host
        if hosted.host.abilities.fork and same_host:
            return ""
        lines = await self._said_in(source, task)
        if not lines:
            raise Refused(
                "The conversation to fork is gone.", code="nothing_to_fork", hint="Give it as context=[…]."
            )
        return await asyncio.to_thread(seed, lines)

    def _session_host_of(self, source: dict[str, str], task: Task) -> SessionHost | None:
        found = self.agents.get(source["agent"] or task.work.name)
        return None if found is None else found.host

    async def _said_in(self, source: dict[str, str], task: Task) -> Sequence[Line]:
        """Its host's copy, which may have more than ours; otherwise our own."""
        found = self.agents.get(source["agent"] or task.work.name)
        if found is not None and found.host.abilities.history:
            lines = await found.host.lines(source["session"], found.settings)
            if lines:
                return lines
        if not source["task"]:
            return []
        return await asyncio.to_thread(session_log.lines, self._folder(source["task"]))

    def session_of(self, task: Task) -> str | None:
        run = self._runs.get(task.id)
        return run.session or task.session if run is not None else task.session

    async def steer(self, task: Task, text: str) -> bool:
        run = self._runs.get(task.id)
        return run is not None and await run.steer(text)

    async def line_page(self, task: Task, offset: int, most: int) -> LinePage:
        return await asyncio.to_thread(session_log.page, self._folder(task.id), offset, most)

    async def lines(self, task: Task) -> Sequence[Line]:
        return await asyncio.to_thread(session_log.lines, self._folder(task.id))

    # -- what outlives us

    def prepare(self, task: Task) -> None:
        pass

    def knows_whose(self, task: Task) -> bool:
        return False

    def age(self, task: Task) -> float:
        return checkpoint.age(checkpoint.load(self._folder(task.id), task), task, self._clock)

    async def detach(self, task: Task) -> bool:
        run = self._runs.get(task.id)
        waits = task.status is Status.WAITING and self._root is not None
        return run is not None and await run.leave(waits=waits)

    def keep(self, task: Task, kept: bool) -> None:
        pass

    async def end_leftovers(self, task: Task) -> Leftovers:
        return Leftovers()

    def forget(self, task: Task) -> None:
        shutil.rmtree(self._folder(task.id), ignore_errors=True)

    async def sweep(
        self, active: Iterable[Task], known: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None:
        if self._root is None or not self._root.exists():
            return
        spared = {self._folder(id) for id in (*self._runs, *(task.id for task in active))}
        for folder in list(self._root.glob("@*")):
            old = time.time() - folder.stat().st_mtime >= older_than
            if folder not in spared and old and not await known(folder.name[1:]):
                shutil.rmtree(folder, ignore_errors=True)

    def forget_session(self, task: Task) -> None:
        hosted = self.agents.get(task.work.name)
        if hosted is not None and hosted.host.abilities.keeps and task.session is not None:
            cast("KeepingHost", hosted.host).forget(task.session)

    async def sweep_sessions(
        self, active: Iterable[Task], used: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None:
        found = [checkpoint.load(self._folder(task.id), task) for task in active]
        spared = {mark.session for mark in found if mark is not None}
        spared |= {run.session for run in self._runs.values()}  # also of calls, which are no tasks yet
        for host in self._session_hosts():
            if host.abilities.keeps:
                keeping = cast("KeepingHost", host)
                for session in await asyncio.to_thread(keeping.old_sessions, older_than):
                    if session not in spared and not await used(session):
                        keeping.forget(session)

    # -- what it says

    async def read(self, task: Task, stream: str, offset: int, most: int) -> Chunk:
        return Segments(self._folder(task.id), "text").read(offset, most)

    async def tail(self, task: Task, stream: str, lines: int, most: int) -> Chunk:
        return Segments(self._folder(task.id), "text").tail(lines, most)

    async def changed(self, task: Task, stream: str, seen: int) -> bool:
        journal = self._journals.get(task.id)
        while journal is not None and journal.total <= seen:
            if self._journals.get(task.id) is not journal:
                return False
            await journal.changed.wait()
        return journal is not None

    async def whole(self, path: str) -> bytes:
        raise NotFound(f"{path} is not the output of an agent.")

    async def write(self, task: Task, data: bytes, *, eof: bool) -> None:
        raise Refused("An agent has no stdin.", code="no_input")


def _folder_name(host: SessionHost) -> str:
    """Ledgers have it on disk, so it stays when the class is renamed."""
    return getattr(host, "folder_name", type(host).__name__)


def _input(task: Task) -> dict[str, Any]:
    return cast("dict[str, Any]", task.work.input or {})
