"""Where an owner and its workers meet: a configured carrier, a private NATS server, or one joined before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from meantime.carriers.carrier_url import owner_carrier, worker_carrier
from meantime.carriers.nats.join_line import read_join_line
from meantime.carriers.nats.nats_worker import NatsWorker
from meantime.daemon.home import Home
from meantime.kernel.errors import InvalidInput
from meantime.kernel.limits import POOL
from meantime.ports.carrier import OwnerCarrier, WorkerCarrier

from .config_schema import Config, WorkerSection
from .local_owner import LOCAL, LocalOwner, read_listen
from .worker_logins import GivenLine, WorkerLogin, default_name, join_owner, read_local, stored_logins


class WorkerAddress(NamedTuple):
    carrier: WorkerCarrier
    owner_key: str
    is_own: bool = False  # of a daemon of this machine and user
    pools: tuple[str, ...] = ()  # that its login may take work of; empty: not known here


def key_path(ledger: Path) -> Path:
    return Path(f"{ledger.resolve()}.workers") / "owner.key"


def join_file(home: Home) -> Path:
    return home.folder / "worker.json"


def owner_carrier_of(home: Home, config: Config) -> OwnerCarrier | None:
    url, listen = config.engine.carrier, config.engine.listen
    if listen and url != LOCAL:
        raise InvalidInput(
            f'[engine] listen is of the carrier "local", and the carrier is {url.partition("://")[0]!r}.',
            hint='Set [engine] carrier = "local", or leave listen out.',
        )
    if not url:
        return None
    if url != LOCAL:
        return owner_carrier(url)
    pools = pools_of_places(config.engine.place.values())
    return LocalOwner(
        home.folder / "nats", join_file(home), key_path(home.ledger), pools, read_listen(listen)
    )


def carrier_beside(ledger: Path, url: str, places: Iterable[str]) -> OwnerCarrier:
    """The owner's end of a ledger that a program opened. The files of a private server are beside the
    ledger, and `meantime worker --join LEDGER.workers/worker.json` works for it."""
    if url != LOCAL:
        return owner_carrier(url)
    key = key_path(ledger)
    folder = key.parent
    folder.mkdir(mode=0o700, exist_ok=True)
    return LocalOwner(folder / "nats", folder / "worker.json", key, pools_of_places(places), read_listen(""))


def pools_of_places(places: Iterable[str]) -> tuple[str, ...]:
    pools = {place.removeprefix(POOL) for place in places if place.startswith(POOL)}
    return ("default", *sorted(pools - {"default"}))


async def worker_address(home: Home, given: WorkerSection, name: str, pool: str) -> WorkerAddress:
    """The end of the worker of this name; empty is the only one that joined, or the one of this home's
    daemon. A worker of this home's daemon that has no login yet gets one."""
    name = name or given.name
    if given.carrier:
        return _configured(given, name or default_name())
    login = _stored(home, name)
    if login is not None and not login.is_own:
        return _joined(login, pool)
    local = read_local(join_file(home))
    if login is not None and pool in login.pools:  # the daemon may listen elsewhere since
        address = replace(local.address, user=login.address.user, password=login.address.password)
        return _joined(replace(login, address=address), pool)
    if name in ("", LOCAL) and login is None and pool in local.pools:
        return WorkerAddress(NatsWorker(local.address, LOCAL), local.owner_key, is_own=True)
    line = GivenLine(read_join_line(local.line), is_own=True)
    return _joined(await join_owner(home, line, name or LOCAL, pool), pool)


def _configured(given: WorkerSection, name: str) -> WorkerAddress:
    if not given.owner_key:
        raise InvalidInput(
            "A worker needs the key of its owner.",
            hint="Set [worker] owner_key to what `meantime workers` prints on the owner's machine.",
        )
    return WorkerAddress(worker_carrier(given.carrier, name), given.owner_key)


def _stored(home: Home, name: str) -> WorkerLogin | None:
    known = {login.name: login for login in stored_logins(home)}
    if name:
        return known.get(name)
    joined = [login for login in known.values() if not login.is_own]
    if len(joined) > 1:
        raise InvalidInput(
            f"Several workers joined from this machine: {', '.join(one.name for one in joined)[:300]}.",
            hint="Say which one this is: meantime worker --name NAME",
        )
    return joined[0] if joined else known.get(LOCAL)


def _joined(login: WorkerLogin, pool: str) -> WorkerAddress:
    if pool not in login.pools:
        raise InvalidInput(
            f"The login of worker {login.name!r} is for pool {', '.join(login.pools)}, not for {pool!r}.",
            hint=f"On the owner's machine: meantime workers revoke {login.name}, then "
            f"meantime workers join-line --pool {pool}; join again with that line.",
        )
    return WorkerAddress(NatsWorker(login.address, login.name), login.owner_key, login.is_own, login.pools)
