"""The life of the daemon: open the ledger, open the servers, wait for a signal, close."""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from meantime import __version__
from meantime.daemon.daemon_autostart import PAUSE
from meantime.daemon.home import Home
from meantime.daemon.owner_process import READY, served_by_another
from meantime.execution.containment import run_on
from meantime.integrations.mcp.servers import checked
from meantime.kernel.errors import InvalidInput, LedgerBusy, MeantimeError
from meantime.ports.agent_settings import AgentSettings
from meantime.ports.carrier import OwnerCarrier
from meantime.system.service_notify import ServiceNotify

from .config_schema import Config, http_of, settings_of
from .config_sources import load
from .daemon_log import Logbook, begin, to_stderr
from .heap import limit_heap
from .meantime import Meantime
from .wrap_parts import wrapped_servers

TRIES = 50
LOOK_AGAIN = 1.0  # seconds between two looks whether our home is still there
LOG = logging.getLogger("meantime.daemon")
# What a signal means for the commands that run; None is what the configuration says.
SIGNALS = {signal.SIGTERM: None, signal.SIGINT: None, signal.SIGUSR1: "stop", signal.SIGUSR2: "keep"}


def lead(home: Home, report: Callable[[str], None], umask: int, *, log_file: bool) -> int:
    """Exit code 0: somebody serves the home, or we did until we were asked to end."""
    try:
        book = Logbook(home.log) if log_file else to_stderr()
    except OSError as problem:
        report(f"{home.log} cannot be written: {problem.strerror}.\nMake room, or make it writable.")
        return 1
    begin(book)
    faulthandler.enable()  # a crash in C code leaves its last words
    limit_heap()
    try:
        return _run(_live(home, report, umask, book))
    except MeantimeError as problem:
        LOG.error("%s %s", problem.message, problem.hint)
        report(f"{problem.message}\n{problem.hint}")
    except Exception as problem:
        LOG.exception("The daemon cannot go on.")
        report(f"The daemon cannot start: {problem}\nLook into {home.log}.")
    except KeyboardInterrupt:
        LOG.info("Interrupted while starting.")
    return 1


def _run(life: Coroutine[Any, Any, int]) -> int:
    """An exception that work raises in a task of its own, in order to end us, does not."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        living = loop.create_task(life)
        return run_on(lambda: loop.run_until_complete(living), living.done)


async def _live(home: Home, report: Callable[[str], None], umask: int, book: logging.Handler) -> int:
    manager = ServiceNotify.take(os.environ)
    asked = _listen_to_signals()  # before there is something to close: what comes early is not lost
    config = load(home).values
    _import_tools(config)
    mt = await _opened(home, config, umask)
    if isinstance(mt, str):
        report(mt or READY)
        return 1 if mt else 0
    if isinstance(book, Logbook):
        book.turns = True
    try:
        # Before HTTP, whose answer is the sign that everything is served.
        await mt._serve_wraps(home.wrap_socket, wrapped_servers(config))  # pyright: ignore[reportPrivateUsage]  not for others
        await _open_http(mt, home, config)
        LOG.info("Meantime %s serves %s, process %s.", __version__, home.folder, os.getpid())
        report(READY)
        manager.ready()
        on_close = await _wait_for_signal(home, asked, book, manager)
    except BaseException:
        await mt.close()
        raise
    manager.stopping()
    LOG.info("Closing. Commands that run: %s.", on_close or config.runtime.on_close)
    await mt.close(on_close=on_close)
    LOG.info("Closed.")
    return 0


async def _opened(home: Home, config: Config, umask: int) -> Meantime | str:
    """If somebody was quicker: empty when it answers, otherwise why the home cannot be served."""
    settings = replace(settings_of(config), umask=umask)
    for left in reversed(range(TRIES)):
        try:
            return await Meantime.open(
                home.ledger,
                durability=config.ledger.durability,
                settings=settings,
                link=home.link_socket,
                servers=checked(config.mcp.servers),
                agents=_agents_of(config),
                carrier=_carrier_of(home, config),
            )
        except LedgerBusy:
            found = await asyncio.to_thread(served_by_another, home)
            if found is not None:
                return found
            if not left:  # we cannot see who: it is in another container
                raise
        await asyncio.sleep(PAUSE)  # it was there, and is gone
    raise AssertionError("the last try returns or raises")


def _agents_of(config: Config) -> dict[str, AgentSettings]:
    if not config.agents.named:
        return {}
    from .agent_hosts import checked as checked_agents  # loads the runner of agents

    return checked_agents(config.agents.named)


def _carrier_of(home: Home, config: Config) -> OwnerCarrier | None:
    if not (config.engine.carrier or config.engine.listen):
        return None
    from .worker_addresses import owner_carrier_of  # loads every carrier, and few daemons have one

    return owner_carrier_of(home, config)


def _import_tools(config: Config) -> None:
    """A tool that fails is logged and left out: the ledger serves everyone, not its tool alone."""
    for name in config.tools:
        try:
            importlib.import_module(name)
        except BaseException as problem:  # also one that calls sys.exit
            LOG.error("tools: %s cannot be imported: %s: %s", name, type(problem).__name__, problem)


def _listen_to_signals() -> asyncio.Queue[str | None]:
    asked: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number, on_close in SIGNALS.items():
        loop.add_signal_handler(number, asked.put_nowait, on_close)
    # Not ignored: what is ignored would be ignored by every command that we start, too.
    loop.add_signal_handler(signal.SIGHUP, LOG.info, "A terminal was closed; that does not concern us.")
    return asked


async def _wait_for_signal(
    home: Home, asked: asyncio.Queue[str | None], book: logging.Handler, manager: ServiceNotify
) -> str | None:
    """Or until our home is gone: nobody could find us any more, and a new one would be served twice."""
    own = os.stat(home.folder)
    while True:
        try:
            return await asyncio.wait_for(asked.get(), LOOK_AGAIN)
        except TimeoutError:
            pass
        manager.alive()
        if isinstance(book, Logbook):
            book.turn()
        try:
            if os.path.samestat(own, os.stat(home.folder)):
                continue
        except OSError:
            pass
        LOG.warning("%s is gone, or another one: we end.", home.folder)
        return None


async def _open_http(mt: Meantime, home: Home, config: Config) -> None:
    """The socket is what counts: an address that cannot be had is logged, and does not stop the daemon."""
    settings = http_of(config)
    try:
        door = await mt.serve(settings=settings, folder=home.folder, socket=home.http_socket)
    except InvalidInput as problem:
        if not settings.enabled:
            raise
        LOG.warning("HTTP is not served on a port: %s", problem.message)
        door = await mt.serve(settings=settings, folder=home.folder, socket=home.http_socket, tcp=False)
    LOG.info("HTTP is served at %s and %s.", door.url or "no port", door.socket)
