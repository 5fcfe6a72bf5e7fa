"""OpenCode sessions as workers: one server for each way to start it, and a turn at a time in each session."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from meantime.integrations.agent_host.host_errors import fork_source_gone
from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.lines import Line
from meantime.ports.session import AgentSettings, Brief, Hearer, Prompt, SessionAbilities, Turned
from meantime.system.program_search import find_program

from .errors import Away, Unknown, check_extra
from .message_lines import all_lines
from .server import OpenCodeServer, RemoteServer, end_left
from .server_options import command, environ, rules
from .session_turn import SessionTurn

if TYPE_CHECKING:
    from .wire.api_client import ApiClient

PAUSE = 0.1  # seconds
RECENT = 100  # sessions among which one is looked for that a former owner has made


class OpenCodeSessionHost:
    folder_name = "OpenCodeSessions"  # on disk, in every ledger
    abilities = SessionAbilities(fork=True, steer=True, lasting=True, history=True)

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._servers: dict[str, OpenCodeServer | RemoteServer] = {}
        self._turns: dict[str, SessionTurn] = {}
        self._directories: dict[str, str] = {}
        self._left: set[str] = set()  # servers on which a turn continues without us

    def check(self, name: str, settings: AgentSettings) -> None:
        check_extra()
        if settings.url:
            if not settings.url.startswith(("http://", "https://")):
                raise InvalidInput(f"url={settings.url!r} of the agent {name} is not a URL.")
        elif find_program(command(settings)[0], environ(settings)) is None:
            raise InvalidInput(
                f"The agent {name} needs {command(settings)[0]}, which is not there.",
                code="program_missing",
                hint='Install OpenCode, or name its program: command = ["/path/opencode"].',
            )
        if settings.model and "/" not in settings.model:
            raise InvalidInput(f"model={settings.model!r} of the agent {name}.", hint="Write provider/model.")

    def open(self, folder: Path) -> None:
        self._folder = folder

    async def close(self) -> None:
        """A server is kept while a turn continues in it; also one of a former owner, whom nobody followed, is
        of no more use."""
        servers, self._servers = self._servers, {}
        await asyncio.gather(*(one.close(keep=name in self._left) for name, one in servers.items()))
        if self._folder is not None:
            folders = [folder for folder in self._folder.iterdir() if folder.name not in self._left]
            await asyncio.gather(*(end_left(folder) for folder in folders))

    # -- sessions

    async def begin(self, brief: Brief) -> str:
        client = await self._client(brief.settings)
        for known in await client.sessions(brief.cwd, RECENT):
            if _mark(known) == _marked(brief):
                return self._known(known)
        body: dict[str, Any] = {"title": brief.title, "metadata": {"meantime": _marked(brief)}}
        if allowed := rules(brief.settings):
            body["permission"] = allowed
        return self._known(await client.create(brief.cwd, body))

    async def fork(self, session: str, brief: Brief) -> str:
        client = await self._client(brief.settings)
        try:
            directory = await self._directory(client, session)
            copy = await client.fork(session, directory)
            about = {"title": brief.title, "metadata": {"meantime": _marked(brief)}}
            return self._known(await client.change(copy["id"], directory, about))
        except Unknown:
            raise fork_source_gone() from None

    async def exists(self, session: str, settings: AgentSettings) -> bool:
        try:
            self._known(await (await self._client(settings)).session(session))
        except Unknown:
            return False
        return True

    async def lines(self, session: str, settings: AgentSettings) -> Sequence[Line]:
        client = await self._client(settings)
        return all_lines(await client.messages(session, await self._directory(client, session)))

    # -- turns

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        """A prompt that the session has already is not given again: so this is `follow`, too."""
        server = self._server(brief.settings)
        turn = self._turns[session] = SessionTurn(server, session, prompt, brief, hearer)
        try:
            return await turn.run()
        finally:
            if turn.left:
                self._left.add(_name(brief.settings))
            del self._turns[session]

    follow = prompt

    async def steer(self, session: str, text: str) -> bool:
        turn = self._turns.get(session)
        try:
            return turn is not None and await turn.steer(text)
        except (Away, Unknown):
            return False

    async def leave(self, session: str) -> bool:
        turn = self._turns.get(session)
        if turn is not None:
            turn.left = True
        return turn is not None

    # -- servers

    async def _client(self, settings: AgentSettings) -> ApiClient:
        server = self._server(settings)
        for _ in range(10):
            client, _ = await server.reach()
            try:
                await client.health()
            except Away:
                await asyncio.sleep(PAUSE)
            else:
                return client
        raise Refused("The OpenCode server does not answer.", code="server_away")

    def _server(self, settings: AgentSettings) -> OpenCodeServer | RemoteServer:
        name = _name(settings)
        found = self._servers.get(name)
        if found is None:
            assert self._folder is not None, "not open"
            if settings.url:
                found = RemoteServer(settings.url, environ(settings).get("OPENCODE_SERVER_PASSWORD", ""))
            else:
                folder = self._folder / name
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                found = OpenCodeServer(folder, command(settings), environ(settings), str(folder))
            self._servers[name] = found
        return found

    def _known(self, session: dict[str, Any]) -> str:
        self._directories[session["id"]] = session["directory"]
        return session["id"]

    async def _directory(self, client: ApiClient, session: str) -> str:
        if session not in self._directories:
            self._known(await client.session(session))
        return self._directories[session]


def _name(settings: AgentSettings) -> str:
    """One server for all who start it in the same way."""
    started = [settings.url, command(settings), sorted(environ(settings).items())]
    return sha256(msgspec.json.encode(started)).hexdigest()[:16]


def _marked(brief: Brief) -> dict[str, Any]:
    return {"task": brief.task}


def _mark(session: dict[str, Any]) -> Any:
    return cast("dict[str, Any]", session.get("metadata") or {}).get("meantime")
