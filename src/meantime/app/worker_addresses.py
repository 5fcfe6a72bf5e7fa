"""Where an owner and its workers meet: the configured carrier, or a private NATS server of this home."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from meantime.carriers.carrier_url import owner_carrier, worker_carrier
from meantime.carriers.nats.nats_address import NatsAddress
from meantime.carriers.nats.nats_owner import NatsOwner
from meantime.carriers.nats.nats_worker import NatsWorker
from meantime.carriers.nats.private_server import PrivateNats
from meantime.daemon.home import Home
from meantime.kernel.errors import InvalidInput
from meantime.kernel.pool_slots import POOL
from meantime.ports.carrier import CarrierState, FromWorker, OwnerCarrier, StateChanged, WorkerCarrier
from meantime.system.atomic_file import replace_file
from meantime.workers.owner_key import Signer

from .config_schema import Config, WorkerSection

_NOT_OPEN = CarrierState(up=False, reason="The private NATS server is not started.")
LOCAL = "local"  # the carrier, and the name of the worker on the owner's machine


class WorkerAddress(NamedTuple):
    carrier: WorkerCarrier
    owner_key: str
    is_own: bool = False  # of the daemon of this home, and so of the same person


class LocalJoin(Struct):
    """The content of `worker.json` in the home, for a worker on the owner's machine."""

    address: NatsAddress
    owner_key: str


class LocalOwner:
    """The owner's end at a private NATS server, which starts with it and ends with it."""

    def __init__(self, home: Home, pools: tuple[str, ...]) -> None:
        self._server = PrivateNats(home.folder / "nats")
        self._home = home
        self._pools = pools
        self._end: NatsOwner | None = None

    @property
    def state(self) -> CarrierState:
        return _NOT_OPEN if self._end is None else self._end.state

    @property
    def dropped(self) -> int:
        return 0 if self._end is None else self._end.dropped

    async def open(self, receive: FromWorker, changed: StateChanged) -> None:
        await self._server.start()
        try:
            address = self._server.add_worker(LOCAL, self._pools)
            join = LocalJoin(address, Signer.load(key_path(self._home.ledger)).public)
            replace_file(_join_path(self._home), msgspec.json.encode(join))
            self._end = NatsOwner(self._server.owner_address())
            await self._end.open(receive, changed)
        except BaseException:
            await self._server.stop()
            raise

    async def close(self) -> None:
        if self._end is not None:
            await self._end.close()
        await self._server.stop()

    async def add_pool(self, pool: str) -> None:
        if self._end is not None:
            await self._end.add_pool(pool)

    def offer(self, pool: str, key: str, data: bytes) -> bool:
        return self._end is not None and self._end.offer(pool, key, data)

    def withdraw(self, pool: str, key: str) -> None:
        if self._end is not None:
            self._end.withdraw(pool, key)

    async def is_empty(self, pool: str) -> bool:
        return self._end is not None and await self._end.is_empty(pool)

    def to_worker(self, worker: str, data: bytes) -> bool:
        return self._end is not None and self._end.to_worker(worker, data)


def key_path(ledger: Path) -> Path:
    return Path(f"{ledger.resolve()}.workers") / "owner.key"


def owner_carrier_of(home: Home, config: Config) -> OwnerCarrier | None:
    url = config.engine.carrier
    if not url:
        return None
    if url != LOCAL:
        return owner_carrier(url)
    pools = {place.removeprefix(POOL) for place in config.engine.place.values() if place.startswith(POOL)}
    return LocalOwner(home, ("default", *sorted(pools - {"default"})))


def worker_address(home: Home, given: WorkerSection) -> WorkerAddress:
    """The carrier that `[worker]` names, otherwise that of the daemon of this home."""
    if not given.carrier:
        return _local_address(home)
    if not given.owner_key:
        raise InvalidInput(
            "A worker needs the key of its owner.",
            hint="Set [worker] owner_key to what `meantime workers` prints on the owner's machine.",
        )
    name = given.name or socket.gethostname().partition(".")[0]
    return WorkerAddress(worker_carrier(given.carrier, name), given.owner_key)


def _local_address(home: Home) -> WorkerAddress:
    try:
        join = msgspec.json.decode(_join_path(home).read_bytes(), type=LocalJoin)
    except (OSError, msgspec.MsgspecError):
        raise InvalidInput(
            "There is no carrier to work for.",
            hint='Set [worker] carrier; or, for the daemon of this home, [engine] carrier = "local" and '
            "`meantime up`.",
        ) from None
    return WorkerAddress(NatsWorker(join.address, LOCAL), join.owner_key, is_own=True)


def _join_path(home: Home) -> Path:
    return home.folder / "worker.json"
