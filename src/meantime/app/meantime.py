"""Meantime.open: the parts, joined. This process owns the ledger until it is closed.
Meantime.connect: another process owns it, and this one is connected to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from meantime import __version__
from meantime.conversation.log import Log
from meantime.conversation.transcript import Transcripts
from meantime.integrations.mcp.servers import HttpServer, StdioServer
from meantime.kernel.argument_checks import check_kind, check_path
from meantime.kernel.constraints import check_flag
from meantime.kernel.errors import Closed, InvalidInput
from meantime.kernel.ids import check_id
from meantime.kernel.limits import Limits, PluginDefaults
from meantime.kernel.lines import Line
from meantime.kernel.model import Event, Output, Task
from meantime.kernel.notices import NoticePage
from meantime.kernel.timeouts import check_age
from meantime.kernel.work import ToolInfo
from meantime.ports.carrier import OwnerCarrier
from meantime.ports.clock import Clock
from meantime.ports.host import Host
from meantime.ports.runner import Runner
from meantime.ports.store import Store
from meantime.ports.tasks import CancelAnswer
from meantime.ports.wrapped_server import WrappedServers
from meantime.runtime.runtime import Runtime
from meantime.runtime.settings import Settings
from meantime.surfaces.http.http_door import HttpDoor
from meantime.surfaces.http.http_settings import HttpSettings
from meantime.thread import Thread, statuses_of

from .components import Joined, door_settings, joined
from .pending_open import Opening

if TYPE_CHECKING:
    from meantime.surfaces.wrap.wrap_listener import WrapListener


class Meantime:
    """The ledger and everything that runs on it. A person's view: it sees every thread."""

    def __init__(self, runtime: Any = None) -> None:
        if not isinstance(runtime, Joined):
            raise InvalidInput("Meantime(...) is not how to open one.", hint="Use Meantime.open(path).")
        self._runtime, self._owner, self._folder, self._link, self._pools = runtime
        self._transcripts = Transcripts(self._runtime)
        self._doors: list[HttpDoor] = []
        self._wraps: WrapListener | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        durability: str = "full",
        settings: Settings | None = None,
        runners: Iterable[Runner] = (),
        servers: Mapping[str, StdioServer | HttpServer] | None = None,
        agents: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        store: Store | None = None,
        salvage: bool = False,
        link: str | os.PathLike[str] | None = None,
        carrier: OwnerCarrier | str | None = None,
    ) -> Opening:
        """Opens a ledger, which this process then owns. Use it with `async with`, or await it and close it.

        path: a file; ":memory:" forgets when it is closed.
        durability: "full" survives a power cut; "fast" survives a crash, not a power cut.
        settings: see `Settings`.
        runners: runners for more kinds of work than functions and commands.
        servers: MCP servers by name, whose tools `Tool("name/tool", …)` runs.
        agents: who `Agent("name", …)` is: AgentSettings, a Pydantic AI agent or a function of your own, or
            `PythonAgent(agent, tools=…)`, which gives either its settings.
        clock: another clock, for tests.
        store: another store instead of the one that `path` names, for tests.
        salvage: True goes on with what can be read of a damaged ledger that was set aside.
        link: a unix socket at which other processes of the same user can `connect`.
        carrier: what carries work to workers on other machines: "local" for a private server beside the
            ledger, nats://…, tls://… or postgres://…, or an OwnerCarrier; None has no workers.

        Raises LedgerBusy where another process owns the ledger, LedgerDamaged and LedgerTooNew.
        """
        parts = joined(
            path, link, durability=durability, settings=settings, runners=runners, servers=servers,
            agents=agents, clock=clock, store=store, salvage=salvage, carrier=carrier,
        )  # fmt: skip
        return Opening(cls(parts))

    @classmethod
    def connect(
        cls, link: str | os.PathLike[str] | None = None, *, patience: float = 30.0, start: bool = True
    ) -> Opening:
        """Connects to the process that owns a ledger. The verbs are the same; commands run under the
        owner, functions in this process.

        link: the owner's socket; None is this user's daemon, which is started if need be.
        patience: seconds that an owner is waited for which is not there yet, or was lost; 0 is one try.
        start: False never starts the daemon.
        """
        from .link_ends import client

        place = None if link is None else check_path(link, "link")
        connected = client(place, check_age(patience), start=check_flag(start, "start"))
        return Opening(cls(Joined(connected)))

    def thread(self, id: str) -> Thread:
        """A conversation: what it starts, it is told about, and no other."""
        return Thread(self._runtime, check_id(id, "thread"), self._transcripts)

    async def close(self, *, on_close: str | None = None) -> None:
        """Stops what runs here and lets go of the ledger; what is queued stays queued.

        on_close: "keep" or "stop" the commands that run, in place of what the settings say.
        """
        try:
            for door in self._doors:
                await door.close()
            if self._wraps is not None:
                self._wraps.pause()
            if self._link is not None:
                self._link.pause()
        finally:
            await self._runtime.close(on_close)
            if self._wraps is not None:  # until now servers were told which calls to stop
                await self._wraps.close()
            if self._pools is not None:
                await self._pools.close()
            if self._link is not None:  # until now it heard what executors made of being stopped
                await self._link.close()

    async def _open(self) -> None:
        await self._runtime.open()
        try:
            if self._link is not None:
                await self._link.open()
            if self._pools is not None:
                await self._pools.open()
        except BaseException:
            await self._runtime.close()
            raise

    def serve(
        self,
        *,
        port: int | None = None,
        host: str = "127.0.0.1",
        auth: str = "peer",
        hosts: Iterable[str] = (),
        allow_remote: bool = False,
        folder: str | os.PathLike[str] | None = None,
        socket: str | os.PathLike[str] | None = None,
        tcp: bool = True,
        settings: HttpSettings | None = None,
    ) -> HttpDoor:
        """Opens the HTTP server on this event loop. Use it with `async with`, or await it and close it.

        port: the first of ten to try; None takes it from the environment, or 5165; 0 is any.
        auth: "peer" lets programs of your own user read without a token; "strict" does not.
        hosts: more names that clients may know the server by.
        folder: where server.json and the token lie; by default beside the ledger.
        socket: a path where the same is served on a unix socket, for programs of your own user.
        tcp: False serves the unix socket alone.
        settings: in place of port, host, auth, hosts and allow_remote: these, and every cap there is.
        """
        given = door_settings(port, host, auth, hosts, allow_remote) if settings is None else settings
        settings = replace(
            check_kind(given, HttpSettings, "settings"),
            folder=self._folder if folder is None else Path(check_path(folder, "folder")),
            version=__version__,
            socket=None if socket is None else Path(check_path(socket, "socket")).absolute(),
            tcp=check_flag(tcp, "tcp"),
        )
        if self._owner is None or not isinstance(self._runtime, Runtime):
            raise InvalidInput("Only the owner of a ledger serves it; this process is connected to one.")
        door = HttpDoor(self._runtime, self._owner, settings, self._runtime.record.clock)
        if self._wraps is not None:
            door._wraps = self._wraps.http_hosts()  # pyright: ignore[reportPrivateUsage]  not for others
        self._doors = [*(known for known in self._doors if not known.closed), door]
        return door

    async def _serve_wraps(self, path: Path, servers: WrappedServers) -> None:
        """Serves `meantime mcp --wrap` on a unix socket; for the daemon."""
        from .wrap_parts import listener_of

        self._wraps = listener_of(self._runtime, servers, path)
        await self._wraps.open()

    # -- a person's view

    async def get(self, ref: str) -> Task:
        """Any thread's task, as it is now. Raises NotFound and Ambiguous."""
        return await self._runtime.get(ref, None)

    async def list(
        self,
        status: str | Iterable[str] | None = None,
        *,
        thread: str | None = None,
        batch: str | None = None,
        history: bool = True,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Task]:
        """Tasks of every thread, newest first.

        status: one status or several; None and "all" are every one.
        thread: only the tasks of this thread.
        batch: only the tasks of this batch.
        history: False leaves out cleared tasks, and those beyond `Retention.hot`.
        limit: the most tasks.
        offset: how many to skip.
        """
        wanted = statuses_of("all" if status is None else status)
        return await self._runtime.list(
            thread, wanted, batch=batch, history=history, limit=limit, offset=offset
        )

    async def output(self, ref: str, *, wait: float = 0) -> Output:
        """The readable output of a task now.

        ref: the task.
        wait: seconds that it is given to end first.
        """
        return await self._runtime.output(ref, None, wait=wait)

    def log(self, ref: str) -> Log:
        """The output of a command: read, tail or follow it."""
        return Log(self._runtime, ref, None)

    async def send(self, ref: str, data: str | bytes = "", *, eof: bool = False) -> str:
        """Sends a running command more of its stdin, or a running agent a text.

        ref: the task.
        data: text or bytes.
        eof: True closes the stdin.
        """
        return await self._runtime.send(ref, None, data, eof=eof)

    async def answer(self, ref: str, text: str, *, scope: str | None = None) -> Task:
        """Answers the question of a task that waits for input, as a person.

        ref: the task.
        text: the answer: a text, or one of the choices.
        scope: for a permission: "once" or "task".
        """
        return await self._runtime.answer(ref, None, text, scope=scope)

    async def lines(
        self, ref: str, *, kinds: Sequence[str] = (), roles: Sequence[str] = (), last: int | None = None
    ) -> Sequence[Line]:
        """The conversation of an agent's session, over all runs, oldest first.

        ref: the task.
        kinds: text, thought, call, result, summary; none is all.
        roles: user, assistant, tool, system; none is all.
        last: only so many, the newest.
        """
        return await self._runtime.lines(ref, None, kinds=kinds, roles=roles, last=last)

    async def cancel(self, ref: str, *, reason: str = "", wait: bool = False) -> CancelAnswer:
        """Asks a task to stop, as a person. Asking twice is harmless.

        ref: the task.
        reason: kept with the outcome.
        wait: True answers with the ending.
        """
        return await self._runtime.cancel(ref, None, by="user", reason=reason, wait=wait)

    async def tools(self, server: str | None = None) -> Sequence[ToolInfo]:
        """The tools of an MCP server, asked now; None is all servers, without those that do not answer."""
        return await self._runtime.tools(server)

    async def calls(self) -> Sequence[Task]:
        """The calls that threads wait for inline now, oldest first. These are not recorded yet."""
        return await self._runtime.calls(None)

    async def promote(self, ref: str) -> Task:
        """Sends a call that runs inline to the background: its thread gets the task as its answer."""
        return await self._runtime.promote(ref, None)

    async def purge(self, *refs: str) -> int:
        """Deletes ended tasks for good."""
        return await self._runtime.purge(refs)

    async def notices(
        self, *states: str, thread: str | None = None, limit: int = 1_000, offset: int = 0
    ) -> NoticePage:
        """One page of notices, for an audit: by default those that are not told yet.

        states: "unread", "leased", "parked", "told", "muted"; none is the first three.
        thread: only those of this thread.
        limit: the most notices, up to 1,000.
        offset: how many to skip.

        The page is a list; its `total` is the number of notices before paging.
        """
        wanted = states or ("unread", "leased", "parked")
        found = await self._runtime.notices(thread, wanted, limit=limit, offset=offset)
        whole = len(found) < limit and (found or not offset)
        total = offset + len(found) if whole else await self._runtime.count_notices(thread, wanted)
        return NoticePage(found, total)

    async def stats(self) -> dict[str, int]:
        """Counts by name: rows in the ledger, slots in use, work that waits."""
        return await self._runtime.stats()

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Every change of every task, in order, from the journal and then live."""
        while True:
            for event in await self._runtime.events(after, 500):
                after = event.seq
                yield event
            try:
                await self._runtime.wait_events(after)
            except Closed:
                return

    def limits(self) -> Limits:
        """The limits as they are now."""
        return self._runtime.limits()

    async def set_limits(
        self,
        *,
        per_thread: int | None = None,
        total: int | None = None,
        per_kind: dict[str, int] | None = None,
        on_limit: str | None = None,
        depth: int | None = None,
    ) -> Limits:
        """Changes limits at once; -1 is no limit. A limit that is not named stays as it is.

        per_thread: tasks of one kind that one thread may have running.
        total: tasks that may run in all.
        per_kind: by kind of work: overrides `per_thread`.
        on_limit: "queue" or "reject".
        depth: how deep work may start work.
        """
        given = {
            "per_thread": per_thread,
            "total": total,
            "per_kind": per_kind,
            "on_limit": on_limit,
            "depth": depth,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        await self._runtime.set_limits(replace(self.limits(), **changes))
        return self.limits()

    def plugin_defaults(self) -> PluginDefaults:
        """The config of a plugin registry that is given none: with a daemon, its section [plugins]."""
        return self._runtime.plugin_defaults()

    def attach(self, thread: str, host: Host) -> None:
        """Pushes the thread's notices to a host, as soon as it is idle."""
        self._runtime.attach(thread, host)

    def detach(self, thread: str) -> None:
        """Ends what `attach` began: the thread's notices are no longer pushed."""
        self._runtime.detach(thread)
