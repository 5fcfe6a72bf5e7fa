"""`meantime worker`: performs work that another machine's daemon offers."""

from __future__ import annotations

import asyncio
import logging
import signal

from msgspec.structs import replace

from meantime.app.config_schema import WorkerSection
from meantime.app.config_sources import load
from meantime.app.daemon_log import begin, to_stderr
from meantime.app.worker_addresses import worker_address
from meantime.app.worker_logins import default_name, join_owner, make_worker_folder, read_given
from meantime.app.worker_parts import make_worker
from meantime.daemon.home import BadHome, Home
from meantime.kernel.errors import InvalidInput, MeantimeError
from meantime.surfaces.cli.parameter_types import Whole
from meantime.surfaces.cli.verb import daemon, option, verb
from meantime.surfaces.terminal.errors import CliError

LOG = logging.getLogger("meantime.worker")


@verb("worker", starts=False)
@option("--join", metavar="LINE", help="Join an owner: its join line, a file that has it, or - for stdin.")
@option("--name", metavar="NAME", help="The worker's name, in place of the configured one.")
@option("--pool", metavar="NAME", help="The pool whose work it takes, in place of the configured one.")
@option(
    "--slots", type=Whole(1), metavar="N", help="How much it runs at once, in place of what is configured."
)
@option("--no-run", is_flag=True, help="With --join: join, and take no work yet.")
def command(join: str | None, name: str | None, pool: str | None, slots: int | None, no_run: bool) -> int:
    """Perform work that a daemon offers over its carrier, until SIGTERM.

    On the daemon's own machine, with [engine] carrier = "local", nothing else is needed; then it performs
    commands, too, and each --name is a worker of its own. From another machine it joins once, with the line
    that `meantime workers join-line` prints there. [worker] in the configuration says what may be performed,
    or names a server of your own. After SIGTERM running work may end; commands that do not end in time keep
    running, and the next worker of this name follows them.
    """
    home = daemon().home
    begin(to_stderr())
    try:
        home.make()
        given = load(home).values.worker
        given = replace(given, name=name or given.name, pool=pool or given.pool, slots=slots or given.slots)
        asyncio.run(_live(home, given, join, no_run=no_run))
    except (MeantimeError, BadHome) as problem:
        raise CliError(problem.message, problem.hint) from None
    return 0


async def _live(home: Home, given: WorkerSection, join: str | None, *, no_run: bool) -> None:
    name = given.name
    if join is not None:
        name = await _join(home, given, join)
        if no_run:
            return
    elif no_run:
        raise InvalidInput("--no-run is for --join.", hint="Leave it out to take work.")
    address = await worker_address(home, given, name, given.pool)
    carrier, shell = address.carrier, given.shell or address.is_own
    worker = make_worker(
        carrier,
        make_worker_folder(home, carrier.worker),
        address.owner_key,
        pool=given.pool,
        slots=given.slots,
        labels=given.labels,
        tools=given.tools,
        shell=shell,
    )
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    await worker.open()
    LOG.info(
        "Worker %s takes work of pool %s: %s.", carrier.worker, given.pool, _may(given.tools, shell=shell)
    )
    if not shell and not given.tools:
        LOG.warning(
            'It can perform nothing. Allow something in %s: [worker] shell = true, or tools = ["a_module"].',
            home.config,
        )
    try:
        await over.wait()
        LOG.info("Draining for at most %g s.", given.drain)
        await worker.drain(given.drain)
    finally:
        await worker.close()
    LOG.info("Closed.")


async def _join(home: Home, given: WorkerSection, join: str) -> str:
    """The name under which it joined."""
    if given.carrier:
        raise InvalidInput(
            "[worker] carrier is configured, so this worker has an owner.",
            hint=f"To join another one, remove carrier and owner_key from {home.config}.",
        )
    line = read_given(join)
    login = await join_owner(home, line, given.name or default_name(), given.pool)
    LOG.info("Joined the owner at %s as worker %s.", line.line.server, login.name)
    return login.name


def _may(tools: list[str], *, shell: bool) -> str:
    functions = f"functions of {', '.join(tools)}" if tools else "no functions ([worker] tools names modules)"
    return f"{functions}; {'commands' if shell else 'no commands ([worker] shell = true allows them)'}"
