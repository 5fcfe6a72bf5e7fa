"""The host of agents that speak ACP: a process for each task, or for all of a folder."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from meantime.integrations.agent_host.host_errors import (
    cannot_fork,
    fork_source_gone,
    no_history,
    refused,
)
from meantime.integrations.agent_host.json_values import mappings
from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.lines import Line
from meantime.ports.clock import Clock
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.session import AgentSettings, Brief, Hearer, Prompt, SessionAbilities, Turned
from meantime.system.program_search import find_program

from .acp_client import AcpClient
from .agent_options import AcpOptions, mcp_servers, options_of
from .agent_subprocess import AgentSubprocess, command_of, environment, where
from .profiles import BY_NAME, needs_permission, profile_of
from .session_mode import choose
from .session_records import SessionRecord, SessionRecords
from .turn_result import AgentError
from .turn_updates import TurnUpdates

UNKNOWN_METHOD = -32601
STEERS = 10.0  # seconds in which something said in a turn is taken


class AcpSessionHost:
    """All agents of one profile."""

    folder_name = "AcpHost"  # on disk, in every ledger

    def __init__(self, clock: Clock, variant: str = "") -> None:
        self.profile = BY_NAME[variant or "generic"]
        self.abilities = SessionAbilities(fork=self.profile.fork, steer=bool(self.profile.steer))
        self._clock = clock
        self._folder: Path
        self._records: SessionRecords
        self._clients: dict[str, AcpClient] = {}
        self._starting: dict[str, asyncio.Lock] = {}
        self._closing = BackgroundTasks()

    def check(self, name: str, settings: AgentSettings) -> None:
        if find_spec("acp") is None:
            raise InvalidInput(
                "ACP needs an extra.", hint="pip install 'meantime[acp]'", code="extra_missing"
            )
        if not settings.command:
            raise InvalidInput(f"The agent {name} has no command.", hint='For example ["goose", "acp"].')
        profile, options = profile_of(settings), options_of(name, settings)
        if find_program(command_of(settings)[0], environment(settings, settings.env)) is None:
            raise InvalidInput(
                f"The program {settings.command[0]} of the agent {name} is not there.",
                code="program_missing",
                hint="Install it, or give its whole path.",
            )
        if settings.tools is not None:
            raise InvalidInput(
                "The tools of an ACP agent are its own.", hint="Use deny=… to refuse some of them."
            )
        if options.shared and not profile.shares:
            raise InvalidInput(f"{profile.name} needs a process for each session: shared is not possible.")

    def open(self, folder: Path) -> None:
        self._folder = folder
        self._records = SessionRecords(folder / f"sessions-{self.profile.name}.jsonl")

    # -- sessions

    async def begin(self, brief: Brief) -> str:
        async with self._used(brief) as (client, options):
            asked = {"cwd": where(brief), "mcpServers": mcp_servers(options, brief)}
            return await self._made(client, "session/new", asked, brief, options)

    async def fork(self, session: str, brief: Brief) -> str:
        if not self.abilities.fork:
            raise cannot_fork("This agent")
        if self._records.get(session) is None:
            raise fork_source_gone()
        async with self._used(brief) as (client, options):
            asked = {"sessionId": session, "cwd": where(brief), "mcpServers": mcp_servers(options, brief)}
            return await self._made(client, "session/fork", asked, brief, options)

    async def _made(
        self, client: AcpClient, method: str, asked: dict[str, Any], brief: Brief, options: AcpOptions
    ) -> str:
        try:
            answer = await client.request(method, asked, options.start)
            session = str(answer["sessionId"])
            await choose(client, session, answer, brief.settings, options)
        except AgentError as problem:
            code = "cannot_fork" if problem.code == UNKNOWN_METHOD else "agent_refused"
            raise Refused(f"The agent did not make a session: {problem}.", code=code) from None
        except KeyError:
            raise Refused("The agent made a session without an id.", code="agent_refused") from None
        if session in client.sessions:
            raise Refused(f"The agent gave the session {session} twice.", code="agent_refused")
        client.sessions.add(session)
        self._records.add(SessionRecord(session, brief.agent, where(brief)))
        return session

    async def exists(self, session: str, settings: AgentSettings) -> bool:
        """As far as we know: whether the agent still has it is seen when it is loaded."""
        return self._records.get(session) is not None

    async def lines(self, session: str, settings: AgentSettings) -> Sequence[Line]:
        raise no_history("An ACP agent's")

    async def steer(self, session: str, text: str) -> bool:
        client = next((each for each in self._clients.values() if each.turns_in(session)), None)
        return client is not None and await client.steer(session, text, STEERS)

    async def _load(self, client: AcpClient, session: str, brief: Brief, options: AcpOptions) -> None:
        """Replayed messages are ignored: we have them already."""
        if session in client.sessions:
            return
        known = self._records.get(session)
        cwd = known.cwd if known else where(brief)
        if self.profile.lists_first and not await self._listed(client, session, options):
            raise Refused("The agent does not have this session any more.", code="session_gone")
        how = "session/resume" if self.profile.resumes and client.can("resume") else "session/load"
        if how == "session/load" and not client.can("load"):
            raise Refused("This agent cannot go on with a session of a former process.", code="session_gone")
        asked = {"sessionId": session, "cwd": cwd, "mcpServers": mcp_servers(options, brief)}
        try:
            answer = await client.request(how, asked, options.start)
            await choose(client, session, answer, brief.settings, options)
        except AgentError as problem:
            raise Refused(f"The agent could not load its session: {problem}.", code="session_gone") from None
        client.sessions.add(session)

    async def _listed(self, client: AcpClient, session: str, options: AcpOptions) -> bool:
        cursor: Any = None
        while True:
            asked = {"cursor": cursor} if cursor else {}
            answer = await client.request("session/list", asked, options.start)
            listed = mappings(answer.get("sessions"))
            if any(each.get("sessionId") == session for each in listed):
                return True
            cursor = answer.get("nextCursor")
            if not cursor:
                return False

    # -- turns

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        try:
            async with self._used(brief) as (client, options):
                hearer.phase("starting")
                await self._load(client, session, brief, options)
                grace = self.profile.grace if options.grace is None else options.grace
                turn = TurnUpdates(session, self.profile, hearer, last=prompt.last)
                hearer.phase("thinking")
                return await client.take_turn(session, turn, prompt.text, grace)
        except Refused as problem:
            return refused(problem)

    # -- processes

    @asynccontextmanager
    async def _used(self, brief: Brief) -> AsyncGenerator[tuple[AcpClient, AcpOptions]]:
        """A running process for this task; it is not stopped meanwhile."""
        options = options_of(brief.agent, brief.settings)
        key = f"{brief.agent}\0{where(brief)}\0{'' if options.shared else brief.task}"
        async with self._starting.setdefault(key, asyncio.Lock()):
            client = self._clients.get(key)
            if client is None or not client.alive:
                client = await self._start(brief, options, key)
                self._clients[key] = client
            client.hold()
        try:
            yield client, options
        finally:
            client.release()

    async def _start(self, brief: Brief, options: AcpOptions, key: str) -> AcpClient:
        settings = brief.settings
        ours = {**self.profile.env, **(self.profile.asking if needs_permission(settings) else {})}
        env = environment(settings, ours, settings.env, {} if options.shared else brief.env)
        command = command_of(settings)
        log = brief.folder / "agent.stderr"  # it goes when its task is forgotten
        if options.shared:
            log = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.stderr"
        try:
            process = await AgentSubprocess.launch(command, env, where(brief), log)
        except OSError as problem:
            raise Refused(f"The agent could not be started: {problem}.", code="agent_not_started") from None
        started = AcpClient(self.profile, self._clock, self._on_idle)
        try:
            await started.start(process, options.start, options.idle)
        except BaseException as problem:
            process.kill()
            await asyncio.shield(started.close())
            if isinstance(problem, AgentError):
                raise Refused(f"The agent did not start: {problem}.", code="agent_not_started") from None
            raise
        return started

    def _on_idle(self, client: AcpClient) -> None:
        self._closing.start(client.close())
        for key in [key for key, kept in self._clients.items() if kept is client]:
            del self._clients[key]
            if not self._starting[key].locked():
                del self._starting[key]

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(client.close() for client in clients), return_exceptions=True)
        await self._closing.wait()
