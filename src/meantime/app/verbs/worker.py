"""`meantime worker`: performs work that another machine's daemon offers."""

from __future__ import annotations

import asyncio
import logging
import signal

from meantime.app.config_schema import Config
from meantime.app.config_sources import load
from meantime.app.daemon_log import begin, to_stderr
from meantime.app.worker_addresses import worker_address
from meantime.app.worker_parts import make_worker
from meantime.daemon.home import Home
from meantime.kernel.errors import MeantimeError
from meantime.surfaces.cli.parameter_types import Whole
from meantime.surfaces.cli.verb import daemon, option, verb
from meantime.surfaces.terminal.errors import CliError

LOG = logging.getLogger("meantime.worker")


@verb("worker", starts=False)
@option("--pool", metavar="NAME", help="The pool whose work it takes, in place of the configured one.")
@option(
    "--slots", type=Whole(1), metavar="N", help="How much it runs at once, in place of what is configured."
)
def command(pool: str | None, slots: int | None) -> int:
    """Perform work that a daemon offers over its carrier, until SIGTERM.

    On the daemon's own machine, with [engine] carrier = "local", nothing else is needed; then it performs
    commands, too. Elsewhere [worker] in the configuration has the carrier, the name, the owner_key that
    `meantime workers` prints there, and what may be performed. After SIGTERM running work may end; commands
    that do not end in time keep running, and the next worker of this home follows them.
    """
    home = daemon().home
    begin(to_stderr())
    try:
        asyncio.run(_live(home, load(home).values, pool, slots))
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint) from None
    return 0


async def _live(home: Home, config: Config, pool: str | None, slots: int | None) -> None:
    given = config.worker
    address = worker_address(home, given)
    worker = make_worker(
        address.carrier,
        home.folder / "worker" / address.carrier.worker,
        address.owner_key,
        pool=given.pool if pool is None else pool,
        slots=given.slots if slots is None else slots,
        labels=given.labels,
        tools=given.tools,
        shell=given.shell or address.is_own,
    )
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    await worker.open()
    LOG.info("Worker %s takes work of pool %s.", address.carrier.worker, pool or given.pool)
    try:
        await over.wait()
        LOG.info("Draining for at most %g s.", given.drain)
        await worker.drain(given.drain)
    finally:
        await worker.close()
    LOG.info("Closed.")
