"""The parts of both sides of workers, made from what they were given."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from meantime import __version__
from meantime.engines.local import LocalEngine
from meantime.kernel.argument_checks import check_all
from meantime.kernel.constraints import check_count, check_flag
from meantime.kernel.errors import InvalidInput
from meantime.kernel.placement import check_labels
from meantime.ports.carrier import OwnerCarrier, WorkerCarrier, check_name
from meantime.ports.clock import Clock
from meantime.runners.background_function import REGISTRY
from meantime.runners.function import FunctionRunner
from meantime.runners.shell.runner import ShellRunner
from meantime.runtime.settings import Settings
from meantime.system.platform import boot
from meantime.workers.journal import ClaimJournal
from meantime.workers.owner_key import Signer, Verifier
from meantime.workers.pools import WorkerPools
from meantime.workers.worker_process import Worker, WorkerSettings

from .local_owner import LOCAL
from .system_clock import SystemClock
from .worker_addresses import carrier_beside, key_path

MOST_SLOTS = 10_000
NOTHING = "nothing"  # a kind that no work has: a worker that lists no kind would count as one that may do all


def pools_of(carrier: OwnerCarrier | str, path: str | None, clock: Clock, settings: Settings) -> WorkerPools:
    """`path`: of the ledger, beside which the key lies; None is a ledger that forgets."""
    key = None if path is None else key_path(Path(path))
    return WorkerPools(
        _owner_end(carrier, path, settings),
        partial(Signer.load, key),
        clock,
        lease=settings.worker_lease,
        grace=settings.worker_grace,
        wait=settings.worker_wait,
    )


def _owner_end(carrier: OwnerCarrier | str, path: str | None, settings: Settings) -> OwnerCarrier:
    if isinstance(carrier, str):
        if path is None and carrier == LOCAL:
            raise InvalidInput(
                'carrier="local" keeps its files beside the ledger, and this ledger is in memory.',
                hint='Open a ledger in a file: Meantime.open("work.db", carrier="local").',
            )
        return carrier_beside(Path(path or ""), carrier, settings.place.values())
    missing = [name for name in ("open", "offer", "is_empty", "to_worker") if not hasattr(carrier, name)]
    if missing:
        raise InvalidInput(
            f"carrier must be an address or an OwnerCarrier, not {type(carrier).__name__}.",
            hint='Write carrier="local", or carrier="tls://USER:PASSWORD@HOST:4222".',
        )
    return carrier


def make_worker(
    carrier: WorkerCarrier,
    home: str | os.PathLike[str],
    owner_key: str,
    *,
    pool: str = "default",
    slots: int = 32,
    labels: Mapping[str, str] | None = None,
    tools: Iterable[str] = (),
    shell: bool = False,
    clock: Clock | None = None,
) -> Worker:
    """A worker with its own folder. It performs the functions of the modules in `tools` and, with `shell`,
    commands.

    carrier: the worker's end, under the name of its credentials.
    home: the folder of its journal and its commands; no other worker may use it.
    owner_key: the public key of the owner, whose offers alone are accepted.
    """
    folder = Path(os.fsdecode(os.fspath(home)))
    modules = tuple(check_all(tools, str, "tools"))
    functions = functions_of(modules)
    kinds = (*(("call",) if functions else ()), *(("shell",) if check_flag(shell, "shell") else ()))
    settings = WorkerSettings(
        pool=check_name("pool", pool),
        slots=check_count(slots, "slots", 1, MOST_SLOTS),
        labels={} if labels is None else check_labels(labels),
        kinds=kinds or (NOTHING,),
        functions=functions,
        version=__version__,
        boot=boot(),
    )
    engine = LocalEngine([FunctionRunner(), ShellRunner(folder / "commands")])
    journal = ClaimJournal(folder / "journal")
    return Worker(carrier, engine, journal, Verifier(owner_key), clock or SystemClock(), settings)


def functions_of(modules: Iterable[str]) -> tuple[str, ...]:
    """The names of the functions that these modules define. No other name is ever looked up."""
    found: set[str] = set()
    for name in modules:
        try:
            module = importlib.import_module(name)
        except Exception as problem:  # of somebody else's code
            raise InvalidInput(
                f"The module {name!r} of `tools` could not be imported: {type(problem).__name__}: {problem}.",
                hint="Install it where the worker runs, or correct its name.",
            ) from problem
        own = [one for _, one in inspect.getmembers(module, inspect.isfunction) if one.__module__ == name]
        found |= {f"{name}:{one.__qualname__}" for one in own}
        found |= {full for full in REGISTRY if full.partition(":")[0] == name}
    return tuple(sorted(found))
