"""A connection to NATS, as both ends use it. `ends/carrier_end.py` reconnects, for every kind of server."""

from __future__ import annotations

import asyncio
import ssl
from abc import abstractmethod
from random import shuffle

from msgspec import Struct

from meantime.carriers.ends.carrier_end import CarrierEnd
from meantime.kernel.errors import InvalidInput, Refused
from meantime.ports.carrier import MOST_BYTES, StateChanged

from .nats_address import NatsAddress
from .nats_client import LoginRefused, NatsClient, check_nats, close, log_in
from .nats_subjects import NatsSubjects

LOOK = 1.0  # seconds between looks at the client
REFUSED = (
    "The server refuses the login {user} ({said}): it was revoked, or is another's. Join again with a new "
    "line, or correct the carrier's address."
)
HEADROOM = 4096  # bytes of a message besides its data


class Publication(Struct):
    subject: str
    data: bytes
    reply: str = ""


class NatsEnd(CarrierEnd[Publication]):
    def __init__(self, address: NatsAddress) -> None:
        super().__init__()
        check_nats()
        self._address = address
        self._subjects = NatsSubjects(address.space)
        self._client: NatsClient | None = None
        self._lost: asyncio.Future[str] | None = None
        self._tls: ssl.SSLContext | None = None

    async def _open(self, changed: StateChanged) -> None:
        self._tls = self._address.tls()  # before anything is tried: a wrong file cannot be waited for
        await super()._open(changed)

    @abstractmethod
    async def _prepare(self, client: NatsClient) -> None:
        """Subscribes, on a new connection."""

    async def _connect(self) -> None:
        servers = list(self._address.servers)
        shuffle(servers)
        problem: Exception = ConnectionError("There is no server.")
        for server in servers:  # without its own reconnects, the client would try only the first
            try:
                await self._connect_to(server)
                return
            except Exception as failure:
                problem = failure
        raise problem

    async def _connect_to(self, server: str) -> None:
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        said = ""  # by the server

        async def closed() -> None:
            if not lost.done():
                lost.set_result(said or "The connection to NATS was lost.")

        async def failed(problem: Exception) -> None:
            nonlocal said
            said = str(problem) or type(problem).__name__

        try:
            client = await log_in(
                server,
                user=self._address.user,
                password=self._address.password,
                tls=self._tls,
                tls_name=self._address.tls_name,
                failed=failed,
                closed=closed,
            )
        except LoginRefused as refused:
            raise Refused(REFUSED.format(user=self._address.user or "nobody", said=refused)) from None
        try:
            if client.max_payload < MOST_BYTES + HEADROOM:
                raise InvalidInput(
                    f"The server takes messages up to {client.max_payload:,} bytes only.",
                    hint=f"Set its max_payload to at least {MOST_BYTES + HEADROOM:,}.",
                )
            await self._prepare(client)
        except BaseException:
            await close(client)
            raise
        self._client, self._lost = client, lost

    async def _until_lost(self) -> str:
        assert self._lost is not None
        while not self._lost.done():
            await asyncio.wait((self._lost,), timeout=LOOK)
            # The client finds that a frozen server answers no ping, then waits for it while it closes.
            if not self._lost.done() and (self._client is None or not self._client.is_connected):
                return "NATS does not answer."
        return self._lost.result()

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await close(client)

    async def _write(self, batch: list[Publication]) -> None:
        assert self._client is not None
        for each in batch:
            await self._client.publish(each.subject, each.data, each.reply)
