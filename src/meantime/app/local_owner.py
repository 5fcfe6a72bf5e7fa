"""The owner's end at a private NATS server, which starts with it and ends with it."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.carriers.nats.join_answers import answer_join, own_line
from meantime.carriers.nats.nats_address import LOOPBACK, NatsAddress
from meantime.carriers.nats.nats_owner import NatsOwner
from meantime.carriers.nats.private_server import PrivateNats
from meantime.carriers.nats.server_accounts import WILDCARDS
from meantime.carriers.nats.tls_certificates import CarrierCertificates, make_certificates
from meantime.kernel.argument_checks import shown
from meantime.kernel.errors import InvalidInput
from meantime.ports.carrier import CarrierState, FromWorker, StateChanged
from meantime.system.atomic_file import replace_file
from meantime.workers.owner_key import Signer

_NOT_OPEN = CarrierState(up=False, reason="The private NATS server is not started.")
LOCAL = "local"  # the carrier, and the name of the worker on the owner's machine that has no other name


class LocalJoin(Struct):
    """The content of `worker.json`, for workers on the owner's machine: the login of the worker `local`, and
    a join line for others of the same user."""

    address: NatsAddress
    owner_key: str
    pools: tuple[str, ...] = ()
    line: str = ""


class ListenAddress(Struct, frozen=True):
    host: str = LOOPBACK
    port: int = 0  # any that is free, then always the same
    is_for_others: bool = False

    def certificates(self, folder: Path) -> CarrierCertificates | None:
        if not self.is_for_others:
            return None
        own = {self.host, WILDCARDS.get(self.host, self.host), socket.gethostname()} - set(WILDCARDS)
        return make_certificates(folder, sorted(own), datetime.now(UTC))


def read_listen(text: str) -> ListenAddress:
    """Reads `ADDRESS`, `ADDRESS:PORT` or `[IPV6]:PORT`; empty is loopback, for this machine only."""
    if not text:
        return ListenAddress()
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):  # no port, or an IPv6 address without one
        host, port = text, "0"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not port.isdecimal() or not 0 <= int(port) <= 65535 or any(one in host for one in "/@ ["):
        raise InvalidInput(
            f"{shown(text)} is not an address to listen on.",
            hint="Use ADDRESS or ADDRESS:PORT, such as 192.168.1.5:4222; 0.0.0.0 is every address.",
        )
    return ListenAddress(host, int(port), is_for_others=True)


class LocalOwner:
    """Args:
    folder: The folder of the server's files.
    join_file: Where workers of the same machine and user find it.
    key: File of the owner's key.
    pools: The pools of the worker `local`.
    listen: Where the server listens; for others, with TLS.
    """

    def __init__(
        self, folder: Path, join_file: Path, key: Path, pools: tuple[str, ...], listen: ListenAddress
    ) -> None:
        self._folder = folder
        self._join_file = join_file
        self._key = key
        self._pools = pools
        self._listen = listen
        self._server: PrivateNats | None = None
        self._end: NatsOwner | None = None

    @property
    def state(self) -> CarrierState:
        return _NOT_OPEN if self._end is None else self._end.state

    @property
    def dropped(self) -> int:
        return 0 if self._end is None else self._end.dropped

    async def open(self, receive: FromWorker, changed: StateChanged) -> None:
        signer = Signer.load(self._key)
        server = self._server = PrivateNats(
            self._folder,
            host=self._listen.host,
            port=self._listen.port,
            certificates=self._listen.certificates(self._folder / "tls"),
            owner_key=signer.public,
        )
        await server.start()
        try:
            address = server.add_worker(LOCAL, self._pools, is_own=True)
            line = own_line(server.files).text()
            join = LocalJoin(address, signer.public, self._pools, line)
            replace_file(self._join_file, msgspec.json.encode(join))

            def join_requested(id: str, data: bytes) -> bytes | None:
                answer = answer_join(server.files, id, data)
                return None if answer is None else signer.signed(msgspec.json.encode(answer))

            self._end = NatsOwner(server.owner_address(), join=join_requested)
            await self._end.open(receive, changed)
        except BaseException:
            await server.stop()
            raise

    async def close(self) -> None:
        if self._end is not None:
            await self._end.close()
        if self._server is not None:
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
