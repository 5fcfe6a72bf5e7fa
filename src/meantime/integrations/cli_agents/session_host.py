"""Sessions of command-line agents. Every turn is a command that lasts: it goes on when we are gone, and
its output, told from its beginning, says the same to whoever adopts it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from meantime.integrations.agent_host.host_errors import cannot_fork, failed, no_history
from meantime.kernel.errors import Refused
from meantime.kernel.lines import Line
from meantime.kernel.model import Failed
from meantime.ports.clock import Alarm, Clock
from meantime.ports.commands import Command, CommandEnd, Commands, FollowedCommand
from meantime.ports.session import AgentSettings, Brief, Hearer, Prompt, SessionAbilities, Turned

from . import programs
from .cli_adapter import TurnRequest
from .session_files import CliSession, SessionFiles
from .turn_output import TurnOutput
from .turn_result import judge

SWEEP_FIRST = 60.0  # seconds after we have come: by then whoever is followed is followed
SWEEP = 3_600.0  # seconds between two looks at what is not needed any more
STDERR = 4_000  # bytes of it that may say why something failed


class CliSessionHost:
    folder_name = "CommandLineHost"  # on disk, in every ledger

    def __init__(self, clock: Clock, commands: Commands, *, forks: bool = True) -> None:
        self.abilities = SessionAbilities(fork=forks, lasting=True)
        self._clock = clock
        self._commands = commands
        self._sessions: SessionFiles | None = None
        self._following: dict[str, FollowedCommand] = {}
        self._left: set[str] = set()
        self._sweeping: asyncio.Future[None] | None = None
        self._alarm: Alarm | None = None

    # -- life

    check = staticmethod(programs.check)

    def open(self, folder: Path) -> None:
        self._sessions = SessionFiles(folder)
        self._commands.open()
        self._alarm = self._clock.call_later(SWEEP_FIRST, self._sweep)

    async def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        if self._sweeping is not None:
            await asyncio.wait({self._sweeping})
        await self._commands.close()

    @property
    def _known(self) -> SessionFiles:
        assert self._sessions is not None, "not open"
        return self._sessions

    def _sweep(self) -> None:
        """Now and then, and nobody waits for it: what tasks have left that are gone by now. A turn that
        runs and that nobody has adopted is of a task that was ended without it: it is stopped."""
        self._alarm = self._clock.call_later(SWEEP, self._sweep)
        self._known.tidy()
        self._sweeping = asyncio.ensure_future(self._commands.sweep(self._is_needed))

    def _is_needed(self, turn: str) -> bool:
        followed = turn.rpartition(".")[0] in self._following
        return self._known.has_turn(turn) and (followed or not self._commands.runs(turn))

    # -- sessions

    async def begin(self, brief: Brief) -> str:
        return self._new(brief, brief.cwd).id

    async def fork(self, session: str, brief: Brief) -> str:
        source = self._known.get(session)
        adapter = programs.adapter_of(brief.agent, brief.settings)
        if source is None or not source.begun or source.program != adapter.name:
            raise Refused(f"{adapter.name} has no session {session} to fork.", code="session_gone")
        if not adapter.forks:
            raise cannot_fork(adapter.name)
        return self._new(brief, source.cwd, source).id

    def _new(self, brief: Brief, cwd: str, source: CliSession | None = None) -> CliSession:
        adapter = programs.adapter_of(brief.agent, brief.settings)
        id = str(uuid.uuid4())
        native = id if adapter.takes_ids else ""
        made = CliSession(id, adapter.name, cwd, native, folder=str(brief.folder))
        if source is not None:
            made = replace(made, source=source.native, used=source.total, total=source.total)
        return self._known.put(made)

    async def exists(self, session: str, settings: AgentSettings) -> bool:
        found = self._known.get(session)
        return found is not None and found.begun

    async def lines(self, session: str, settings: AgentSettings) -> Sequence[Line]:
        raise no_history("A command-line agent's")

    async def steer(self, session: str, text: str) -> bool:
        return False

    # -- turns

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        found = self._known.get(session)
        if found is None:
            return failed(Failed("The session of this task is gone.", "session_gone"))
        fresh = replace(
            found, key=prompt.key, number=found.number + 1, used=found.total, folder=str(brief.folder)
        )
        self._commands.prepare(fresh.turn)
        self._known.put(fresh)
        if found.number:
            self._commands.forget(found.turn)
        return await self._turn(fresh, prompt, brief, hearer)

    async def follow(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        """The turn that was begun may be a later one of the same run: its last one, or another try."""
        found = self._known.get(session)
        run = prompt.key.rpartition(".")[0]
        if found is None or not found.key.startswith(f"{run}."):
            return await self.prompt(session, prompt, brief, hearer)
        return await self._turn(found, prompt, brief, hearer, again=True)

    async def _turn(
        self, session: CliSession, prompt: Prompt, brief: Brief, hearer: Hearer, *, again: bool = False
    ) -> Turned:
        adapter = programs.adapter_of(brief.agent, brief.settings)
        output = TurnOutput(adapter, hearer, session.number, session.used, again=again)
        command = self._command(session, prompt, brief)
        following = self._commands.follow(session.turn, command, again=again)
        self._following[session.id] = following
        try:
            ending = await self._read_output(session, following, output)
        finally:
            del self._following[session.id]
            self._left.discard(session.id)
        output.end()
        self._learn(session, output)
        return judge(adapter, output, ending, await following.stderr(STDERR))

    def _command(self, session: CliSession, prompt: Prompt, brief: Brief) -> Command:
        settings = brief.settings
        adapter = programs.adapter_of(brief.agent, settings)
        source = "" if session.begun else session.source
        ask = TurnRequest(settings, session.native, source, resumes=session.begun, last=prompt.last)
        return Command(
            (*settings.command, *adapter.arguments(ask)),
            session.cwd,
            {**programs.environment(settings), **adapter.environment(ask), **brief.env},
            prompt.text.encode("utf-8", "replace"),
            str(settings.options.get("leftovers", "kill")),
        )

    async def _read_output(
        self, session: CliSession, following: FollowedCommand, output: TurnOutput
    ) -> CommandEnd:
        """To its end; cancellation stops it, unless we leave."""
        listening = asyncio.ensure_future(self._listen(session, following, output))
        try:
            await asyncio.shield(listening)
        except asyncio.CancelledError:
            if session.id in self._left:
                listening.cancel()
                raise
            await self._stop(following)
            await listening
            return replace(await following.ending(), stopped=True)
        return await following.ending()

    async def _listen(self, session: CliSession, following: FollowedCommand, output: TurnOutput) -> None:
        async for piece in following.stdout():
            output.piece(piece)
            if output.reader.spoke and not session.begun:
                session = self._learn(session, output)
            await asyncio.sleep(0)  # much may have been said: others have their turn
        if session.id in self._left:
            await asyncio.get_running_loop().create_future()  # until we are cancelled: nothing has ended

    def _learn(self, session: CliSession, output: TurnOutput) -> CliSession:
        """At once: should we be killed, the session can be gone on with."""
        reader = output.reader
        known = self._known.get(session.id) or session
        native = reader.session or known.native
        begun = known.begun or (reader.spoke and bool(native))
        now = replace(known, native=native, begun=begun, total=max(known.total, reader.total))
        return now if now == known else self._known.put(now)

    async def _stop(self, following: FollowedCommand) -> None:
        stopping = asyncio.ensure_future(following.stop())
        while not stopping.done():
            try:
                await asyncio.wait({stopping})
            except asyncio.CancelledError:
                stopping.cancel()  # harder

    async def leave(self, session: str) -> bool:
        following = self._following.get(session)
        if following is None:
            return False
        self._left.add(session)
        if not await following.leave():
            self._left.discard(session)
            return False
        return True
