"""What the account of a worker can do on the private NATS server, and what it cannot; TLS."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.errors import Error
from tests.waiting import until_async

from meantime.carriers.nats.nats_address import NatsAddress
from meantime.carriers.nats.nats_owner import NatsOwner
from meantime.carriers.nats.nats_worker import NatsWorker
from meantime.carriers.nats.private_server import PrivateNats
from meantime.carriers.nats.tls_certificates import make_certificates
from meantime.kernel.errors import InvalidInput
from meantime.testing.carrier.carrier_site import Ends

from .nats_site import NatsSite, nats_site

pytestmark = [pytest.mark.servers, pytest.mark.anyio]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncGenerator[NatsSite]:
    async with nats_site(tmp_path / "nats") as site:
        async with Ends(site) as ends:
            await ends.worker("w1")  # the server has read its accounts
        yield site


class Intruder:
    """A client with the account of a worker, without our code in between."""

    def __init__(self, address: NatsAddress) -> None:
        self._address = address
        self.client = Client()
        self.refusals: list[str] = []

    async def __aenter__(self) -> Intruder:
        await until_async(self._is_connected, "the intruder is connected")
        return self

    async def _is_connected(self) -> bool:
        """A server that reads its accounts again cuts off or refuses who comes at that moment."""
        with suppress(OSError, Error):
            await self._connect()
        if not self.client.is_connected:  # the package takes the end of the connection for an answer
            self.client = Client()
            return False
        return True

    async def _connect(self) -> None:
        async def refused(problem: Exception) -> None:
            self.refusals.append(str(problem).lower())

        await self.client.connect(
            f"nats://{self._address.servers[0]}",
            user=self._address.user,
            password=self._address.password,
            error_cb=refused,
            allow_reconnect=False,
        )

    async def __aexit__(self, *problem: object) -> None:
        await self.client.close()

    async def publish(self, subject: str, data: bytes = b"") -> None:
        await self.client.publish(subject, data, reply="meantime.worker.w1.pull.9")
        await self.client.flush()

    async def is_refused(self, subject: str) -> None:
        await until_async(
            lambda: any(subject.lower() in text for text in self.refusals), f"{subject} is refused"
        )


@pytest.mark.parametrize(
    "subject",
    [
        "meantime.offer.red.forged",  # inject work
        "meantime.worker.w2.message",  # speak for the owner
        "meantime.owner.w2",  # speak for another worker
        "meantime.taken.1",  # confirm an offer of the owner
        "$JS.API.STREAM.PURGE.meantime_meantime",
        "$JS.API.STREAM.DELETE.meantime_meantime",
        "$JS.API.STREAM.MSG.GET.meantime_meantime",
        "$JS.API.STREAM.INFO.meantime_meantime",
        "$JS.API.CONSUMER.DELETE.meantime_meantime.red",
        "$JS.API.CONSUMER.DURABLE.CREATE.meantime_meantime.mine",
        "$JS.API.CONSUMER.MSG.NEXT.meantime_meantime.green",  # a pool that is not its own
        "$JS.ACK.meantime_meantime.green.1.1.1.1.0",
        "$SYS.REQ.SERVER.PING",
    ],
)
async def test_a_worker_cannot_publish(site: NatsSite, subject: str) -> None:
    async with Ends(site) as ends:
        owner = await ends.owner("red", "green")
        async with Intruder(site.server.worker_address("w1")) as intruder:
            await intruder.publish(subject, b"{}")
            await intruder.is_refused(subject)
        await owner.empty("red")
        assert owner.received == []


@pytest.mark.parametrize(
    "subject",
    [">", "meantime.>", "meantime.owner.w1", "meantime.worker.w2.message", "meantime.offer.>", "_INBOX.>"],
)
async def test_a_worker_cannot_listen_to_others(site: NatsSite, subject: str) -> None:
    async with Intruder(site.server.worker_address("w1")) as intruder:
        await intruder.client.subscribe(subject)
        await intruder.client.flush()
        await intruder.is_refused(subject)


async def test_an_account_that_was_removed_is_disconnected(site: NatsSite) -> None:
    async with Ends(site) as ends:
        worker = await ends.worker("w1")
        await until_async(lambda: worker.carrier.state.up, "the worker is connected")
        site.server.remove_worker("w1")
        await until_async(lambda: not worker.carrier.state.up, "the worker is disconnected")
        await until_async(lambda: "uthorization" in worker.carrier.state.reason, "it is told why")
        site.server.add_worker("w2", ("red",))
        other = await ends.worker("w2")
        await until_async(lambda: other.carrier.state.up, "the other one is connected")


async def test_nobody_connects_without_a_login(site: NatsSite) -> None:
    worker = NatsWorker(NatsAddress(site.server.owner_address().servers), "w1")
    await worker.open(lambda data: None, lambda state: None)
    try:
        await until_async(
            lambda: "uthorization" in worker.state.reason, "it is told why", lambda: worker.state
        )
        assert not worker.state.up
    finally:
        await worker.close()


async def test_files_of_the_server_are_private_and_hold_no_offer(site: NatsSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker("w1")
        async with worker.working("red", acknowledges=False):
            await owner.offer_until("red", "k1", b"an-offer-in-the-queue", lambda: worker.pulled)
        await owner.say_until("w1", b"a-secret-of-the-grant", lambda: worker.received)
        found = [path for path in site.folder.rglob("*") if path.is_file()]
        assert {"nats.conf", "server.json"} <= {path.name for path in found}
        for path in found:
            assert path.stat().st_mode & 0o077 == 0, path
            for secret in (b"an-offer-in-the-queue", b"a-secret-of-the-grant"):
                assert secret not in path.read_bytes(), path
    assert site.folder.stat().st_mode & 0o077 == 0


async def test_tls_with_an_authority_of_our_own(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    made = make_certificates(tmp_path / "tls", ["127.0.0.1", "localhost"], now)
    again = make_certificates(tmp_path / "tls", ["127.0.0.1"], now)
    assert made.fingerprint == again.fingerprint, "the authority stays"
    for path in (tmp_path / "tls").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    server = PrivateNats(tmp_path / "nats", certificates=again)
    await server.start()
    try:
        owner = NatsOwner(server.owner_address())
        await owner.open(lambda worker, data: None, lambda state: None)
        await until_async(lambda: owner.state.up, "the owner is connected", lambda: owner.state.reason)
        await owner.close()
        stranger = make_certificates(tmp_path / "other", ["127.0.0.1"], now)
        for address in (
            NatsAddress(
                server.owner_address().servers, "owner", "x", ca_file=stranger.ca_file, is_secure=True
            ),
            NatsAddress(server.owner_address().servers, "owner", "x"),  # in the clear
        ):
            refused = NatsOwner(address)
            await refused.open(lambda worker, data: None, lambda state: None)
            assert not refused.state.up
            await refused.close()
    finally:
        await server.stop()


def test_a_server_for_others_needs_tls(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="in the clear"):
        PrivateNats(tmp_path, host="0.0.0.0")
