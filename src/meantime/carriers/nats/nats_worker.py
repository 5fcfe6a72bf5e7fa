"""A worker's end on NATS. It pulls by hand: the client's own `fetch` waits until a batch is full."""

from __future__ import annotations

import asyncio

import msgspec

from meantime.carriers.ends.callback_guard import call_back
from meantime.kernel.errors import InvalidInput
from meantime.ports.carrier import (
    FromOwner,
    Offered,
    StateChanged,
    check_free,
    check_name,
    check_size,
)

from .nats_address import NatsAddress
from .nats_client import NatsClient, NatsMessage
from .nats_end import NatsEnd, Publication

PAUSE = 0.2  # seconds before a queue that is not there is asked for again
ANSWER_WAIT = 3.0  # seconds for the server to say that there is nothing
MOST_LINGER = 30.0  # seconds that the server keeps one request
NOTHING, EXPIRED = "404", "408"  # the server's codes


class _Pull:
    """One request, and what came of it."""

    def __init__(self, reply: str, free: int) -> None:
        self.reply = reply  # the subject of the answers
        self.free = free
        self.offers: list[Offered] = []
        self.code = ""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finish(self, code: str = "") -> None:
        self.code = code
        if not self.done.done():
            self.done.set_result(None)


class NatsWorker(NatsEnd):
    """Args:
    address: The server, with the worker's own account.
    worker: The worker's name, which its account is limited to.
    """

    def __init__(self, address: NatsAddress, worker: str) -> None:
        super().__init__(address)
        self._worker = check_name("worker", worker)
        self._receive: FromOwner | None = None
        self._pulling: _Pull | None = None
        self._number = 0

    @property
    def worker(self) -> str:
        return self._worker

    async def open(self, receive: FromOwner, changed: StateChanged) -> None:
        self._receive = receive
        await self._open(changed)

    async def close(self) -> None:
        self._receive = None
        await super().close()

    async def pull(self, pool: str, free: int, wait: float) -> list[Offered]:
        check_name("pool", pool)
        check_free(free)
        if self._pulling is not None:
            raise InvalidInput("This worker pulls already.", hint="Wait for one pull before the next.")
        over = asyncio.get_running_loop().time() + wait
        while not self._is_closed:
            offers = await self._pull_once(pool, free, over)
            if offers or asyncio.get_running_loop().time() >= over:
                return offers
        return []

    def acknowledge(self, offered: Offered) -> None:
        self._send(Publication(offered.receipt, b"+ACK"), 0)

    def release(self, offered: Offered) -> None:
        self._send(Publication(offered.receipt, b"-NAK"), 0)

    def to_owner(self, data: bytes) -> bool:
        subject = self._subjects.to_owner(self._worker)
        return self._send(Publication(subject, check_size("message", data)), len(data))

    async def _pull_once(self, pool: str, free: int, over: float) -> list[Offered]:
        """Everything that is there at once; otherwise the next that comes."""
        left = over - asyncio.get_running_loop().time()
        if not await self.until_up(left):
            return []
        there = await self._request(pool, free, {"batch": free, "no_wait": True}, ANSWER_WAIT)
        if there.offers:
            return there.offers
        linger = min(over - asyncio.get_running_loop().time(), MOST_LINGER)
        if linger <= 0:
            return []
        if there.code == NOTHING:
            expires = {"batch": 1, "expires": int(linger * 1e9)}
            there = await self._request(pool, 1, expires, linger)
        if not there.offers and there.code not in ("", NOTHING, EXPIRED):  # there is no queue, or not yet
            await asyncio.sleep(min(PAUSE, max(0.0, over - asyncio.get_running_loop().time())))
        return there.offers

    async def _request(self, pool: str, free: int, request: dict[str, int], wait: float) -> _Pull:
        self._number += 1
        pull = self._pulling = _Pull(f"{self._subjects.pulled(self._worker)}.{self._number}", free)
        body = msgspec.json.encode(request)
        try:
            if self._send(Publication(self._subjects.next_of(pool), body, pull.reply), len(body)):
                await asyncio.wait((pull.done,), timeout=wait)
            else:
                pull.finish("down")
        except asyncio.CancelledError:
            for offered in pull.offers:
                self.release(offered)
            raise
        finally:
            self._pulling = None
        return pull

    async def _prepare(self, client: NatsClient) -> None:
        await client.subscribe(self._subjects.to_worker(self._worker), cb=self._take_message)
        await client.subscribe(f"{self._subjects.pulled(self._worker)}.*", cb=self._take_pulled)
        await client.flush()

    async def _disconnect(self) -> None:
        if self._pulling is not None:
            self._pulling.finish("down")
        await super()._disconnect()

    async def _take_message(self, message: NatsMessage) -> None:
        if self._receive is not None:
            call_back(self._receive, message.data)

    async def _take_pulled(self, message: NatsMessage) -> None:
        """An offer, under its own subject; or the server's word that no more come, under the request's."""
        pull = self._pulling
        if message.subject.startswith(self._subjects.pulled(self._worker)):
            if pull is not None and message.subject == pull.reply:
                pull.finish((message.headers or {}).get("Status", ""))
            return
        *_, pool, key = message.subject.split(".")
        offered = Offered(pool, key, message.data, message.reply)
        if pull is None or pull.done.done() or len(pull.offers) >= pull.free:
            self.release(offered)  # of a request that nobody waits for any more
            return
        pull.offers.append(offered)
        if len(pull.offers) == pull.free:
            pull.finish()
